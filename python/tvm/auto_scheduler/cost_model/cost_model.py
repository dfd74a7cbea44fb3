"""The base classes of cost models."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm.runtime import Object

from .. import _ffi_api
from ..loop_state import State, StateObject, state_object_of
from ..measure_callback import weakly
from ..measure_node import MeasureInput, MeasureResult
from ..search_task import SearchTask

__all__ = ["CostModel", "PythonBasedModel", "RandomModel"]


@tvm._ffi.register_object("auto_scheduler.CostModel")
class CostModel(Object):
    """Base of cost models: a higher score means a faster program of the same task."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements; ``inputs[i]`` gave ``results[i]``."""
        _ffi_api.CostModelUpdate(self, list(inputs), list(results))

    def predict(
        self, task: SearchTask, states: Sequence[State | StateObject]
    ) -> Sequence[float] | np.ndarray:
        """One score for each state, -inf for a program that cannot be compiled."""
        return list(_ffi_api.CostModelPredict(self, task, [state_object_of(s) for s in states]))

    def predict_stages(
        self, task: SearchTask, states: Sequence[State | StateObject]
    ) -> Sequence[float] | np.ndarray:
        """Scores with their shares, packed.

        First one score a state, then for each state the number of its stages and their scores, 0
        for placeholders and inlined stages.
        """
        return list(
            _ffi_api.CostModelPredictStages(self, task, [state_object_of(s) for s in states])
        )


@tvm._ffi.register_object("auto_scheduler.RandomModel")
class RandomModel(CostModel):
    """Knows nothing: a program's score is a hash of it and the seed, uniform in [0, 1).

    Parameters
    ----------
    seed : by default a random one.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.RandomModel, random.getrandbits(31) if seed is None else seed
        )


@tvm._ffi.register_object("auto_scheduler.PythonBasedModel")
class PythonBasedModel(CostModel):
    """Base of models written in Python: a subclass defines `update` and `predict`.

    A subclass with an `__init__` of its own must call this one. A search asks through C++, which
    does not keep the instance alive; the policy that was given it does.
    """

    def __init__(self) -> None:
        predict, predict_stages = weakly(self.predict), weakly(self.predict_stages)

        def scores(task: SearchTask, states: Any) -> tvm.nd.NDArray:
            return _scores(predict(task, states))

        def stage_scores(task: SearchTask, states: Any) -> tvm.nd.NDArray:
            return _scores(predict_stages(task, states))

        self.__init_handle_by_constructor__(
            _ffi_api.PythonBasedModel, weakly(self.update), scores, stage_scores
        )

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        raise self._undefined("update(inputs, results)")

    def predict(
        self, task: SearchTask, states: Sequence[State | StateObject]
    ) -> Sequence[float] | np.ndarray:
        raise self._undefined("predict(task, states)")

    def predict_stages(
        self, task: SearchTask, states: Sequence[State | StateObject]
    ) -> Sequence[float] | np.ndarray:
        raise self._undefined("predict_stages(task, states)")

    def _undefined(self, method: str) -> TypeError:
        return TypeError(f"cost model: {type(self).__name__} does not define {method}")


def _scores(values: Sequence[float] | np.ndarray) -> tvm.nd.NDArray:
    return tvm.nd.array(np.asarray(values, dtype="float32"))
