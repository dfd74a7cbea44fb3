"""The names of ``T`` in printed texts, where every operator is built as it is written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from tvm import tir
from tvm.tir import _ffi_api

from .ir_builder import tir as T
from .ir_builder.tir.expressions import operands

__all__ = ["BINARY", "BITWISE", "EXACT", "exactly"]

# How an operator is written when both operands have one type, and how it brings types together.
BINARY: Mapping[type[ast.AST], tuple[type[tir.PrimExpr], str]] = {
    ast.Add: (tir.Add, "_OpAdd"),
    ast.Sub: (tir.Sub, "_OpSub"),
    ast.Mult: (tir.Mul, "_OpMul"),
    ast.Div: (tir.Div, "_OpDiv"),
    ast.FloorDiv: (tir.FloorDiv, "_OpFloorDiv"),
    ast.Mod: (tir.FloorMod, "_OpFloorMod"),
    ast.Eq: (tir.EQ, "_OpEQ"),
    ast.NotEq: (tir.NE, "_OpNE"),
    ast.Lt: (tir.LT, "_OpLT"),
    ast.LtE: (tir.LE, "_OpLE"),
    ast.Gt: (tir.GT, "_OpGT"),
    ast.GtE: (tir.GE, "_OpGE"),
}
BITWISE: Mapping[type[ast.AST], str] = {
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.Pow: "pow",
}


def exactly(kind: type[ast.AST], left: Any, right: Any) -> tir.PrimExpr:
    """An operator on two values, of which plain numbers take the type of the other one."""
    a, b = operands(left, right)
    if kind in BITWISE:
        return T.intrinsic(BITWISE[kind])(a, b)
    make, bringing = BINARY[kind]
    if kind is ast.Div and not str(a.dtype).startswith(("float", "bfloat", "custom")):
        raise TypeError(
            "dividing integers by `/` is ambiguous; use `//`, which rounds down, or T.truncdiv, "
            "which rounds towards zero"
        )
    return make(a, b) if str(a.dtype) == str(b.dtype) else getattr(_ffi_api, bringing)(a, b)


def _named(make: type[tir.PrimExpr], bringing: str) -> Callable[[Any, Any], tir.PrimExpr]:
    def call(a: Any, b: Any) -> tir.PrimExpr:
        a, b = operands(a, b)
        return make(a, b) if str(a.dtype) == str(b.dtype) else getattr(_ffi_api, bringing)(a, b)

    return call


EXACT: dict[str, Any] = {
    "max": _named(tir.Max, "_OpMax"),
    "min": _named(tir.Min, "_OpMin"),
    "truncdiv": _named(tir.Div, "_OpTruncDiv"),
    "truncmod": _named(tir.Mod, "_OpTruncMod"),
    "floordiv": _named(tir.FloorDiv, "_OpFloorDiv"),
    "floormod": _named(tir.FloorMod, "_OpFloorMod"),
}
EXACT |= {
    name: T.intrinsic(name) for name in T.intrinsics() if name not in EXACT and name not in vars(T)
}
