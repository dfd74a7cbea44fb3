"""A tensor compiler whose schedules are found by gradient descent."""

from __future__ import annotations

import importlib
from typing import Any

from . import _ffi, _older_names, error, runtime
from ._ffi import __version__, get_global_func, register_error, register_func, register_object
from .error import TVMError
from .runtime import (
    DataType,
    DataTypeCode,
    Device,
    NDArray,
    Object,
    PackedFunc,
    cpu,
    cuda,
    device,
    ext_dev,
    metal,
    opencl,
    rocm,
    vulkan,
)
from .runtime import ndarray as nd

from . import testing  # isort: skip
from .contrib import numpy_functions  # isort: skip

if not _ffi.base._RUNTIME_ONLY:
    from . import instrument, ir, transform  # isort: skip
    from .ir import IRModule

__all__ = [
    "DataType",
    "DataTypeCode",
    "Device",
    "IRModule",
    "NDArray",
    "Object",
    "PackedFunc",
    "TVMError",
    "__version__",
    "build",
    "compile",
    "cpu",
    "cuda",
    "device",
    "error",
    "ext_dev",
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
        "ir_pass",
        "parser",
        "relax",
        "relay",
        "rpc",
        "script",
        "support",
        "target",
        "te",
        "tir",
        "topi",
    )
)
_LAZY_NAMES = {
    "BuildConfig": "driver",
    "build": "driver",
    "build_config": "driver",
    "compile": "relax",
    "lower": "driver",
}


def __getattr__(name: str) -> Any:
    compiler = {*_LAZY_PACKAGES, *_LAZY_NAMES, *__all__} - {"rpc", "support"}
    if _ffi.base._RUNTIME_ONLY and name in compiler:
        raise AttributeError(
            f"tvm.{name} needs the compiler, and only the runtime library is here; compile on a "
            "machine that has libtvm and load the exported library with tvm.runtime.load_module"
        )
    if name in _LAZY_PACKAGES:
        return importlib.import_module(f"tvm.{name}")
    if name in _LAZY_NAMES:
        return getattr(importlib.import_module(f"tvm.{_LAZY_NAMES[name]}"), name)
    if name == "container":
        return importlib.import_module("tvm.ir.container")
    hint = _older_names.moved(f"tvm.{name}")
    raise AttributeError(hint or f"module 'tvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY_PACKAGES, *_LAZY_NAMES})


@register_func("relax.LoadMetaSchedule")
def _load_meta_schedule() -> None:
    # Passes of relax find the search by its names; it is in a room above theirs.
    importlib.import_module("tvm.meta_schedule")


def _load_relay_program(code: bytes | str) -> Any:
    # Libraries are loaded where nothing of relay was named yet, such as by servers of sessions.
    loader = importlib.import_module("tvm.relay.backend.vm").load_program
    return loader(code.decode() if isinstance(code, (bytes, bytearray)) else str(code))


if not _ffi.base._RUNTIME_ONLY:
    register_func("runtime.module.loadbinary_relay.VMExecutable", _load_relay_program)

_older_names.watch_imports()
