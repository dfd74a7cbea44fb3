"""Halves of vectors, and their combination."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir


def test_halves_change_places():
    A, B = (tir.decl_buffer((8,), "float32", name) for name in "AB")
    vector = A.vload([0], "float32x8")
    low, high = tir.vectorlow("float32x4", vector), tir.vectorhigh("float32x4", vector)
    func = tir.PrimFunc([A, B], B.vstore([0], tir.vectorcombine("float32x8", high, low)))
    built = tvm.build(func.with_attr("global_symbol", "swap"), target="llvm")
    result = tvm.nd.empty((8,))
    built(tvm.nd.array(np.arange(8, dtype="float32")), result)
    np.testing.assert_array_equal(result.numpy(), [4, 5, 6, 7, 0, 1, 2, 3])


def test_types_that_are_no_halves_are_refused():
    vector = tir.decl_buffer((8,), "float32").vload([0], "float32x8")
    for dtype in ("float32x8", "float16x4", "float32x2"):
        with pytest.raises(TypeError, match="is not half of a vector of float32x8"):
            tir.vectorlow(dtype, vector)
    with pytest.raises(TypeError, match="float32x8 is not half of a vector of float32x8"):
        tir.vectorcombine("float32x8", vector, vector)


def test_marks_of_profiles_and_values_of_no_account_have_their_operators():
    assert tir.start_profile_intrinsic(3).op.name == "tir.start_profile_intrinsic"
    assert tir.end_profile_intrinsic(3).args[0].value == 3
    assert tir.undef().dtype == "int32"
