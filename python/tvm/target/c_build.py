"""From lowered functions to C source, and from C source to code by the system's compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Module, load_module
from tvm.runtime.linker import create_object, create_shared

from . import _ffi_api
from .llvm_build import exported_names, joins_system_library
from .target import Target

__all__ = ["build", "compile_c"]


def compile_c(source: str, output: str | Path, shared: bool = False, cc: str | None = None) -> None:
    """Compile generated C11 to an object file, or to a shared library.

    Parameters
    ----------
    source : C text.
    output : file to write.
    cc : the compiler; `tvm.contrib.cc.get_cc` if left out.

    Raises
    ------
    RuntimeError : there is no C compiler, or it failed (with its output).
    """
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "module.c"
        text.write_text(source)
        (create_shared if shared else create_object)(output, [text], ["-std=c11"], cc)


def _registration(names: Sequence[str]) -> str:
    """C that makes functions part of `tvm.runtime.system_lib` when the program starts."""
    calls = "".join(
        f'  TVMBackendRegisterSystemLibSymbol("{name}", (void*){name});\n' for name in names
    )
    return (
        "\n__attribute__((constructor)) static void tvm_register_functions(void) {\n"
        + calls
        + "}\n"
    )


def _compiler(request: str, source: str, path: str = "") -> Module | None:
    if request == "object":
        compile_c(source, path)
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "module.so"
        compile_c(source, library, shared=True)
        # A loaded library stays in memory when its file is gone.
        return load_module(library)


@tvm._ffi.register_func("target.build.micro_dev")
@tvm._ffi.register_func("target.build.c")
def build(mod: Any, target: Target) -> Module:
    """Print a lowered module as C11; it is compiled when one of its functions is called.

    Parameters
    ----------
    mod : IRModule whose functions have the packed calling convention.
    target : of kind "c" or "micro_dev".

    Returns
    -------
    Module of type "c"; `get_source("c")` is the text, which needs ``tvm/runtime/c_backend_api.h``.
    """
    source, names = str(_ffi_api.EmitC(mod, target)), exported_names(mod)
    if joins_system_library(mod, target):
        source += _registration(names)
    compiler = tvm._ffi.convert_to_tvm_func(_compiler)
    return _ffi_api.CSourceModule(source, list(names), compiler)
