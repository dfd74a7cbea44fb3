"""Quantised tensors: an integer stands for (integer - zero point) * scale."""

from __future__ import annotations

import torch

# Makes the operators known that PyTorch's own quantised exports are made of.
import torch.ao.quantization.fx._decomposed

from ..errors import OnnxError
from ..types import dtype_of
from .convolution import convolve
from .registry import Node, operator
from .shapes import normalized

__all__ = ["dequantize", "quantize"]

_BYTES = (torch.int8, torch.uint8)


def _aligned(parameter: torch.Tensor, x: torch.Tensor, axis: int, block: int) -> torch.Tensor:
    """A scale or zero point of a tensor, an axis or blocks of it, in a shape that fits `x`."""
    if parameter.numel() == 1:
        return parameter.reshape(()) if parameter.dim() else parameter
    axis = normalized(axis, x.dim())
    if block:
        return torch.repeat_interleave(parameter, block, axis).narrow(axis, 0, x.shape[axis])
    shape = [1] * x.dim()
    shape[axis] = -1
    return parameter.reshape(shape)


def _is_one_operator(dtype: torch.dtype, scale: torch.Tensor, block: int) -> bool:
    """Whether an exported program gets PyTorch's operator: for bytes with a scale or an axis of it.

    PyTorch itself multiplies with reciprocals there, which ONNX does not.
    """
    return (
        torch.compiler.is_compiling()
        and dtype in _BYTES
        and scale.dim() < 2
        and scale.numel() > 0
        and not block
    )


def _parameters(
    scale: torch.Tensor, zero: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and zero point in the types, and without dimensions where they are one number."""
    factor = scale.to(torch.float32)
    point = torch.zeros_like(factor) if zero is None else zero
    point = point.to(torch.int32)
    if scale.numel() > 1 or not scale.dim():
        return factor, point
    return factor.reshape(()), point.reshape(())


def quantize(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor | None,
    dtype: torch.dtype,
    axis: int = 1,
    block: int = 0,
) -> torch.Tensor:
    """x / scale + zero, rounded to even and limited to what the type holds.

    Parameters
    ----------
    scale, zero : of the tensor, of each index of `axis`, or of each `block` of them.
    """
    x = x.to(torch.float32)
    if _is_one_operator(dtype, scale, block):
        limits = torch.iinfo(dtype)
        factor, point = _parameters(scale, zero)
        made = torch.ops.quantized_decomposed
        if scale.numel() == 1:
            return made.quantize_per_tensor.tensor(x, factor, point, limits.min, limits.max, dtype)
        axis = normalized(axis, x.dim())
        return made.quantize_per_channel(x, factor, point, axis, limits.min, limits.max, dtype)
    ratio = x / _aligned(scale, x, axis, block).to(torch.float32)
    if dtype.is_floating_point:
        limit = torch.finfo(dtype).max
        return torch.clamp(ratio, -limit, limit).to(dtype)
    limits = torch.iinfo(dtype)
    whole = torch.round(ratio)
    if zero is not None:
        whole = whole + _aligned(zero.to(torch.float32), x, axis, block)
    clamped = torch.clamp(whole, limits.min, limits.max)
    return (clamped.to(torch.int32) if dtype == torch.uint16 else clamped).to(dtype)


def dequantize(
    x: torch.Tensor,
    scale: torch.Tensor,
    zero: torch.Tensor | None,
    axis: int = 1,
    block: int = 0,
) -> torch.Tensor:
    """(x - zero) * scale in float32; parameters as for :func:`quantize`."""
    if _is_one_operator(x.dtype, scale, block):
        limits = torch.iinfo(x.dtype)
        factor, point = _parameters(scale, zero)
        made = torch.ops.quantized_decomposed
        if scale.numel() == 1:
            return made.dequantize_per_tensor.tensor(
                x, factor, point, limits.min, limits.max, x.dtype
            )
        axis = normalized(axis, x.dim())
        return made.dequantize_per_channel(x, factor, point, axis, limits.min, limits.max, x.dtype)
    factor = _aligned(scale, x, axis, block).to(torch.float32)
    if zero is None or x.dtype.is_floating_point:
        return x.to(torch.float32) * factor
    wide = torch.int64 if x.dtype == torch.uint32 else torch.int32
    return (x.to(wide) - _aligned(zero.to(wide), x, axis, block)).to(torch.float32) * factor


@operator("QuantizeLinear")
def _quantize_linear(
    n: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    wanted = n.attr("output_dtype", 0)
    dtype = zero.dtype if zero is not None else dtype_of(wanted) if wanted else torch.uint8
    return quantize(x, scale, zero, dtype, n.attr("axis", 1), n.attr("block_size", 0))


@operator("DequantizeLinear")
def _dequantize_linear(
    n: Node, x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor | None = None
) -> torch.Tensor:
    dtype = dtype_of(n.attr("output_dtype")) if n.attr("output_dtype", 0) else scale.dtype
    value = dequantize(x, scale, zero, n.attr("axis", 1), n.attr("block_size", 0))
    return value if dtype == value.dtype else value.to(dtype)


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
    data = dequantize(x, x_scale, x_zero)
    weight = dequantize(w, w_scale, w_zero, 0)
    # The bias has the scale of the products.
    shift = None if bias is None else bias.to(torch.float32) * (x_scale * w_scale)
    return quantize(convolve(n, data, weight, shift), y_scale, y_zero, y_zero.dtype)


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
