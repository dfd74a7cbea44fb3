"""Checks for tests of schedules."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tvm
from tvm.ir import IRModule, assert_structural_equal

from ..function import PrimFunc
from .schedule import Schedule
from .trace import Trace

__all__ = ["assert_structural_equal_ignore_global_symbol", "verify_trace_roundtrip"]


def assert_structural_equal_ignore_global_symbol(
    lhs: PrimFunc | IRModule, rhs: PrimFunc | IRModule, map_free_vars: bool = False
) -> None:
    """Check that two functions, or two modules, are the same but for the symbols of functions.

    Raises
    ------
    ValueError : they are not; the message has the first difference.
    """
    assert_structural_equal(_without_symbols(lhs), _without_symbols(rhs), map_free_vars)


def _without_symbols(thing: PrimFunc | IRModule) -> PrimFunc | IRModule:
    if isinstance(thing, PrimFunc):
        return thing.without_attr("global_symbol")
    functions = {
        var: _without_symbols(func) if isinstance(func, PrimFunc) else func
        for var, func in thing.functions.items()
    }
    return IRModule(functions, attrs=thing.attrs)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Check that the trace of a schedule, saved and read again, makes the same program.

    Parameters
    ----------
    mod : what `sch` began with.
    debug_mask : of the schedules that repeat the trace.
    text_format : what the trace is saved as: "python", "json" or both.

    Returns
    -------
    The schedule that repeated the trace last.

    Raises
    ------
    ValueError : the program is another one, or a format is unknown.
    AssertionError : the trace of the new schedule is another one.
    """
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    again = sch
    for kind in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if kind == "json":
            saved = json.loads(json.dumps(sch.trace.as_json()))
            Trace.apply_json_to_schedule(saved, again)
        elif kind == "python":
            # Sizes in a trace are written with functions of tvm.tir.
            exec("\n".join(sch.trace.as_python()), {"sch": again, "tir": tvm.tir})
        else:
            raise ValueError(f'verify_trace_roundtrip: there is no format "{kind}"')
        assert_structural_equal_ignore_global_symbol(again.mod, sch.mod)
        expected, got = sch.trace.as_python(), again.trace.as_python()
        assert got == expected, f"the trace from {kind} differs:\n{got}\nexpected:\n{expected}"
    return again
