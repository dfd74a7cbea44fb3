"""The border to the compiled library: registered functions and object classes."""

from __future__ import annotations

from typing import NoReturn

from . import base, libinfo
from .registry import (
    _init_api,
    convert_to_tvm_func,
    get_global_func,
    hold,
    list_global_func_names,
    register_error,
    register_func,
    register_object,
    remove_global_func,
)
from .version import __version__

__all__ = [
    "__version__",
    "base",
    "convert_to_tvm_func",
    "get_global_func",
    "hold",
    "libinfo",
    "list_global_func_names",
    "register_error",
    "register_func",
    "register_object",
    "remove_global_func",
]


def __getattr__(name: str) -> NoReturn:
    from tvm._older_names import moved

    hint = moved(f"{__name__}.{name}")
    raise AttributeError(hint or f"module {__name__!r} has no attribute {name!r}")
