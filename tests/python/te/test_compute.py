"""Defining tensors: axes, bodies, indexing, reductions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir, topi


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


@pytest.mark.parametrize(
    ("apply", "expected"),
    [
        (lambda a, b: a + b, lambda a, b: a + b),
        (lambda a, b: 1 - a * 2.0, lambda a, b: 1 - a * 2),
        (lambda a, b: b / (a + 3), lambda a, b: b / (a + 3)),
        (lambda a, b: a // 0.5 - b % 2, lambda a, b: a // 0.5 - b % 2),
        (lambda a, b: -a, lambda a, b: -a),
        (lambda a, b: a.astype("int32") % 3, lambda a, b: a.astype("int32") % 3),
    ],
)
def test_operators_on_tensors_make_tensors(apply, expected):
    A, B = te.placeholder((4, 3), name="A"), te.placeholder((3,), name="B")
    C = apply(A, B)
    assert isinstance(C, te.Tensor)
    rng = np.random.default_rng(0)
    a, b = 3 * rng.standard_normal((4, 3), "float32"), rng.standard_normal(3, "float32")
    out = tvm.nd.empty((4, 3), C.dtype)
    tvm.build(te.create_schedule(C.op), [A, B, C], "llvm")(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), expected(a, b), rtol=1e-5, atol=1e-5)


def test_operators_need_a_library_that_says_what_they_do(monkeypatch):
    A = te.placeholder((3,), name="A")
    assert (A + A).op.tag == topi.add(A, A).op.tag
    monkeypatch.setattr("tvm.te.tensor._operators", {})
    with pytest.raises(TypeError, match="import tvm.topi"):
        A + A


def test_numpy_does_not_take_a_tensor_for_a_number():
    A = te.placeholder((3,), name="A")
    for mix in (lambda: A + np.ones(3), lambda: np.ones(3) * A, lambda: np.exp(A)):
        with pytest.raises(TypeError, match="Tensor"):
            mix()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda a: a["x"], TypeError, 'tensor A: indices must be integers, got "x"'),
        (lambda a: a[a[0]], TypeError, "indices must be integers, got A.0. of dtype float32"),
        (lambda a: te.reduce_axis(4), TypeError, r"is a Range or \(begin, end\), got 4"),
        (lambda a: te.reduce_axis((0,)), TypeError, r"got \(0,\)"),
        (lambda a: te.create_schedule(None), TypeError, "expected operations, got NoneType"),
        (lambda a: te.create_schedule(a), TypeError, "got Tensor; pass its .op"),
        (lambda a: te.placeholder((-1,)), ValueError, "must not be negative, got -1"),
        (lambda a: te.compute((-2,), lambda i: a[i]), ValueError, "must not be negative, got -2"),
        (
            lambda a: te.extern((4,), [a], lambda ins, outs: None),
            TypeError,
            "fcompute must return a statement or a call, got NoneType",
        ),
    ],
)
def test_slips_are_refused_where_they_are_made(make, error, message):
    with pytest.raises(error, match=message):
        make(te.placeholder((4,), name="A"))


def test_tensors_print_their_names_and_stages_what_they_compute():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    assert str(C) == "Tensor(shape=[4], op.name=C)"
    s = te.create_schedule(C.op)
    axis = 'T.iter_var(i, T.Range(0, 4), "DataPar", "")'
    assert repr(B.op.axis[0]) == axis
    assert str(B.op) == (
        f"compute(B, body=[A[i] + T.float32(1.0)], axis=[{axis}], reduce_axis=[], tag=, attrs={{}})"
    )
    assert str(s[B]) == f"stage(B, {B.op})"
    assert str(A.op) == "placeholder(A)" and A.op.tag == ""
    assert str(s).startswith("schedule([stage(A, placeholder(A)), stage(B, compute(B, ")
    s[B].split(B.op.axis[0], 2)
    assert str(s[B].relations[0]).startswith("split(parent=T.iter_var(i, ")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_at_the_edge_of_their_type_compare_as_in_numpy(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array([low, low + 1, -1, 0, 1, high - 1, high], dtype)
    left, right = (x.ravel() for x in np.meshgrid(values, values))
    A, B = (te.placeholder(left.shape, dtype, name=name) for name in "AB")
    for compare, expected in [
        (lambda a, b: a <= b, left <= right),
        (lambda a, b: tir.Not(a > b), left <= right),
        (lambda a, b: a >= b, left >= right),
        (lambda a, b: tir.all(a < b, a != b), left < right),
    ]:
        C = te.compute(left.shape, lambda i: compare(A[i], B[i]), name="C")  # noqa: B023
        result = tvm.nd.empty(left.shape, "bool")
        build = tvm.build(te.create_schedule(C.op), [A, B, C])
        build(tvm.nd.array(left), tvm.nd.array(right), result)
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_position_of_the_largest_difference_starts_from_the_least_number(dtype):
    A, B = (te.placeholder((3, 8), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, 8), name="k")
    larger = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda index, value: (tir.const(-1, index), tir.min_value(value)),
    )
    I, V = te.compute((3,), lambda i: larger((k.var, A[i, k] - B[i, k]), axis=k), name="L")
    a, b = np.random.default_rng(0).integers(-9, 9, (2, 3, 8)).astype(dtype)
    index, value = tvm.nd.empty((3,), "int32"), tvm.nd.empty((3,), dtype)
    build = tvm.build(te.create_schedule(I.op), [A, B, I, V])
    build(tvm.nd.array(a), tvm.nd.array(b), index, value)
    np.testing.assert_array_equal(index.numpy(), (a - b).argmax(1))
    np.testing.assert_array_equal(value.numpy(), (a - b).max(1))


def test_one_result_is_a_tensor_however_it_was_asked_for():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: (A[i] + 1.0,), name="B")
    C = te.extern([(4,)], [B], lambda ins, outs: outs[0].vstore([0], ins[0].vload([0])), name="C")
    state = te.placeholder((4, 4), name="state")
    start = te.compute((1, 4), lambda _, i: C[i], name="start")
    step = te.compute((4, 4), lambda t, i: state[t - 1, i], name="step")
    D = te.scan([start], [step], [state], name="D")
    assert all(isinstance(tensor, te.Tensor) for tensor in (B, C, D))


def test_replace_tensors_rebuilds_only_what_reads_them():
    x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    kept = te.compute((4,), lambda i: y[i] * 2.0, name="kept")
    summed = te.compute((4,), lambda i: x[i] + kept[i], name="summed")
    (rebuilt,) = te.replace_tensors([summed], [(x, y)])
    assert rebuilt.op.name == "summed"
    assert {str(t.op.name) for t in rebuilt.op.input_tensors} == {"y", "kept"}
    assert any(t.op.same_as(kept.op) for t in rebuilt.op.input_tensors)
    assert te.replace_tensors([kept], [(x, y)])[0].op.same_as(kept.op)


def test_replace_tensors_refuses_another_shape():
    x, y = te.placeholder((4,), name="x"), te.placeholder((5,), name="y")
    with pytest.raises(ValueError, match="replace_tensors"):
        te.replace_tensors([te.compute((4,), lambda i: x[i] + 1.0)], [(x, y)])


def test_quotients_are_rounded_up():
    A = te.placeholder((7,), name="A", dtype="int32")
    B = te.compute((7,), lambda i: te.ceildiv(A[i], 3), name="B")
    values, out = np.arange(-3, 4, dtype="int32"), tvm.nd.array(np.zeros(7, "int32"))
    tvm.build(te.create_schedule(B.op), [A, B])(tvm.nd.array(values), out)
    np.testing.assert_array_equal(out.numpy(), -(-values // 3))


def test_whole_floats_are_extents_and_others_are_not():
    A = te.placeholder((64 / 4, 8), name="A")
    B = te.compute((64 / 4, 8 / 2), lambda i, j: A[i, j], name="B")
    assert [int(n) for n in (*A.shape, *B.shape)] == [16, 8, 16, 4]
    with pytest.raises(TypeError, match="extent must be an integer, got float32"):
        te.compute((5 / 2,), lambda i: 1.0)
