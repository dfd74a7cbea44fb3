"""Operators that compute each element of the result from the elements at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .registry import Node, operator, unsigned_as_int64

__all__: list[str] = []


def _unary(function: Callable[[torch.Tensor], torch.Tensor], *names: str) -> None:
    computed = unsigned_as_int64(function)
    operator(*names)(lambda n, x: computed(x))


_unary(torch.abs, "Abs")
_unary(torch.acos, "Acos")
_unary(torch.acosh, "Acosh")
_unary(torch.asin, "Asin")
_unary(torch.asinh, "Asinh")
_unary(torch.atan, "Atan")
_unary(torch.atanh, "Atanh")
_unary(torch.ceil, "Ceil")
_unary(torch.cos, "Cos")
_unary(torch.cosh, "Cosh")
_unary(torch.erf, "Erf")
_unary(torch.exp, "Exp")
_unary(torch.floor, "Floor")
_unary(torch.isnan, "IsNaN")
_unary(torch.log, "Log")
_unary(torch.neg, "Neg")
_unary(torch.logical_not, "Not")
_unary(torch.bitwise_not, "BitwiseNot")
_unary(torch.reciprocal, "Reciprocal")
_unary(torch.relu, "Relu")
_unary(torch.round, "Round")
_unary(torch.sigmoid, "Sigmoid")
_unary(torch.sign, "Sign")
_unary(torch.sin, "Sin")
_unary(torch.sinh, "Sinh")
_unary(F.softsign, "Softsign")
_unary(F.hardswish, "HardSwish")
_unary(F.mish, "Mish")
_unary(torch.sqrt, "Sqrt")
_unary(torch.tan, "Tan")
_unary(torch.tanh, "Tanh")


@operator("Identity")
def _identity(n: Node, x: Any) -> tuple[Any]:
    return (x,)


@operator("Softplus")
def _softplus(n: Node, x: torch.Tensor) -> torch.Tensor:
    # Without PyTorch's threshold, behind which it takes the argument for the result.
    return F.softplus(x, threshold=1000.0)


def _quotient(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return torch.div(a, b)
    return torch.div(a, b, rounding_mode="trunc")


def _binary(function: Callable[..., torch.Tensor], *names: str) -> None:
    computed = unsigned_as_int64(function)
    operator(*names)(lambda n, a, b: computed(a, b))


_binary(torch.add, "Add")
_binary(torch.sub, "Sub")
_binary(torch.mul, "Mul")
_binary(_quotient, "Div")
_binary(torch.eq, "Equal")
_binary(torch.lt, "Less")
_binary(torch.le, "LessOrEqual")
_binary(torch.gt, "Greater")
_binary(torch.ge, "GreaterOrEqual")
_binary(torch.logical_and, "And")
_binary(torch.logical_or, "Or")
_binary(torch.logical_xor, "Xor")
_binary(torch.bitwise_and, "BitwiseAnd")
_binary(torch.bitwise_or, "BitwiseOr")
_binary(torch.bitwise_xor, "BitwiseXor")


@operator("BitShift")
def _bit_shift(n: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    shift = torch.bitwise_left_shift
    if n.attr("direction") == "RIGHT":
        shift = torch.bitwise_right_shift
    return unsigned_as_int64(shift)(a, b)


@operator("Pow")
def _pow(n: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not x.dtype.is_floating_point and y.dtype.is_floating_point:
        return torch.pow(x.to(torch.float64), y).to(x.dtype)
    return unsigned_as_int64(torch.pow)(x, y).to(x.dtype)


@operator("Mod")
def _mod(n: Node, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return unsigned_as_int64(torch.fmod if n.attr("fmod", 0) else torch.remainder)(a, b)


@operator("Min", "Max")
def _extreme(n: Node, *tensors: torch.Tensor) -> torch.Tensor:
    function = unsigned_as_int64(torch.minimum if n.op_type == "Min" else torch.maximum)
    result = tensors[0]
    for tensor in tensors[1:]:
        result = function(result, tensor)
    return result


@operator("Sum", "Mean")
def _sum(n: Node, *tensors: torch.Tensor) -> torch.Tensor:
    result = tensors[0]
    for tensor in tensors[1:]:
        result = result + tensor
    return result / len(tensors) if n.op_type == "Mean" else result


@operator("Where")
def _where(n: Node, condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(condition, x, y)


@operator("Clip")
def _clip(
    n: Node,
    x: torch.Tensor,
    low: torch.Tensor | None = None,
    high: torch.Tensor | None = None,
) -> torch.Tensor:
    result = x
    if low is not None:
        result = unsigned_as_int64(torch.maximum)(result, low)
    if high is not None:
        result = unsigned_as_int64(torch.minimum)(result, high)
    return result


@operator("IsInf")
def _is_inf(n: Node, x: torch.Tensor) -> torch.Tensor:
    positive, negative = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    found = torch.isinf(x)
    if not positive:
        found = found & (x < 0)
    return found & (x > 0) if not negative else found


@operator("LeakyRelu")
def _leaky_relu(n: Node, x: torch.Tensor) -> torch.Tensor:
    return F.leaky_relu(x, n.attr("alpha", 0.01))


@operator("PRelu")
def _prelu(n: Node, x: torch.Tensor, slope: torch.Tensor) -> torch.Tensor:
    return torch.where(x < 0, x * slope, x)


@operator("ThresholdedRelu")
def _thresholded_relu(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > n.attr("alpha", 1.0), x, torch.zeros_like(x))


@operator("Elu")
def _elu(n: Node, x: torch.Tensor) -> torch.Tensor:
    return F.elu(x, n.attr("alpha", 1.0))


@operator("Celu")
def _celu(n: Node, x: torch.Tensor) -> torch.Tensor:
    return F.celu(x, n.attr("alpha", 1.0))


@operator("Selu")
def _selu(n: Node, x: torch.Tensor) -> torch.Tensor:
    alpha = n.attr("alpha", 1.6732632423543772)
    gamma = n.attr("gamma", 1.0507009873554805)
    return gamma * torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


@operator("Gelu")
def _gelu(n: Node, x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate=n.attr("approximate", "none"))


@operator("Swish")
def _swish(n: Node, x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(n.attr("alpha", 1.0) * x)


@operator("HardSigmoid")
def _hard_sigmoid(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.clamp(n.attr("alpha", 0.2) * x + n.attr("beta", 0.5), 0.0, 1.0)


@operator("Shrink")
def _shrink(n: Node, x: torch.Tensor) -> torch.Tensor:
    bias, limit = n.attr("bias", 0.0), n.attr("lambd", 0.5)
    inner = torch.where(x > limit, x - bias, torch.zeros_like(x))
    return torch.where(x < -limit, x + bias, inner).to(x.dtype)


@operator("Dropout")
def _dropout(
    n: Node,
    x: torch.Tensor,
    ratio: torch.Tensor | None = None,
    training: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    is_training = training is not None and bool(n.array(2))
    given = n.array(1)
    share = 0.5 if given is None else float(given.reshape(-1)[0])
    if not is_training or share == 0.0:
        return [x, torch.ones_like(x, dtype=torch.bool)]
    mask = torch.rand_like(x, dtype=torch.float32) >= share
    return [x * mask / (1.0 - share), mask]
