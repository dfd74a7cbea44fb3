"""Search for schedules: workloads, loop states, sketches, measurements and their records."""

from __future__ import annotations

from tvm._older_names import hints_for

from . import (
    cost_model,
    feature,
    measure,
    measure_record,
    search_policy,
    search_task,
    utils,
    workload_registry,
)
from .compute_dag import (
    ComputeDAG,
    LayoutRewriteOption,
    LayoutTransform,
    get_shape_from_rewritten_layout,
    pack_array,
    rewrite_compute_body,
)
from .cost_model import CostModel, PythonBasedModel, RandomModel, XGBModel
from .dispatcher import (
    ApplyHistoryBest,
    ApplyHistoryBestOrSample,
    DispatchContext,
    FallbackContext,
)
from .loop_state import Iterator, LoopPart, Stage, State, StateObject
from .measure import (
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    ProgramBuilder,
    ProgramMeasurer,
    ProgramRunner,
    RPCRunner,
)
from .measure_callback import MeasureCallback, PythonBasedMeasureCallback
from .measure_node import (
    BuildResult,
    Candidate,
    LibraryCandidate,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    ModuleCandidate,
    recover_measure_input,
)
from .measure_record import (
    RecordReader,
    RecordToFile,
    load_best_record,
    load_record_from_string,
    load_records,
    save_records,
)
from .measure_session import MeasureSession, confirm_records
from .record_store import RecordStore, RecordToStore
from .relax_integration import extract_tasks
from .search_policy import (
    EmptyPolicy,
    PreloadCustomSketchRule,
    PreloadMeasuredStates,
    SearchCallback,
    SearchPolicy,
    SketchPolicy,
)
from .search_space import feature_names, search_spaces
from .search_task import (
    HardwareParams,
    SearchTask,
    create_task,
    get_task_input_buffer,
    register_task_input_buffer,
    register_task_input_check_func,
)
from .simulated import SimulatedRunner, modeled_seconds, simulated
from .task_scheduler import (
    TaskScheduler,
    auto_schedule,
    make_search_policies,
    register_search_policy,
)
from .tuning import TuningOptions
from .workload_registry import (
    make_workload_key,
    register_workload,
    register_workload_tensors,
    workload_key_to_tensors,
)

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "BuildResult",
    "Candidate",
    "ComputeDAG",
    "CostModel",
    "DispatchContext",
    "EmptyPolicy",
    "FallbackContext",
    "HardwareParams",
    "Iterator",
    "LayoutRewriteOption",
    "LayoutTransform",
    "LibraryCandidate",
    "LoopPart",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "MeasureSession",
    "ModuleCandidate",
    "PreloadCustomSketchRule",
    "PreloadMeasuredStates",
    "ProgramBuilder",
    "ProgramMeasurer",
    "ProgramRunner",
    "RPCRunner",
    "PythonBasedMeasureCallback",
    "PythonBasedModel",
    "RandomModel",
    "RecordReader",
    "RecordStore",
    "RecordToFile",
    "RecordToStore",
    "SearchCallback",
    "SearchPolicy",
    "SearchTask",
    "SimulatedRunner",
    "SketchPolicy",
    "Stage",
    "State",
    "StateObject",
    "XGBModel",
    "cost_model",
    "TaskScheduler",
    "TuningOptions",
    "auto_schedule",
    "confirm_records",
    "create_task",
    "extract_tasks",
    "feature",
    "feature_names",
    "get_shape_from_rewritten_layout",
    "get_task_input_buffer",
    "load_best_record",
    "load_record_from_string",
    "load_records",
    "make_search_policies",
    "make_workload_key",
    "measure",
    "measure_record",
    "modeled_seconds",
    "pack_array",
    "recover_measure_input",
    "register_search_policy",
    "register_task_input_buffer",
    "register_task_input_check_func",
    "register_workload",
    "register_workload_tensors",
    "rewrite_compute_body",
    "save_records",
    "search_policy",
    "search_task",
    "search_spaces",
    "simulated",
    "utils",
    "workload_key_to_tensors",
    "workload_registry",
]

__getattr__ = hints_for(__name__)
