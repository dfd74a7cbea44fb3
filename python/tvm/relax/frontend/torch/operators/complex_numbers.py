"""Complex numbers, of which each tensor is two of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import const
from tvm.relax.struct_info import open_shape

from ..arguments import (
    CONVERTERS,
    Arguments,
    Complex,
    complex_converter,
    operator_name,
)

__all__ = ["Parts", "as_pairs", "from_pairs", "parts_of", "times"]

# Real and imaginary part; the latter is None where it is zero everywhere.
Parts = tuple[RelayExpr, RelayExpr | None]


Emit = Callable[[RelayExpr], RelayExpr]


def from_pairs(emit: Emit, pairs: RelayExpr) -> Complex:
    """From a real tensor whose last dimension, of 2, has the parts."""
    *shape, _ = open_shape(pairs.struct_info)
    axis = len(shape)
    halves = (emit(op.strided_slice(pairs, [axis], [k], [k + 1])) for k in (0, 1))
    return Complex(*(emit(op.reshape(half, shape)) for half in halves))


def as_pairs(emit: Emit, value: Complex) -> RelayExpr:
    """The inverse of :func:`from_pairs`."""
    shape = open_shape(value.struct_info)
    parts = [emit(op.reshape(part, (*shape, 1))) for part in (value.real, value.imag)]
    return op.concat(parts, len(shape))


def parts_of(a: Arguments, value: Any, dtype: str | None = None) -> Parts:
    """The parts of a tensor or number, in the element type of the result's, or of another."""
    dtype = dtype or a.result_dtype
    if isinstance(value, Complex):
        return a.cast(value.real, dtype), a.cast(value.imag, dtype)
    if isinstance(value, complex):
        return const(value.real, dtype), const(value.imag, dtype) if value.imag else None
    return a.cast(value, dtype), None


def times(a: Arguments, left: Parts, right: Parts) -> Parts:
    """The product element by element."""
    return _combined(a, left, right, lambda x, y: a.emit(op.multiply(x, y)))


def _combined(a: Arguments, left: Parts, right: Parts, product: Any) -> Parts:
    """A product, of whatever kind, made of those of the parts."""
    (x, y), (u, v) = left, right
    real = product(x, u)
    if y is not None and v is not None:
        real = a.emit(op.subtract(real, product(y, v)))
    terms = [product(p, q) for p, q in ((x, v), (y, u)) if p is not None and q is not None]
    return real, _sum(a, *terms)


def _sum(a: Arguments, *terms: RelayExpr | None) -> RelayExpr | None:
    total: RelayExpr | None = None
    for term in terms:
        if term is not None:
            total = term if total is None else a.emit(op.add(total, term))
    return total


def _negative(a: Arguments, value: RelayExpr | None) -> RelayExpr | None:
    return None if value is None else a.call("negative", value)


def _whole(a: Arguments, parts: Parts) -> Complex:
    """Parts as a tensor of the result's shape."""
    shape, dtype = a.result_shape, a.result_dtype
    real, imag = parts
    return Complex(
        a.tensor(real, shape, dtype), a.tensor(0.0 if imag is None else imag, shape, dtype)
    )


# Operators that move elements, or add them up: the parts do not meet.
_BY_PARTS = """
    _unsafe_view.default alias.default as_strided.default broadcast_to.default cat.default
    chunk.default clone.default concat.default constant_pad_nd.default contiguous.default
    copy.default cumsum.default detach.default diagonal.default dropout.default
    empty.memory_format empty_like.default expand.default expand_as.default flatten.using_ints
    flip.default gather.default index.Tensor index_select.default mT.default mean.default mean.dim
    movedim.int movedim.intlist narrow.default neg.default new_zeros.default numpy_T.default
    pad.default permute.default repeat.default reshape.default roll.default select.int
    select_scatter.default slice.Tensor slice_scatter.default split.Tensor split.sizes
    split_with_sizes.default squeeze.default squeeze.dim squeeze.dims stack.default sum.default
    sum.dim_IntList swapaxes.default t.default tile.default transpose.int tril.default
    triu.default unbind.int unflatten.int unfold.default unsqueeze.default view.default
    view_as.default where.self zeros.default zeros_like.default
"""


