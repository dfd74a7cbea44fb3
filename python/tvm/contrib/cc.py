"""The system's C compiler: shared libraries, programs, and cross compilers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm.runtime.linker import create_executable, create_shared, get_cc

__all__ = ["create_executable", "create_shared", "cross_compiler", "get_cc"]


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
