"""Quantised tensors: an integer stands for (integer - zero point) * scale."""

from __future__ import annotations

import torch

from ..errors import OnnxError
from ..types import dtype_of
from .convolution import convolve
from .registry import Node, operator
from .shapes import normalized

__all__ = ["quantize"]


def _aligned(n: Node, parameter: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """A scale or zero point of a tensor, an axis or blocks of it, in a shape that fits `x`."""
    if parameter.numel() == 1:
        return parameter.reshape(())
    axis = normalized(n.attr("axis", 1), x.dim())
    block = n.attr("block_size", 0)
    if block:
        return torch.repeat_interleave(parameter, block, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return parameter.reshape(shape)


def quantize(
    x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None, dtype: torch.dtype
) -> torch.Tensor:
    """x / scale + zero, rounded to even and limited to what the type holds."""
    ratio = x.to(torch.float32) / scale.to(torch.float32)
    if dtype.is_floating_point:
        limit = torch.finfo(dtype).max
        return torch.clamp(ratio, -limit, limit).to(dtype)
    limits = torch.iinfo(dtype)
    whole = torch.round(ratio)
    if zero is not None:
        whole = whole + zero.to(torch.float32)
    clamped = torch.clamp(whole, limits.min, limits.max)
    return (clamped.to(torch.int32) if dtype == torch.uint16 else clamped).to(dtype)


@operator("QuantizeLinear")
def _quantize_linear(
    n: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    wanted = n.attr("output_dtype", 0)
    dtype = zero.dtype if zero is not None else dtype_of(wanted) if wanted else torch.uint8
    shifted = None if zero is None else _aligned(n, zero.to(torch.float32), x)
    return quantize(x, _aligned(n, scale, x), shifted, dtype)


@operator("DequantizeLinear")
def _dequantize_linear(
    n: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    factor = _aligned(n, scale, x)
    dtype = dtype_of(n.attr("output_dtype")) if n.attr("output_dtype", 0) else scale.dtype
    if zero is None or x.dtype.is_floating_point:
        return (x.to(torch.float32) * factor.to(torch.float32)).to(dtype)
    wide = torch.int64 if x.dtype == torch.uint32 else torch.int32
    centred = x.to(wide) - _aligned(n, zero.to(wide), x)
    return (centred.to(torch.float32) * factor.to(torch.float32)).to(dtype)


@operator("DynamicQuantizeLinear")
def _dynamic_quantize_linear(n: Node, x: torch.Tensor) -> list[torch.Tensor]:
    zero = torch.zeros(())
    high, low = torch.maximum(torch.amax(x), zero), torch.minimum(torch.amin(x), zero)
    scale = (high - low) / 255
    point = torch.clamp(torch.round(-low / scale), 0, 255)
    return [quantize(x, scale, point, torch.uint8), scale, point.to(torch.uint8)]


@operator("QLinearMatMul")
def _qlinear_matmul(
    n: Node,
    a: torch.Tensor,
    a_scale: torch.Tensor,
    a_zero: torch.Tensor,
    b: torch.Tensor,
    b_scale: torch.Tensor,
    b_zero: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero: torch.Tensor,
) -> torch.Tensor:
    product = torch.matmul(
        a.to(torch.int32) - _rows(a_zero, -1).to(torch.int32),
        b.to(torch.int32) - _rows(b_zero, -2).to(torch.int32),
    )
    factor = _rows(a_scale, -1).to(torch.float32) * _rows(b_scale, -2).to(torch.float32)
    ratio = product.to(torch.float32) * factor / y_scale.to(torch.float32)
    return quantize(ratio, torch.ones(()), y_zero, y_zero.dtype)


def _rows(parameter: torch.Tensor, axis: int) -> torch.Tensor:
    """One value a row (axis -1) or column (axis -2) of a matrix."""
    if parameter.numel() == 1:
        return parameter.reshape(())
    return parameter.unsqueeze(axis) if parameter.dim() == 1 else parameter


@operator("QLinearConv")
def _qlinear_conv(
    n: Node,
    x: torch.Tensor,
    x_scale: torch.Tensor,
    x_zero: torch.Tensor,
    w: torch.Tensor,
    w_scale: torch.Tensor,
    w_zero: torch.Tensor,
    y_scale: torch.Tensor,
    y_zero: torch.Tensor,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    if w.dim() < 3:
        raise OnnxError("a convolution without spatial dimensions")
    per_filter = [-1] + [1] * (w.dim() - 1)
    weight = w.to(torch.float32) - w_zero.to(torch.float32).reshape(
        per_filter if w_zero.numel() > 1 else ()
    )
    shift = None if bias is None else bias.to(torch.float32)
    # Products of 8-bit numbers are exact in float32 as long as their sums stay below 2^24.
    summed = convolve(n, x.to(torch.float32) - x_zero.to(torch.float32), weight, shift)
    factor = x_scale * w_scale / y_scale
    if factor.numel() > 1:
        factor = factor.reshape([1, -1] + [1] * (x.dim() - 2))
    return quantize(summed * factor, torch.ones(()), y_zero, y_zero.dtype)


@operator("ConvInteger")
def _conv_integer(
    n: Node,
    x: torch.Tensor,
    w: torch.Tensor,
    x_zero: torch.Tensor | None = None,
    w_zero: torch.Tensor | None = None,
) -> torch.Tensor:
    data, weight = x.to(torch.float64), w.to(torch.float64)
    if x_zero is not None:
        data = data - x_zero.to(torch.float64)
    if w_zero is not None:
        shape = [-1] + [1] * (w.dim() - 1) if w_zero.numel() > 1 else []
        weight = weight - w_zero.to(torch.float64).reshape(shape)
    return convolve(n, data, weight, None).to(torch.int32)
