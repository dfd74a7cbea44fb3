"""Defining tensors: axes, bodies, indexing, reductions."""

from __future__ import annotations

import pytest

import tvm
from tvm import te, tir


def axis_names(tensor):
    return [str(axis.var.name_hint) for axis in tensor.op.axis]


def test_placeholder_defaults_to_float32():
    A = te.placeholder((4, 8), name="A")
    assert [int(n) for n in A.shape] == [4, 8]
    assert A.dtype == "float32"
    assert A.op.name == "A"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (lambda i, j: i + j, ["i", "j"]),
        (lambda *ax: ax[0] + ax[1], ["ax0", "ax1"]),
        (lambda n, *ax: n + ax[0], ["n", "ax1"]),
    ],
)
def test_axes_are_named_after_the_arguments(body, names):
    assert axis_names(te.compute((4, 8), body)) == names


def test_varargs_names_name_the_remaining_axes():
    A = te.compute((4, 8, 2), lambda n, *ax: n + ax[0], varargs_names=["h", "w"])
    assert axis_names(A) == ["n", "h", "w"]


def test_both_indexing_styles_give_equal_expressions():
    A = te.placeholder((4, 8), name="A")
    i, j = te.var("i"), te.var("j")
    assert tvm.ir.structural_equal(A[i][j], A[i, j])


def test_tensor_equals_the_same_output_only():
    A = te.placeholder((4,), name="A")
    B = te.placeholder((4,), name="A")
    assert A.op.output(0) == A
    assert hash(A.op.output(0)) == hash(A)
    assert A != B


def test_tuple_body_gives_one_tensor_per_value():
    A = te.placeholder((4,), name="A")
    B, C = te.compute((4,), lambda i: (A[i] + 1.0, A[i].astype("int32")), name="B")
    assert (B.dtype, C.dtype) == ("float32", "int32")
    assert B.op.same_as(C.op)
    assert [t.value_index for t in (B, C)] == [0, 1]


def test_input_tensors_are_listed_once_in_order_of_use():
    A = te.placeholder((4,), name="A")
    B = te.placeholder((4,), name="B")
    C = te.compute((4,), lambda i: B[i] + A[i] * B[i], name="C")
    assert [t.op.name for t in C.op.input_tensors] == ["B", "A"]


def test_one_reduction_axis_serves_two_reductions():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: te.max(A[i, k], axis=[k]), name="C")
    assert B.op.reduce_axis[0] == C.op.reduce_axis[0] == k


def test_max_of_two_values_is_an_expression():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: te.max(A[i], 0.0), name="B")
    assert isinstance(B.op.body[0], tir.Max)


def test_zero_dimensional_result_has_no_axes():
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    assert B.ndim == 0
    assert len(B.op.axis) == 0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda A: A[1, 2, 3], ValueError, "A has 2 axes, got 3 indices"),
        (lambda A: te.compute((4,), lambda i, j: A[i, j]), ValueError, "1 axes but .* takes 2"),
        (lambda A: te.compute((4, 8), lambda i: A[i, 0]), ValueError, "2 axes but .* takes 1"),
        (lambda A: te.compute((4,), lambda i: A), TypeError, "body is tensor A, not an element"),
        (lambda A: te.compute((4,), lambda i: A[i]), ValueError, "A has 2 axes, got 1 ind"),
        (
            lambda A: te.compute((4, 8), lambda i, j: A[i, j], varargs_names=["x"]),
            ValueError,
            "varargs_names has 1 names for 0 axes",
        ),
        (lambda A: te.thread_axis(), ValueError, "tag is missing"),
        (lambda A: te.create_schedule(A), TypeError, "pass its .op"),
        (lambda A: A.op.output(1), IndexError, "A has 1 outputs"),
    ],
)
def test_ill_formed_definitions_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make(te.placeholder((4, 8), name="A"))


def test_reduction_inside_an_expression_is_refused():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    with pytest.raises(ValueError, match="must be the whole body"):
        te.compute((4,), lambda i: te.sum(A[i, k], axis=k) + 1.0, name="B")


def test_reduction_beside_a_plain_output_is_refused():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    with pytest.raises(ValueError, match="output 1 is not a reduction"):
        te.compute((4,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]), name="B")
