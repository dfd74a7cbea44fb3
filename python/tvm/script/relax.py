"""The dialect of graphs: ``from tvm.script import relax as R``."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from tvm import error
from tvm.relax.dpl import PatternMatchingRewriter

from .annotations import construct
from .decorate import function_decorator, macro_decorator, read_object
from .relax_names import *  # noqa: F403

function = function_decorator("R.function", ("pure", "private", "check_well_formed"))
macro = macro_decorator("R.macro")


def rewriter(cls: type) -> PatternMatchingRewriter:
    """Decorator: the rewrite that the functions ``pattern`` and ``replacement`` of a class say.

    See `tvm.relax.dpl.PatternMatchingRewriter.from_module`.

    Raises
    ------
    DiagnosticError : the functions cannot be read; the message has the place.
    ValueError : they do not describe a rewrite.
    """
    if not isinstance(cls, type):
        raise error.TypeError(f"R.rewriter decorates a class, got {type(cls).__name__}")
    return PatternMatchingRewriter.from_module(read_object(cls, sys._getframe(1)))


def __getattr__(name: builtins.str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tvm.script.relax' has no attribute {name!r}")
    return construct(f"R.{name}")
