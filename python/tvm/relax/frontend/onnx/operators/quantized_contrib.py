"""Quantised operators of ONNX Runtime's own domain, which its quantiser writes."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from .convolution import average_pool
from .quantization import dequantize, quantize
from .registry import Node, operator

__all__: list[str] = []

Tensor = torch.Tensor
_DOMAIN = "com.microsoft"


def _of_two(name: str, compute: Callable[[Tensor, Tensor], Tensor]) -> None:
    @operator(name, domain=_DOMAIN)
    def _(
        n: Node,
        a: Tensor,
        a_scale: Tensor,
        a_zero: Tensor | None,
        b: Tensor,
        b_scale: Tensor,
        b_zero: Tensor | None,
        scale: Tensor,
        zero: Tensor | None = None,
    ) -> Tensor:
        result = compute(dequantize(a, a_scale, a_zero), dequantize(b, b_scale, b_zero))
        return quantize(result, scale, zero, a.dtype)


_of_two("QLinearAdd", torch.add)
_of_two("QLinearMul", torch.mul)


def _of_one(name: str, compute: Callable[[Node, Tensor], Tensor]) -> None:
    @operator(name, domain=_DOMAIN)
    def _(
        n: Node,
        x: Tensor,
        x_scale: Tensor,
        x_zero: Tensor | None,
        scale: Tensor,
        zero: Tensor | None = None,
    ) -> Tensor:
        return quantize(compute(n, dequantize(x, x_scale, x_zero)), scale, zero, x.dtype)


def _global_average(n: Node, x: Tensor) -> Tensor:
    if n.attr("channels_last", 0):
        return x.mean(list(range(1, x.dim() - 1)), keepdim=True)
    return x.mean(list(range(2, x.dim())), keepdim=True)


_of_one("QLinearSigmoid", lambda n, x: torch.sigmoid(x))
_of_one("QLinearLeakyRelu", lambda n, x: F.leaky_relu(x, n.attr("alpha", 0.01)))
_of_one("QLinearSoftmax", lambda n, x: torch.softmax(x, n.attr("axis", -1)))
_of_one("QLinearGlobalAveragePool", _global_average)
_of_one("QLinearAveragePool", average_pool)


@operator("QLinearConcat", domain=_DOMAIN)
def _concat(n: Node, scale: Tensor, zero: Tensor, *parts: Tensor) -> Tensor:
    values = [dequantize(*part) for part in zip(parts[::3], parts[1::3], parts[2::3])]
    return quantize(torch.cat(values, n.attr("axis")), scale, zero, zero.dtype)


@operator("QGemm", domain=_DOMAIN)
def _gemm(
    n: Node,
    a: Tensor,
    a_scale: Tensor,
    a_zero: Tensor | None,
    b: Tensor,
    b_scale: Tensor,
    b_zero: Tensor | None,
    c: Tensor | None = None,
    scale: Tensor | None = None,
    zero: Tensor | None = None,
) -> Tensor:
    alpha = n.attr("alpha", 1.0)
    left = dequantize(a, a_scale, a_zero)
    right = dequantize(b, b_scale, b_zero, 0 if n.attr("transB", 0) else 1)
    left = left.t() if n.attr("transA", 0) else left
    right = right.t() if n.attr("transB", 0) else right
    result = torch.matmul(left, right)
    result = result if alpha == 1.0 else result * alpha
    if c is not None:
        result = result + c.to(torch.float32) * (alpha * a_scale * b_scale)
    return result if scale is None else quantize(result, scale, zero, a.dtype)


@operator("MatMulIntegerToFloat", domain=_DOMAIN)
def _matmul_to_float(
    n: Node,
    a: Tensor,
    b: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    a_zero: Tensor | None = None,
    b_zero: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    result = torch.matmul(dequantize(a, a_scale, a_zero), dequantize(b, b_scale, b_zero, -1))
    return result if bias is None else result + bias
