"""Measuring points of templates."""

from ..measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from .measure import Builder, BuildResult, Runner, create_measure_batch
from .measure_methods import (
    LocalBuilder,
    LocalRunner,
    RPCRunner,
    check_remote,
    default_module_loader,
    measure_option,
    request_remote,
)
