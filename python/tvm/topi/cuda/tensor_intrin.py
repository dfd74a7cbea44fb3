"""Instructions of tensor cores for :meth:`tvm.te.Stage.tensorize`.

A fragment is a small matrix spread over the registers of a warp. A buffer of a wmma scope is an
array of fragments: its region of m x n elements that starts at a multiple of both is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

__all__ = [
    "intrin_wmma_gemm",
    "intrin_wmma_load_matrix_A",
    "intrin_wmma_load_matrix_W",
    "intrin_wmma_store_matrix",
]

Shape = Sequence[int]

# Rows in shared memory start at multiples of 16 bytes for the loads of a warp to be aligned.
_ROW_BYTES = 16


def _fragment_index(buffer: tir.Buffer, rows: int, columns: int, row_stride: Any) -> Any:
    """Number of the fragment that a region of a fragment buffer is.

    Fragments are counted along the rows of the buffer, whose rows are `row_stride` elements apart.
    """
    band = rows * row_stride
    offset = buffer.elem_offset
    return tir.floordiv(offset, band) * tir.floordiv(row_stride, columns) + tir.floordiv(
        tir.floormod(offset, row_stride), columns
    )


def _call(name: str, *args: Any) -> tir.Stmt:
    return tir.Evaluate(tir.Call("handle", f"tir.{name}", [tir.convert(arg) for arg in args]))


def _buffer(
    tensor: te.Tensor, name: str, scope: str, strides: Sequence[Any], factor: int
) -> tir.Buffer:
    return tir.decl_buffer(
        tensor.shape, tensor.dtype, name, scope=scope, strides=list(strides), offset_factor=factor
    )


def _row_stride(strides: Sequence[Any], shape: Shape) -> Any:
    """Distance of rows: the stride of the first axis along which the block extends."""
    for stride, extent in zip(strides, shape):
        if int(extent) != 1:
            return tir.convert(stride)
    raise ValueError(f"a fragment has rows and columns, got a block of shape {tuple(shape)}")


def _intrin_load(
    name: str,
    scope: str,
    fragment: tuple[int, int],
    strides_dst: Sequence[Any],
    strides_from: Sequence[Any],
    shape: Shape,
    layout: str,
    from_shape: Shape,
    to_shape: Shape,
    dtype: str,
) -> te.TensorIntrin:
    if layout not in ("row_major", "col_major"):
        raise ValueError(f"{name}: layout must be row_major or col_major, got {layout!r}")
    m, n, k = shape
    source = te.placeholder(from_shape, name=f"{name}_from", dtype=dtype)
    copy = te.compute(to_shape, lambda *i: source(*i), name=f"{name}_to")
    factor = _ROW_BYTES * 8 // tir.const(0, dtype).dtype.bits
    source_buffer = _buffer(source, "from_shared", "shared", strides_from, factor)
    rows, columns = fragment
    target_buffer = _buffer(copy, "to_fragment", scope, strides_dst, columns)

    def emit(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        stride = _row_stride(strides_dst, to_shape)
        index = _fragment_index(outs[0], rows, columns, stride)
        address = ins[0].access_ptr("r")
        return _call(
            "tvm_load_matrix_sync",
            outs[0].data, m, n, k, index, address, _row_stride(strides_from, from_shape),
            tir.StringImm(layout),
        )  # fmt: skip

    binds = {source: source_buffer, copy: target_buffer}
    return te.decl_tensor_intrin(copy.op, emit, name=name, binds=binds)


def intrin_wmma_load_matrix_A(
    strides_dst: Sequence[Any],
    strides_from: Sequence[Any],
    shape: Shape,
    layout: str,
    A_shape: Shape,
    C_shape: Shape,
    in_dtype: str,
) -> te.TensorIntrin:
    """Copy of a block of the left matrix from shared memory to a fragment.

    Parameters
    ----------
    strides_dst, strides_from : elements between neighbours on each axis of the fragment buffer and
        of the shared memory. Rows run along the first axis whose extent is not one.
    shape : (m, n, k) of the product.
    layout : "row_major", or "col_major" when shared memory holds the block transposed.
    A_shape, C_shape : extents of the block in shared memory and of the fragment.
    in_dtype : "float16", "bfloat16" or "int8".
    """
    m, _, k = shape
    return _intrin_load(
        "wmma_load_a", "wmma.matrix_a", (m, k), strides_dst, strides_from, shape, layout, A_shape,
        C_shape, in_dtype,
    )  # fmt: skip


def intrin_wmma_load_matrix_W(
    strides_dst: Sequence[Any],
    strides_from: Sequence[Any],
    shape: Shape,
    layout: str,
    A_shape: Shape,
    C_shape: Shape,
    in_dtype: str,
) -> te.TensorIntrin:
    """Copy of a block of the right matrix; arguments as in :func:`intrin_wmma_load_matrix_A`."""
    _, n, k = shape
    fragment = (k, n) if layout == "row_major" else (n, k)
    return _intrin_load(
        "wmma_load_b", "wmma.matrix_b", fragment, strides_dst, strides_from, shape, layout, A_shape,
        C_shape, in_dtype,
    )  # fmt: skip


def intrin_wmma_store_matrix(
    strides_dst: Sequence[Any],
    strides_from: Sequence[Any],
    shape: Shape,
    out_dtype: str,
    A_shape: Shape,
    C_shape: Shape,
    scope: str = "shared",
) -> te.TensorIntrin:
    """Copy of an accumulator to memory.

    Parameters
    ----------
    strides_dst, strides_from : of the memory and of the fragment buffer.
    A_shape, C_shape : extents of the fragment and of the block in memory.
    scope : of the memory, "shared" or "global".
    """
    m, n, k = shape
    source = te.placeholder(A_shape, name="wmma_store_from", dtype=out_dtype)
    copy = te.compute(C_shape, lambda *i: source(*i), name="wmma_store_to")
    factor = _ROW_BYTES * 8 // tir.const(0, out_dtype).dtype.bits
    source_buffer = _buffer(source, "from_fragment", "wmma.accumulator", strides_from, n)
    target_buffer = _buffer(copy, "to_memory", scope, strides_dst, factor)

    def emit(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        index = _fragment_index(ins[0], m, n, _row_stride(strides_from, A_shape))
        stride = _row_stride(strides_dst, C_shape)
        return _call(
            "tvm_store_matrix_sync",
            ins[0].data, m, n, k, index, outs[0].access_ptr("w"), stride,
            tir.StringImm("row_major"),
        )  # fmt: skip

    binds = {source: source_buffer, copy: target_buffer}
    return te.decl_tensor_intrin(copy.op, emit, name="wmma_store", binds=binds)


def intrin_wmma_gemm(
    AL_gemm: te.Tensor,
    WL_gemm: te.Tensor,
    CL_compute: te.Tensor,
    strides_A: Sequence[Any],
    strides_W: Sequence[Any],
    strides_Conv: Sequence[Any],
    shape: Shape,
) -> te.TensorIntrin:
    """Product of two fragments, added to an accumulator.

    Parameters
    ----------
    AL_gemm, WL_gemm : placeholders of the size of a fragment of the left and the right matrix.
    CL_compute : their product, of which one call computes all elements.
    strides_A, strides_W, strides_Conv : of the three fragment buffers.
    shape : (m, n, k) of the product.
    """
    m, n, k = shape
    # A right matrix held in columns has fragments of n rows.
    rows = int(WL_gemm.shape[len(WL_gemm.shape) - 2])
    columns = int(WL_gemm.shape[len(WL_gemm.shape) - 1])
    left = _buffer(AL_gemm, "left", "wmma.matrix_a", strides_A, k)
    right = _buffer(WL_gemm, "right", "wmma.matrix_b", strides_W, columns)
    result = _buffer(CL_compute, "product", "wmma.accumulator", strides_Conv, n)

    def emit(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tuple[tir.Stmt, ...]:
        a = _fragment_index(ins[0], m, k, _row_stride(strides_A, AL_gemm.shape))
        b = _fragment_index(ins[1], rows, columns, _row_stride(strides_W, WL_gemm.shape))
        c = _fragment_index(outs[0], m, n, _row_stride(strides_Conv, CL_compute.shape))
        data = outs[0].data
        zero = tir.const(0, outs[0].dtype)
        init = _call("tvm_fill_fragment", data, m, n, k, c, zero)
        update = _call("tvm_mma_sync", data, c, ins[0].data, a, ins[1].data, b, data, c)
        return update, init, update

    binds = {AL_gemm: left, WL_gemm: right, CL_compute: result}
    return te.decl_tensor_intrin(CL_compute.op, emit, name="wmma_gemm", binds=binds)
