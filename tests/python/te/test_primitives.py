"""Every primitive: numbers after compilation, and the loops it leaves."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def text(sch, args, simple=True):
    """The lowered program, or with `simple` the loops before any pass but simplification."""
    if not simple:
        return str(tvm.lower(sch, args))
    return str(tvm.tir.transform.Simplify()(tvm.driver.form_irmodule(sch, args)))


def run(sch, inputs, outputs):
    """Inputs drawn at random and results of the compiled schedule, as arrays."""
    func = tvm.build(sch, [*inputs, *outputs], target="llvm")
    rng = np.random.default_rng(0)

    def shape(t):
        return [int(e) for e in t.shape]

    arrays = [
        rng.integers(-9, 9, shape(t)).astype(str(t.dtype))
        if str(t.dtype).startswith("int")
        else rng.normal(size=shape(t)).astype(str(t.dtype))
        for t in inputs
    ]
    results = [tvm.nd.array(np.full(shape(t), 77, str(t.dtype))) for t in outputs]
    func(*[tvm.nd.array(a) for a in arrays], *results)
    return arrays, [r.numpy() for r in results]


def check(sch, inputs, output, reference):
    arrays, (result,) = run(sch, inputs, [output])
    np.testing.assert_allclose(result, reference(*arrays), rtol=1e-4, atol=1e-5)


def chain(n=12, m=16):
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((n, m), lambda i, j: C[i, j] - A[i, j], name="D")
    return A, B, C, D


def chain_reference(a):
    return (a + 1) * 2 - a


def matmul(n=12, m=10, l=14):
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def test_group_moves_its_members_together():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A, include_inputs=False)
    assert s[B].group.same_as(group)
    assert s[C].group.same_as(group)
    assert s[D].group is None
    assert list(s.groups)[0].same_as(group)
    outer, _ = s[D].split(D.op.axis[0], 4)
    group.compute_at(s[D], outer)
    body = text(s, [A, D])
    assert body.index("for i_outer") < body.index("B[") < body.index("C[")
    assert "T.realize(B[i_outer * 4:i_outer * 4 + 4, 0:16]" in body
    check(s, [A], D, chain_reference)


def test_member_may_be_attached_inside_of_its_group_only():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ScheduleError, match="B is in a group that D is not in; attach the group"):
        s[B].compute_at(s[D], D.op.axis[0])
    group.compute_at(s[D], D.op.axis[0])
    check(s, [A], D, chain_reference)
    group.compute_root()
    check(s, [A], D, chain_reference)


def test_groups_nest_but_do_not_cross():
    A, B, C, D = chain()
    E = te.compute(D.shape, lambda i, j: D[i, j] * 3.0, name="E")
    s = te.create_schedule(E.op)
    inner = s.create_group(outputs=C, inputs=B, include_inputs=True)
    outer = s.create_group(outputs=D, inputs=A)
    assert inner.group.same_as(outer)
    assert s[C].group.same_as(inner)
    assert s[D].group.same_as(outer)
    outer.compute_at(s[E], E.op.axis[0])
    inner.compute_at(s[D], D.op.axis[1])
    check(s, [A], E, lambda a: 3 * chain_reference(a))
    s = te.create_schedule(E.op)
    s.create_group(outputs=D, inputs=B)
    with pytest.raises(ScheduleError, match="groups must be nested or apart"):
        s.create_group(outputs=C, inputs=A)
    with pytest.raises(ScheduleError, match="group has no definition of its own"):
        inner.compute_inline()
    with pytest.raises(ScheduleError, match="a group stores nothing"):
        inner.set_scope("local")


def test_copied_schedule_has_groups_of_its_own():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs=A)
    twin = s.copy()
    group.compute_at(s[D], D.op.axis[0])
    assert twin[B].group.attach_type == 1
    assert not twin[B].group.same_as(group)


@pytest.mark.parametrize(("factor", "offset"), [(16, 0), (8, 3), (1, 0)])
def test_storage_align_pads_strides_only(factor, offset):
    A, B, C, D = chain(12, 10)
    s = te.create_schedule(D.op)
    s[C].storage_align(C.op.axis[0], factor, offset)
    s[B].compute_inline()
    check(s, [A], D, chain_reference)
    stride = 10 + (factor + offset - 10 % factor) % factor
    assert f"* {stride}" in text(s, [A, D], simple=False)


def test_double_buffer_keeps_numbers():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[C].double_buffer()
    s[B].compute_inline()
    assert "double_buffer_scope" in text(s, [A, D])
    check(s, [A], D, chain_reference)


@pytest.mark.parametrize("offset", [1, 3])
def test_prefetch_keeps_numbers(offset):
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[D].prefetch(A, D.op.axis[0], offset)
    s[B].compute_inline()
    s[C].compute_inline()
    assert "prefetch" in text(s, [A, D], simple=False)
    check(s, [A], D, chain_reference)


def test_pragma_surrounds_its_loop():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[D].pragma(D.op.axis[1], "auto_unroll_max_step", 32)
    s[D].pragma(D.op.axis[0], "note", "outer")
    body = text(s, [A, D])
    assert '"pragma_auto_unroll_max_step", 32' in body
    assert '"pragma_note", "outer"' in body
    check(s, [A], D, chain_reference)


def test_pragmas_that_name_a_kind_of_loop_make_it_one():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_inline()
    rows, columns = D.op.axis
    outer, inner = s[D].split(columns, factor=4)
    s[D].pragma(inner, "vectorize")
    s[D].pragma(outer, "unroll")
    body = text(s, [A, D])
    assert "T.vectorized(4)" in body and "T.unroll(4)" in body and "pragma" not in body
    check(s, [A], D, chain_reference)


def test_scope_of_an_attached_stage_is_that_of_its_memory():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[C].set_scope("local")
    assert s[C].scope == "local"
    assert '"local"' in text(s, [A, D])
    check(s, [A], D, chain_reference)


def test_store_predicate_guards_start_values_and_updates():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    flag = te.var("flag")
    s[C].set_store_predicate(flag > 0)
    assert s[C].store_predicate is not None
    assert s[C].store_pred is not None
    func = tvm.build(s, [A, B, C, flag], target="llvm")
    a, b = np.ones((12, 14), "float32"), np.ones((14, 10), "float32")
    out = tvm.nd.array(np.full((12, 10), 77, "float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), out, 0)
    np.testing.assert_array_equal(out.numpy(), 77)
    func(tvm.nd.array(a), tvm.nd.array(b), out, 1)
    np.testing.assert_array_equal(out.numpy(), 14)


def test_one_cache_serves_several_readers():
    A = te.placeholder((10, 8), name="A")
    B = te.compute((10, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((10, 8), lambda i, j: A[9 - i, j] * B[i, j], name="C")
    s = te.create_schedule(C.op)
    cache = s.cache_read(A, "local", [B, C])
    assert list(s[B].op.input_tensors) == [cache]
    body = text(s, [A, C])
    assert body.count(" A[") == 1
    check(s, [A], C, lambda a: a[::-1] * (a + 1))


def test_cache_write_takes_all_outputs_of_an_operation():
    A = te.placeholder((9, 6), name="A")
    S, P = te.compute((9, 6), lambda i, j: (A[i, j] + 1.0, A[i, j] * 3.0), name="both")
    s = te.create_schedule(S.op)
    first, second = s.cache_write([S, P], "local")
    assert [int(t.shape[0]) for t in (first, second)] == [9, 9]
    s[first].compute_at(s[S], S.op.axis[0])
    arrays, results = run(s, [A], [S, P])
    np.testing.assert_allclose(results[0], arrays[0] + 1, rtol=1e-6)
    np.testing.assert_allclose(results[1], arrays[0] * 3, rtol=1e-6)
    with pytest.raises(ScheduleError, match="computes 2 tensors together, got 1"):
        te.create_schedule(S.op).cache_write(S, "local")


@pytest.mark.parametrize("factor_axis", [0, 1, 2, -1])
@pytest.mark.parametrize("factor", [3, 7])
def test_rfactor_puts_the_new_axis_where_it_is_told(factor, factor_axis):
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.reduce_axis[0], factor)
    partial = s.rfactor(C, inner, factor_axis)
    place = factor_axis if factor_axis >= 0 else factor_axis + 3
    assert int(partial.shape[place]) == factor
    s[partial].compute_at(s[C], C.op.axis[0])
    s[partial].parallel(partial.op.axis[0])
    check(s, [A, B], C, lambda a, b: a @ b)


def argmax_rows(n=7, m=24):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")

    def larger(x, y):
        return te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))

    argmax = te.comm_reducer(
        lambda x, y: (
            te.Select(larger(x, y), x[0], y[0]),
            te.Select(larger(x, y), x[1], y[1]),
        ),
        lambda i, v: (te.const(2**30, i), te.min_value(v)),
        name="argmax",
    )
    I, V = te.compute((n,), lambda i: argmax((k.var, A[i, k]), axis=k), name="argmax")
    return A, I, V


@pytest.mark.parametrize("how", ["plain", "split", "rfactor", "rfactor_vectorized", "cached"])
def test_argmax_by_a_tuple_reduction(how):
    A, I, V = argmax_rows()
    s = te.create_schedule(I.op)
    (i,), (k,) = I.op.axis, I.op.reduce_axis
    if how == "split":
        io, ii = s[I].split(i, 4)
        ko, ki = s[I].split(k, 5)
        s[I].reorder(io, ko, ii, ki)
        s[I].parallel(io)
    elif how.startswith("rfactor"):
        _, inner = s[I].split(k, 8)
        index, value = s.rfactor(I, inner)
        assert [int(e) for e in index.shape] == [8, 7]
        if how == "rfactor_vectorized":
            s[index].reorder(index.op.axis[1], index.op.reduce_axis[0], index.op.axis[0])
            s[index].vectorize(index.op.axis[0])
        else:
            s[index].compute_at(s[I], I.op.axis[0])
    elif how == "cached":
        index, value = s.cache_write([I, V], "local")
        s[index].compute_at(s[I], I.op.axis[0])
    (a,), (index, value) = run(s, [A], [I, V])
    np.testing.assert_array_equal(index, a.argmax(axis=1))
    np.testing.assert_array_equal(value, a.max(axis=1))


def test_inlined_chain_leaves_one_loop_nest():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    te.AutoInlineInjective(s)
    body = text(s, [A, D])
    assert body.count("for ") == 2
    assert "realize" not in body
    check(s, [A], D, chain_reference)


@pytest.mark.parametrize("factors", [(4, 5), (5, 3), (32, 1)])
def test_tile_with_and_without_rest(factors):
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    xo, yo, xi, yi = s[C].tile(*C.op.axis, *factors)
    assert [v.var.name for v in s[C].leaf_iter_vars] == [
        "i.outer",
        "j.outer",
        "i.inner",
        "j.inner",
        "k",
    ]
    check(s, [A, B], C, lambda a, b: a @ b)


def test_compute_root_takes_an_attachment_back():
    A, B, C, D = chain()
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    assert s[C].attach_type == 4
    assert s[C].attach_stage.same_as(s[D])
    assert s[C].attach_ivar.same_as(D.op.axis[0])
    s[C].compute_root()
    assert s[C].attach_type == 1
    assert s[C].attach_ivar is None
    check(s, [A], D, chain_reference)


@pytest.mark.parametrize(
    ("primitive", "message"),
    [
        (lambda s, C, i, j, k: (s.bind(i, tx()), s.bind(i, tx())), "i is bound to threadIdx.x"),
        (
            lambda s, C, i, j, k: (s.bind(i, tx()), s.vectorize(i)),
            r"vectorize\(C, i\): the loop is bound to threadIdx.x",
        ),
        (
            lambda s, C, i, j, k: (s.parallel(i), s.bind(i, tx())),
            r"bind\(C, i\): the loop is Parallelized",
        ),
        (lambda s, C, i, j, k: s.vectorize(k), r"vectorize\(C, k\): a reduction loop carries"),
        (lambda s, C, i, j, k: s.parallel(k), r"parallel\(C, k\): a reduction loop carries"),
        (lambda s, C, i, j, k: s.fuse(i, k), r"fuse\(C, .*neighbours"),
        (lambda s, C, i, j, k: (s.split(i, 2), s.split(i, 2)), "i was already split or fused"),
        (lambda s, C, i, j, k: s.split(i, 0), "factor must be >= 1"),
        (lambda s, C, i, j, k: s.reorder(i, i), r"reorder\(C\): i is named twice"),
        (lambda s, C, i, j, k: s.storage_align(k, 2, 0), "expected a spatial axis"),
        (lambda s, C, i, j, k: s.compute_inline(), "an output has to be stored"),
        (lambda s, C, i, j, k: s.tensorize(i, None), r"tensorize\(C, i\): the intrinsic is None"),
        (lambda s, C, i, j, k: s.set_scope("shared"), r"set_scope\(C\): an output"),
    ],
)
def test_misuse_is_a_schedule_error_with_names(primitive, message):
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    with pytest.raises(ScheduleError, match=message):
        primitive(s[C], C, *C.op.axis, *C.op.reduce_axis)


def tx():
    return te.thread_axis("threadIdx.x")


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("store_at", "use compute_at"),
        ("cache_read", "Schedule.cache_read"),
        ("cache_write", "Schedule.cache_write"),
        ("leaf_var_map", "leaf_iter_vars"),
        ("compute_pred", "tvm.lower"),
        ("schedule", "keep the Schedule"),
        ("is_specialized", "te.if_then_else"),
    ],
)
def test_foreign_names_say_the_way_out(name, way_out):
    A, B, C = matmul()
    with pytest.raises(AttributeError, match=f"Stage has no {name}: .*{way_out}"):
        getattr(te.create_schedule(C.op)[C], name)


def test_attributes_of_a_stage_print():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 4)
    for stage in s.stages:
        assert stage.op.name in "ABC"
        assert stage.is_output == (stage.op.name == "C")
        assert str(stage)
        for loop in stage.leaf_iter_vars:
            assert loop.var.name
            assert loop.iter_type in (0, 2)
            assert loop.thread_tag == ""
            assert (loop.dom is None) == (loop.var.name.startswith("i."))
    assert len(s[C].all_iter_vars) == 5
    with pytest.raises(AttributeError, match="for_type.*iter_type"):
        C.op.axis[0].for_type  # noqa: B018


def test_a_split_that_divides_on_the_callers_word_is_not_guarded():
    n = te.size_var("n")
    A = te.placeholder((n * 4,), name="A")
    B = te.compute((n * 4,), lambda i: A[i] + 1.0, name="B")
    nests = []
    for disabled in (False, True):
        s = te.create_schedule(B.op)
        factor = 4 * tvm.tir.vscale()
        s[B].split(B.op.axis[0], factor=factor, disable_predication=disabled)
        nests.append(str(tvm.lower(s, [A, B])["main"]).count("for i_outer"))
    # Lowering makes a nest of its own of the trips that a guard is for.
    assert nests == [2, 1]
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], nparts=n, disable_predication=True)
    s[B].vectorize(inner)
    b = tvm.nd.empty((12,))
    tvm.build(s, [A, B, n], "llvm")(tvm.nd.array(np.arange(12, dtype="float32")), b, 3)
    np.testing.assert_array_equal(b.numpy(), np.arange(1, 13))
