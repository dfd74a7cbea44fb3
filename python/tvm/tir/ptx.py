"""Instructions of NVIDIA's processors: products of a warp, asynchronous copies, barriers.

Pointers are the data of buffers; an offset counts elements of what its pointer points to. What the
threads of a warp hold of each matrix is laid down in NVIDIA's PTX ISA, "Warp Level Matrix
Multiply-Accumulate Instructions".
"""

from __future__ import annotations

from typing import Any

from .expr import Call
from .op import call_intrin

__all__ = [
    "create_barriers",
    "mma_fill",
    "mma_store",
    "ptx_arrive_barrier",
    "ptx_arrive_barrier_expect_tx",
    "ptx_commit_group",
    "ptx_cp_async",
    "ptx_cp_async_barrier",
    "ptx_cp_async_bulk",
    "ptx_init_barrier_thread_count",
    "ptx_ldmatrix",
    "ptx_mma",
    "ptx_mma_sp",
    "ptx_wait_barrier",
    "ptx_wait_group",
]


def ptx_mma(
    dtype: str,
    shape: str,
    A_layout: str,
    B_layout: str,
    A_dtype: str,
    B_dtype: str,
    C_dtype: str,
    multiplicand_a: Any,
    a_index: Any,
    multiplicand_b: Any,
    b_index: Any,
    accumulator: Any,
    c_index: Any,
    saturate: bool,
    operator: str | None = None,
) -> Call:
    """``C += A * B`` of small matrices that the registers of a warp hold together.

    Parameters
    ----------
    dtype : element type of what the pointers point to, where they do not say it.
    shape : extents such as "m16n8k16".
    A_layout, B_layout : "row" and "col"; others only for "m8n8k4" of "fp16".
    A_dtype, B_dtype, C_dtype : "fp16", "bf16", "tf32", "fp64", "int8", "uint4", "int1" ... and for
        sums "fp16", "fp32", "fp64", "int32".
    saturate : whether sums of integers stop at their limits.
    operator : how bits are combined, "xor" or "and".
    """
    args = (shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index)
    more = (multiplicand_b, b_index, accumulator, c_index, saturate)
    last = () if operator is None else (operator,)
    return call_intrin(dtype, "tir.ptx_mma", *args, *more, *last)


def ptx_mma_sp(
    dtype: str,
    shape: str,
    A_layout: str,
    B_layout: str,
    A_dtype: str,
    B_dtype: str,
    C_dtype: str,
    multiplicand_a: Any,
    a_index: Any,
    multiplicand_b: Any,
    b_index: Any,
    accumulator: Any,
    c_index: Any,
    metadata: Any,
    meta_index: Any,
    sparse_selector: int,
    saturate: bool,
) -> Call:
    """As `ptx_mma`, of a matrix A that has two elements of each four and says which.

    Parameters
    ----------
    metadata, meta_index : pointer and offset of 32 bits, two for the place of each element.
    sparse_selector : which threads of four give the metadata.
    """
    args = (shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index)
    more = (multiplicand_b, b_index, accumulator, c_index, metadata, meta_index, sparse_selector)
    return call_intrin(dtype, "tir.ptx_mma_sp", *args, *more, saturate)


def ptx_ldmatrix(
    dtype: str,
    trans: bool,
    num: int,
    type: str,
    local_ptr: Any,
    local_offset: Any,
    smem_ptr: Any,
    smem_offset: Any,
) -> Call:
    """Matrices of 8 rows of 16 bytes, from shared memory to the registers of a warp.

    Parameters
    ----------
    trans : whether to transpose each, of elements of two bytes.
    num : how many matrices, 1, 2 or 4.
    type : ".b16".
    smem_ptr, smem_offset : of the row that this thread points to.
    """
    args = (trans, num, type, local_ptr, local_offset, smem_ptr, smem_offset)
    return call_intrin(dtype, "tir.ptx_ldmatrix", *args)


def mma_store(
    dtype: str, m: int, n: int, dst_ptr: Any, src_ptr: Any, src_offset: Any, dst_stride: Any
) -> Call:
    """Store the 16 x 16 sums of a warp, eight a thread, in rows `dst_stride` apart."""
    args = (m, n, dst_ptr, src_ptr, src_offset, dst_stride)
    return call_intrin(dtype, "tir.mma_store", *args)


def mma_fill(dtype: str, local_size: int, local_ptr: Any, offset: Any) -> Call:
    """Zeros in the `local_size` elements that each thread of a warp holds."""
    return call_intrin(dtype, "tir.mma_fill", local_size, local_ptr, offset)


def ptx_cp_async(
    dtype: str,
    shared_ptr: Any,
    shared_offset: Any,
    global_ptr: Any,
    global_offset: Any,
    bytes: int,
    predicate: Any = None,
) -> Call:
    """Start a copy of 4, 8 or 16 bytes to shared memory; zeros where `predicate` does not hold."""
    args = (shared_ptr, shared_offset, global_ptr, global_offset, bytes)
    last = () if predicate is None else (predicate,)
    return call_intrin(dtype, "tir.ptx_cp_async", *args, *last)


def ptx_cp_async_bulk(
    dtype: str,
    shared_ptr: Any,
    shared_offset: Any,
    global_ptr: Any,
    global_offset: Any,
    bytes: Any,
    barrier_id: Any,
) -> Call:
    """Start a copy of a multiple of 16 bytes, which tells a barrier when it has ended."""
    args = (shared_ptr, shared_offset, global_ptr, global_offset, bytes, barrier_id)
    return call_intrin(dtype, "tir.ptx_cp_async_bulk", *args)


def ptx_commit_group() -> Call:
    """Make a group of the copies that this thread has started since the last one."""
    return call_intrin("void", "tir.ptx_commit_group")


def ptx_wait_group(num: int) -> Call:
    """Wait until at most `num` groups of copies of this thread have not ended."""
    return call_intrin("void", "tir.ptx_wait_group", num)


def create_barriers(barrier_count: int) -> Call:
    """Barriers in shared memory, numbered from 0."""
    return call_intrin("void", "tir.create_barriers", barrier_count)


def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: Any) -> Call:
    """Say for how many arrivals a barrier waits; all threads of the block come here."""
    return call_intrin("void", "tir.ptx_init_barrier_thread_count", barrier_id, thread_count)


def ptx_arrive_barrier(barrier_id: Any) -> Call:
    """Arrive at a barrier, without waiting."""
    return call_intrin("void", "tir.ptx_arrive_barrier", barrier_id)


def ptx_arrive_barrier_expect_tx(barrier_id: Any, byte_count: Any) -> Call:
    """Arrive at a barrier that also waits for copies of `byte_count` bytes."""
    return call_intrin("void", "tir.ptx_arrive_barrier_expect_tx", barrier_id, byte_count)


def ptx_cp_async_barrier(barrier_id: Any) -> Call:
    """Let a barrier wait for the copies that this thread has started."""
    return call_intrin("void", "tir.ptx_cp_async_barrier", barrier_id)


def ptx_wait_barrier(barrier_id: Any) -> Call:
    """Wait until everything that a barrier waits for has come."""
    return call_intrin("void", "tir.ptx_wait_barrier", barrier_id)