def _part(a: Arguments, value: Any, k: int) -> Any:
    """Part k of an argument; what is no floating number (an index, a condition) serves for both."""
    if isinstance(value, Complex):
        return value.imag if k else value.real
    if isinstance(value, complex):
        return value.imag if k else value.real
    if isinstance(value, (list, tuple)):
        return [_part(a, item, k) for item in value]
    if k and isinstance(value, RelayExpr) and str(value.struct_info.dtype).startswith("float"):
        return a.call("zeros_like", value)
    return value


@complex_converter(*_BY_PARTS.split())
def _by_parts(a: Arguments) -> Any:
    convert = CONVERTERS[operator_name(a.node.target)]
    values = a.values
    if a.name in ("constant_pad_nd", "pad"):
        values["value"] = complex(values["value"] or 0)
    real, imag = (
        convert(a.replaced({name: _part(a, value, k) for name, value in values.items()}))
        for k in (0, 1)
    )
    if isinstance(real, list):
        return [Complex(*pair) for pair in zip(real, imag)]
    return Complex(real, imag)


@complex_converter("full.default", "full_like.default", "new_full.default", "ones.default",
                   "ones_like.default", "new_ones.default", "scalar_tensor.default")  # fmt: skip
def _full(a: Arguments) -> Complex:
    value = next((a[n] for n in ("fill_value", "s") if a.get(n) is not None), 1)
    return _whole(a, parts_of(a, value))


@complex_converter("_to_copy.default", "to.dtype", "to.dtype_layout", "to.device", "to.other")
def _to(a: Arguments) -> Any:
    parts = parts_of(a, a["self"])
    return _whole(a, parts) if a.result_is_complex else parts[0]


@complex_converter("complex.default")
def _complex(a: Arguments) -> Complex:
    return _whole(a, (a.operand("real"), a.operand("imag")))


@complex_converter("polar.default")
def _polar(a: Arguments) -> Complex:
    return _whole(a, _turned(a, a.operand("abs"), a.operand("angle")))


def _turned(a: Arguments, length: RelayExpr, angle: RelayExpr) -> Parts:
    return tuple(  # type: ignore[return-value]
        a.emit(op.multiply(length, a.call(name, angle))) for name in ("cos", "sin")
    )


@complex_converter("view_as_complex.default")
def _view_as_complex(a: Arguments) -> Complex:
    return from_pairs(a.emit, a["self"])


@complex_converter("view_as_real.default")
def _view_as_real(a: Arguments) -> RelayExpr:
    return as_pairs(a.emit, a["self"])


@complex_converter("real.default", "imag.default")
def _part_of(a: Arguments) -> RelayExpr:
    return a["self"].real if a.name == "real" else a["self"].imag


# What PyTorch marks as a conjugate view is computed where the view is made.
@complex_converter("_conj.default", "conj.default", "_conj_physical.default",
                   "conj_physical.default", "resolve_conj.default", "resolve_neg.default",
                   "lift_fresh_copy.default")  # fmt: skip
def _conjugate(a: Arguments) -> Complex:
    value = a["self"]
    if "conj" not in a.name or a.name == "resolve_conj":
        return value
    return Complex(value.real, a.call("negative", value.imag))


@complex_converter("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Scalar",
                   "rsub.Tensor")  # fmt: skip
def _add(a: Arguments) -> Complex:
    left, right = parts_of(a, a["self"]), parts_of(a, a["other"])
    if a["alpha"] != 1:
        factor = parts_of(a, a["alpha"])
        left, right = (times(a, left, factor), right) if "rsub" in a.name else (
            left, times(a, right, factor))  # fmt: skip
    if "rsub" in a.name:
        left, right = right, left
    if "sub" in a.name:
        right = a.call("negative", right[0]), _negative(a, right[1])
    return _whole(a, (a.emit(op.add(left[0], right[0])), _sum(a, left[1], right[1])))


@complex_converter("mul.Tensor", "mul.Scalar")
def _mul(a: Arguments) -> Complex:
    return _whole(a, times(a, parts_of(a, a["self"]), parts_of(a, a["other"])))


@complex_converter("square.default", "pow.Tensor_Scalar")
def _power(a: Arguments) -> Complex:
    exponent = a.get("exponent", 2)
    a.refuse_unless(exponent in (1, 2, 3), "of complex numbers, to another power than 1, 2 or 3")
    base = parts_of(a, a["self"])
    power = base
    for _ in range(int(exponent) - 1):
        power = times(a, power, base)
    return _whole(a, power)


