"""Models that say which candidates are fast."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tvm.runtime.files import read_json, write_atomically

from ..candidate import MeasureCandidate, RunnerResult
from ..utils import Named

__all__ = ["CostModel", "PyCostModel", "RandomModel"]


class CostModel(Named):
    """Base of models, which define all of the methods."""

    # The function `create` of the package, which knows the kinds.
    create: ClassVar[Callable[..., Any]]

    def load(self, path: str) -> None:
        """Read the state that `save` wrote."""
        raise TypeError(f"{type(self).__name__} does not define load")

    def save(self, path: str) -> None:
        """Write the state into a file."""
        raise TypeError(f"{type(self).__name__} does not define save")

    def update(
        self, context: Any, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        """Learn from measurements."""
        raise TypeError(f"{type(self).__name__} does not define update")

    @property
    def trained(self) -> bool:
        """Whether scores follow from measurements, so that a search may breed by them."""
        return True

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        """A score for each candidate; larger is faster."""
        raise TypeError(f"{type(self).__name__} does not define predict")


class PyCostModel(CostModel):
    """Base of models that users define."""


class RandomModel(CostModel):
    """Random scores.

    Parameters
    ----------
    seed : of the generator; None draws one.
    path : file of `save` to go on from.
    max_range : scores are in [0, max_range).
    """

    def __init__(
        self, *, seed: int | None = None, path: str | None = None, max_range: int = 100
    ) -> None:
        self.max_range = max_range
        self._rng = np.random.default_rng(seed)
        if path is not None:
            self.load(path)

    def load(self, path: str) -> None:
        try:
            self._rng.bit_generator.state = read_json(path)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path}: no state of a RandomModel ({error})") from error

    def save(self, path: str) -> None:
        write_atomically(Path(path), json.dumps(self._rng.bit_generator.state))

    def update(
        self, context: Any, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]
    ) -> None:
        pass

    def predict(self, context: Any, candidates: Sequence[MeasureCandidate]) -> np.ndarray:
        return self._rng.random(len(candidates)) * self.max_range
