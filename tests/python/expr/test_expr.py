"""Operators on expressions: promotion, folding, text, truth values, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir

I = tir.Var("i")
J = tir.Var("j")


def test_text_has_only_the_parentheses_that_are_needed():
    assert str(I * 4 + J) == "i * 4 + j"
    assert str((I + J) * 4 - (I - (J - 1))) == "(i + j) * 4 - (i - (j - 1))"
    assert str(I // 4 % 3) == "i // 4 % 3"
    assert str(tir.all(I < 3, tir.any(J == I, J > 2))) == "i < 3 and (j == i or j > 2)"
    assert str(tir.Not(tir.all(I < 3, J < 3))) == "not (i < 3 and j < 3)"


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (tir.const(7) // -2, "-4"),
        (tir.const(7) % -2, "-1"),
        (tir.truncdiv(7, -2), "-3"),
        (tir.truncmod(7, -2), "1"),
        (tir.truncmod(-7, 2), "-1"),
        (tir.ceildiv(7, 2), "4"),
        (I + 0, "i"),
        (0 + I, "i"),
        (I * 1, "i"),
        (I - I, "0"),
        (tir.max(3, 4), "4"),
        (tir.const(3) << 2, "12"),
    ],
)
def test_constants_and_identities_fold(expr, text):
    assert str(expr) == text


def test_real_zero_times_a_value_is_kept():
    x = tir.Var("x", "float32")
    assert str(x * 0.0) == "x * T.float32(0.0)"
    assert str(tir.Var("i") * 0) == "0"


def test_overflow_of_a_constant_is_not_folded():
    big = tir.const(2**31 - 1)
    assert isinstance(big + 1, tir.Add)


@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        ("int32", "int64", "int64"),
        ("int32", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("bool", "int8", "int8"),
        ("uint8", "int8", "int8"),
        ("uint16", "int8", "uint16"),
        ("int32", "float32x4", "float32x4"),
    ],
)
def test_operands_meet_at_one_type(a, b, dtype):
    x, y = tir.Var("x", a), tir.Var("y", b)
    assert str((x + y).dtype) == dtype
    assert str((y + x).dtype) == dtype


def test_python_numbers_take_the_type_of_the_expression():
    half = tir.Var("h", "float16")
    assert str((half + 1).dtype) == "float16"
    assert str((half * 2.5).dtype) == "float16"
    assert str((tir.Var("l", "int64") + 1).dtype) == "int64"
    assert str((I + 1.5).dtype) == "float32"


def test_numbers_beyond_32_bits_make_both_sides_int64():
    n = tir.Var("n", "int32")
    assert (n + 2**31).dtype == "int64" and (n < -(2**40)).a.dtype == "int64"
    assert (n + (2**31 - 1)).dtype == "int32"
    assert bool(tir.const(7, "int32") < 2**32)
    with pytest.raises(ValueError, match="does not fit int8"):
        tir.Var("m", "int8") + 300


def test_types_without_a_meeting_point_are_refused_by_name():
    with pytest.raises(TypeError, match=r"no common type of a .*bfloat16.* and b .*float16"):
        tir.Var("a", "bfloat16") + tir.Var("b", "float16")
    with pytest.raises(TypeError, match=r"tir.Add: operands must have one type, got i of int32"):
        tir.Add(I, tir.Var("x", "float32"))
    with pytest.raises(TypeError, match=r"the lanes differ"):
        tir.Var("a", "int32x4") + tir.Var("b", "int32x8")


def test_integer_true_division_is_refused_with_the_way_out():
    with pytest.raises(RuntimeError, match=r"i / j: dividing integers is ambiguous; use //"):
        I / J


def test_division_by_constant_zero_is_refused():
    with pytest.raises(ValueError, match="i is divided by zero"):
        I // 0


def test_functions_of_real_numbers_read_integers_as_float32():
    for function in (tir.exp, tir.log, tir.sqrt, tir.sin, tir.tanh, tir.sigmoid, tir.erf):
        call = function(I)
        assert call.dtype == "float32"
        assert tvm.ir.structural_equal(call, function(I.astype("float32")))
    assert tir.exp(tir.Var("n", "int64")).dtype == "float32"
    assert tir.log(tir.Var("v", "uint8x4")).dtype == "float32x4"
    assert tir.sqrt(tir.Var("b", "bool")).dtype == "float32"
    assert tir.atan2(I, J).dtype == "float32"
    assert float(tvm.arith.Analyzer().simplify(tir.exp(1))) == pytest.approx(np.exp(1))
    # Whole numbers stay what they are where the result is whole.
    assert tir.floor(I).same_as(I)
    assert tir.abs(I).dtype == "int32"


def test_powers_of_integers_are_refused():
    with pytest.raises(TypeError, match=r"pow\(i\) needs a floating point operand, got int32"):
        tir.power(I, J)


def test_comparison_is_an_expression_whose_truth_is_identity():
    assert isinstance(I == J, tir.EQ)
    assert I == I
    assert I != J
    assert I in [J, I]
    assert I not in [J]
    assert {I: 1, J: 2}[J] == 2


def test_other_truth_values_are_refused():
    with pytest.raises(ValueError, match="i < j has no truth value"):
        bool(I < J)


def test_constants_keep_their_type_and_refuse_what_does_not_fit():
    assert tir.const(3).value == 3
    assert str(tir.const(3, "uint8").dtype) == "uint8"
    assert str(tir.const(True).dtype) == "bool"
    with pytest.raises(ValueError, match="300"):
        tir.const(300, "int8")
    with pytest.raises(TypeError, match="0.5 is not a whole number"):
        tir.const(0.5, "int32")


def test_casts_of_constants_fold_and_of_the_same_type_vanish():
    assert I.astype("int32").same_as(I)
    assert str(tir.const(3).astype("float32")) == "T.float32(3.0)"
    assert str(I.astype("int64")) == 'T.Cast("int64", i)'


def test_vector_nodes_know_their_lanes():
    ramp = tir.Ramp(I, 2, 4)
    assert str(ramp.dtype) == "int32x4"
    assert str((ramp + 1).dtype) == "int32x4"
    assert str(tir.Select(ramp < 3, ramp, ramp).dtype) == "int32x4"
    with pytest.raises(ValueError, match="lanes must be from 2 to 32767.*got 1"):
        tir.Ramp(I, 1, 1)
    with pytest.raises(ValueError, match=r"indices must be constants in \[0, 8\)"):
        tir.Shuffle([ramp, ramp], [8])


def test_buffer_access_checks_the_number_of_indices():
    buffer = tir.decl_buffer((4, 5), name="A")
    assert str(buffer[I, J]) == "A[i, j]"
    with pytest.raises(ValueError, match="buffer A has 2 axes but got 1 indices"):
        buffer[I]


def test_buffer_offset_uses_shape_or_strides():
    assert str(tir.decl_buffer((4, 5), name="A").offset_of([I, J])) == "[i * 5 + j]"
    strided = tir.decl_buffer((4, 5), name="A", strides=(8, 1), elem_offset=3)
    assert str(strided.offset_of([I, J])) == "[i * 8 + j + 3]"


def test_reducer_combines_tuples():
    def combine(x, y):
        return tir.Select(x[1] >= y[1], x[0], y[0]), tir.max(x[1], y[1])

    argmax = tir.comm_reducer(
        combine, lambda t0, t1: (tir.const(-1, t0), tir.min_value(t1)), name="argmax"
    )
    axis = tir.IterVar((0, 8), "k", tir.IterVar.CommReduce)
    values = tir.decl_buffer((8,), name="A")
    index, best = argmax((axis.var, values[axis]), axis=axis)
    assert (index.value_index, best.value_index) == (0, 1)
    assert [str(e) for e in best.source] == ["k", "A[k]"]


def test_reduction_over_a_plain_axis_is_refused():
    axis = tir.IterVar((0, 8), "k", tir.IterVar.DataPar)
    with pytest.raises(ValueError, match="axes must come from reduce_axis"):
        tir.sum(tir.decl_buffer((8,), name="A")[axis], axis=axis)


def test_size_variables_keep_their_kind():
    assert tir.SizeVar("n", kind=tir.SizeVar.KNOB).kind == 1
    with pytest.raises(ValueError, match=r"kind must be in \[0, 4\], got 9"):
        tir.SizeVar("n", kind=9)


def test_the_scope_of_a_buffer_is_a_text_that_calls_give_too():
    shared = tir.decl_buffer((4,), scope="shared")
    assert shared.scope == shared.scope() == "shared"


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**31 - 1, "int32"),
        (2**31, "int64"),
        (-(2**31) - 1, "int64"),
        (1e300, "float64"),
        (float("inf"), "float32"),
        (np.int64(3), "int64"),
        (np.uint8(3), "uint8"),
        (np.float16(0.5), "float16"),
        (np.bool_(True), "bool"),
    ],
)
def test_a_constant_without_a_type_has_one_that_holds_it(value, dtype):
    constant = tir.const(value)
    assert constant.dtype == dtype
    assert constant.value == value


def test_an_extent_of_numpy_is_an_ordinary_index():
    assert tir.decl_buffer((np.int64(4),)).shape[0].dtype == "int32"


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_the_upper_half_of_uint64_is_computed_with(target):
    values = np.random.default_rng(0).integers(0, 2**64, (3, 7), dtype="uint64")
    A = te.placeholder(values.shape, "uint64")
    k = te.reduce_axis((0, 7))
    low = te.compute((3,), lambda i: te.min(A[i, k], axis=k))
    high = te.compute((3, 7), lambda i, j: A[i, j] ^ tir.const(2**64 - 5, "uint64"))
    large = te.compute((3, 7), lambda i, j: A[i, j] > 2**63)
    func = tvm.build(
        te.create_schedule([t.op for t in (low, high, large)]), [A, low, high, large], target
    )
    expected = [values.min(1), values ^ np.uint64(2**64 - 5), values > np.uint64(2**63)]
    results = [tvm.nd.array(np.zeros_like(e)) for e in expected]
    func(tvm.nd.array(values), *results)
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result.numpy(), wanted)


def test_slices_of_a_buffer_are_a_region_or_a_vector():
    A = tir.decl_buffer((8, 9), name="A")
    assert str(A[0:2, :]) == "A[0:2, 0:9]"
    assert str(A[I, 3:]) == "A[i, 3:9]"
    assert str(A[I, 0:8:2]) == "A[i, T.Ramp(0, 2, 4)]"
    assert str(A[I, 2:7:1]) == "A[i, T.Ramp(2, 1, 5)]"
    with pytest.raises(ValueError, match="known length and a positive step, got 0:i:2"):
        A[0, 0:I:2]


def test_buffers_of_one_axis_are_accessed_by_a_single_index():
    A = tir.decl_buffer((8,), name="A")
    assert str(A.vload(0)) == "A[0]"
    assert str(A.vload(I, "float32x2")) == "A[T.Ramp(i, 1, 2)]"
    assert str(A.vstore(I + 1, 1.0)) == "A[i + 1] = T.float32(1.0)"


def test_a_buffer_is_not_iterated_over():
    with pytest.raises(TypeError, match="not iterable"):
        list(tir.decl_buffer((4,)))


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (tir.exp(tir.const(0.0, "float32")), 1.0),
        (tir.atan(tir.const(0.0, "float64")), 0.0),
        (tir.sqrt(tir.const(4.0, "float32")), 2.0),
        (tir.pow(tir.const(2.0, "float32"), tir.const(3.0, "float32")), 8.0),
    ],
)
def test_functions_of_constants_are_calls_until_they_are_simplified(call, value):
    assert isinstance(call, tir.Call)
    simple = tvm.arith.Analyzer().simplify(call)
    assert isinstance(simple, tir.FloatImm) and simple.value == value
    assert str(simple.dtype) == str(call.dtype)


def test_shifts_by_nothing_are_no_calls():
    x = tir.Var("x", "int32")
    assert (x << 0).same_as(x) and (x >> 0).same_as(x)