@complex_converter("div.Tensor", "div.Scalar", "true_divide.Tensor", "reciprocal.default")
def _div(a: Arguments) -> Complex:
    reciprocal = a.name == "reciprocal"
    left = parts_of(a, 1 if reciprocal else a["self"])
    right = parts_of(a, a["self"] if reciprocal else a["other"])
    if right[1] is not None:
        size = _squared(a, right)
        left, right = times(a, left, (right[0], _negative(a, right[1]))), (size, None)
    real, imag = (None if p is None else a.emit(op.divide(p, right[0])) for p in left)
    return _whole(a, (real, imag))  # type: ignore[arg-type]


def _squared(a: Arguments, parts: Parts) -> RelayExpr:
    """The square of the absolute value."""
    squares = [a.emit(op.multiply(p, p)) for p in parts if p is not None]
    total = _sum(a, *squares)
    assert total is not None
    return total


@complex_converter("abs.default")
def _abs(a: Arguments) -> RelayExpr:
    return _length(a, parts_of(a, a["self"]))


def _length(a: Arguments, parts: Parts) -> RelayExpr:
    return a.call("sqrt", _squared(a, parts))


@complex_converter("angle.default")
def _angle(a: Arguments) -> RelayExpr:
    return a.call("atan2", a["self"].imag, a["self"].real)


@complex_converter("sgn.default")
def _sgn(a: Arguments) -> Complex:
    parts = parts_of(a, a["self"])
    # Zero has no direction and stays zero.
    length = a.call("maximum", _length(a, parts), const(_TINY[a.result_dtype], a.result_dtype))
    real, imag = (a.emit(op.divide(p, length)) for p in parts if p is not None)
    return Complex(real, imag)


_TINY = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}


@complex_converter("exp.default")
def _exp(a: Arguments) -> Complex:
    value = a["self"]
    return _whole(a, _turned(a, a.call("exp", value.real), value.imag))


@complex_converter("log.default")
def _log(a: Arguments) -> Complex:
    value = a["self"]
    length = a.call("log", _length(a, parts_of(a, value)))
    return Complex(length, a.call("atan2", value.imag, value.real))


@complex_converter("sqrt.default")
def _sqrt(a: Arguments) -> Complex:
    value = a["self"]
    half = a.emit(op.multiply(a.call("atan2", value.imag, value.real), const(0.5, a.result_dtype)))
    return _whole(a, _turned(a, a.call("sqrt", _length(a, parts_of(a, value))), half))


@complex_converter("masked_fill.Scalar")
def _masked_fill(a: Arguments) -> Complex:
    fill = parts_of(a, a["value"])
    parts = (
        a.call("where", a["mask"], f, p)
        for p, f in zip(parts_of(a, a["self"]), (fill[0], fill[1] or const(0, a.result_dtype)))
        if p is not None
    )
    return Complex(*parts)


@complex_converter("eq.Tensor", "ne.Tensor", "eq.Scalar", "ne.Scalar")
def _equal(a: Arguments) -> RelayExpr:
    complex_one = a["self"] if isinstance(a["self"], Complex) else a["other"]
    dtype = str(complex_one.struct_info.dtype)
    zero = const(0, dtype)
    left, right = parts_of(a, a["self"], dtype), parts_of(a, a["other"], dtype)
    same = [a.call("equal", p or zero, q or zero) for p, q in zip(left, right)]
    both = a.call("logical_and", *same)
    return a.call("logical_not", both) if a.name == "ne" else both


@complex_converter("mm.default", "bmm.default", "mv.default", "dot.default", "matmul.default")
def _matmul(a: Arguments) -> Complex:
    convert = CONVERTERS[operator_name(a.node.target)]
    other = next(n for n in ("mat2", "vec", "tensor", "other") if a.get(n) is not None)

    def product(left: RelayExpr, right: RelayExpr) -> RelayExpr:
        return a.emit(convert(a.replaced({"self": left, other: right})))

    return _whole(a, _combined(a, parts_of(a, a["self"]), parts_of(a, a[other]), product))


@complex_converter("linear.default")
def _linear(a: Arguments) -> Complex:
    convert = CONVERTERS["aten.linear.default"]

    def product(left: RelayExpr, right: RelayExpr) -> RelayExpr:
        return a.emit(convert(a.replaced({"input": left, "weight": right, "bias": None})))

    out = _combined(a, parts_of(a, a["input"]), parts_of(a, a["weight"]), product)
    if a["bias"] is not None:
        bias = parts_of(a, a["bias"])
        out = a.emit(op.add(out[0], bias[0])), _sum(a, out[1], bias[1])
    return _whole(a, out)
