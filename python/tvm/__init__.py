"""A tensor compiler whose schedules are found by gradient descent."""

from __future__ import annotations

import importlib
from typing import Any

from . import _ffi, error, runtime
from ._ffi import __version__, get_global_func, register_error, register_func, register_object
from .error import TVMError
from .ir import IRModule
from .runtime import (
    DataType,
    Device,
    NDArray,
    Object,
    PackedFunc,
    cpu,
    cuda,
    device,
    metal,
    opencl,
    rocm,
    vulkan,
)
from .runtime import ndarray as nd

from . import instrument, ir, testing, transform  # isort: skip

__all__ = [
    "DataType",
    "Device",
    "IRModule",
    "NDArray",
    "Object",
    "PackedFunc",
    "TVMError",
    "__version__",
    "build",
    "cpu",
    "cuda",
    "device",
    "error",
    "get_global_func",
    "instrument",
    "ir",
    "lower",
    "metal",
    "nd",
    "opencl",
    "register_error",
    "register_func",
    "register_object",
    "rocm",
    "runtime",
    "testing",
    "transform",
    "vulkan",
]

# Loaded when first named, so that `import tvm` stays quick and never loads torch.
_LAZY_PACKAGES = frozenset(
    (
        "arith",
        "auto_scheduler",
        "contrib",
        "driver",
        "felix",
        "relax",
        "target",
        "te",
        "tir",
        "topi",
    )
)
_LAZY_NAMES = {"build": "driver", "lower": "driver"}


def __getattr__(name: str) -> Any:
    if name in _LAZY_PACKAGES:
        return importlib.import_module(f"tvm.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"tvm.{_LAZY_NAMES[name]}"), name)
    raise AttributeError(f"module 'tvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_PACKAGES, *_LAZY_NAMES})
