"""The memory that arguments and results of functions are asked to be in, and copies in loops."""

import pytest

import tvm
from tvm import relay
from tvm.script import tir as T
from tvm.tir import analysis


@T.prim_func
def added(a: T.handle, B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    A = T.match_buffer(a, (4,), "float32", scope="global.vtcm")
    for i in range(4):
        C[i] = A[i] + B[i]


TENSOR = relay.TensorType((4,), "float32")
TYPE = relay.FuncType([relay.TupleType([TENSOR, TENSOR])], TENSOR)


def test_a_scope_for_each_argument_and_result():
    get = analysis.get_prim_func_arg_and_result_memory_constraints
    assert get(added, TYPE) == ["global.vtcm", ""]
    moved = analysis.apply_prim_func_arg_and_result_memory_constraints(
        added, TYPE, ["", "global.texture"]
    )
    assert get(moved, TYPE) == ["global.vtcm", "global.texture"]
    assert analysis.verify_well_formed(moved)


def test_types_that_do_not_fit_the_function_are_refused():
    with pytest.raises(ValueError, match="has 3 buffers, but its type has 2 tensors"):
        analysis.get_prim_func_arg_and_result_memory_constraints(
            added, relay.FuncType([TENSOR], TENSOR)
        )
    with pytest.raises(ValueError, match="1 memory scopes are given for 2"):
        analysis.apply_prim_func_arg_and_result_memory_constraints(added, TYPE, [""])


def test_what_loops_copy_is_known_by_the_registered_name():
    @T.prim_func
    def copied(A: T.Buffer[(2, 8), "float32"], B: T.Buffer[16, "float32"]):  # noqa: F821
        for i in range(2):
            for j in range(8):
                B[i * 8 + j] = A[i, j]

    found = analysis._ffi_api._identify_memcpy(copied.body)
    a, b = copied.buffer_map.values()
    tvm.ir.assert_structural_equal(found[0], [a[0:2, 0:8], b[0:16]])
    i = copied.body.loop_var
    assert b[i * 8 : i * 8 + 8].region[0].extent == 8
