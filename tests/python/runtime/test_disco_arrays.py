"""Arrays of several workers: copies and collective operations."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_disco import arrays_of, numbered_arrays, values_of
from testing_dpu import DpuMemory
from tvm.runtime import disco


def test_arrays_are_copied_to_and_from_worker_0(session):
    host = tvm.nd.array(np.arange(6, dtype="int32").reshape(2, 3))
    placed = session.copy_to_worker_0(host)
    host.copyfrom(np.zeros((2, 3), "int32"))
    back = tvm.nd.empty((2, 3), "int32")
    session.copy_from_worker_0(back, placed)
    session.sync_worker_0()
    np.testing.assert_array_equal(back.numpy(), np.arange(6).reshape(2, 3))
    assert placed.debug_get_from_remote(1) is None

    made = session.empty((2, 3), "int32")
    assert session.copy_to_worker_0(back, made) is made
    np.testing.assert_array_equal(made.debug_get_from_remote(0).numpy(), back.numpy())


def test_an_array_for_worker_0_is_made_there_only(session):
    ref = session.empty((2,), "float16", worker0_only=True)
    first, *others = values_of(ref)
    assert (first.shape, first.dtype) == ((2,), "float16")
    assert others == [None, None]


def test_broadcast_copies_worker_0s_array(session):
    source = numbered_arrays(session, (2, 2))
    target = session.broadcast_from_worker0(source, session.empty((2, 2), "float32"))
    for got in arrays_of(target):
        np.testing.assert_array_equal(got, [[1, 2], [3, 4]])
    for got in arrays_of(session.broadcast(np.array([5, 6], "int64"))):
        np.testing.assert_array_equal(got, [5, 6])


def test_scatter_cuts_and_gather_joins_in_the_order_of_workers(session):
    values = np.arange(18, dtype="float64").reshape(3, 2, 3)
    pieces = session.scatter(values)
    for got, expected in zip(arrays_of(pieces), values):
        np.testing.assert_array_equal(got, expected)
    whole = session.empty((3, 2, 3), "float64", worker0_only=True)
    session.gather_to_worker0(pieces, whole)
    np.testing.assert_array_equal(whole.debug_get_from_remote(0).numpy(), values)
    rows = session.empty((6, 3), "float64")
    for got in arrays_of(session.allgather(pieces, rows)):
        np.testing.assert_array_equal(got, values.reshape(6, 3))


REFERENCE = {
    "sum": np.sum,
    "prod": np.prod,
    "min": np.min,
    "max": np.max,
    "avg": np.mean,
}


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *itertools.product(REFERENCE, ["float32", "float16"]),
        *itertools.product(["sum", "prod", "min", "max"], ["int32", "uint8"]),
    ],
)
def test_allreduce_is_numpys(session, op, dtype):
    source = numbered_arrays(session, (3,), dtype)
    expected = REFERENCE[op](np.stack(arrays_of(source)).astype("float64"), axis=0).astype(dtype)
    for got in arrays_of(session.allreduce(source, session.empty((3,), dtype), op)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


def test_allreduce_may_write_over_its_source(session):
    ref = session.broadcast(np.array([1.5], "float32"))
    assert [got.tolist() for got in arrays_of(session.allreduce(ref, ref))] == [[4.5]] * 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=3, max_size=3))
def test_bfloat16_is_summed_as_numbers_and_rounded_to_nearest(values):
    torch = pytest.importorskip("torch")
    given = torch.tensor(values).to(torch.bfloat16)
    session = disco.ThreadedSession(3)
    ref = session.empty((1,), "bfloat16")
    for worker, value in enumerate(given.split(1)):
        ref.debug_copy_from(worker, tvm.nd.from_dlpack(value))
    total = torch.from_dlpack(session.allreduce(ref, ref).debug_get_from_remote(2))
    wide = given.float()
    assert total.item() == ((wide[0] + wide[1]) + wide[2]).to(torch.bfloat16).item()
    session.shutdown()


@settings(max_examples=15, deadline=None)
@given(
    workers=st.integers(1, 4),
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    dtype=st.sampled_from(["int8", "float64", "bool"]),
)
def test_scatter_then_gather_is_the_identity(workers, shape, dtype):
    session = disco.ThreadedSession(workers)
    values = np.random.default_rng(0).integers(0, 2, (workers, *shape)).astype(dtype)
    target = session.empty(values.shape, dtype)
    session.gather_to_worker0(session.scatter(values), target)
    np.testing.assert_array_equal(target.debug_get_from_remote(0).numpy(), values)
    session.shutdown()


class SharedMemory(DpuMemory):
    """For several workers at a time."""

    lock = threading.Lock()

    def alloc(self, device, nbytes, alignment):
        with self.lock:
            return super().alloc(device, nbytes, alignment)

    def free(self, device, address):
        with self.lock:
            super().free(device, address)


def test_arrays_of_a_device_take_part_through_the_host():
    memory = SharedMemory()
    tvm.runtime.register_device("disco_dpu", 59, memory)
    session = disco.ThreadedSession(2)
    ref = session.empty((2, 2), "int32", device=tvm.device(59))
    session.scatter(np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "int32"), ref)
    session.allreduce(ref, ref)
    back = tvm.nd.empty((2, 2), "int32")
    session.copy_from_worker_0(back, ref)
    session.sync_worker_0()
    assert back.numpy().tolist() == [[6, 8], [10, 12]]
    assert ref.debug_get_from_remote(1).device == tvm.cpu()
    assert len(memory.used) == 2
    session.shutdown()


@pytest.mark.parametrize(
    ("name", "source", "target", "message"),
    [
        ("broadcast_from_worker0", (2,), (3,), r"receives into shape \(3,\).*sends \(2,\)"),
        ("scatter_from_worker0", (4,), (2,), r"4 elements .* give each of 3 workers 1.33"),
        ("gather_to_worker0", (2,), (5,), r"worker 0 receives into shape \(5,\).*send \(2,\)"),
        ("allgather", (2,), (2,), r"receives into shape \(2,\), but 3 workers send \(2,\)"),
        ("allreduce", (2,), (2, 1), r"receives into shape \(2, 1\), but sends \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(session, name, source, target, message):
    source, target = session.empty(source, "float32"), session.empty(target, "float32")
    getattr(session, name)(source, target)
    with pytest.raises(ValueError, match=rf"worker \d: {name}: .*{message}"):
        session.sync_worker_0()


def test_element_types_that_do_not_fit_are_refused(session):
    ints, floats = session.empty((2,), "int32"), session.empty((2,), "float32")
    session.allreduce(ints, floats)
    with pytest.raises(ValueError, match="source has elements of int32, the target float32"):
        session.sync_worker_0()
    session.allreduce(ints, ints, "avg")
    with pytest.raises(ValueError, match="average of int32 would be rounded; use sum"):
        session.sync_worker_0()
    flags = session.empty((2,), "bool")
    session.allreduce(flags, flags)
    with pytest.raises(ValueError, match="elements of bool cannot be reduced"):
        session.sync_worker_0()
    with pytest.raises(ValueError, match='unknown operation "median"; known: sum, prod'):
        session.allreduce(floats, floats, "median")


def test_copies_between_unlike_arrays_are_refused(session):
    ref = session.empty((2,), "float32")
    with pytest.raises(ValueError, match=r"worker 1: cannot copy float32 of shape \(3,\) into"):
        ref.debug_copy_from(1, np.zeros(3, "float32"))
    session.copy_from_worker_0(tvm.nd.empty((2,), "int32"), ref)
    with pytest.raises(ValueError, match="cannot copy float32 .* into int32"):
        session.sync_worker_0()
    with pytest.raises(TypeError, match="copy_from_worker_0: expected an NDArray"):
        session.copy_from_worker_0(np.zeros(2, "float32"), ref)
    with pytest.raises(ValueError, match=r"expected 3 slices.*got shape \(2, 3\)"):
        session.scatter(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="extents must be >= 0"):
        session.empty((2, -1), "float32")


def test_compiled_code_names_the_operation_of_an_allreduce_by_its_number(session):
    ref = numbered_arrays(session, (3,), "float32")
    expected = np.stack(arrays_of(ref)).max(axis=0)
    target = session.empty((3,), "float32")
    session.get_global_func("runtime.disco.allreduce")(ref, tvm.runtime.ShapeTuple([3]), target)
    for got in arrays_of(target):
        np.testing.assert_array_equal(got, expected)
