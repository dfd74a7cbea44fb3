"""Derivation of sketches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _ffi_api
from .loop_state import State, StateObject
from .search_task import SearchTask

__all__ = ["PreloadCustomSketchRule", "SketchPolicy"]


class PreloadCustomSketchRule:
    """A sketch rule given by two functions.

    Parameters
    ----------
    meet_condition_func : (task, state, stage_id) -> PASS, APPLY or APPLY_AND_SKIP_REST.
    apply_func : (task, state, stage_id) -> list of [state, id of the stage to look at next].
    """

    PASS, APPLY, APPLY_AND_SKIP_REST = 0, 1, 2

    def __init__(
        self,
        meet_condition_func: Callable[[SearchTask, StateObject, int], int],
        apply_func: Callable[[SearchTask, StateObject, int], list[list[Any]]],
    ) -> None:
        self.meet_condition_func = meet_condition_func
        self.apply_func = apply_func


class SketchPolicy:
    """Ansor's rules for sketches on a CPU.

    Parameters
    ----------
    task : what is scheduled.
    tiling_structure : levels of a tiled stage, S for space axes and R for reduction axes.
    init_search_callbacks : PreloadCustomSketchRule objects; their rules are asked first.
    """

    def __init__(
        self,
        task: SearchTask,
        tiling_structure: str = "SSRSRS",
        init_search_callbacks: Sequence[PreloadCustomSketchRule] = (),
    ) -> None:
        self.task = task
        self.tiling_structure = tiling_structure
        self.custom_rules = list(init_search_callbacks)

    def generate_sketches(self) -> list[State]:
        """All sketches: states whose tile sizes are open."""
        rules = [[rule.meet_condition_func, rule.apply_func] for rule in self.custom_rules]
        states = _ffi_api.SketchPolicyGenerateSketches(
            self.task, "ansor", self.tiling_structure, rules
        )
        return [State(state, self.task.compute_dag) for state in states]
