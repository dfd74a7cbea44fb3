"""Functions of the runtime for results whose shape depends on values; computed by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import tvm
from tvm.runtime import NDArray

__all__: list[str] = []


def _in_order_of_appearance(found: list[np.ndarray], axis: int | None) -> None:
    """Sort what `numpy.unique` gave (values, first places, inverse, counts) by first place."""
    order = np.argsort(found[1])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    found[0] = np.take(found[0], order, axis=0 if axis is None else axis)
    found[1], found[3] = found[1][order], found[3][order]
    found[2] = rank[found[2]]


@tvm.register_func("relax.run.unique")
def _unique(
    x: NDArray,
    ordered: int,
    return_index: int,
    return_inverse: int,
    return_counts: int,
    axis: int | None = None,
) -> Any:
    values = x.numpy()
    place = None if axis is None else int(axis)
    whole = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=place
    )
    found = [whole[0], whole[1], whole[2].reshape(-1), whole[3]]
    if not ordered:
        _in_order_of_appearance(found, place)
    wanted = [True, bool(return_index), bool(return_inverse), bool(return_counts)]
    results = [
        tvm.nd.array(part if k == 0 else part.astype("int64"), x.device)
        for k, part in enumerate(found)
        if wanted[k]
    ]
    return results[0] if len(results) == 1 else tuple(results)


@tvm.register_func("relax.run.nonzero")
def _nonzero(x: NDArray) -> NDArray:
    places = np.argwhere(x.numpy()).astype("int64")
    return tvm.nd.array(np.ascontiguousarray(places.T), x.device)


@tvm.register_func("relax.run.dynamic_strided_slice")
def _dynamic_strided_slice(x: NDArray, begin: NDArray, end: NDArray, strides: NDArray) -> NDArray:
    limits = zip(*(limit.numpy().tolist() for limit in (begin, end, strides)))
    part = x.numpy()[tuple(slice(*limit) for limit in limits)]
    return tvm.nd.array(np.ascontiguousarray(part), x.device)
