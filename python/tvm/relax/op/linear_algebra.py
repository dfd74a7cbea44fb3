"""Products of matrices and tensors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call, Tuple
from ..struct_info import TensorStructInfo
from .base import make_call
from .binary import add, broadcast_shape
from .manipulate import permute_dims
from .registry import register_rule
from .rules import (
    common_dtype,
    common_vdevice,
    differ,
    known_shape,
    number,
    opaque_tensor,
    setting,
    tensor,
    tensors,
    with_shape,
)

__all__ = ["einsum", "linear", "matmul"]


def matmul(x1: RelayExpr, x2: RelayExpr, out_dtype: str | None = None) -> Call:
    """Matrix product over the last two dimensions, leading ones broadcasting.

    Parameters
    ----------
    out_dtype : element type of sums and result; that of the operands by default.
    """
    return make_call("matmul", x1, x2, out_dtype=out_dtype or None)


def _matmul(call: Call) -> TensorStructInfo:
    a, b = tensor(call, 0), tensor(call, 1)
    dtype = setting(call, "out_dtype") or common_dtype(call, [a, b])
    vdevice = common_vdevice(call, [a, b])
    if -1 in (a.ndim, b.ndim):
        return opaque_tensor(dtype, -1, vdevice)
    if 0 in (a.ndim, b.ndim):
        raise error.ValueError(
            f"relax.matmul: operands need at least one dimension, got {a.ndim} and {b.ndim}"
        )
    row, column = a.ndim == 1, b.ndim == 1
    rank = max(a.ndim, b.ndim, 2) - row - column
    x, y = known_shape(a), known_shape(b)
    if x is None or y is None:
        return opaque_tensor(dtype, rank, vdevice)
    inner = (x[-1], y[0] if column else y[-2])
    if differ(*inner):
        raise error.ValueError(f"relax.matmul: {x} times {y}: {inner[0]} columns, {inner[1]} rows")
    lead = broadcast_shape(call, x[:-2], y[:-2])
    if lead is None:
        return opaque_tensor(dtype, rank, vdevice)
    rows = [] if row else [x[-2]]
    columns = [] if column else [y[-1]]
    return with_shape([*lead, *rows, *columns], dtype, vdevice)


def linear(
    data: RelayExpr,
    weight: RelayExpr,
    bias: RelayExpr | None = None,
    out_dtype: str | None = None,
) -> Call:
    """data times the transpose of weight, plus bias; weight is (out, in)."""
    product = matmul(data, permute_dims(weight), out_dtype)
    return product if bias is None else add(product, bias)


def einsum(operands: Sequence[RelayExpr] | RelayExpr, subscripts: str) -> Call:
    """Sum of products in Einstein's notation, as ``numpy.einsum``."""
    fields = operands if isinstance(operands, RelayExpr) else Tuple(list(operands))
    return make_call("einsum", fields, subscripts=subscripts)


def _einsum(call: Call) -> TensorStructInfo:
    infos = tensors(call)
    if not infos:
        raise error.ValueError("relax.einsum: there are no operands")
    dtype, vdevice = common_dtype(call, infos), common_vdevice(call, infos)
    text = re.sub(r"\s", "", str(call.attrs["subscripts"]))
    terms, _, result = text.partition("->")
    inputs = terms.split(",")
    if len(inputs) != len(infos):
        raise error.ValueError(
            f"relax.einsum: {len(infos)} operands, but '{text}' has {len(inputs)}"
        )
    shapes = [shape for info in infos if (shape := known_shape(info)) is not None]
    if len(shapes) < len(infos):
        return opaque_tensor(dtype, -1, vdevice)
    extent: dict[str, object] = {}
    rest: list = []
    for term, shape in zip(inputs, shapes):
        head, dots, tail = term.partition("...")
        count = len(shape) - len(head) - len(tail)
        if count < 0 or (count and not dots):
            raise error.ValueError(
                f"relax.einsum: '{term}' for a tensor of {len(shape)} dimensions"
            )
        named = list(zip(head, shape)) + list(zip(tail, shape[len(head) + count :]))
        for letter, size in named:
            known = extent.setdefault(letter, size)
            if number(known) == 1:
                extent[letter] = size
            elif number(size) != 1 and differ(known, size):
                raise error.ValueError(
                    f"relax.einsum: '{letter}' is {known} and {size} in '{text}'"
                )
        wider = broadcast_shape(call, rest, shape[len(head) : len(head) + count])
        if wider is None:
            return opaque_tensor(dtype, -1, vdevice)
        rest = wider
    if "->" not in text:
        letters = sorted(c for c in set(terms) if c.isalpha() and terms.count(c) == 1)
        result = ("..." if "..." in terms else "") + "".join(letters)
    head, dots, tail = result.partition("...")
    unknown = set(head + tail) - set(extent)
    if unknown:
        raise error.ValueError(
            f"relax.einsum: '{min(unknown)}' of the result is in no operand of '{text}'"
        )
    return with_shape(
        [*(extent[c] for c in head), *(rest if dots else ()), *(extent[c] for c in tail)],
        dtype,
        vdevice,
    )


register_rule("matmul", _matmul)
register_rule("einsum", _einsum)
