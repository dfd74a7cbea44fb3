"""Questions about expressions, statements and functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from tvm.arith import Analyzer
from tvm.ir import IRModule, PrimExpr
from tvm.runtime import DataType

from ..block import Block
from ..buffer import Buffer, BufferRegion
from ..expr import BufferLoad, Var
from ..function import PrimFunc
from ..statement import AllocateConst, AttrStmt, BufferRealize, BufferStore, Stmt
from ..stmt_functor import post_order_visit
from . import _ffi_api

__all__ = [
    "CallEffectKind",
    "calculate_constant_bytes",
    "calculate_workspace_bytes",
    "count_nodes",
    "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal",
    "get_block_access_region",
    "get_block_read_write_region",
    "side_effect",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_compact_buffer",
    "verify_ssa",
    "verify_well_formed",
]


class CallEffectKind(IntEnum):
    """What evaluating an expression may do, weakest first.

    As an operator's attribute "TCallEffectKind" it says what a call of the operator may do; an
    operator without the attribute may do anything.
    """

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = 3


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


def detect_buffer_access_lca(func: PrimFunc) -> dict[Buffer, Stmt | None]:
    """The innermost loop or block around all accesses of each buffer that `func` accesses.

    None stands for the function itself, and the outermost loop over blocks of a launch for all
    that is inside of it where the buffer is in global memory. A pointer to a buffer that is passed
    on is an access.
    """
    return dict(_ffi_api.detect_buffer_access_lca(func).items())


def get_block_access_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer] | None = None
) -> list[list[BufferRegion]]:
    """Regions that the body of a block accesses, whatever the block itself says.

    Where the block has first values of its own, reads of what it writes do not count.

    Parameters
    ----------
    buffer_var_map : buffers by data pointer, of which those whose pointer the block passes to a
        function are accessed in ways that cannot be seen.

    Returns
    -------
    Three lists: what it reads, what it writes, and the whole of the buffers accessed by pointer.
    """
    regions = _ffi_api.GetBlockAccessRegion(block, dict(buffer_var_map or {}))
    return [list(kind) for kind in regions]


def get_block_read_write_region(
    block: Block, buffer_var_map: Mapping[Var, Buffer]
) -> list[list[BufferRegion]]:
    """What the body of a block reads and what it writes.

    Buffers accessed by pointer count as a whole in both lists; `buffer_var_map` is that of
    :func:`get_block_access_region`.
    """
    *seen, opaque = get_block_access_region(block, buffer_var_map)

    def is_whole(region: BufferRegion) -> bool:
        return any(region.buffer.same_as(whole.buffer) for whole in opaque)

    return [[*(region for region in kind if not is_whole(region)), *opaque] for kind in seen]


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int = 1) -> int:
    """Most bytes of allocations alive together; those of unknown size do not count.

    Raises
    ------
    ValueError : the alignment is not positive.
    """
    return _ffi_api.calculate_workspace_bytes(func, workspace_byte_alignment)


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int = 1) -> int:
    """Bytes of all constants that a function carries, each rounded up to the alignment.

    Raises
    ------
    ValueError : the alignment is not positive.
    """
    if constant_byte_alignment < 1:
        raise ValueError(
            f"calculate_constant_bytes: the alignment must be > 0, got {constant_byte_alignment}"
        )
    sizes: list[int] = []

    def visit(node: Any) -> None:
        if isinstance(node, AllocateConst):
            count = math.prod(int(extent) for extent in node.extents)
            sizes.append(count * DataType(str(node.dtype)).itemsize)

    post_order_visit(func.body, visit)
    step = constant_byte_alignment
    return sum(-(-size // step) * step for size in sizes)


def estimate_tir_flops(stmt_or_mod: Any) -> float:
    """Operations on floating values of a statement, a PrimFunc or a module, in FLOP.

    Of a branch the longer side counts; a multiply-add counts as two.

    Raises
    ------
    ValueError : a loop has no constant bound.
    """
    return _ffi_api.EstimateTIRFlops(stmt_or_mod)


def verify_compact_buffer(stmt: Stmt | PrimFunc) -> bool:
    """Whether every buffer a statement uses is row-major without gaps between rows."""
    compact = True

    def dense(buffer: Buffer) -> bool:
        expected: Any = 1
        for extent, stride in zip(reversed(buffer.shape), reversed(buffer.strides)):
            if not Analyzer().can_prove_equal(stride, expected):
                return False
            expected = expected * extent
        return True

    def visit(node: Any) -> None:
        nonlocal compact
        if isinstance(node, AttrStmt) and node.attr_key == "storage_alignment":
            compact = False
        elif isinstance(node, (BufferLoad, BufferStore, BufferRealize)):
            compact = compact and dense(node.buffer)

    post_order_visit(stmt, visit)
    return compact


def verify_ssa(func: PrimFunc) -> bool:
    """Whether every variable is bound at most once."""
    return _ffi_api.verify_ssa(func)


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether variables are bound before use and accesses fit their buffers.

    Of a module, whether that holds for all of its PrimFuncs.

    Raises
    ------
    ValueError : with `assert_mode`, names the first violation.
    """
    if isinstance(obj, IRModule):
        functions = [func for func in obj.functions.values() if isinstance(func, PrimFunc)]
        return all(verify_well_formed(func, assert_mode) for func in functions)
    return _ffi_api.verify_well_formed(obj, assert_mode)


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function whose ``target`` is a GPU accesses arrays in kernels only."""
    return _ffi_api.verify_memory(func)


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, int]) -> bool:
    """Whether kernels stay within limits; see :func:`tvm.tir.transform.VerifyGPUCode`."""
    return _ffi_api.verify_gpu_code(func, dict(constraints))
