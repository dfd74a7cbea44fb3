"""Searching schedules of tensor programs that are written as random choices over traces.

Shao et al., "Tensor Program Optimization with Probabilistic Programs" (NeurIPS 2022).
"""

from . import (
    arg_info,
    builder,
    cost_model,
    database,
    feature_extractor,
    few_shot,
    logging,
    measure_callback,
    module_equality,
    mutator,
    postproc,
    profiler,
    relax_integration,
    relay_integration,
    runner,
    schedule_rule,
    search_strategy,
    space_generator,
    task_scheduler,
    tir_integration,
    trace_apply,
    utils,
)
from .arg_info import ArgInfo, TensorInfo
from .builder import Builder
from .candidate import MeasureCandidate
from .cost_model import CostModel
from .database import Database
from .extracted_task import ExtractedTask
from .feature_extractor import FeatureExtractor
from .measure_callback import MeasureCallback
from .mutator import Mutator
from .postproc import Postproc
from .profiler import Profiler
from .runner import Runner
from .schedule_rule import ScheduleRule
from .search_strategy import SearchStrategy
from .space_generator import SpaceGenerator
from .task_scheduler import TaskScheduler
from .tir_integration import compile_tir, tune_tir
from .tune import tune_tasks
from .tune_context import TuneContext
from .utils import derived_object
