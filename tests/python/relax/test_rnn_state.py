"""vm.builtin.rnn_state_*: states of recurrent networks for several sequences."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm.runtime import ShapeTuple
from tvm.script import tir as T

SHAPE = (2, 3)


@T.prim_func
def get(
    storage: T.handle, slots: T.handle, places: T.handle, output: T.Buffer((4, 2, 3), "float32")
):
    n, m, b = T.int64(), T.int64(), T.int64()
    S = T.match_buffer(storage, (n, m, 2, 3), "float32")
    I = T.match_buffer(slots, (b,), "int32")
    H = T.match_buffer(places, (b,), "int32")
    for i in range(b):
        for j in range(2):
            for k in range(3):
                output[i, j, k] = S[I[i], H[i], j, k]


@T.prim_func
def put(storage: T.handle, slots: T.handle, places: T.handle, data: T.handle):
    n, m, b = T.int64(), T.int64(), T.int64()
    S = T.match_buffer(storage, (n, m, 2, 3), "float32")
    I = T.match_buffer(slots, (b,), "int32")
    H = T.match_buffer(places, (b,), "int32")
    D = T.match_buffer(data, (b, 2, 3), "float32")
    for i in range(b):
        for j in range(2):
            for k in range(3):
                S[I[i], (T.Cast("int64", H[i]) + 1) % m, j, k] = D[i, j, k]


def call(name, *args):
    return tvm.get_global_func(f"vm.builtin.{name}")(*args)


@pytest.fixture(scope="module")
def kernels():
    return tuple(tvm.build(func, target="llvm").entry_func for func in (get, put))


@pytest.fixture
def states(kernels):
    first = tvm.nd.array(np.full(SHAPE, 5, "float32"))
    return call("rnn_state_create", 2, 4, 3, [kernels[0]], [kernels[1]], [first])


def step(states, sequences, value, lengths=None):
    lengths = lengths or [1] * len(sequences)
    call("kv_state_begin_forward", states, ShapeTuple(sequences), ShapeTuple(lengths))
    for layer in range(2):
        data = [np.full(SHAPE, value + 100 * layer + 10 * i, "float32") for i in sequences]
        call("rnn_state_set", states, layer, 0, tvm.nd.array(np.stack(data)))
    call("kv_state_end_forward", states)


def read(states, sequence, layer=0):
    return call("rnn_state_debug_get", states, layer, 0, sequence).numpy()


def test_sequences_begin_with_the_first_value_and_keep_what_steps_set(states):
    for i in range(4):
        call("kv_state_add_sequence", states, i)
    np.testing.assert_array_equal(read(states, 3), np.full(SHAPE, 5))
    step(states, [2, 0], 1)
    np.testing.assert_array_equal(read(states, 2), np.full(SHAPE, 21))
    np.testing.assert_array_equal(read(states, 0, layer=1), np.full(SHAPE, 101))
    call("kv_state_begin_forward", states, ShapeTuple([1, 2, 0, 3]), ShapeTuple([1] * 4))
    output = tvm.nd.empty((4, *SHAPE))
    call("rnn_state_get", states, 0, 0, output)
    assert output.numpy()[:, 0, 0].tolist() == [5, 21, 1, 5]


def test_popn_goes_back_to_a_state_that_is_kept(states):
    call("kv_state_add_sequence", states, 0)
    for value in range(1, 6):
        step(states, [0], value)
    call("kv_state_popn", states, 0, 2)
    np.testing.assert_array_equal(read(states, 0), np.full(SHAPE, 3))
    with pytest.raises(ValueError, match="after 2 tokens is not kept"):
        call("kv_state_popn", states, 0, 1)
    step(states, [0], 9)
    np.testing.assert_array_equal(read(states, 0), np.full(SHAPE, 9))
    call("kv_state_popn", states, 0, 1)
    np.testing.assert_array_equal(read(states, 0), np.full(SHAPE, 3))


def test_popn_goes_over_whole_steps_only(states):
    call("kv_state_add_sequence", states, 0)
    step(states, [0], 1, [4])
    with pytest.raises(ValueError, match="after 3 tokens is not kept"):
        call("kv_state_popn", states, 0, 1)
    call("kv_state_popn", states, 0, 4)
    np.testing.assert_array_equal(read(states, 0), np.full(SHAPE, 5))


def test_a_fork_goes_its_own_way_from_a_position(states):
    call("kv_state_add_sequence", states, 0)
    step(states, [0], 1)
    step(states, [0], 2)
    call("kv_state_fork_sequence", states, 0, 1)
    call("kv_state_fork_sequence", states, 0, 2, 1)
    step(states, [0], 3)
    np.testing.assert_array_equal(read(states, 1), np.full(SHAPE, 2))
    np.testing.assert_array_equal(read(states, 2), np.full(SHAPE, 1))
    step(states, [1, 2], 7)
    np.testing.assert_array_equal(read(states, 0), np.full(SHAPE, 3))
    np.testing.assert_array_equal(read(states, 2), np.full(SHAPE, 27))


def test_places_of_removed_sequences_are_used_again_and_clear_removes_all(states):
    for i in range(4):
        call("kv_state_add_sequence", states, i)
    with pytest.raises(ValueError, match="there are 4 sequences"):
        call("kv_state_add_sequence", states, 9)
    step(states, [1], 1)
    call("kv_state_remove_sequence", states, 1)
    call("kv_state_add_sequence", states, 9)
    np.testing.assert_array_equal(read(states, 9), np.full(SHAPE, 5))
    call("kv_state_clear", states)
    with pytest.raises(ValueError, match="there is no sequence 9"):
        read(states, 9)


def test_states_refuse_what_does_not_fit(states, kernels):
    with pytest.raises(ValueError, match="takes two kernels and a first value"):
        call("rnn_state_create", 1, 1, 1, [kernels[0]], [], [tvm.nd.empty(SHAPE)])
    call("kv_state_add_sequence", states, 0)
    with pytest.raises(ValueError, match="only between begin_forward and end_forward"):
        call("rnn_state_set", states, 0, 0, tvm.nd.empty((1, *SHAPE)))
    call("kv_state_begin_forward", states, ShapeTuple([0]), ShapeTuple([1]))
    with pytest.raises(IndexError, match="got layer 2, state 0"):
        call("rnn_state_set", states, 2, 0, tvm.nd.empty((1, *SHAPE)))
