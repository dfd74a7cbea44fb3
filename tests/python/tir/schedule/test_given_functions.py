"""Functions that are not made of tensors: what a schedule finds out of them, or leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import blur, chain, check, matmul, row_sums
from tvm import te, tir, topi
from tvm.ir import Range
from tvm.script import tir as T


def block(name, domains, body, kinds=None, init=None):
    """A block over variables with the given extents; `body` and `init` get the variables."""
    kinds = kinds or [tir.IterVar.DataPar] * len(domains)
    iters = [
        tir.IterVar(Range(0, extent), tir.Var(f"v{d}", "int32"), kind)
        for d, (extent, kind) in enumerate(zip(domains, kinds))
    ]
    at = [iv.var for iv in iters]
    first = None if init is None else init(*at)
    made = tir.Block(iters, [], [], name, body(*at), first)
    return tir.Block(iters, *tir.analysis.get_block_access_region(made)[:2], name, body(*at), first)


def function(buffers, *stmts, own=()):
    root = tir.Block([], [], [], "root", tir.stmt_seq(*stmts), alloc_buffers=list(own))
    return tir.PrimFunc(list(buffers), tir.BlockRealize([], True, root))


def run(func, *arrays):
    given = [tvm.nd.array(a) for a in arrays]
    tvm.build(func, target="llvm")(*given)
    return given[-1].numpy()


def test_buffers_over_the_same_memory_keep_their_order():
    A = tir.decl_buffer((8,), name="A")
    view = tir.decl_buffer((8,), name="V", data=A.data)
    B = tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    fill = block("fill", [8], lambda v: tir.BufferStore(view, 1.0, [v]))
    copy = block("copy", [8], lambda v: tir.BufferStore(B, A[7 - v], [v]))
    nest = tir.For(
        i,
        0,
        8,
        0,
        tir.stmt_seq(tir.BlockRealize([i], True, copy), tir.BlockRealize([i], True, fill)),
    )
    sch = tir.Schedule(function([A, B], nest))
    (loop,) = sch.get_loops(sch.get_block("copy"))
    with pytest.raises(tir.ScheduleError, match="what block fill writes depends on the order"):
        sch.parallel(loop)


def test_a_reader_ahead_of_its_writer_keeps_the_order_of_both():
    """B[i] = T[7 - i] under the loop that writes T[i], which reads what the caller had there."""
    T, B = tir.decl_buffer((8,), name="T"), tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    write = block("write", [8], lambda v: tir.BufferStore(T, 1.0, [v]))
    read = block("read", [8], lambda v: tir.BufferStore(B, T[7 - v], [v]))
    nest = tir.For(
        i,
        0,
        8,
        0,
        tir.stmt_seq(tir.BlockRealize([i], True, write), tir.BlockRealize([i], True, read)),
    )
    func = function([T, B], nest)
    sch = tir.Schedule(func)
    (loop,) = sch.get_loops(sch.get_block("read"))
    for refused in (sch.parallel, sch.vectorize):
        with pytest.raises(tir.ScheduleError, match="what block write writes depends on the order"):
            refused(loop)
    # The order of iterations stays, so this is no change.
    sch.split(loop, [None, 3])
    before = np.full(8, 5, "float32")
    zeros = np.zeros(8, "float32")
    expected = run(func, before, zeros)
    np.testing.assert_array_equal(run(sch.mod["main"], before, zeros), expected)
    assert set(expected) == {1.0, 5.0}


def test_a_block_whose_place_memory_decides_is_left_alone():
    index, A = tir.decl_buffer((8,), "int32", name="I"), tir.decl_buffer((8,), name="A")
    B = tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    scatter = block("scatter", [8], lambda v: tir.BufferStore(B, A[v], [v]))
    nest = tir.For(i, 0, 8, 0, tir.BlockRealize([index[i]], True, scatter))
    sch = tir.Schedule(function([index, A, B], nest))
    (loop,) = sch.get_loops(sch.get_block("scatter"))
    with pytest.raises(tir.ScheduleError, match="accesses are not all known"):
        sch.parallel(loop)


def test_a_consumer_of_elements_found_in_memory_needs_all_of_its_producer():
    A, index = te.placeholder((8,), name="A"), te.placeholder((6,), "int32", name="I")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((6,), lambda i: B[index[i]] * 2.0, name="C")
    func = te.create_prim_func([A, index, C])
    sch = tir.Schedule(func, debug_mask="all")
    (i,) = sch.get_loops(sch.get_block("C"))
    sch.compute_at(sch.get_block("B"), i)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops(sch.get_block("B"))] == [6, 8]
    a = np.arange(8, dtype="float32")
    at = np.array([7, 0, 3, 3, 2, 1], "int32")
    np.testing.assert_array_equal(
        run(sch.mod["main"], a, at, np.zeros(6, "float32")), (a + 1)[at] * 2
    )


def test_loops_beside_each_other_may_have_one_variable():
    A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    T = tir.decl_buffer((8,), name="T")
    i = tir.Var("i", "int32")
    one = block("one", [8], lambda v: tir.BufferStore(T, A[v] + 1.0, [v]))
    two = block("two", [8], lambda v: tir.BufferStore(B, T[v] * 2.0, [v]))
    nests = [tir.For(i, 0, 8, 0, tir.BlockRealize([i], True, b)) for b in (one, two)]
    sch = tir.Schedule(function([A, B], *nests, own=[T]))
    (loop,) = sch.get_loops(sch.get_block("two"))
    i_0, i_1 = sch.split(loop, [None, 3])
    sch.compute_at(sch.get_block("one"), i_0)
    a = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(run(sch.mod["main"], a, np.zeros(8, "float32")), (a + 1) * 2)


def test_a_body_may_use_the_loop_itself():
    A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    store = tir.BufferStore(B, A[7 - i], [i])
    copy = tir.Block([], [], [], "copy", store)
    nest = tir.For(i, 0, 8, 0, tir.BlockRealize([], True, copy))
    sch = tir.Schedule(function([A, B], nest))
    (loop,) = sch.get_loops(sch.get_block("copy"))
    sch.split(loop, [None, 3])
    a = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(run(sch.mod["main"], a, np.zeros(8, "float32")), a[::-1])


def test_an_extern_block_takes_in_what_it_reads_and_may_be_moved_by_what_it_declares():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")

    def body(ins, outs):
        i = tir.Var("i", "int32")
        return tir.For(i, 0, 8, 0, tir.BufferStore(outs[0], ins[0][i] * 3.0, [i]))

    C = te.extern((8,), [B], body, name="triple", dtype="float32")
    D = te.compute((8,), lambda i: C[i] - 1.0, name="D")
    func = te.create_prim_func([A, D])
    sch = tir.Schedule(func, debug_mask="all")
    i_0, i_1 = sch.split(sch.get_loops(sch.get_block("D"))[0], [None, 3])
    sch.reorder(i_1, i_0)
    sch.compute_inline(sch.get_block("B"))
    sch.compute_at(sch.get_block("triple"), sch.get_loops(sch.get_block("D"))[0])
    a = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(run(sch.mod["main"], a, np.zeros(8, "float32")), (a + 1) * 3 - 1)


def test_blocks_under_a_condition_are_named():
    A, B = tir.decl_buffer((8,), name="A"), tir.decl_buffer((8,), name="B")
    i = tir.Var("i", "int32")
    copy = block("copy", [8], lambda v: tir.BufferStore(B, A[v], [v]))
    nest = tir.For(i, 0, 8, 0, tir.IfThenElse(i < 5, tir.BlockRealize([i], True, copy)))
    sch = tir.Schedule(function([A, B], nest))
    with pytest.raises(tir.ScheduleError, match="'copy' is under an if, a while or a let"):
        sch.get_block("copy")


def test_loops_given_as_parallel_are_left_to_their_author_but_no_others_are():
    A, B = tir.decl_buffer((8, 8), name="A"), tir.decl_buffer((1,), name="B")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    last = block("last", [8, 8], lambda v, w: tir.BufferStore(B, A[v, w], [0]))
    inner = tir.For(j, 0, 8, 0, tir.BlockRealize([i, j], True, last))
    nest = tir.For(i, 0, 8, tir.ForKind.PARALLEL, inner)
    sch = tir.Schedule(function([A, B], nest))
    sch.annotate(sch.get_block("last"), "note", 1)
    with pytest.raises(tir.ScheduleError, match="loop j cannot be parallel"):
        sch.parallel(sch.get_loops(sch.get_block("last"))[1])


def test_a_producer_of_two_buffers_is_not_merged_into_its_own():
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="B")
    P, Q = te.compute((6, 8), lambda i, j: (B[i, j] + 1.0, B[i, j] * 2.0), name="P")
    C = te.compute((6, 8), lambda i, j: P[i, j] * Q[i, 7 - j], name="C")
    sch = tir.Schedule(te.create_prim_func([A, C]))
    with pytest.raises(tir.ScheduleError, match="P is not a single store"):
        sch.reverse_compute_inline(sch.get_block("P"))
    with pytest.raises(tir.ScheduleError, match="P is not a single store"):
        sch.compute_inline(sch.get_block("P"))


def test_extents_that_do_not_fit_their_type_are_refused():
    A = te.placeholder((65536, 65536), name="A")
    B = te.compute((65536, 65536), lambda i, j: A[i, j] + 1.0, name="B")
    sch = tir.Schedule(te.create_prim_func([A, B]))
    i, j = sch.get_loops(sch.get_block("B"))
    with pytest.raises(tir.ScheduleError, match="which int32 cannot hold; declare sizes of int64"):
        sch.fuse(i, j)
    with pytest.raises(tir.ScheduleError, match="which int32 cannot hold"):
        sch.split(i, [1 << 20, 1 << 20])


X = te.placeholder((1, 8, 14, 14), name="X")
A = te.placeholder((4, 8), name="A")
W, V = te.placeholder((16, 8, 3, 3), name="W"), te.placeholder((8,), name="V")
I = te.placeholder((5,), "int32", name="I")
OPERATORS = {
    "convolution": ([X, W], topi.nn.conv2d_nchw(X, W, 1, 1, 1)),
    "pooling": ([X], topi.nn.pool2d(X, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg")),
    "softmax": ([A], topi.nn.softmax(A)),
    "layer norm": ([A, V], topi.nn.layer_norm(A, V, V, [1])),
    "gather": ([A, I], topi.take(A, I, 0)),
    "argmax": ([A], topi.argmax(A, 1)),
    "concatenation": ([A], topi.concatenate([A, A], 0)),
    "resize": ([X], topi.image.resize2d(X, (0, 0, 14, 14), (28, 28), "NCHW", "linear")),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_all_blocks_of_operators_run_in_parallel(name):
    inputs, output = OPERATORS[name]
    sch = tir.Schedule(te.create_prim_func([*inputs, output]), debug_mask="all")
    for made in sch.get_child_blocks(sch.get_block("root")):
        sch.parallel(sch.get_loops(made)[0])


@T.prim_func
def partly(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            B[vi] = A[vi + 3] * 2.0
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1.0


def test_instances_that_do_not_run_stay_so():
    """B reads beyond A where its predicate does not hold, and C leaves elements as they are."""
    sch = tir.Schedule(partly)
    b, c = sch.get_block("B"), sch.get_block("C")
    refused = [
        lambda: sch.compute_inline(b),
        lambda: sch.compute_at(b, sch.get_loops(c)[0]),
        lambda: sch.reverse_compute_at(c, sch.get_loops(b)[0]),
        lambda: sch.reverse_compute_inline(c),
    ]
    for step in refused:
        with pytest.raises(tir.ScheduleError, match="cannot be shown that the loops run every"):
            step()
    sch.cache_write(c, 0, "local")
    for loop in (*sch.get_loops(b), *sch.get_loops(c)):
        outer, inner = sch.split(loop, [None, 2])
        sch.reorder(inner, outer)
        sch.parallel(inner)
    a = np.arange(8, dtype="float32")
    result = run(sch.mod["main"], a, np.full(8, -1, "float32"))
    np.testing.assert_array_equal(result, [7, 9, 11, 13, 15, -1, -1, -1])


@T.prim_func
def beyond(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


def test_values_beyond_their_domain_are_left_alone():
    sch = tir.Schedule(beyond)
    with pytest.raises(tir.ScheduleError, match="accesses are not all known"):
        sch.parallel(sch.get_loops(sch.get_block("B"))[0])


@pytest.mark.parametrize("program", [matmul, chain, blur, row_sums])
def test_tiles_of_a_given_function_are_understood(program):
    """Splitting, fusing and moving leave a text from which all can be found out again."""
    func, answer = program()
    sch = tir.Schedule(func)
    for made in sch.get_child_blocks(sch.get_block("root")):
        parts = [sch.split(loop, [None, 4]) for loop in sch.get_loops(made)]
        sch.reorder(*[outer for outer, _ in parts], *[inner for _, inner in parts])
    again = tir.Schedule(sch.mod)
    blocks = again.get_child_blocks(again.get_block("root"))
    for producer, consumer in reversed(list(zip(blocks, blocks[1:]))):
        again.compute_at(producer, again.get_loops(consumer)[0])
    again.parallel(again.get_loops(blocks[-1])[0])
    check(again, func, answer)
    third = tir.Schedule(again.mod)
    last = third.get_block(str(again.get(blocks[-1]).name_hint))
    third.split(third.get_loops(last)[-1], [None, 2])
    check(third, func, answer)
