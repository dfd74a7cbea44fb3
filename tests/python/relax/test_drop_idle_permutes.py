"""Changes of axes that move no element are views."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def dropped(mod):
    return transform.DeadCodeElimination()(transform.DropIdlePermutes()(mod))


@settings(max_examples=20, deadline=None)
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=5))
def test_results_are_the_same(make_module, run, op_names, data, shape):
    axes = data.draw(st.permutations(range(len(shape))))
    x = RNG.standard_normal(shape).astype("float32")
    mod = make_module(lambda bb, value: op.permute_dims(value, axes), x.shape)
    long = [axis for axis in axes if shape[axis] != 1]
    expected = ["permute_dims"]
    if long == sorted(long):
        expected = ["reshape"]
    elif 1 in (shape[-1], shape[axes[-1]]):
        expected = ["reshape", "permute_dims", "reshape"]
    assert op_names(dropped(mod)) == expected
    np.testing.assert_array_equal(run(dropped(mod), x), x.transpose(axes))


def test_axes_in_reverse_are_looked_at_too(make_module, op_names):
    def turned(bb, value):
        return op.permute_dims(value)

    assert op_names(dropped(make_module(turned, (1, 4, 1)))) == ["reshape"]
    assert op_names(dropped(make_module(turned, (4, 5)))) == ["permute_dims"]


@settings(max_examples=20, deadline=None)
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 2, 3, 4]), min_size=2, max_size=5))
def test_changes_of_axes_in_a_row_are_one(make_module, run, op_names, data, shape):
    orders = [data.draw(st.permutations(range(len(shape)))) for _ in range(3)]

    def chain(bb, value):
        for order in orders:
            value = bb.emit(op.permute_dims(value, order))
        return value

    x = RNG.standard_normal(shape).astype("float32")
    mod = make_module(chain, x.shape)
    expected = x
    for order in orders:
        expected = expected.transpose(order)
    assert op_names(dropped(mod)).count("permute_dims") <= 1
    np.testing.assert_array_equal(run(dropped(mod), x), expected)


def test_a_change_of_axes_and_its_inverse_are_a_view(make_module, op_names):
    def there_and_back(bb, value):
        return op.permute_dims(bb.emit(op.permute_dims(value, [0, 2, 1])), [0, 2, 1])

    assert op_names(dropped(make_module(there_and_back, (2, 3, 4)))) == ["reshape"]
