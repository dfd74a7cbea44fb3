"""What the parts of a search share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import tvm
from tvm import tir
from tvm.ir import IRModule
from tvm.runtime.threading import usable_cores

__all__ = [
    "Named",
    "cpu_count",
    "derived_object",
    "get_global_func_with_default_on_worker",
    "normalize_mod",
    "remove_build_dir",
]

Class = TypeVar("Class", bound=type)


class Named:
    """A part whose text is its class and address, as logs show it."""

    def __str__(self) -> str:
        return f"meta_schedule.{type(self).__name__}({hex(id(self))})"

    __repr__ = __str__


def derived_object(cls: Class) -> Class:
    """Decorator of classes that derive from a part such as `PyRunner`.

    Parts are Python classes, so there is nothing to bridge; scripts that use it run as they are.
    `_outer()` gives the object itself, which the inner half of a bridged object would ask for.
    """
    if not hasattr(cls, "_outer"):
        cls._outer = lambda self: self  # type: ignore[attr-defined]
    return cls


def cpu_count() -> int:
    """Cores that this process may use."""
    return usable_cores()


def get_global_func_with_default_on_worker(
    name: str | Callable[..., Any] | None, default: Callable[..., Any] | None
) -> Any:
    """A function by itself or by its registered name; the default where there is neither.

    Raises
    ------
    AttributeError : no function is registered under the name.
    """
    if name is None:
        return default
    if callable(name):
        return name
    found = tvm.get_global_func(name, allow_missing=True)
    if found is None:
        raise AttributeError(
            f"meta_schedule: no function is registered as {name!r}; workers know what their "
            "initializer registers"
        )
    return found


@tvm.register_func("meta_schedule.remove_build_dir", override=True)
def remove_build_dir(artifact_path: str) -> None:
    """Remove the folder that a builder made for an artifact."""
    folder = os.path.dirname(artifact_path)
    if os.path.basename(folder).startswith("ms_build_"):
        for entry in os.listdir(folder):
            os.unlink(os.path.join(folder, entry))
        os.rmdir(folder)


def normalize_mod(mod: tir.PrimFunc | IRModule) -> IRModule:
    """A module whose only function is called ``main``.

    Raises
    ------
    ValueError : the module has several functions and none of them is ``main``.
    """
    if isinstance(mod, tir.PrimFunc):
        function = mod
    else:
        functions = {var.name_hint: value for var, value in mod.functions.items()}
        if "main" in functions:
            return mod
        if len(functions) != 1:
            raise ValueError(
                "meta_schedule: the function to tune is called 'main', the module has "
                f"{sorted(functions)}"
            )
        [function] = functions.values()
    attrs = dict(function.attrs.items()) if function.attrs is not None else {}
    if "global_symbol" not in attrs:
        function = function.with_attr("global_symbol", "main")
    if "tir.noalias" not in attrs:
        function = function.with_attr("tir.noalias", True)
    return IRModule({"main": function})
