"""What networks consist of: modules in trees, their parameters, and effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ...block_builder import BlockBuilder
from ...expr import Var
from .subroutine import SubroutineMixin
from .tensor import (
    Object,
    Parameter,
    Tensor,
    get_default_dtype,
    set_default_dtype,
    wrap_nested,
)

__all__ = [
    "Component",
    "Effect",
    "Object",
    "Parameter",
    "Tensor",
    "find_attributes",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]


class Effect:
    """State that methods of a network hand on: an input and a result of each of them.

    Subclasses say how the state is made, received and given back.
    """

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Emit what makes the first state; returns its variables."""
        raise error.NotImplementedError(f"{type(self).__name__} does not say how it begins")

    def create(self, name_hint: str) -> list[Var]:
        """The parameters of a function that receive the state."""
        raise error.NotImplementedError(f"{type(self).__name__} does not say what it is made of")

    def set_state(self, state_vars: list[Var]) -> None:
        """Go on with this state."""
        raise error.NotImplementedError(f"{type(self).__name__} does not take a state")

    def finalize(self) -> list[RelayExpr]:
        """The state at the end of a function, which is forgotten."""
        raise error.NotImplementedError(f"{type(self).__name__} does not give its state")

    def to(self, dtype: str | None = None) -> None:
        """Change its element type, if it has one."""


class Component(SubroutineMixin):
    """A node of the tree: everything about a module but how it is exported."""

    def children(self) -> Iterator[tuple[str, Any]]:
        """Attributes by name."""
        yield from list(self.__dict__.items())

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Parameters of the whole tree, named by the path to them, such as ``layers.0.weight``."""
        yield from find_attributes(self, prefix, lambda item: isinstance(item, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """Parameters of the whole tree."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(
        self, *, prefix: str = "", destination: dict[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """Parameters of the whole tree by name, put into `destination` if one is given."""
        found = {} if destination is None else destination
        found.update(self.named_parameters(prefix))
        return found

    def load_state_dict(
        self, state_dict: dict[str, Parameter], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Take the values of parameters with the same names.

        Parameters
        ----------
        strict : refuse names that are missing or too many.

        Returns
        -------
        Names that got no values, and names that nothing here has.

        Raises
        ------
        KeyError : there are such names and `strict` forbids them.
        ValueError : a parameter of `state_dict` has no values.
        """
        ours = self.state_dict()
        unexpected = [name for name in state_dict if name not in ours]
        missing = [name for name in ours if name not in state_dict]
        if strict and (missing or unexpected):
            raise error.KeyError(f"Missing keys: {missing}, Unexpected keys: {unexpected}")
        for name, parameter in state_dict.items():
            if name not in ours:
                continue
            if parameter.data is None:
                raise error.ValueError(f"Parameter {name} is not set to any concrete tensor")
            ours[name].data = parameter.data
        return missing, unexpected

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply ``forward``."""
        forward = getattr(self, "forward", None)
        if forward is None:
            raise error.NotImplementedError(f"Module {type(self)} does not have a `forward` method")
        return forward(*args, **kwargs)

    def to(self, dtype: str | None = None) -> None:
        """Change the element type of everything in the tree that has one."""
        for _, item in self.children():
            convert = getattr(item, "to", None)
            if callable(convert):
                convert(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype


def find_attributes(
    root: Component, prefix: str, wanted: Callable[[Any], bool]
) -> Iterator[tuple[str, Any]]:
    """Attributes in the tree below a module for which `wanted` holds, named by their paths."""
    for name, item in root.children():
        if wanted(item):
            yield prefix + name, item
        elif isinstance(item, Component):
            yield from find_attributes(item, f"{prefix}{name}.", wanted)
