"""Numbers that say what a candidate is like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm import tir
from tvm.auto_scheduler import _ffi_api
from tvm.auto_scheduler.feature import unpack_feature
from tvm.target import Target

from ..candidate import MeasureCandidate
from ..utils import Named

__all__ = [
    "FeatureExtractor",
    "PerStoreFeature",
    "PyFeatureExtractor",
    "RandomFeatureExtractor",
]


class FeatureExtractor(Named):
    """Base of extractors, which define `extract_from`."""

    def extract_from(
        self, context: Any, candidates: Sequence[MeasureCandidate]
    ) -> list[tvm.nd.NDArray]:
        """A table [rows, columns] for each candidate."""
        raise TypeError(f"{type(self).__name__} does not define extract_from")

    @staticmethod
    def create(kind: str = "per-store-feature", *args: Any, **kwargs: Any) -> FeatureExtractor:
        """An extractor by name: "per-store-feature".

        Raises
        ------
        ValueError : another name.
        """
        if kind != "per-store-feature":
            raise ValueError(
                f"FeatureExtractor.create: unknown kind {kind!r}; there is 'per-store-feature'"
            )
        return PerStoreFeature(*args, **kwargs)


class PyFeatureExtractor(FeatureExtractor):
    """Base of extractors that users define."""


class RandomFeatureExtractor(FeatureExtractor):
    """Random tables, for tests.

    Attributes
    ----------
    random_state : of the generator; may be read and set.
    """

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self._rng = np.random.default_rng(seed)

    @property
    def random_state(self) -> Any:
        return self._rng.bit_generator.state

    @random_state.setter
    def random_state(self, state: Any) -> None:
        self._rng.bit_generator.state = state

    def extract_from(
        self, context: Any, candidates: Sequence[MeasureCandidate]
    ) -> list[tvm.nd.NDArray]:
        return [
            tvm.nd.array(
                self._rng.random(
                    (int(self._rng.integers(1, self.max_block_num + 1)), self.feature_size)
                )
            )
            for _ in candidates
        ]


class PerStoreFeature(FeatureExtractor):
    """The 164 numbers a store that Ansor's cost model reads; see `tvm.auto_scheduler.feature`.

    Parameters
    ----------
    buffers_per_store : buffers that a row has columns for.
    """

    def __init__(self, buffers_per_store: int = 5) -> None:
        self.buffers_per_store = buffers_per_store

    @property
    def feature_vector_length(self) -> int:
        """Columns of a row."""
        return len(_ffi_api.GetPerStoreFeatureNames(self.buffers_per_store))

    def extract_from(
        self, context: Any, candidates: Sequence[MeasureCandidate]
    ) -> list[tvm.nd.NDArray]:
        target = context.target if context.target is not None else Target("llvm")
        with target:
            functions = [loops_of(candidate.sch.mod) for candidate in candidates]
        data = _ffi_api.GetPerStoreFeaturesFromPrimFuncs(functions, target, self.buffers_per_store)
        tables, _, _ = unpack_feature(data)
        empty = np.zeros((0, self.feature_vector_length), np.float32)
        return [tvm.nd.array(table if len(table) else empty) for table in tables]


# What turns blocks into plain loops over buffers.
_TO_LOOPS = tvm.transform.Sequential(
    [
        tir.transform.LowerInitBlock(),
        tir.transform.PlanAndUpdateBufferAllocationLocation(),
        tir.transform.ConvertBlocksToOpaque(),
        tir.transform.LowerMatchBuffer(),
        tir.transform.CompactBufferAllocation(),
        tir.transform.LowerOpaqueBlock(),
        tir.transform.Simplify(),
    ]
)


def loops_of(mod: tvm.ir.IRModule) -> tir.PrimFunc:
    """A candidate as plain loops over buffers, which features are read from."""
    return _TO_LOOPS(mod)["main"]
