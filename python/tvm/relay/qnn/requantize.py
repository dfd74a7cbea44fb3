"""Integers of one scale and zero point as those of another, in floating or fixed point.

Fixed point multiplies by integers alone, as processors without floating point do: Jacob et al.,
"Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
CVPR 2018, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import RelayExpr, TensorType
from tvm.relax.op.quantization import integer_limits

from .. import op
from ..expr import Call, Constant, const, exact_const
from ..op.registry import make
from .parameters import along, centred, is_zero, number, require_integers

__all__ = ["RequantizeConfig", "current_requantize_config", "requantize", "requantize_config"]

_ROUNDINGS = ("None", "UPWARD", "TONEAREST")
_COMPUTE_DTYPES = ("None", "int64", "float32", "float64")
_CURRENT: ContextVar[RequantizeConfig | None] = ContextVar("requantize_config", default=None)


class RequantizeConfig:
    """How `requantize` computes where a call says "None", within a ``with`` block.

    Parameters
    ----------
    rounding, compute_dtype : see :func:`requantize`.

    Raises
    ------
    ValueError : there is no such rounding or type.
    """

    def __init__(self, rounding: str = "UPWARD", compute_dtype: str = "int64") -> None:
        self.rounding, self.compute_dtype = _checked(rounding, compute_dtype)
        self._entered: list[Token[RequantizeConfig | None]] = []

    def __enter__(self) -> RequantizeConfig:
        self._entered.append(_CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._entered.pop())


def requantize_config(**settings: str) -> RequantizeConfig:
    """A :class:`RequantizeConfig`, for use in a ``with`` statement.

    Programs are lowered in it: ``with requantize_config(rounding="TONEAREST"): relay.build(mod)``.
    """
    unknown = set(settings) - {"rounding", "compute_dtype"}
    if unknown:
        raise error.ValueError(
            f"relay.qnn.requantize_config: there is no setting {', '.join(sorted(unknown))}; "
            "there are rounding and compute_dtype"
        )
    return RequantizeConfig(**settings)


def current_requantize_config() -> RequantizeConfig:
    """The configuration of the ``with`` block around; outside of any, one of "None" alone."""
    return _CURRENT.get() or RequantizeConfig("None", "None")


def _checked(rounding: str, compute_dtype: str) -> tuple[str, str]:
    for what, value, known in (
        ("rounding", rounding, _ROUNDINGS),
        ("compute_dtype", compute_dtype, _COMPUTE_DTYPES),
    ):
        if value not in known:
            raise error.ValueError(
                f"relay.qnn.requantize: there is no {what} {value!r}; use {', '.join(known)}"
            )
    return rounding, compute_dtype


def requantize(
    data: RelayExpr,
    input_scale: RelayExpr,
    input_zero_point: RelayExpr,
    output_scale: RelayExpr,
    output_zero_point: RelayExpr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> Call:
    """Integers of one scale and zero point as those of another.

    Parameters
    ----------
    input_scale, input_zero_point : float32 and int32, of the tensor or of each index of `axis`.
    rounding : where halves go: "UPWARD" to the larger number, "TONEAREST" away from zero, "None"
        as :class:`RequantizeConfig` says, and to the even number outside of any.
    compute_dtype : type in which scales are multiplied: "float32", "float64", or "int64" for
        fixed point, which asks for constant scales; "None" as :class:`RequantizeConfig` says, and
        "float32" outside of any.

    Raises
    ------
    ValueError : there is no such rounding or type; when lowered, scales are no constants in fixed
        point.
    """
    _checked(rounding, compute_dtype)
    operands = [data, input_scale, input_zero_point, output_scale, output_zero_point]
    return make(
        "qnn.requantize",
        operands,
        axis=axis,
        rounding=rounding,
        compute_dtype=compute_dtype,
        out_dtype=out_dtype,
    )


def write_requantize(
    args: Sequence[Any], types: Sequence[TensorType], s: Mapping[str, Any]
) -> RelayExpr:
    """`requantize` in relay's ordinary operators."""
    config = current_requantize_config()
    rounding = config.rounding if s["rounding"] == "None" else s["rounding"]
    dtype = config.compute_dtype if s["compute_dtype"] == "None" else s["compute_dtype"]
    require_integers(s["out_dtype"])
    scale, zero, out_scale, out_zero = (
        along(args[k], types[k], s["axis"], types[0]) for k in (1, 2, 3, 4)
    )
    whole = centred(args[0], zero)
    if dtype == "int64":
        scaled = _fixed_point(whole, scale, out_scale, rounding)
    else:
        dtype = "float32" if dtype == "None" else dtype
        factor = op.divide(number(scale, dtype), number(out_scale, dtype))
        scaled = _rounded(op.multiply(op.cast(whole, dtype), factor), rounding, dtype)
    moved = scaled if is_zero(out_zero) else op.add(scaled, number(out_zero, dtype))
    low, high = integer_limits(s["out_dtype"])
    if dtype == "float32":
        # The largest float32 that an int32 can hold.
        high = min(high, 2**31 - 128)
    return op.cast(op.clip(moved, low, high), s["out_dtype"])


def _rounded(real: RelayExpr, rounding: str, dtype: str) -> RelayExpr:
    if rounding == "None":
        return op.round(real)
    half = const(0.5, dtype)
    if rounding == "UPWARD":
        return op.floor(op.add(real, half))
    return op.multiply(op.sign(real), op.floor(op.add(op.abs(real), half)))


def _fixed_point(
    whole: RelayExpr, scale: RelayExpr, out_scale: RelayExpr, rounding: str
) -> RelayExpr:
    """`whole` times the quotient of the scales, by an int32 of 31 bits behind the point."""
    if not isinstance(scale, Constant) or not isinstance(out_scale, Constant):
        raise error.ValueError(
            'relay.qnn.requantize: compute_dtype "int64" needs scales that are constants; bind '
            'them first, or use compute_dtype="float32"'
        )
    # Scales are float32, whose quotient is wanted as exactly as an int32 can tell it.
    factor = scale.data.numpy().astype("float64") / out_scale.data.numpy().astype("float64")
    bits, exponent = np.vectorize(_as_fixed_point, otypes=["int64", "int64"])(factor)
    left, right = np.maximum(exponent, 0), 31 + np.maximum(-exponent, 0)
    wide = op.cast(whole, "int64")
    if left.any():
        wide = op.left_shift(wide, exact_const(left))
    half = np.left_shift(np.int64(1), right - 1)
    if rounding == "TONEAREST":
        zero = const(0, "int64")
        bump = op.where(
            op.greater_equal(wide, zero), exact_const(half), exact_const(half - np.int64(1))
        )
    else:
        bump = exact_const(half)
    product = op.add(op.multiply(wide, exact_const(bits)), bump)
    return op.right_shift(product, exact_const(right))


def _as_fixed_point(factor: float) -> tuple[int, int]:
    """The integer m below 2**31 and the exponent e for which factor is nearly m * 2**(e - 31)."""
    fraction, exponent = math.frexp(factor)
    bits = round(fraction * 2**31)
    # What is just below a power of two.
    return (bits // 2, exponent + 1) if bits == 2**31 else (bits, exponent)
