"""Looking at values while a program runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm.ir import RelayExpr
from tvm.runtime import NDArray

from ..expr import Call
from .registry import REQUIRED, OpPattern, define, make

__all__ = ["debug"]

_NUMBERS = itertools.count()


def _show(value: NDArray) -> None:
    print(value)


def _look(arrays: Sequence[Any], settings: Mapping[str, Any]) -> Any:
    tvm.get_global_func(settings["debug_func"])(tvm.nd.array(arrays[0]))
    return arrays[0]


define(
    "debug",
    None,
    OpPattern.OPAQUE,
    settings={"debug_func": REQUIRED},
    rule=lambda types, settings, args: types[0],
    host=_look,
    num_inputs=1,
)


def debug(expr: RelayExpr, debug_func: Callable[[NDArray], None] | None = None) -> Call:
    """The value of an expression, a tensor, which a function is called with when it is computed.

    Programs with it run by the executors "vm" and "debug".

    Parameters
    ----------
    debug_func : gets the array; by default it is printed.
    """
    name = f"relay.debug.{next(_NUMBERS)}"
    tvm.register_func(name, _show if debug_func is None else debug_func)
    return make("debug", [expr], debug_func=name)
