"""Loading of the compiled libraries, and the kinds of Python values they take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .version import __version__

__all__ = [
    "ERROR_TYPE",
    "__version__",
    "core",
    "integer_types",
    "numeric_types",
    "py_str",
    "string_types",
    "version",
]

string_types = (str,)
integer_types = (int, np.integer)
numeric_types = (int, float, np.integer, np.floating)

version = __version__

# There is one binding. The names older scripts ask for mean that one too.
_FFI_MODE = os.environ.get("TVM_FFI", "auto")
if _FFI_MODE not in ("auto", "ctypes", "cython"):
    raise ImportError(f'TVM_FFI: expected "auto", "ctypes" or "cython", got "{_FFI_MODE}"')


def py_str(data: bytes) -> str:
    """UTF-8 bytes as text."""
    return data.decode("utf-8")


def _load_core() -> Any:
    try:
        from . import _core  # type: ignore[attr-defined]
    except ImportError as error:
        here = Path(__file__).parent
        raise ImportError(
            f"tvm: the compiled library could not be loaded ({error}). It is looked for as "
            f"{here / '_core*.so'} and {here.parent / 'lib'}; build it with `pip install .` in the "
            "project's folder."
        ) from error
    return _core


def _load_compiler(runtime: Path) -> Path:
    """Load libtvm, which lies beside the runtime library; without it programs can only be run.

    TVM_USE_RUNTIME_LIB=1 leaves it out on purpose.
    """
    path = runtime.with_name(runtime.name.replace("tvm_runtime", "tvm"))
    if os.environ.get("TVM_USE_RUNTIME_LIB", "0") not in ("", "0") or not path.exists():
        return runtime
    try:
        core.load_library(str(path))
    except RuntimeError as error:
        raise ImportError(f"tvm: {path} could not be loaded: {error}") from error
    return path


def __getattr__(name: str) -> Any:
    # The class is made above this room, which only knows it by its name.
    if name == "TVMError":
        return ERROR_TYPE["TVMError"]
    raise AttributeError(f"module 'tvm._ffi.base' has no attribute {name!r}")


core = _load_core()
ERROR_TYPE: dict[str, type[BaseException]] = core.errors
_LIB_NAME = _load_compiler(Path(core.get_global_func("runtime.GetLibraryPath", False)())).name
_RUNTIME_ONLY = "runtime" in _LIB_NAME
