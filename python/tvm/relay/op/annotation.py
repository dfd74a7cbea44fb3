"""Marks in programs: borders of parts for other compilers, devices, limits of fusion."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir import RelayExpr

from ..expr import Call
from .registry import REQUIRED, OpPattern, define, make

__all__ = [
    "cast_hint",
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "stop_fusion",
]


def _same_type(types: Any, settings: Any, args: Any) -> Any:
    return types[0]


def _unchanged(args: Any, settings: Any) -> Any:
    return args[0]


for _name in ("compiler_begin", "compiler_end"):
    define(
        f"annotation.{_name}",
        topi.identity,
        OpPattern.OPAQUE,
        settings={"compiler": REQUIRED},
        rule=_same_type,
        lower=_unchanged,
        num_inputs=1,
    )
for _name in ("annotation.stop_fusion", "annotation.checkpoint"):
    define(_name, topi.identity, OpPattern.OPAQUE, rule=_same_type, lower=_unchanged, num_inputs=1)
define(
    "annotation.cast_hint",
    topi.identity,
    OpPattern.OPAQUE,
    settings={"dtype": REQUIRED},
    rule=_same_type,
    lower=_unchanged,
    num_inputs=1,
)


def compiler_begin(data: RelayExpr, compiler: str) -> Call:
    """An input of a part that another compiler takes."""
    return make("annotation.compiler_begin", [data], compiler=compiler)


def compiler_end(data: RelayExpr, compiler: str) -> Call:
    """An output of a part that another compiler takes."""
    return make("annotation.compiler_end", [data], compiler=compiler)


def stop_fusion(data: RelayExpr) -> Call:
    """The value, never computed together with what uses it."""
    return make("annotation.stop_fusion", [data])


def checkpoint(data: RelayExpr) -> Call:
    """The value, kept for the gradient."""
    return make("annotation.checkpoint", [data])


def cast_hint(data: RelayExpr, dtype: str) -> Call:
    """The value, which quantisation may keep in another type."""
    return make("annotation.cast_hint", [data], dtype=dtype)
