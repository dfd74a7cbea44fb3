"""Tensor intrinsics of CUDA: their names, and the places that threads have in tiles."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.tir.tensor_intrin import cuda


def test_names_of_constants_are_registered_intrinsics():
    names = [name for name in cuda.__all__ if name.endswith("_INTRIN")]
    assert len(names) > 80
    for name in names:
        assert tir.TensorIntrin.get(getattr(cuda, name)) is not None
    assert cuda.LDMATRIX_f16_B_TRANS_DYN_INTRIN == "mma_ldmatrix_f16_b_trans_dyn"
    assert cuda.WMMA_LOAD_16x16x16_S8_A_DYN_INTRIN == "wmma_load_16x16x16_s8_a_shared_dyn"
    assert cuda.MMA_store_16x16_f16_shared_dyn_INTRIN_SIMPLE == (
        "mma_store_16x16_f16_shared_dyn_simple_"
    )


@pytest.mark.parametrize(
    ("layout", "rows", "columns", "local"),
    [
        (cuda.shared_16x16_to_ldmatrix_32x8_layout, 16, 16, 8),
        (cuda.shared_16x32_to_ldmatrix_32x16_layout, 16, 32, 16),
        (cuda.shared_32x16_to_ldmatrix_32x16_layout, 32, 16, 16),
    ],
)
def test_each_place_of_a_warp_holds_one_element(layout, rows, columns, local):
    places = {layout(i, j) for i in range(rows) for j in range(columns)}
    assert places == {(thread, at) for thread in range(32) for at in range(local)}


def test_the_layout_of_sums_is_that_of_the_instruction():
    """PTX ISA, m16n8k16: row is thread / 4, columns are pairs of thread % 4; then eight rows on."""
    for i in range(16):
        for j in range(16):
            thread, at = cuda.shared_16x16_to_ldmatrix_32x8_layout(i, j)
            assert cuda.ldmatrix_32x8_to_shared_16x16_layout(thread, at) == (i, j)
            assert (i % 8, j % 8 // 2) == (thread // 4, thread % 4)


def test_groups_name_intrinsics_that_fit_together():
    group = cuda.get_mma_intrin_group(
        "shared.dyn", "global", "float16", "float16", "float32", False, True, False
    )
    assert group == {
        "init": "mma_fill_16x16_f32",
        "load_a": "mma_ldmatrix_f16_a_dyn",
        "load_b": "mma_ldmatrix_f16_b_trans_dyn",
        "compute": "mma_f16f16f32_trans_b",
        "store": "mma_store_16x16_f32_global_",
    }
    wmma = cuda.get_wmma_intrin_group("shared.dyn", "shared.dyn", "int8", "int32", True)
    assert wmma["load_b"] == "wmma_load_16x16x16_s8_b_trans_shared_dyn"
    assert wmma["store"] == "wmma_store_16x16x16_s32_shared_dyn"


@pytest.mark.parametrize(
    "arguments",
    [
        ("shared", "global", "float64", "float64", "float64", False, False),
        ("shared", "global", "int8", "int8", "int32", True, False),
        ("global", "global", "float16", "float16", "float32", False, False),
    ],
)
def test_groups_that_no_instruction_makes_are_refused(arguments):
    with pytest.raises(tvm.error.ValueError, match="get_mma_intrin_group"):
        cuda.get_mma_intrin_group(*arguments)
