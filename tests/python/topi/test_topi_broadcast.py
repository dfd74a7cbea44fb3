"""Functions of two operands against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_topi import evaluate, random_array
from tvm import te, topi

REAL = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "floor_mod"]
COMPARE = ["greater", "greater_equal", "less", "less_equal", "equal", "not_equal"]
NUMPY_NAME = {"floor_mod": "mod", "mod": "fmod"}


@st.composite
def shape_pairs(draw):
    """Two shapes that broadcast."""
    result = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    shapes = []
    for _ in range(2):
        kept = [draw(st.sampled_from([n, n, 1])) for n in result]
        shapes.append(tuple(kept[draw(st.integers(0, len(kept) - 1)) :]))
    return shapes


def operands(rng, shapes, dtype):
    """Numbers of which the second is never 0."""
    a, b = (random_array(rng, *shape, dtype=dtype) for shape in shapes)
    return a, np.where(b == 0, np.ones_like(b), b)


@given(
    shapes=shape_pairs(),
    name=st.sampled_from([*REAL, *COMPARE, "mod"]),
    dtype=st.sampled_from(["float32", "int32", "int64"]),
)
@settings(max_examples=20, deadline=None)
def test_operator_broadcasts_as_numpy(shapes, name, dtype):
    a, b = operands(np.random.default_rng(1), shapes, dtype)
    if name == "divide" and dtype != "float32":
        expected = np.trunc(a / b).astype(dtype)
    else:
        expected = getattr(np, NUMPY_NAME.get(name, name))(a, b)
    out = evaluate(getattr(topi, name), a, b)
    assert out.dtype == expected.dtype
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "log_add_exp", "power"])
def test_operator_takes_float16(name):
    rng = np.random.default_rng(2)
    a, b = (np.abs(random_array(rng, *s, dtype="float16")) for s in ((4, 5), (5,)))
    reference = {"log_add_exp": "logaddexp"}.get(name, name)
    expected = getattr(np, reference)(a.astype("f"), b.astype("f"))
    np.testing.assert_allclose(evaluate(getattr(topi, name), a, b), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_logical_operator_equals_numpy(name):
    rng = np.random.default_rng(3)
    a, b = random_array(rng, 4, 5, dtype="bool"), random_array(rng, 1, 5, dtype="bool")
    np.testing.assert_array_equal(evaluate(getattr(topi, name), a, b), getattr(np, name)(a, b))
    np.testing.assert_array_equal(evaluate(topi.logical_not, a), ~a)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_operator_equals_numpy(name):
    rng = np.random.default_rng(4)
    a, b = random_array(rng, 4, 5, dtype="int32"), random_array(rng, 4, 1, dtype="int32")
    np.testing.assert_array_equal(evaluate(getattr(topi, name), a, b), getattr(np, name)(a, b))
    np.testing.assert_array_equal(evaluate(topi.bitwise_not, a), ~a)


@pytest.mark.parametrize("name", ["left_shift", "right_shift"])
def test_shift_equals_numpy(name):
    rng = np.random.default_rng(5)
    a, b = random_array(rng, 4, 5, dtype="int32"), rng.integers(0, 8, 5).astype("int32")
    np.testing.assert_array_equal(evaluate(getattr(topi, name), a, b), getattr(np, name)(a, b))


def test_a_number_may_stand_on_either_side():
    x = random_array(np.random.default_rng(6), 3, 5)
    np.testing.assert_array_equal(evaluate(lambda t: topi.subtract(2.5, t), x), 2.5 - x)
    np.testing.assert_array_equal(evaluate(lambda t: topi.subtract(t, 2.5), x), x - 2.5)


def test_symbolic_extents_broadcast():
    rng = np.random.default_rng(7)
    a, b, c = random_array(rng, 4, 7), random_array(rng, 1, 7), random_array(rng, 4, 1)
    np.testing.assert_array_equal(evaluate(topi.add, a, b, symbolic=(7,)), a + b)
    np.testing.assert_array_equal(evaluate(topi.add, b, c, symbolic=(4, 7)), b + c)
    # A variable extent may turn out to be 1, and then it is repeated.
    np.testing.assert_array_equal(evaluate(topi.add, a, b, symbolic=(1,)), a + b)


@given(shapes=shape_pairs())
@settings(max_examples=7, deadline=None)
def test_broadcast_to_equals_numpy(shapes):
    a, b = operands(np.random.default_rng(8), shapes, "float32")
    shape = np.broadcast_shapes(a.shape, b.shape)
    np.testing.assert_array_equal(
        evaluate(lambda t: topi.broadcast_to(t, shape), a), np.broadcast_to(a, shape)
    )


def test_add_is_named_and_tagged_for_schedules():
    a, b = te.placeholder((4, 1), name="a"), te.placeholder((1, 5), name="b")
    out = topi.add(a, b)
    assert out.op.name == "T_add"
    assert topi.tag.is_broadcast(out.op.tag)
    assert [str(axis.var.name_hint) for axis in out.op.axis] == ["ax0", "ax1"]


@pytest.mark.parametrize(
    ("tag", "injective"),
    [
        ("elemwise", True),
        ("broadcast", True),
        ("injective", True),
        ("comm_reduce", False),
        ("", False),
    ],
)
def test_is_injective_tells_reductions_from_the_rest(tag, injective):
    assert topi.tag.is_injective(tag) == injective


def test_operator_refuses_shapes_and_types_that_differ():
    x = te.placeholder((3, 5), name="x")
    with pytest.raises(ValueError, match="do not broadcast: 3 against 5"):
        topi.add(x, te.placeholder((5, 3), name="y"))
    with pytest.raises(TypeError, match="float32 and int32; cast one"):
        topi.add(x, te.placeholder((3, 5), "int32", "y"))
    with pytest.raises(ValueError, match=r"\(3, 5\) does not broadcast to \(5,\)"):
        topi.broadcast_to(x, (5,))
    with pytest.raises(TypeError, match="at least one operand must be a tensor"):
        topi.add(1, 2)
