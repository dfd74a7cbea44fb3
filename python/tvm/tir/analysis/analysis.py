"""Questions about expressions, statements and functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from tvm.ir import PrimExpr

from ..expr import Var
from ..function import PrimFunc
from . import _ffi_api

__all__ = [
    "CallEffectKind",
    "count_nodes",
    "expr_deep_equal",
    "side_effect",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_ssa",
    "verify_well_formed",
]


class CallEffectKind(IntEnum):
    """What evaluating an expression may do."""

    ANNOTATION = 0
    PURE = 1
    READ_STATE = 2
    UPDATE_STATE = 3


def expr_deep_equal(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """Whether two expressions are the same tree; a variable equals only itself."""
    return _ffi_api.expr_deep_equal(lhs, rhs)


def side_effect(expr: PrimExpr) -> CallEffectKind:
    """What evaluating `expr` may do to memory."""
    return CallEffectKind(_ffi_api.side_effect(expr))


def undefined_vars(node: Any, defs: Sequence[Var] = ()) -> list[Var]:
    """Variables used but not bound inside of an expression or statement, in order of first use."""
    return list(_ffi_api.undefined_vars(node, list(defs)))


def count_nodes(node: Any) -> int:
    """Number of expression and statement nodes, shared ones counted at each use."""
    return _ffi_api.count_nodes(node)


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is bound at most once."""
    return _ffi_api.verify_ssa(func)


def verify_well_formed(func: PrimFunc, assert_mode: bool = True) -> bool:
    """Whether variables are bound before use and accesses fit their buffers.

    Raises
    ------
    ValueError : with `assert_mode`, names the first violation.
    """
    return _ffi_api.verify_well_formed(func, assert_mode)


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function whose ``target`` is a GPU accesses arrays in kernels only."""
    return _ffi_api.verify_memory(func)


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Whether kernels stay within limits; see :func:`tvm.tir.transform.VerifyGPUCode`."""
    return _ffi_api.verify_gpu_code(func, dict(constraints))
