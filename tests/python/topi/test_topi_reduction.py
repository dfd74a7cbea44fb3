"""Reductions against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_topi import evaluate, random_array
from tvm import te, topi


@st.composite
def reductions(draw):
    """A shape, the axes to reduce over, and keepdims."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    axes = draw(st.sets(st.integers(-len(shape), len(shape) - 1), min_size=1))
    distinct = tuple({a % len(shape): a for a in axes}.values())
    axis = draw(st.sampled_from([None, distinct, distinct[0], np.int64(distinct[0])]))
    return shape, axis, draw(st.booleans())


@given(
    case=reductions(),
    name=st.sampled_from(["sum", "prod", "max", "min", "mean"]),
    dtype=st.sampled_from(["float32", "int32", "float64"]),
)
@settings(max_examples=20, deadline=None)
def test_reduction_equals_numpy(case, name, dtype):
    shape, axis, keepdims = case
    if name == "mean":
        dtype = "float32"
    x = random_array(np.random.default_rng(0), *shape, dtype=dtype)
    with np.errstate(over="ignore"):
        expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    out = evaluate(lambda t: getattr(topi, name)(t, axis, keepdims), x)
    assert out.shape == expected.shape
    np.testing.assert_allclose(out, expected.astype(dtype), rtol=1e-5, atol=1e-5)


@given(case=reductions(), name=st.sampled_from(["all", "any"]))
@settings(max_examples=7, deadline=None)
def test_logical_reduction_equals_numpy(case, name):
    shape, axis, keepdims = case
    x = np.random.default_rng(1).random(shape) < {"all": 0.9, "any": 0.1}[name]
    out = evaluate(lambda t: getattr(topi, name)(t, axis, keepdims), x)
    np.testing.assert_array_equal(out, getattr(np, name)(x, axis=axis, keepdims=keepdims))


def arg_reference(x, axis, keepdims, last, largest):
    """Position by NumPy, row-major over the reduced axes in rising order."""
    axes = sorted(range(x.ndim) if axis is None else {a % x.ndim for a in np.atleast_1d(axis)})
    rest = [k for k in range(x.ndim) if k not in axes]
    flat = x.transpose(*rest, *axes).reshape([x.shape[k] for k in rest] + [-1])
    flat = flat if largest else -flat
    if last:
        position = flat.shape[-1] - 1 - flat[..., ::-1].argmax(-1)
    else:
        position = flat.argmax(-1)
    return (
        position.reshape([1 if k in axes else n for k, n in enumerate(x.shape)])
        if keepdims
        else position
    )


@given(case=reductions(), last=st.booleans(), largest=st.booleans(), real=st.booleans())
@settings(max_examples=20, deadline=None)
def test_argmax_and_argmin_pick_the_first_or_the_last(case, last, largest, real):
    shape, axis, keepdims = case
    rng = np.random.default_rng(2)
    # Few distinct numbers, so that many are equal.
    x = rng.integers(-1, 2, shape).astype("float32" if real else "int32")
    fn = topi.argmax if largest else topi.argmin
    out = evaluate(lambda t: fn(t, axis, keepdims, last), x)
    np.testing.assert_array_equal(out, arg_reference(x, axis, keepdims, last, largest))


@pytest.mark.parametrize("extreme", ["min", "max"])
def test_argmax_finds_an_element_that_equals_the_start_value(extreme):
    info = np.iinfo("int32")
    x = np.full((3, 4), getattr(info, extreme), "int32")
    np.testing.assert_array_equal(evaluate(lambda t: topi.argmax(t, 1), x), [0, 0, 0])
    np.testing.assert_array_equal(evaluate(lambda t: topi.argmin(t, 1), x), [0, 0, 0])


@pytest.mark.parametrize("name", ["sum", "max", "mean", "argmax"])
def test_reduction_takes_a_symbolic_shape(name):
    x = random_array(np.random.default_rng(3), 4, 7)
    expected = getattr(np, name)(x, axis=1)
    out = evaluate(lambda t: getattr(topi, name)(t, 1), x, symbolic=(4, 7))
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", [(5,), (1, 5), (3, 1), (1, 1), (1,), (), (4, 3, 5), (4, 1, 5)])
def test_collapse_sum_undoes_broadcasting(target):
    x = random_array(np.random.default_rng(4), 4, 3, 5)
    padded = (1,) * (3 - len(target)) + target
    axes = tuple(k for k in range(3) if padded[k] == 1)
    expected = x.sum(axes, keepdims=True).reshape(target)
    out = evaluate(lambda t: topi.collapse_sum(t, target), x)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_reduction_refuses_an_axis_out_of_range():
    x = te.placeholder((3, 5), name="x")
    with pytest.raises(IndexError, match="axis 2 is out of range for 2 dimensions"):
        topi.sum(x, 2)
    with pytest.raises(ValueError, match=r"\(4, 5\) does not broadcast to \(3, 5\)"):
        topi.collapse_sum(x, (4, 5))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_elements_that_are_all_infinite_count_on_request(name, dtype):
    worst = -np.inf if name.endswith("max") else np.inf
    data = np.random.default_rng(0).normal(size=(5, 40)).astype(dtype)
    data[1], data[2, :17], data[3], data[4, 5] = worst, worst, -worst, -worst
    out = evaluate(lambda t: getattr(topi, name)(t, 1, from_infinity=True), data)
    np.testing.assert_array_equal(out, getattr(np, name)(data, 1))
