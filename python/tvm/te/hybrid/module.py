"""Loop programs as text: written from schedules, saved, loaded and run."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tvm.te.schedule import Schedule
from tvm.te.tensor import Tensor
from tvm.tir import Var

from .printer import program_text
from .script import script

__all__ = ["HybridModule", "build"]


class HybridModule:
    """A loop program and its text.

    Parameters
    ----------
    src : text with one function of the language; None for a module to :meth:`load`.
    name : of the function, and of the module.
    """

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.name = name or "hybrid"
        self._source = ""
        self._func: Callable[..., Any] | None = None
        if src is not None:
            self._define(src, f"<hybrid program {self.name} {id(self)}>")

    def _define(self, source: str, filename: str) -> None:
        # The parser reads the text of functions from here.
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        names: dict[str, Any] = {"__name__": "hybrid"}
        exec(compile(source, filename, "exec"), names)
        functions = [v for v in names.values() if hasattr(v, "__code__")]
        if len(functions) != 1:
            raise ValueError(f"{filename}: expected one function, got {len(functions)}")
        self._source = source
        self._func = script(functions[0])

    def __call__(self, *args: Any) -> Any:
        """Run with numpy arrays, or give the tensors for tensors of te."""
        if self._func is None:
            raise ValueError(f"hybrid module {self.name} is empty; load a program first")
        return self._func(*args)

    def get_source(self) -> str:
        """The text of the program."""
        return self._source

    def save(self, path: str | Path) -> None:
        """Write the text to a file; ``.py`` is added when the name has no suffix."""
        path = Path(path)
        target = path if path.suffix else path.with_suffix(".py")
        target.write_text(self._source, encoding="utf-8")

    def load(self, path: str | Path) -> None:
        """Take the program from a file. The file is Python and is run: load only what you trust."""
        self._define(Path(path).read_text(encoding="utf-8"), str(path))


def build(
    sch: Schedule,
    inputs: Sequence[Tensor | Var],
    outputs: Sequence[Tensor],
    name: str = "hybrid_func",
) -> HybridModule:
    """The loops of a schedule as a loop program.

    Parameters
    ----------
    inputs : its parameters, tensors and variables.
    outputs : what it returns.

    Raises
    ------
    ValueError : the schedule uses something that the language has no words for.
    """
    return HybridModule(program_text(sch, inputs, outputs, name), name)
