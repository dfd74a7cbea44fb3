"""Registration and lookup of functions and object classes."""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

from .base import core

__all__ = [
    "convert_to_tvm_func",
    "get_global_func",
    "hold",
    "list_global_func_names",
    "register_error",
    "register_func",
    "register_object",
    "remove_global_func",
]

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

# Prefixes of global functions in older versions.
_RENAMED_PREFIXES = {"codegen.build_": "target.build.", "codegen._": "target.", "schedule.": "te."}


def register_object(type_key: str | type | None = None) -> Any:
    """Decorator: make a class the Python form of the objects of a type.

    Objects of the type, and of subtypes without a class of their own, arrive as instances of the
    class. The type's fields become attributes, unless the class defines the name itself.

    Parameters
    ----------
    type_key : key under which the type is declared in C++; the class's name if left out.

    >>> @tvm._ffi.register_object("tir.IterVar")
    ... class IterVar(Object): ...
    """

    def register(cls: C) -> C:
        core.register_object(type_key if isinstance(type_key, str) else cls.__name__, cls)
        return cls

    return register(type_key) if isinstance(type_key, type) else register


@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...
@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...
@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...


def register_func(func_name: Any, f: Any = None, override: bool = False) -> Any:
    """Make a Python callable a global function, which C++ and compiled code can call.

    Usable as a function or as a decorator, with or without a name.

    Parameters
    ----------
    func_name : the global name; the callable's ``__name__`` if left out.
    override : replace a function registered before under the name.

    Raises
    ------
    ValueError : the name is taken and `override` is false.
    """
    if callable(func_name):
        f, func_name = func_name, func_name.__name__

    def register(func: F) -> F:
        core.register_func(func_name, func, override)
        return func

    return register if f is None else register(f)


def get_global_func(name: str, allow_missing: bool = False) -> Any:
    """The registered function of that name.

    Raises
    ------
    ValueError : there is none (with similar names), unless `allow_missing`, which returns None.
    """
    function = core.get_global_func(name, True)
    if function is None and _load_package_of(name):
        function = core.get_global_func(name, True)
    if function is not None or allow_missing:
        return function
    for old, new in _RENAMED_PREFIXES.items():
        if name.startswith(old):
            raise core.errors["ValueError"](
                f'there is no global function "{name}"; since TVM 0.7 those of the prefix "{old}" '
                f'have the prefix "{new}"'
            )
    return core.get_global_func(name, False)


def _load_package_of(name: str) -> bool:
    """Import the package that a name's prefix says, whose Python functions wait for it."""
    parts = name.removeprefix("tvm.").split(".")[:-1]
    while parts:
        package = ".".join(["tvm", *parts])
        if package in sys.modules:
            return False
        try:
            importlib.import_module(package)
        except ModuleNotFoundError as missing:
            # Without a name it is a hint about a name of another version.
            if missing.name is not None and not package.startswith(missing.name):
                raise
            parts.pop()
        else:
            return True
    return False


def list_global_func_names() -> list[str]:
    """Names of all registered functions, sorted."""
    return core.list_global_func_names()


def remove_global_func(name: str) -> bool:
    """Forget a registered function; false if there was none of that name."""
    return core.get_global_func("runtime.RemoveGlobalFunc", False)(name)


def convert_to_tvm_func(function: Callable[..., Any]) -> Any:
    """A callable as a packed function that keeps the callable alive."""
    if isinstance(function, core.PackedFunc):
        return function
    return core.convert_to_func(function)


def hold(value: Any) -> Any:
    """An object that keeps any Python value alive for as long as C++ holds the object."""
    return core.hold(value)


def register_error(kind: str | type | None = None, cls: type | None = None) -> Any:
    """Map an error kind of C++ to an exception class; also a decorator.

    A C++ error of the kind is raised as that class, and the class crosses C++ under its name.
    """
    if isinstance(kind, type):
        return register_error(kind.__name__, kind)

    def register(cls: C) -> C:
        if not issubclass(cls, BaseException):
            raise builtins.TypeError(f"register_error: {cls!r} is not an exception class")
        core.errors[kind or cls.__name__] = cls
        return cls

    return register if cls is None else register(cls)


def _init_api(namespace: str, target_module_name: str | None = None) -> None:
    """Put every global function ``namespace.Name`` into a module as ``Name``.

    Names with further dots belong to deeper namespaces and are left out.

    Parameters
    ----------
    target_module_name : ``__name__`` of the module, which is imported if it is not yet;
        ``tvm.<namespace>`` if left out.

    Raises
    ------
    ModuleNotFoundError : there is no such module.
    """
    module = importlib.import_module(target_module_name or f"tvm.{namespace}")
    prefix = namespace.removeprefix("tvm.") + "."
    for name in core.list_global_func_names():
        short = name.removeprefix(prefix)
        if name.startswith(prefix) and "." not in short:
            setattr(module, short, core.get_global_func(name, False))
