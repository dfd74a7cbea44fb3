"""Facts about this installation, to be quoted in reports."""

from __future__ import annotations

import os
import platform
import sys

from tvm._ffi.base import _RUNTIME_ONLY, version
from tvm._ffi.libinfo import find_lib_path
from tvm.runtime import enabled

__all__ = ["describe", "libinfo"]


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
