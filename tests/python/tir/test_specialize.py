"""Functions for known values of their parameters."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.script import tir as T

N, M = tir.Var("n", "int32"), tir.Var("m", "int32")


@pytest.fixture
def last_column():
    """C[i] = B[i, m - 1] for all rows."""
    i = tir.Var("i", "int32")
    B, C = tir.decl_buffer((N, M), name="B"), tir.decl_buffer((N,), name="C")
    body = tir.For(i, 0, N, tir.ForKind.SERIAL, C.vstore(i, B[i, M - 1]))
    return tir.PrimFunc([B, C, M], body).with_attr("global_symbol", "last_column")


def test_the_shape_of_a_buffer_is_that_of_all_its_variables(last_column):
    special = last_column.specialize({last_column.params[0]: tir.decl_buffer((4, 5))})
    assert len(special.params) == 2
    assert [list(b.shape) for b in special.buffer_map.values()] == [[4, 5], [4]]
    assert special.attrs["global_symbol"] == "last_column"
    values = np.arange(20, dtype="float32").reshape(4, 5)
    result = tvm.nd.empty((4,))
    tvm.build(special, target="llvm")(tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), values[:, 4])


def test_a_scalar_is_no_parameter_any_more(last_column):
    special = last_column.specialize({M: 5})
    assert len(special.params) == 2
    assert str(special.buffer_map[special.params[0]].shape) == "[n, 5]"


def test_what_contradicts_is_refused(last_column):
    B, C, _ = last_column.params
    with pytest.raises(ValueError, match=r"C.shape\[0\] is 4, got 3"):
        last_column.specialize({B: tir.decl_buffer((4, 5)), C: tir.decl_buffer((3,))})
    with pytest.raises(ValueError, match="dtype or axes differ"):
        last_column.specialize({B: tir.decl_buffer((4, 5), "float64")})
    with pytest.raises(ValueError, match="n is no parameter"):
        last_column.specialize({N: 4})
    with pytest.raises(ValueError, match="m is not that of a buffer"):
        last_column.specialize({M: tir.decl_buffer((4,))})


def test_an_address_is_bound_where_the_buffer_is_declared():
    @T.prim_func(private=True)
    def double(a: T.handle("float32"), b: T.handle("float32")):
        A = T.decl_buffer(32, "float32", data=a)
        B = T.decl_buffer(16, "float32", data=b)
        for i in range(16):
            B[i] = A[i] * T.float32(2)

    @T.prim_func(private=True)
    def expected(a: T.handle("float32")):
        A = T.decl_buffer(32, "float32", data=a)
        b: T.Ptr[T.float32] = T.address_of(A[16])
        B = T.decl_buffer(16, "float32", data=b)
        for i in range(16):
            B[i] = A[i] * T.float32(2)

    special = double.specialize({double.params[1]: tir.address_of(double.body.buffer[16])})
    tvm.ir.assert_structural_equal(special, expected)
