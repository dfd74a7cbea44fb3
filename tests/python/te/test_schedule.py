"""Primitives: what they record, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def matmul(n=16, m=12, k=8):
    A = te.placeholder((n, k), name="A")
    B = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((n, m), lambda i, j: te.max(C[i, j], 0.0), name="D")
    return A, B, C, D


def loops(stage):
    return [str(iv.var.name_hint) for iv in stage.leaf_iter_vars]


def test_tensor_and_operation_find_the_same_stage():
    _, _, C, D = matmul()
    s = te.create_schedule(D.op)
    assert s[C].same_as(s[C.op])
    assert [str(stage.op.name) for stage in s.stages] == ["A", "B", "C", "D"]


def test_split_leaves_axes_and_changes_loops():
    _, _, _, D = matmul()
    s = te.create_schedule(D.op)
    i, j = D.op.axis
    s[D].split(i, factor=4)
    assert loops(s[D]) == ["i.outer", "i.inner", "j"]
    assert list(s[D].op.axis) == [i, j]
    assert s[D].relations[0].factor.value == 4


def test_fuse_joins_any_number_of_loops():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    io, ii = s[C].split(i, 4)
    fused = s[C].fuse(io, ii, j)
    assert loops(s[C]) == ["i.outer.i.inner.fused.j.fused", "k"]
    assert s[C].leaf_iter_vars[0] == fused


def test_fuse_of_nothing_gives_a_loop_of_one_trip():
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].fuse()
    assert loops(s[B]) == ["singleton", "k"]


def test_reorder_permutes_the_named_loops_in_their_places():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    s[C].reorder(k, i)
    assert loops(s[C]) == ["k", "j", "i"]


def test_tile_orders_outer_before_inner():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    s[C].tile(*C.op.axis, 4, 3)
    assert loops(s[C]) == ["i.outer", "j.outer", "i.inner", "j.inner", "k"]


def test_cache_write_moves_the_computation_to_a_stage_before():
    _, _, C, D = matmul()
    s = te.create_schedule(D.op)
    CC = s.cache_write(C, "local")
    assert [str(stage.op.name) for stage in s.stages] == ["A", "B", "C.local", "C", "D"]
    assert s[CC].scope == "local"
    assert list(s[CC].op.reduce_axis) == list(C.op.reduce_axis)
    assert len(s[C].op.reduce_axis) == 0
    assert [t.op.name for t in s[C].op.input_tensors] == ["C.local"]


def test_cache_write_after_reorder_changes_the_layout():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    s[C].reorder(j, i)
    CC = s.cache_write(C, "global")
    assert [int(n) for n in CC.shape] == [12, 16]


def test_cache_read_is_read_by_the_named_readers_only():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    AA = s.cache_read(A, "shared", [B])
    assert [str(stage.op.name) for stage in s.stages] == ["A", "A.shared", "B", "C"]
    assert s[B].op.input_tensors[0] == AA
    assert s[C].op.input_tensors[0] == A


def test_cache_read_in_another_order_changes_the_layout_of_the_copy():
    A = te.placeholder((3, 5, 7), name="A")
    k = te.reduce_axis((0, 5), name="k")
    B = te.compute((3, 7), lambda i, j: te.sum(A[i, k, j], axis=k), name="B")
    C = te.compute((3, 7), lambda i, j: te.max(A[i, k, j], axis=k), name="C")
    D = te.compute((3, 7), lambda i, j: B[i, j] + C[i, j] + A[i, 1, j], name="D")
    s = te.create_schedule(D.op)
    AA = s.cache_read(A, "global", [B, C, D], order=[1, 2, 0])
    assert [int(n) for n in AA.shape] == [5, 7, 3]
    assert [s[t].op.input_tensors[0] for t in (B, C)] == [AA, AA]
    a = np.random.default_rng(0).random((3, 5, 7)).astype("float32")
    out = tvm.nd.array(np.zeros((3, 7), "float32"))
    tvm.build(s, [A, D], "llvm")(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), a.sum(1) + a.max(1) + a[:, 1], rtol=1e-5)


@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2], [0, 1, 2]])
def test_cache_read_refuses_an_order_that_is_none(order):
    A = te.placeholder((8, 4), name="A")
    B = te.compute((8, 4), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    with pytest.raises(ScheduleError, match="must name each of the 2 dimensions once"):
        s.cache_read(A, "global", [B], order=order)


def test_rfactor_makes_the_loop_a_spatial_axis():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=4)
    CR = s.rfactor(C, ki, factor_axis=-1)
    assert [int(n) for n in CR.shape] == [16, 12, 4]
    assert [str(axis.var.name_hint) for axis in CR.op.reduce_axis] == ["k.outer"]
    assert loops(s[C]) == ["i", "j", "k.inner.v"]


def test_copy_is_independent_of_the_original():
    _, _, C, D = matmul()
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    twin = s.copy()
    twin[D].split(D.op.axis[1], 4)
    assert loops(s[D]) == ["i", "j"]
    assert twin[C].attach_stage.same_as(twin[D])


def test_normalize_inlines_and_keeps_the_original():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    n = s.normalize()
    assert [t.op.name for t in n[C].op.input_tensors] == ["A"]
    assert [t.op.name for t in s[C].op.input_tensors] == ["B"]


def test_feature_extraction_reads_an_inlined_constant_matrix_as_one():
    A = te.placeholder((4,), name="A")
    M = te.compute(
        (4,), lambda i: te.if_then_else(i < 2, 0.5, -0.5), name="M", attrs={"const_matrix": True}
    )
    C = te.compute((4,), lambda i: A[i] * M[i], name="C")
    s = te.create_schedule(C.op)
    s[M].compute_inline()
    n = s.normalize_for_feature_extraction()
    assert str(n[C].op.body[0]) == "A[i] * T.float32(1.0)"


def refuse(primitive, message):
    A, B, C, D = matmul()
    s = te.create_schedule(D.op)
    with pytest.raises(ScheduleError, match=message):
        primitive(s, A, B, C, D)


def split_twice(s, A, B, C, D):
    s[C].split(C.op.axis[0], 4)
    s[C].split(C.op.axis[0], 2)


@pytest.mark.parametrize(
    ("primitive", "message"),
    [
        (
            split_twice,
            r"split\(C, i\): i was already split or fused. .*: \[i.outer, i.inner, j, k\]",
        ),
        (
            lambda s, A, B, C, D: s[C].split(C.op.axis[0], 0),
            r"split\(C, i\): factor must be >= 1, got 0. .*: \[i, j, k\]",
        ),
        (
            lambda s, A, B, C, D: s[C].split(D.op.axis[0], 2),
            r"split\(C, i\): i is not a loop of this stage. .*: \[i, j, k\]",
        ),
        (
            lambda s, A, B, C, D: s[C].fuse(C.op.axis[0], C.op.reduce_axis[0]),
            r"fuse\(C, \[i, k\]\): the loops must be direct neighbours.*\[i, j, k\]",
        ),
        (
            lambda s, A, B, C, D: s[C].reorder(C.op.axis[0], C.op.axis[0]),
            r"reorder\(C\): i is named twice",
        ),
        (
            lambda s, A, B, C, D: s[C].vectorize(C.op.reduce_axis[0]),
            r"vectorize\(C, k\): a reduction loop carries",
        ),
        (
            lambda s, A, B, C, D: s[C].parallel(C.op.reduce_axis[0]),
            r"parallel\(C, k\): a reduction loop carries",
        ),
        (
            lambda s, A, B, C, D: s[D].compute_at(s[C], C.op.axis[0]),
            r"compute_at\(D\): an output is computed at the root",
        ),
        (
            lambda s, A, B, C, D: s[A].compute_at(s[C], C.op.axis[0]),
            r"compute_at\(A\): a placeholder is not computed",
        ),
        (
            lambda s, A, B, C, D: s[C].compute_inline(),
            r"compute_inline\(C\): only an operation without reduction axes",
        ),
        (lambda s, A, B, C, D: s[D].compute_inline(), "an output has to be stored"),
        (
            lambda s, A, B, C, D: s.cache_read(A, "local", [D]),
            r"cache_read\(A\): D does not read this tensor",
        ),
        (
            lambda s, A, B, C, D: s.cache_write(A, "local"),
            r"cache_write\(A\): expected a stage made",
        ),
        (
            lambda s, A, B, C, D: s.rfactor(C, C.op.axis[0]),
            r"rfactor\(C, i\): expected a reduction loop",
        ),
        (
            lambda s, A, B, C, D: s[C].bind(C.op.axis[0], D.op.axis[0]),
            "expected a thread axis",
        ),
        (
            lambda s, A, B, C, D: s[C].storage_align(C.op.reduce_axis[0], 8, 0),
            r"storage_align\(C, k\): expected a spatial axis .* \[i, j, k\]",
        ),
    ],
)
def test_illegal_primitive_is_refused(primitive, message):
    refuse(primitive, message)


def test_refused_primitive_leaves_the_stage_as_it_was():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    with pytest.raises(ScheduleError):
        s[C].fuse(i, j, i)
    assert loops(s[C]) == ["i", "j", "k"]


@pytest.mark.parametrize("mark", ["vectorize", "parallel", "unroll"])
def test_a_marked_loop_is_neither_split_nor_fused(mark):
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    getattr(s[C], mark)(j)
    with pytest.raises(ScheduleError, match="split.C, j.: the loop is marked already"):
        s[C].split(j, factor=2)
    with pytest.raises(ScheduleError, match="fuse.C, j.: the loop is marked already"):
        s[C].fuse(i, j)
    assert loops(s[C]) == ["i", "j", "k"]


def test_split_needs_exactly_one_size():
    _, _, C, _ = matmul()
    s = te.create_schedule(C.op)
    with pytest.raises(ValueError, match="exactly one of factor and nparts"):
        s[C].split(C.op.axis[0])


def test_unknown_operation_is_a_key_error_that_lists_the_stages():
    _, _, _, D = matmul()
    s = te.create_schedule(D.op)
    with pytest.raises(KeyError, match="X is not an operation of this schedule; it has A, B, C, D"):
        s[te.placeholder((4,), name="X")]


def test_names_of_other_versions_say_where_to_look():
    _, _, _, D = matmul()
    s = te.create_schedule(D.op)
    with pytest.raises(AttributeError, match="use compute_at"):
        _ = s[D].store_at
    with pytest.raises(AttributeError, match=r"Schedule.cache_read"):
        _ = s[D].cache_read


def test_attach_point_that_was_split_is_refused_by_bound_inference():
    _, _, C, D = matmul()
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[D].split(D.op.axis[0], 4)
    with pytest.raises(ScheduleError, match=r"compute_at\(C\): loop i of stage D was split"):
        te.InferBound(s.normalize())


def test_reader_outside_of_the_attach_loop_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    D = te.compute((8,), lambda i: B[i] + C[i], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ScheduleError, match="stage D reads it outside of that loop"):
        te.InferBound(s.normalize())


def test_auto_inline_levels_take_more_and_more_stages():
    def inlined(level):
        A = te.placeholder((4, 8), name="A")
        b = te.placeholder((8,), name="b")
        E = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="E")
        F = te.compute((4, 8), lambda i, j: E[i, j] + b[j], name="F")
        G = te.compute((8, 4), lambda i, j: F[j, i], name="G")
        H = te.compute((8, 4), lambda i, j: G[i, j] * 2.0, name="H")
        s = te.create_schedule(H.op)
        level(s)
        return [str(stage.op.name) for stage in s.stages if stage.attach_type == 2]

    assert inlined(te.AutoInlineElemWise) == ["E"]
    assert inlined(te.AutoInlineBroadcast) == ["E", "F"]
    assert inlined(te.AutoInlineInjective) == ["E", "F", "G"]
