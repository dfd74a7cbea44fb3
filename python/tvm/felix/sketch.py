"""One symbolic schedule: loop structure fixed, tile sizes open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from tvm._older_names import hints_for
from tvm.auto_scheduler import SearchTask, State

from . import ffi
from .feature_pack import FeaturePackPy

__all__ = ["Sketch", "Task"]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)


class Task(Protocol):
    """What a sketch asks of the task that it belongs to."""

    @property
    def ansor_task(self) -> SearchTask: ...

    @property
    def sizes(self) -> Mapping[str, int]: ...

    search_space: str


class Sketch:
    """A loop structure of a task whose tile sizes are variables.

    Attributes
    ----------
    parent_task : the SymTask it belongs to.
    index : its position among the task's sketches, which records and data sets refer to.
    state : the symbolic loop state.
    state_repr : text of the state; equal texts mean equal sketches.
    tr_steps : text of the transform steps.
    backbone : tuple of step tags, e.g. ("SP", "RE", "FU", "AN").
    code, context : lowered program with the variables left in, and what is known of them.
    """

    def __init__(self, parent_task: Task, index: int, state: State) -> None:
        self.parent_task = parent_task
        self.index = index
        self.state = state
        self.state_repr = str(state)
        self.code, self.context = ffi.generate_code_for_state(
            parent_task.ansor_task, state, True, parent_task.search_space
        )
        self.backbone = ffi.extract_backbone(state)
        self.tr_steps = ffi.print_state_tr_steps(state)

    @cached_property
    def _features(self) -> FeaturePackPy:
        task = self.parent_task
        return ffi.get_feature_pack(
            task.ansor_task, self.code, self.context, task.search_space, iterations=0
        )

    def fetch_features(self) -> FeaturePackPy:
        """Features and constraints over the exponents, as smoothing leaves them; extracted once.

        Raises
        ------
        ValueError : the program cannot be described, or its constraints cannot be met.
        """
        return self._features

    def state_from_config(self, config: Mapping[str, int]) -> State:
        """The concrete state with the given knob values.

        Raises
        ------
        ValueError : a knob is missing or unknown, or tiles do not divide their loop.
        """
        for group in self.context.split_groups:
            names = [str(knob.name) for knob in group.vars]
            tile = math.prod(int(config.get(name, 1)) for name in names)
            if tile < 1 or int(group.extent_expr) % tile != 0:
                raise ValueError(
                    f"{self}: the values of {', '.join(names)} multiply to {tile}, which is no "
                    f"divisor of {int(group.extent_expr)}"
                )
        return self._replayed(config)

    def _replayed(self, config: Mapping[str, int]) -> State:
        return ffi.state_from_config(self.parent_task.ansor_task, self.state, config)

    def config_from_state(self, state: State) -> dict[str, int] | None:
        """Knob values with which this sketch gives `state`, or None if it is of another sketch."""
        if ffi.extract_backbone(state) != self.backbone:
            return None
        config = ffi.extract_config_dict(self.state, state)
        if config is None:
            return None
        # Sketches can share a backbone and differ in loop order; replaying tells them apart. Of the
        # two states one may know more extents than the other.
        bounded = self.parent_task.ansor_task.compute_dag.infer_bound_from_state
        if str(bounded(self._replayed(config))) != str(bounded(state)):
            return None
        return config

    def __repr__(self) -> str:
        return f"Sketch({self.index}, {'-'.join(self.backbone)})"
