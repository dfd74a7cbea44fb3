"""Stages whose results lie in memory by other indices than their axes."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def chain(shape, dtype="float32"):
    """``C = (A + 1) * 2`` in two stages."""
    A = te.placeholder(shape, dtype, name="A")
    B = te.compute(shape, lambda *i: A(*i) + tir.const(1, dtype), name="B")
    C = te.compute(shape, lambda *i: B(*i) * tir.const(2, dtype), name="C")
    return A, B, C, te.create_schedule(C.op)


def loops_of(stmt):
    found = []
    tir.stmt_functor.pre_order_visit(
        stmt, lambda node: found.append(node) or True if isinstance(node, tir.For) else True
    )
    return found


def relaid(array, mapping):
    """An array in the layout of a map; zeros where nothing lies."""
    index_map = tir.IndexMap.from_func(mapping, array.ndim)
    return index_map.map_ndarray(tvm.nd.array(array)).numpy()


MAPS = [
    ((12, 8), lambda i, j: [j, i]),
    ((12, 8), lambda i, j: [i // 4, j // 2, i % 4, j % 2]),
    ((12, 8), lambda i, j: [i * 8 + j]),
    ((12, 8), lambda i, j: [(i * 8 + j) // 6, (i * 8 + j) % 6]),
    ((7, 9), lambda i, j: [i // 4, j, i % 4]),
    ((3, 5), lambda i, j: [i // 4, i % 4, j]),
    ((1, 6), lambda i, j: [j // 3, i, j % 3]),
    ((2, 3, 4), lambda i, j, k: [k, i * 3 + j]),
    ((6,), lambda i: [0, i // 2, i % 2]),
    ((24,), lambda i: [i // 2 % 3, i // 6, i % 2]),
]


@pytest.mark.parametrize(("shape", "mapping"), MAPS)
@pytest.mark.parametrize("stage", ["A", "B", "C"])
def test_results_lie_where_the_map_puts_them(shape, mapping, stage):
    A, B, C, s = chain(shape)
    s[{"A": A, "B": B, "C": C}[stage]].transform_layout(mapping)
    func = tvm.build(s, [A, C])
    a = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    given = relaid(a, mapping) if stage == "A" else a
    expected = (a + 1) * 2
    if stage == "C":
        expected = relaid(expected, mapping)
    out = tvm.nd.array(np.zeros(expected.shape, "float32"))
    func(tvm.nd.array(given), out)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-6)


def test_parameters_have_the_shape_of_the_layout():
    A, B, C, s = chain((16, 64))
    s[A].transform_layout(lambda i, j: [i, j // 4, te.AXIS_SEPARATOR, j % 4])
    s[B].compute_inline()
    func = tvm.driver.build_module.schedule_to_module(s, [A, C])["main"]
    buffer = func.buffer_map[func.params[0]]
    assert list(buffer.shape) == [16, 16, 4]
    assert [int(place) for place in buffer.axis_separators] == [2]
    assert list(func.buffer_map[func.params[1]].shape) == [16, 64]


def test_loops_run_in_the_order_of_memory():
    A, B, C, s = chain((16, 64))
    s[B].compute_inline()
    outer, j, inner = s[C].transform_layout(lambda i, j: [i // 4, j, i % 4])
    s[C].vectorize(inner)
    lowered = tvm.lower(s, [A, C])["main"]
    assert [int(loop.extent) for loop in loops_of(lowered.body)] == [4, 64]
    stores = []
    tir.stmt_functor.post_order_visit(
        lowered.body, lambda n: stores.append(n) if isinstance(n, tir.BufferStore) else None
    )
    (store,) = stores
    assert str(store.value.dtype) == "float32x4" and int(store.indices[0].stride) == 1


def test_layouts_add_up():
    A, B, C, s = chain((8, 12))
    s[C].transform_layout(lambda i, j: [j, i])
    loops = s[C].transform_layout(lambda j, i: [j // 4, i, j % 4])
    assert len(loops) == 3
    out = tvm.nd.array(np.zeros((3, 8, 4), "float32"))
    a = np.arange(96, dtype="float32").reshape(8, 12)
    tvm.build(s, [A, C])(tvm.nd.array(a), out)
    expected = relaid((a + 1) * 2, lambda i, j: [j // 4, i, j % 4])
    np.testing.assert_array_equal(out.numpy(), expected)


def test_reductions_and_attached_stages():
    A = te.placeholder((16, 24), name="A")
    k = te.reduce_axis((0, 24), "k")
    B = te.compute((16, 24), lambda i, j: A[i, j] * 3.0, name="B")
    C = te.compute((16,), lambda i: te.sum(B[i, k], k), name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].transform_layout(lambda i: [i // 4, i % 4])
    s[B].transform_layout(lambda i, j: [j, i])
    s[B].compute_at(s[C], outer)
    a = np.random.default_rng(1).uniform(size=(16, 24)).astype("float32")
    out = tvm.nd.array(np.zeros((4, 4), "float32"))
    tvm.build(s, [A, C])(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy().reshape(-1), 3 * a.sum(1), rtol=1e-5)


def test_extents_may_be_variables():
    n = te.var("n")
    A = te.placeholder((n, 8), name="A")
    C = te.compute((n, 8), lambda i, j: A[i, j] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[C].transform_layout(lambda i, j: [j // 4, i, j % 4])
    a = np.random.default_rng(2).uniform(size=(5, 8)).astype("float32")
    out = tvm.nd.array(np.zeros((2, 5, 4), "float32"))
    tvm.build(s, [A, C])(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), relaid(a + 1, lambda i, j: [j // 4, i, j % 4]))


def test_what_loops_cannot_follow_is_refused():
    A, B, C, s = chain((16, 64))
    s[C].split(C.op.axis[0], factor=4)
    with pytest.raises(tvm.error.ScheduleError, match="before splitting or fusing"):
        s[C].transform_layout(lambda i, j: [j, i])
    with pytest.raises(tvm.error.ScheduleError, match="no digits of the axes"):
        s[B].transform_layout(lambda i, j: [i + j])
    assert len(s[B].layouts) == 0


def test_pointers_are_refused():
    A = te.placeholder((16,), name="A")
    B = te.extern(
        (16,),
        [A],
        lambda ins, outs: tir.call_packed("f", ins[0], outs[0]),
        name="B",
        dtype="float32",
    )
    s = te.create_schedule(B.op)
    s[A].transform_layout(lambda i: [i // 4, i % 4])
    with pytest.raises(tvm.error.ScheduleError, match="transform_layout\\(A\\): "):
        tvm.lower(s, [A, B])
