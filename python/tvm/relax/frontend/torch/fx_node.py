"""A node of a ``torch.fx`` graph as converters see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from tvm import error
from tvm.ir import RelayExpr
from tvm.relax import BlockBuilder, Constant, TensorStructInfo, Var, const
from tvm.relax.struct_info import static_shape

__all__ = ["FxNode", "dtype_of"]


def dtype_of(kind: torch.dtype | str) -> str:
    """The name of an element type of PyTorch."""
    return str(kind).removeprefix("torch.")


class FxNode:
    """One operation: its arguments, with values of the graph in place of nodes.

    Attributes
    ----------
    args, kwargs : the arguments as the traced program gives them.
    module : the module that is called, if it is one.
    """

    def __init__(
        self,
        node: fx.Node,
        builder: BlockBuilder,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        module: torch.nn.Module | None,
        tensor: Callable[[torch.Tensor], RelayExpr],
    ) -> None:
        self.node = node
        self.args = list(args)
        self.kwargs = kwargs
        self.module: Any = module
        self._builder = builder
        self._tensor = tensor

    def emit(self, value: RelayExpr) -> Var:
        """Bind a value to a variable."""
        return self._builder.emit(value)

    def get(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or name."""
        if position < len(self.args):
            return self.args[position]
        return self.kwargs.get(name, default)

    def parameter(self, value: torch.Tensor | None) -> Any:
        """A parameter of the module as a graph value; None for one that it does not have."""
        return None if value is None else self._tensor(value)

    @property
    def data(self) -> RelayExpr:
        """The first argument, under whichever name."""
        return self.args[0] if self.args else self.kwargs["input"]

    def operand(self, value: Any, like: RelayExpr) -> RelayExpr:
        """A value as a tensor: a number becomes a constant of another operand's type."""
        if isinstance(value, RelayExpr):
            return value
        return const(value, str(like.struct_info.dtype))

    @staticmethod
    def shape(value: RelayExpr) -> list[int]:
        """The fixed shape of a value."""
        return list(static_shape(value.struct_info))

    def refuse(self, why: str) -> Exception:
        """The complaint that an operation is used in a way that is not supported."""
        return error.ValueError(f"from_fx: '{self.node.name}': {why}")


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of the graph."""
    return isinstance(value, Constant) or (
        isinstance(value, RelayExpr) and isinstance(value.struct_info, TensorStructInfo)
    )
