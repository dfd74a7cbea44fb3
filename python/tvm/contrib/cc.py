"""The system's C compiler: shared libraries, programs, and cross compilers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm import error
from tvm.runtime.linker import create_executable, create_shared, create_staticlib, get_cc

__all__ = [
    "create_executable",
    "create_shared",
    "create_staticlib",
    "cross_compiler",
    "get_cc",
    "get_target_by_dump_machine",
]


def cross_compiler(
    compile_func: str | Callable[..., None], options: Sequence[str] = ()
) -> Callable[..., None]:
    """What `Module.export_library` takes as `fcompile` to link for another machine.

    Parameters
    ----------
    compile_func : name of the compiler, such as "aarch64-linux-gnu-gcc", or a function called as
        ``compile_func(output, objects, options=...)``.
    options : arguments of every call, before those that the call has.
    """

    def link(
        output: str | Path, objects: Sequence[str | Path], options: Sequence[str] = (), **more: Any
    ) -> None:
        every = [*always, *options]
        if callable(compile_func):
            compile_func(output, objects, options=every, **more)
        else:
            create_shared(output, objects, options=every, cc=compile_func, **more)

    always = list(options)
    return link


def get_target_by_dump_machine(compiler: str) -> Callable[[], str]:
    """A function that gives the triple of the machine that a compiler, GCC or clang, compiles for.

    The function raises RuntimeError if the compiler cannot be run or does not know.
    """

    def triple() -> str:
        try:
            done = subprocess.run(
                [compiler, "-dumpmachine"], capture_output=True, text=True, check=False
            )
        except OSError as reason:
            raise error.RuntimeError(f"cc: cannot run {compiler}: {reason}") from reason
        if done.returncode != 0 or not done.stdout.strip():
            raise error.RuntimeError(f"cc: {compiler} does not say its machine:\n{done.stderr}")
        return done.stdout.strip()

    return triple
