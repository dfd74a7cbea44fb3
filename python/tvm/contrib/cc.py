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


class _CrossCompiler:
    """What `cross_compiler` makes: a function of output and objects, with what it is for."""

    def __init__(
        self,
        compile_func: str | Callable[..., None],
        options: Sequence[str],
        add_files: Sequence[str | Path],
    ) -> None:
        self.compile_func = compile_func
        self.options = list(options)
        self.add_files = list(add_files)
        self.output_format = "so"
        self.get_target_triple: Callable[[], str] | None = None

    def __call__(
        self,
        outputs: str | Path,
        objects: Sequence[str | Path],
        options: Sequence[str] | None = None,
        **more: Any,
    ) -> None:
        every = [*self.options, *(options or ())]
        files = [*objects, *self.add_files]
        if callable(self.compile_func):
            self.compile_func(outputs, files, options=every, **more)
        else:
            create_shared(outputs, files, options=every, cc=self.compile_func, **more)


def cross_compiler(
    compile_func: str | Callable[..., None],
    options: Sequence[str] | None = None,
    output_format: str | None = None,
    get_target_triple: Callable[[], str] | None = None,
    add_files: Sequence[str | Path] | None = None,
) -> Callable[..., None]:
    """What `Module.export_library` takes as `fcompile` to link for another machine.

    Parameters
    ----------
    compile_func : name of the compiler, such as "aarch64-linux-gnu-gcc", or a function called as
        ``compile_func(output, objects, options=...)``.
    options : arguments of every call, before those that the call has.
    output_format : ending of the libraries' names, kept as the attribute of that name; by default
        that of `compile_func`, or "so".
    get_target_triple : kept as the attribute of that name; for a compiler given by name a function
        that asks it.
    add_files : more files that are linked every time.
    """
    link = _CrossCompiler(compile_func, options or (), add_files or ())
    link.output_format = output_format or str(getattr(compile_func, "output_format", "so"))
    by_name = isinstance(compile_func, str)
    link.get_target_triple = get_target_triple or (
        get_target_by_dump_machine(str(compile_func))
        if by_name
        else getattr(compile_func, "get_target_triple", None)
    )
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
