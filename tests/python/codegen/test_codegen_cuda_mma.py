"""Products scheduled for ``mma`` instructions, in kernels that NVIDIA's compiler accepts."""

from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.tir.tensor_intrin import cuda

pytest.importorskip("cuda.bindings.nvrtc")


def product(depth, dtype, out_dtype, trans_b):
    A = te.placeholder((32, depth), dtype, name="A")
    B = te.placeholder((32, depth) if trans_b else (depth, 32), dtype, name="B")
    k = te.reduce_axis((0, depth), name="k")

    def term(i, j):
        right = B[j, k] if trans_b else B[k, j]
        return te.sum(A[i, k].astype(out_dtype) * right.astype(out_dtype), axis=k)

    return te.create_prim_func([A, B, te.compute((32, 32), term, name="C")])


def tiled(layout, rows, columns):
    return lambda i, j: (i // rows, j // columns, *layout(i % rows, j % columns))


def scheduled(dtype, out_dtype, trans_b, scope, simple):
    depth = 16 if dtype == "float16" else 32
    sch = tir.Schedule(product(4 * depth, dtype, out_dtype, trans_b))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i, it = sch.split(i, [None, 16])
    j, jt = sch.split(j, [None, 16])
    k, kt = sch.split(k, [None, depth])
    sch.reorder(i, j, k, it, jt, kt)
    outer = sch.blockize(it)
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "blockIdx.y")
    tiles = []
    for operand in range(2):
        copy = sch.cache_read(outer, operand, scope)
        sch.compute_at(copy, k)
        if dtype == "float16":
            sch.storage_align(copy, 0, axis=-2, factor=32, offset=8)
        tiles.append(sch.cache_read(outer, operand, "warp"))
    result = sch.cache_write(outer, 0, "warp")
    sch.reverse_compute_at(result, j)
    sch.decompose_reduction(outer, k)
    sums = tiled(cuda.shared_16x16_to_ldmatrix_32x8_layout, 16, 16)
    if depth == 16:
        layouts = sums, sums
    else:
        wide = tiled(cuda.shared_16x32_to_ldmatrix_32x16_layout, 16, 32)
        tall = tiled(cuda.shared_32x16_to_ldmatrix_32x16_layout, 32, 16)
        layouts = wide, wide if trans_b else tall
    for tile, layout in zip(tiles, layouts, strict=True):
        sch.transform_layout(tile, ("write", 0), layout)
    sch.transform_layout(result, ("read", 0), sums)
    names = cuda.get_mma_intrin_group(
        scope, "global", dtype, dtype, out_dtype, False, trans_b, simple
    )
    sch.tensorize(sch.get_loops(tiles[0])[-2], names["load_a"])
    sch.tensorize(sch.get_loops(tiles[1])[-2], names["load_b"])
    sch.tensorize(sch.get_loops(block)[-3], names["compute"])
    sch.tensorize(sch.get_loops(sch.get_block("C_init"))[-2], names["init"])
    sch.tensorize(sch.get_loops(result)[-2], names["store"])
    return sch


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "trans_b", "scope", "simple", "loads"),
    [
        ("float16", "float32", False, "shared", False, 2),
        ("float16", "float16", True, "shared.dyn", False, 2),
        ("float16", "float32", False, "shared", True, 2),
        ("int8", "int32", True, "shared", False, 2),
        ("int8", "int32", False, "shared", False, 1),  # bytes of B are loaded one by one
    ],
)
def test_a_tiled_product_is_made_of_instructions(dtype, out_dtype, trans_b, scope, simple, loads):
    sch = scheduled(dtype, out_dtype, trans_b, scope, simple)
    text = tvm.build(sch.mod, target="cuda -arch=sm_80").imported_modules[0].get_source()
    assert text.count("ldmatrix.sync.aligned.m8n8.x4") == loads
    assert text.count("mma.sync.aligned.m16n8k") == 2
    # Each thread has its 8 sums in registers.
    kind = {"float32": "float", "float16": "half", "int32": "int"}[out_dtype]
    assert f"{kind} C_warp[8];" in text
    if dtype == "float16":
        assert "% 16) * 40)" in text  # rows of 16 elements are 40 apart, as storage_align asks
