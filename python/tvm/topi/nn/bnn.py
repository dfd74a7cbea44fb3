"""Products of matrices of signs, 32 of which are one number."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from ..utils import as_int, get_const_tuple, normalize_axis, simplify

__all__ = ["binarize_pack", "binary_dense"]

_BITS = 32


def binarize_pack(data: te.Tensor, axis: int | None = None, name: str = "PackedInput") -> te.Tensor:
    """Signs of 32 neighbours as the bits of one uint32, the first one highest; 1 is not negative.

    Parameters
    ----------
    axis : whose neighbours, by default the last; 32 divides its extent.

    Raises
    ------
    ValueError : 32 does not divide the extent.
    """
    shape = list(get_const_tuple(data.shape))
    at = normalize_axis(-1 if axis is None else axis, len(shape))
    if as_int(shape[at]) % _BITS:
        raise ValueError(f"topi.nn.binarize_pack: {_BITS} does not divide {shape[at]} elements")
    shape[at] = as_int(shape[at]) // _BITS

    def pack(*indices: Any) -> Any:
        word = tir.const(0, "uint32")
        for bit in range(_BITS):
            where = list(indices)
            where[at] = indices[at] * _BITS + bit
            highest = tir.const(1 << (_BITS - 1 - bit), "uint32")
            word = word | tir.if_then_else(data(*where) >= 0, highest, tir.const(0, "uint32"))
        return word

    return te.compute(shape, pack, name=name, tag="binarize_pack")


def binary_dense(data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    """``data @ weight.T`` of signs that :func:`binarize_pack` packed.

    Parameters
    ----------
    data, weight : uint32 of (m, k) and (n, k).

    Returns
    -------
    (m, n), float32: how many of the 32 * k products are positive, less those that are negative.

    Raises
    ------
    ValueError : other types, or different k.
    """
    (m, k), (n, other) = get_const_tuple(data.shape), get_const_tuple(weight.shape)
    if data.dtype != "uint32" or weight.dtype != "uint32" or k != other:
        raise ValueError(
            "topi.nn.binary_dense: data and weight are uint32 with as many columns, got "
            f"{data.dtype} {data.shape} and {weight.dtype} {weight.shape}"
        )
    word = te.reduce_axis((0, k), name="word")
    differing = te.compute(
        (m, n),
        lambda i, j: te.sum(tir.popcount(data[i, word] ^ weight[j, word]), axis=word),
        tag="binary_dense",
    )
    total = simplify(k * _BITS)
    return te.compute(
        (m, n),
        lambda i, j: (total - 2 * differing[i, j].astype("int32")).astype("float32"),
        name="T_binary_dense",
        tag="elemwise",
    )
