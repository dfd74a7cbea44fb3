"""Facts about this installation, to be quoted in reports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from typing import Any

from tvm._ffi.base import _RUNTIME_ONLY, version
from tvm._ffi.libinfo import find_lib_path
from tvm.runtime import Module, enabled
from tvm.runtime.function_module import add_function, module_from_functions

__all__ = ["FrontendTestModule", "describe", "libinfo"]


class FrontendTestModule(Module):
    """A module of Python functions, to take the place of a compiled library in tests.

    >>> library = FrontendTestModule()
    >>> library["myadd"] = lambda x, out: out.copyfrom(x.numpy() + 1)
    """

    def __init__(self) -> None:
        self._take_handle(module_from_functions("frontend_test", {}))

    def add_function(self, name: str, func: Callable[..., Any]) -> None:
        """Add a function, in the place of one of its name."""
        add_function(self, name, func)

    def __setitem__(self, name: str, func: Callable[..., Any]) -> None:
        self.add_function(name, func)


def libinfo() -> dict[str, str]:
    """Version, libraries, machine, and which kinds of code can run here, by name."""
    kinds = [kind for kind in ("llvm", "c", "stackvm", "cuda") if enabled(kind)]
    return {
        "TVM_VERSION": version,
        "LIBRARIES": ", ".join(find_lib_path()),
        "RUNTIME_ONLY": "ON" if _RUNTIME_ONLY else "OFF",
        "ENABLED": ", ".join(kinds),
        "PYTHON": sys.version.split()[0],
        "SYSTEM": platform.platform(),
        "PROCESSORS": str(os.cpu_count()),
    }


def describe() -> None:
    """Print `libinfo`, one fact a line."""
    for name, value in libinfo().items():
        print(f"{name}: {value}")
