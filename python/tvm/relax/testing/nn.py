"""Layers that emit operators into the `BlockBuilder` at work.

Networks are written with :mod:`tvm.relax.frontend.nn`; these are for tests that want a module of a
few lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tvm import error, tir
from tvm.ir import IRModule, RelayExpr
from tvm.runtime import NDArray
from tvm.runtime.ndarray import array

from .. import op
from ..block_builder import BlockBuilder
from ..expr import Tuple, Var
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
    "emit_checkpoint",
    "emit_checkpoint_sequential",
    "emit_te",
    "init_params",
]


def emit(expr: RelayExpr, name_hint: str = "") -> Var:
    """Bind an expression in the builder at work.

    Raises
    ------
    RuntimeError : none is, see `BlockBuilder.function`.
    """
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    """Bind the call of a te function's kernel in the builder at work.

    Raises
    ------
    RuntimeError : none is, see `BlockBuilder.function`.
    """
    return _builder().emit_te(func, *args, **kwargs)


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise error.RuntimeError("relax.testing.nn: no function is being built")
    return builder


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    """What `func` computes, marked so that `Gradient` computes it again in the backward pass.

    Operands, alone or in tuples and lists, are where the part begins, and the result is where it
    ends; arguments that are no expressions are handed on.
    """

    def start(value: Any) -> Any:
        if isinstance(value, Tuple):
            return Tuple([start(field) for field in value.fields])
        if isinstance(value, (list, tuple)):
            return type(value)(map(start, value))
        if isinstance(value, RelayExpr) and not isinstance(value, tir.PrimExpr):
            return emit(op.grad.start_checkpoint(value))
        return value

    result = func(*map(start, args), **{name: start(value) for name, value in kwargs.items()})
    return emit(op.grad.end_checkpoint(result))


def emit_checkpoint_sequential(
    functions: Sequence[Callable[..., Any]] | Sequential,
    segments: int | Sequence[int],
    input: RelayExpr,
    checkpoint_last: bool = False,
) -> Any:
    """Functions one after the other, in parts of which each is computed again for the gradient.

    Parameters
    ----------
    segments : number of parts, of which the last takes what is left over; or how many functions
        each has.
    checkpoint_last : whether the last part, with which the backward pass begins, is such a part.

    Raises
    ------
    ValueError : there are fewer functions than parts, or lengths that do not add up.
    """
    steps = list(functions.modules if isinstance(functions, Sequential) else functions)
    if isinstance(segments, int):
        if not 1 <= segments <= len(steps):
            raise error.ValueError(
                f"emit_checkpoint_sequential: {len(steps)} functions make no {segments} segments"
            )
        length = len(steps) // segments
        ends = [*(length * k for k in range(segments)), len(steps)]
    else:
        ends = [0]
        for length in segments:
            ends.append(ends[-1] + int(length))
        if ends[-1] != len(steps):
            raise error.ValueError(
                f"emit_checkpoint_sequential: segments {list(segments)} are of {ends[-1]} "
                f"functions, and there are {len(steps)}"
            )

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in steps[start:end]:
                value = step(value)
            return value

        return run

    value: Any = input
    for start, end in pairwise(ends):
        kept = end == len(steps) and not checkpoint_last
        value = part(start, end)(value) if kept else emit_checkpoint(part(start, end), value)
    return value


def init_params(mod: IRModule) -> list[NDArray]:
    """Random arrays, uniform in [0, 1), for the parameters of a module's function "main".

    Raises
    ------
    ValueError : a parameter is no tensor of fixed extents.
    """
    rng = np.random.default_rng(0)
    arrays = []
    for param in mod["main"].params:
        info = param.struct_info
        extents = getattr(getattr(info, "shape", None), "values", None)
        if extents is None or any(not isinstance(extent, tir.IntImm) for extent in extents):
            raise error.ValueError(f"init_params: {param.name_hint} has no fixed shape but {info}")
        arrays.append(array(rng.random([int(n) for n in extents]).astype(str(info.dtype))))
    return arrays


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
