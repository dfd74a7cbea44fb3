"""Memory of freed arrays serves the next ones of their size."""

import numpy as np
import pytest

import tvm


def address(array):
    return np.from_dlpack(array).__array_interface__["data"][0]


@pytest.mark.parametrize("count", [1 << 14, 1 << 20])
def test_an_array_gets_the_memory_of_the_last_one_of_its_size(count):
    first = tvm.nd.empty((count,))
    place = address(first)
    del first
    second = tvm.nd.empty((count,))
    assert address(second) == place
    # It is in use now, so a third one lies elsewhere.
    assert address(tvm.nd.empty((count,))) != place


def test_what_is_kept_is_bounded():
    sizes = [(1 << 20) + 64 * k for k in range(40)]
    arrays = [tvm.nd.empty((size,)) for size in sizes]
    places = [address(array) for array in arrays]
    while arrays:
        arrays.pop(0)
    # 40 arrays of 4 MiB are more than is kept; the last ones are.
    assert address(tvm.nd.empty((sizes[-1],))) == places[-1]


def test_an_array_that_somebody_shares_is_not_given_away():
    array = tvm.nd.array(np.ones(1 << 14, "float32"))
    shared = np.from_dlpack(array)
    del array
    tvm.nd.empty((1 << 14,)).copyfrom(np.zeros(1 << 14, "float32"))
    assert shared.all()
