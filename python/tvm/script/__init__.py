"""TVMScript: programs as text that reads like Python, and the way back.

>>> from tvm.script import ir as I, tir as T, relax as R
>>> @T.prim_func
... def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
...     for i in T.parallel(8):
...         B[i] = A[i] * 2.0
>>> tvm.script.from_source(scale.script())

Texts are read, never run: a text from elsewhere can describe any program but do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import ir, relax, tir
from .ir import ir_module
from .module import read_text
from .source import Source

__all__ = ["from_source", "ir", "ir_module", "parse", "relax", "tir"]


def from_source(
    text: str,
    extra_vars: Mapping[str, Any] | None = None,
    name: str = "<str>",
    check_well_formed: bool = False,
) -> Any:
    """The function or module that a text describes.

    Parameters
    ----------
    extra_vars : numbers, texts and expressions by the name that the text has for them.
    name : what errors call the text, for instance the path of its file.
    check_well_formed : refuse tensor programs whose variables are not bound once before their use;
        what prints at any stage of compilation reads back without.

    Raises
    ------
    DiagnosticError : the text is not a program; the message has line, column and a way out.
    """
    return read_text(Source(text, name), extra_vars, check_well_formed)


parse = from_source
