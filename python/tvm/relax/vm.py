"""Compiled networks and the machine that runs them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import tvm
from tvm._ffi import get_global_func
from tvm.runtime import Device, Module, NDArray, PackedFunc

__all__ = ["Executable", "VirtualMachine", "load_executable", "make_executable"]


def _runtime(name: str) -> PackedFunc:
    return get_global_func(f"runtime.relax_vm.{name}")


class Executable:
    """A compiled network: machine code, constants and the calls of each function.

    Attributes
    ----------
    mod : the runtime module behind it.
    """

    def __init__(self, mod: Module) -> None:
        self.mod = mod

    @property
    def function_names(self) -> list[str]:
        """Functions that a virtual machine can call."""
        return [str(name) for name in _runtime("FunctionNames")(self.mod)]

    def export_library(self, path: str | os.PathLike[str]) -> None:
        """Write one shared library with everything in it; ``load_executable`` reads it back.

        A C++ host needs only that file and libtvm_runtime.

        Parameters
        ----------
        path : ends in ".so". The linker is the system's ``cc``.
        """
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "executable.bin")
            _runtime("SaveExecutable")(self.mod, data)
            source = os.path.join(folder, "executable.c")
            with open(source, "w", encoding="utf-8") as file:
                file.write(_embedding_source(data))
            self.mod.imported_modules[0].export_library(os.fspath(path), addons=[source])


def _embedding_source(data: str) -> str:
    """C source of the library's entry, with the executable's bytes next to it."""
    quoted = data.replace("\\", "\\\\").replace('"', '\\"')
    return f"""#include <stdint.h>
__asm__(
    ".section .rodata\\n"
    ".balign 64\\n"
    ".global tvm_relax_executable_data\\n"
    "tvm_relax_executable_data:\\n"
    ".quad {os.path.getsize(data)}\\n"
    ".incbin \\"{quoted}\\"\\n"
    ".text\\n");
extern const char tvm_relax_executable_data[] __attribute__((visibility("hidden")));
/* The layout of a TVMAny; 6 marks an opaque pointer. */
struct value {{ int32_t type_code; int32_t padding; const void* payload; }};
int32_t __tvm_relax_executable(const struct value* args, int32_t num_args, struct value* ret) {{
  (void)args;
  (void)num_args;
  ret->type_code = 6;
  ret->padding = 0;
  ret->payload = tvm_relax_executable_data;
  return 0;
}}
"""


def load_executable(path: str | os.PathLike[str]) -> Executable:
    """Read what ``Executable.export_library`` wrote.

    Raises
    ------
    ValueError : the library holds no network.
    """
    library = tvm.runtime.load_module(os.fspath(path))
    return Executable(_runtime("LoadExecutableFromLibrary")(library))


def make_executable(
    library: Module,
    kernels: Sequence[str],
    constants: Sequence[NDArray],
    programs: Sequence[tuple[str, list[str], list[int]]],
) -> Executable:
    """An executable from compiled kernels and encoded programs, as ``relax.build`` makes them.

    Parameters
    ----------
    library : has the kernels as functions.
    programs : name, input names and encoded program of each function; the encoding is described in
        tvm/runtime/relax_vm/executable.h.
    """
    mod = _runtime("Executable")(library, list(kernels), list(constants))
    for name, input_names, words in programs:
        _runtime("AddFunction")(mod, name, input_names, words)
    return Executable(mod)


class VirtualMachine:
    """Runs the functions of an executable; memory is allocated once, here.

    Calls of one function from several threads are carried out one after the other.

    Parameters
    ----------
    executable : from ``relax.build`` or ``load_executable``.
    device : where the inputs and outputs are.

    Attributes
    ----------
    module : the functions as a runtime module, for ``time_evaluator`` for instance.
    """

    def __init__(self, executable: Executable, device: Device | None = None) -> None:
        self._executable = executable
        self.module: Module = _runtime("VirtualMachine")(
            executable.mod, tvm.cpu() if device is None else device
        )

    def __getitem__(self, name: str) -> PackedFunc:
        """A function, called with NDArrays.

        The call returns an NDArray, or several for a function that returns a tuple. It raises
        ValueError when an input has another shape or type than the function was compiled for, and
        TypeError when the number of inputs differs.

        Raises
        ------
        KeyError : there is no such function.
        """
        self._check(name)
        return self.module[name]

    def profile(self, name: str, *args: NDArray) -> list[tuple[str, float]]:
        """Run a function once and measure each kernel: (kernel, seconds), in order of the calls."""
        self._check(name)
        report: Any = _runtime("Profile")(self.module, name, *args)
        return [(str(kernel), float(seconds)) for kernel, seconds in report]

    def _check(self, name: str) -> None:
        known = self._executable.function_names
        if name not in known:
            raise KeyError(
                f"VirtualMachine: no function '{name}'; the executable has {', '.join(known)}"
            )
