"""What the methods of a network take: types and shapes of their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error

from .core import Component
from .tensor import Object as _Object

__all__ = ["Int", "MethodSpec", "ModuleSpec", "Object", "Tensor", "Tuple"]

_MODES = ("plain", "packed", "none")


class Int:
    """An integer, which becomes a symbolic extent."""

    def __repr__(self) -> str:
        return "int"


class Tensor:
    """A tensor; extents that are texts are symbolic, equal texts equal extents of the method."""

    def __init__(self, shape: Sequence[int | str], dtype: str) -> None:
        self.shape = list(shape)
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Tensor([{', '.join(map(str, self.shape))}], '{self.dtype}')"


class Object:
    """A value of the runtime that is no tensor.

    Parameters
    ----------
    object_type : class that the method gets, of :class:`nn.Object`.
    """

    def __init__(self, object_type: type[_Object]) -> None:
        self.object_type = object_type

    def __repr__(self) -> str:
        return "object"


class Tuple:
    """Several values in a tuple or list."""

    def __init__(self, name: str, elements: list[Any] | tuple[Any, ...]) -> None:
        if not isinstance(elements, tuple | list):
            raise error.TypeError(
                f"nn.spec.Tuple: Unsupported container type: {type(elements)}; give a list or tuple"
            )
        self.name = name
        self.elements = elements

    def __repr__(self) -> str:
        return repr(self.elements)


def _argument(given: Any, name: str) -> Any:
    if given is Int or given is int or given == "int":
        return Int()
    if isinstance(given, Int | Tensor | Object):
        return given
    if isinstance(given, Tuple):
        given = given.elements
    if isinstance(given, tuple | list):
        fields = [_argument(item, f"{name}_{i}") for i, item in enumerate(given)]
        return Tuple(name, type(given)(fields))
    raise error.TypeError(
        f"Invalid spec for argument {name}: {given}; it is int, nn.spec.Tensor, nn.spec.Object, "
        "or a tuple or list of these"
    )


class MethodSpec:
    """Arguments of one method.

    Parameters
    ----------
    method : the bound method.
    arg_names : names of its arguments.
    arg_specs : what each one is.
    param_mode : "plain": a parameter of the function for each weight; "packed": one tuple of all;
        "none": the function has no weights.
    effect_mode : the same for effects.

    Raises
    ------
    ValueError : there is no such mode.
    """

    def __init__(
        self,
        method: Callable[..., Any],
        arg_names: Sequence[str],
        arg_specs: Sequence[Any],
        param_mode: str,
        effect_mode: str,
    ) -> None:
        for what, mode in (("param_mode", param_mode), ("effect_mode", effect_mode)):
            if mode not in _MODES:
                raise error.ValueError(f"Invalid {what}: {mode}; it is one of {', '.join(_MODES)}")
        self.method = method
        self.arg_names = list(arg_names)
        self.arg_specs = list(arg_specs)
        self.param_mode = param_mode
        self.effect_mode = effect_mode

    def text(self, name: str) -> str:
        """The signature under a name."""
        pairs = zip(self.arg_names, self.arg_specs)
        return f"{name}({', '.join(f'{arg}: {what}' for arg, what in pairs)})"

    def __repr__(self) -> str:
        return self.text("MethodSpec")

    @staticmethod
    def from_raw(spec: MethodSpec | Mapping[str, Any], method: Callable[..., Any]) -> MethodSpec:
        """From a dictionary of arguments; its entry "$" holds the modes.

        Raises
        ------
        TypeError : an entry is no type of an argument.
        ValueError : the method has no argument of a name, or one without a default is missing.
        """
        if isinstance(spec, MethodSpec):
            return spec
        given = dict(spec)
        modes = given.pop("$", {})
        parameters = inspect.signature(method).parameters
        unknown = [name for name in given if name not in parameters]
        missing = [
            name
            for name, parameter in parameters.items()
            if name not in given
            and parameter.default is inspect.Parameter.empty
            and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        if unknown or missing:
            raise error.ValueError(
                f"nn.spec: {getattr(method, '__qualname__', method)} has the arguments "
                f"{list(parameters)}; unknown: {unknown}, missing: {missing}"
            )
        names = [name for name in parameters if name in given]
        return MethodSpec(
            method,
            names,
            [_argument(given[name], name) for name in names],
            modes.get("param_mode", "plain"),
            modes.get("effect_mode", "plain"),
        )

    @staticmethod
    def from_torch(args: Sequence[Any], method: Callable[..., Any]) -> MethodSpec:
        """From example arguments, tensors of PyTorch and integers; others keep their defaults."""
        import torch

        parameters = inspect.signature(method).parameters
        names = list(parameters)
        left = list(parameters.values())[len(args) :]
        if len(args) > len(names) or any(p.default is inspect.Parameter.empty for p in left):
            raise error.TypeError(f"Expected {len(names)} arguments, but got {len(args)} arguments")
        specs: list[Any] = []
        for name, value in zip(names, args):
            if isinstance(value, torch.Tensor):
                specs.append(Tensor(list(value.shape), str(value.dtype).removeprefix("torch.")))
            elif isinstance(value, int):
                specs.append(Int())
            else:
                raise error.TypeError(
                    f"nn.spec: {name} is a tensor of PyTorch or an integer, got {type(value)}"
                )
        return MethodSpec(method, names[: len(args)], specs, "plain", "plain")


class ModuleSpec:
    """Which methods of a network become functions, and what they take."""

    def __init__(
        self, module: Component, method_names: Sequence[str], method_specs: Sequence[MethodSpec]
    ) -> None:
        self.module = module
        self.method_names = list(method_names)
        self.method_specs = list(method_specs)

    @staticmethod
    def from_raw(spec: ModuleSpec | Mapping[str, Any], module: Component) -> ModuleSpec:
        """From a dictionary of methods, whose entries are dictionaries of arguments."""
        if isinstance(spec, ModuleSpec):
            return spec
        made = []
        for name, method_spec in spec.items():
            method = getattr(module, name, None)
            if method is None:
                raise error.ValueError(f"nn.spec: {type(module).__name__} has no method {name}")
            made.append(MethodSpec.from_raw(method_spec, method))
        return ModuleSpec(module, list(spec), made)

    def __repr__(self) -> str:
        pairs = zip(self.method_names, self.method_specs)
        return "ModuleSpec:\n" + "\n".join(f"  {spec.text(name)}" for name, spec in pairs)
