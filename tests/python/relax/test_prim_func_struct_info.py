"""What a graph knows about tensor programs."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import tir as T


def test_a_function_of_numbers_is_pure_and_stays_so_for_a_known_number():
    @T.prim_func(private=True)
    def ten_times(n: T.int32) -> T.int32:
        T.ret(n * 10)

    number = relax.PrimStructInfo("int32")
    tvm.ir.assert_structural_equal(ten_times.struct_info, relax.FuncStructInfo([number], number))
    special = ten_times.specialize({ten_times.params[0]: 5})
    tvm.ir.assert_structural_equal(special.struct_info, relax.FuncStructInfo([], number))


def test_buffers_are_tensors_and_writing_them_is_no_pure_thing():
    @T.prim_func(private=True)
    def copy(a: T.handle, B: T.Buffer((8,), "float16"), n: T.int64, p: T.handle):
        A = T.match_buffer(a, (8,), "float16")
        for i in range(8):
            B[i] = A[i]

    row = relax.TensorStructInfo([8], "float16")
    expected = relax.FuncStructInfo(
        [row, row, relax.PrimStructInfo("int64"), relax.ObjectStructInfo()],
        relax.TupleStructInfo([]),
        purity=False,
    )
    tvm.ir.assert_structural_equal(copy.struct_info, expected)


def test_extents_of_32_bits_are_counted_in_64():
    @T.prim_func(private=True)
    def clear(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        A[0, 0] = T.float32(0)

    (tensor,) = clear.struct_info.params
    count = clear.buffer_map[clear.params[0]].shape[0]
    tvm.ir.assert_structural_equal(
        tensor, relax.TensorStructInfo([count.astype("int64"), 4], "float32"), map_free_vars=True
    )
