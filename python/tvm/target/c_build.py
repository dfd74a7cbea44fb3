"""From lowered functions to C source, and from C source to code by the system's compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Module, load_module
from tvm.runtime import _ffi_api as runtime_api
from tvm.runtime.linker import create_object, create_shared

from . import _ffi_api
from .llvm_build import exported_names, joins_system_library
from .target import Target

__all__ = ["build", "compile_c"]


# How the compiler is called for a source, by its format.
_LANGUAGES = {"c": ["-std=c11"], "cc": ["-std=c++17"]}


def compile_c(
    source: str,
    output: str | Path,
    shared: bool = False,
    cc: str | None = None,
    language: str = "c",
) -> None:
    """Compile C11 to an object file, or to a shared library.

    Parameters
    ----------
    source : C text.
    output : file to write.
    cc : the compiler; `tvm.contrib.cc.get_cc` if left out.
    language : "c", or "cc" for C++17.

    Raises
    ------
    RuntimeError : there is no C compiler, or it failed (with its output).
    """
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / f"module.{language}"
        text.write_text(source)
        options = list(_LANGUAGES[language])
        # The name of the C compiler does not link the library of C++.
        options += ["-lstdc++"] if shared and language == "cc" else []
        (create_shared if shared else create_object)(output, [text], options, cc)


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


@tvm._ffi.register_func("target.compile_source")
def _compile_source(request: str, source: str, language: str, path: str = "") -> Module | None:
    if request == "object":
        compile_c(source, path, language=language)
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "module.so"
        compile_c(source, library, shared=True, language=language)
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
    return runtime_api.CSourceModuleCreate(source, "c", list(names), [])
