"""Layers that emit operators into the `BlockBuilder` at work.

Networks are written with :mod:`tvm.relax.frontend.nn`; these are for tests that want a module of a
few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from .. import op
from ..block_builder import BlockBuilder
from ..expr import Var
from ..struct_info import TensorStructInfo

__all__ = [
    "Linear",
    "LogSoftmax",
    "Module",
    "Parameter",
    "Placeholder",
    "ReLU",
    "Sequential",
    "emit",
]


def emit(expr: RelayExpr, name_hint: str = "") -> Var:
    """Bind an expression in the builder at work.

    Raises
    ------
    RuntimeError : none is, see `BlockBuilder.function`.
    """
    builder = BlockBuilder.current()
    if builder is None:
        raise error.RuntimeError("relax.testing.nn: no function is being built")
    return builder.emit(expr, name_hint)


def _named(name: str) -> str:
    builder = BlockBuilder.current()
    return name if builder is None else builder.get_unique_name(name)


class Placeholder(Var):
    """An input."""

    def __init__(self, shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> None:
        super().__init__(_named(name), TensorStructInfo(list(shape), dtype))


class Parameter(Var):
    """A weight."""

    def __init__(self, shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> None:
        super().__init__(_named(name), TensorStructInfo(list(shape), dtype))


class Module:
    """Layers in attributes; ``forward`` says what they compute."""

    def parameters(self) -> list[Parameter]:
        """The weights, those of layers in attributes included, in their order."""
        found: dict[int, Parameter] = {}
        for value in vars(self).values():
            for parameter in _parameters_of(value):
                found.setdefault(id(parameter), parameter)
        return list(found.values())

    def forward(self, x: Any) -> Any:
        """What the module computes."""
        raise error.NotImplementedError(f"{type(self).__name__} does not say what it computes")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


def _parameters_of(value: Any) -> list[Parameter]:
    if isinstance(value, Parameter):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, (list, tuple)):
        return [parameter for item in value for parameter in _parameters_of(item)]
    return []


class Sequential(Module):
    """Layers, one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = list(modules)

    def forward(self, x: RelayExpr) -> RelayExpr:
        for module in self.modules:
            x = module(x)
        return x


class ReLU(Module):
    """max(x, 0)."""

    def forward(self, x: RelayExpr) -> RelayExpr:
        return emit(op.nn.relu(x))


class LogSoftmax(Module):
    """The logarithm of softmax over the last axis."""

    def forward(self, x: RelayExpr) -> RelayExpr:
        return emit(op.nn.log_softmax(x))


class Linear(Module):
    """x @ weight + bias, with a weight of shape (inputs, outputs)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, x: RelayExpr) -> RelayExpr:
        y = emit(op.matmul(x, self.weight))
        return y if self.bias is None else emit(op.add(y, self.bias))
