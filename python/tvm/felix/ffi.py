"""Typed wrappers of the native functions of the symbolic auto-scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm import auto_scheduler
from tvm._older_names import hints_for
from tvm.arith import Analyzer
from tvm.auto_scheduler.loop_state import StateObject, state_object_of
from tvm.tir import PrimExpr, PrimFunc, Var, const, stmt_functor

from . import _ffi_api
from .feature_pack import FeaturePackPy, LinearExpr
from .tape import ITERATIONS, NODE_LIMIT

__all__ = [
    "FeaturePackPy",
    "LinearExpr",
    "extract_backbone",
    "extract_config_dict",
    "generate_all_sym_sketches",
    "generate_code_for_state",
    "get_feature_pack",
    "get_loop_bounds",
    "measure_performance",
    "print_state_tr_steps",
    "state_from_config",
    "subst_by_name",
]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)


def generate_all_sym_sketches(
    task: auto_scheduler.SearchTask | auto_scheduler.SearchPolicy,
    max_sketches: int = 8,
    search_space: str = "felix",
) -> tuple[list[StateObject], list[str]]:
    """Symbolic sketches of a task, at most `max_sketches`, and why other structures failed.

    Parameters
    ----------
    task : or a policy, whose task is meant.

    Raises
    ------
    ValueError : the task's target has no space `search_space`.
    """
    if isinstance(task, auto_scheduler.SearchPolicy):
        task = task.search_task
    states, failures = _ffi_api.GenerateAllSymSketches(task, max_sketches, search_space)
    return list(states), [str(failure) for failure in failures]


def generate_code_for_state(
    task: auto_scheduler.SearchTask, state: Any, symbolic: bool, search_space: str = "felix"
) -> tuple[PrimFunc, Any]:
    """The lowered program of a state, not yet flattened, and the context of its variables.

    With `symbolic`, the lengths of the state are knobs of the search space.
    """
    code, context = _ffi_api.GenerateCodeForState(
        task, state_object_of(state), symbolic, search_space
    )
    return code, context


def get_feature_pack(
    task: auto_scheduler.SearchTask,
    code: PrimFunc,
    context: Any,
    search_space: str = "felix",
    iterations: int = ITERATIONS,
    node_limit: int = NODE_LIMIT,
) -> FeaturePackPy:
    """Features and constraints of a symbolic program, those of the search space.

    `iterations` and `node_limit` bound the equality saturation of the tape; without iterations it
    stays as smoothing leaves it.

    Raises
    ------
    ValueError : the constraints cannot be met by any tiling, or the task's target has no space
        `search_space`.
    """
    return _ffi_api.GetFeaturePack(task, code, context, search_space, iterations, node_limit)


def extract_backbone(state: Any) -> tuple[str, ...]:
    """Tags of the transform steps, the same for all tile sizes of one sketch."""
    return tuple(str(tag) for tag in _ffi_api.ExtractBackbone(state_object_of(state)))


def print_state_tr_steps(state: Any) -> str:
    """One line per transform step."""
    return str(_ffi_api.PrintTrStep(state_object_of(state)))


def get_loop_bounds(task: auto_scheduler.SearchTask, state: Any) -> list[tuple[str, str, Any]]:
    """(stage, loop, range) of every loop of a state."""
    bounds = _ffi_api.GetLoopBounds(task, state_object_of(state))
    return [(str(stage), str(loop), extent) for stage, loop, extent in bounds]


def extract_config_dict(sketch_state: Any, state: Any) -> dict[str, int] | None:
    """Knob values by which a sketch gives a concrete state, or None for another structure."""
    config = _ffi_api.ExtractConfigDict(state_object_of(sketch_state), state_object_of(state))
    return None if config is None else {str(k): int(v) for k, v in config.items()}


def state_from_config(
    task: auto_scheduler.SearchTask, sketch_state: Any, config: Mapping[str, int]
) -> StateObject:
    """The concrete state of a sketch with the given knob values.

    Raises
    ------
    ValueError : a knob has no value, or a value has no knob.
    """
    values = {name: int(value) for name, value in config.items()}
    return _ffi_api.StateFromConfig(task, state_object_of(sketch_state), values)


def measure_performance(
    inputs: Sequence[auto_scheduler.MeasureInput],
    measurer: auto_scheduler.ProgramMeasurer | None = None,
) -> list[auto_scheduler.MeasureResult]:
    """Build and time programs; one result each, whose costs are in seconds.

    Parameters
    ----------
    measurer : by default a new one with LocalBuilder and LocalRunner.

    Raises
    ------
    RuntimeError : a worker does not start.
    """
    if measurer is None:
        measurer = auto_scheduler.ProgramMeasurer()
    return list(_ffi_api.MeasurePerformance(measurer, list(inputs)))


def subst_by_name(expr: PrimExpr, values: Mapping[str, int]) -> PrimExpr:
    """The expression with numbers in place of the variables of these names; others stay."""
    found: dict[Var, PrimExpr] = {}

    def visit(node: object) -> None:
        if isinstance(node, Var) and str(node.name) in values:
            found[node] = const(values[str(node.name)], str(node.dtype))

    stmt_functor.post_order_visit(expr, visit)
    return Analyzer().simplify(stmt_functor.substitute(expr, found))
