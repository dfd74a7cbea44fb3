"""From lowered functions to C source, and from C source to code by the system's compiler."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm.runtime import Module, load_module

from . import _ffi_api
from .llvm_build import exported_names
from .target import Target

__all__ = ["build", "compile_c", "include_path"]


def include_path() -> Path:
    """Folder of the headers that generated C includes.

    Raises
    ------
    RuntimeError : neither an installed package nor a source tree has them.
    """
    package = Path(tvm.__file__).resolve().parent
    for folder in (package / "include", package.parents[1] / "include"):
        if (folder / "tvm" / "runtime" / "c_backend_api.h").is_file():
            return folder
    raise tvm.error.RuntimeError(
        f"the headers of the runtime are not at {package / 'include'}; install the package again"
    )


def compile_c(source: str, output: str | Path, shared: bool = False, cc: str | None = None) -> None:
    """Compile generated C11 to an object file, or to a shared library.

    Parameters
    ----------
    source : C text.
    output : file to write.
    cc : compiler; ``cc``, ``gcc`` or ``clang``, whichever is found first.

    Raises
    ------
    RuntimeError : there is no C compiler, or it failed (with its output).
    """
    compiler = cc or next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise tvm.error.RuntimeError(
            'target "c": no C compiler (cc, gcc, clang) was found; install one, or build for "llvm"'
        )
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "module.c"
        text.write_text(source)
        command = [compiler, "-std=c11", "-O2", "-fPIC", f"-I{include_path()}", str(text)]
        # A library's calls into the runtime stay open: the process that loads it provides them.
        command += ["-shared", "-o", str(output), "-lm"] if shared else ["-c", "-o", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise tvm.error.RuntimeError(f'target "c": {compiler} failed:\n{done.stderr}')


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
    source = _ffi_api.EmitC(mod, target)
    compiler = tvm._ffi.convert_to_tvm_func(_compiler)
    return _ffi_api.CSourceModule(source, list(exported_names(mod)), compiler)
