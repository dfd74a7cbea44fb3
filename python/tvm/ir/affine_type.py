"""Which real numbers the integers of quantised tensors stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .expr import RelayExpr

__all__ = ["TensorAffineType", "TupleAffineType"]


@dataclass(frozen=True, eq=False)
class TensorAffineType:
    """Integers that stand for ``(integer - zero_point) * scale``.

    Attributes
    ----------
    scale, zero_point : expressions of float32 and int32, of the tensor or each index of `axis`.
    dtype : of the integers.
    """

    scale: RelayExpr
    zero_point: RelayExpr
    dtype: str
    axis: int = -1


@dataclass(frozen=True, eq=False)
class TupleAffineType:
    """Those of the fields of a tuple."""

    types: Sequence[TensorAffineType]
