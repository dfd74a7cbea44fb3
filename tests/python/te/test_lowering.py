"""Texts of lowered loop nests, arguments, and the pass list."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def matmul(n=128, m=96, l=64):
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def text(sch, args):
    """Body of the unlowered function, without its signature."""
    func = tvm.driver.schedule_to_module(sch, args)["main"]
    return "\n".join("    " + line for line in str(func.body).rstrip().splitlines())


def expect(sch, args, golden):
    wanted = [line for line in golden.splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in wanted)
    assert text(sch, args) == "\n".join("    " + line[indent:] for line in wanted)


def test_unscheduled_reduction_initialises_inside_the_spatial_loops():
    A, B, C = matmul()
    expect(
        te.create_schedule(C.op),
        [A, B, C],
        """
        for i in range(128):
            for j in range(96):
                C[i, j] = T.float32(0.0)
                for k in range(64):
                    C[i, j] = C[i, j] + A[i, k] * B[k, j]
        """,
    )


def test_register_tile_is_initialised_by_loops_of_the_same_kinds():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    io, ii = s[C].split(i, 4)
    jo, ji = s[C].split(j, 8)
    ko, ki = s[C].split(k, 16)
    s[C].reorder(io, jo, ko, ki, ii, ji)
    s[C].parallel(s[C].fuse(io, jo))
    s[C].unroll(ii)
    s[C].vectorize(ji)
    expect(
        s,
        [A, B, C],
        """
        for i.outer.j.outer.fused in T.parallel(384):
            for i.inner.init in T.unroll(4):
                for j.inner.init in T.vectorized(8):
                    C[i.outer.j.outer.fused // 12 * 4 + i.inner.init, i.outer.j.outer.fused % 12 * 8 + j.inner.init] = T.float32(0.0)
            for k.outer in range(4):
                for k.inner in range(16):
                    for i.inner in T.unroll(4):
                        for j.inner in T.vectorized(8):
                            C[i.outer.j.outer.fused // 12 * 4 + i.inner, i.outer.j.outer.fused % 12 * 8 + j.inner] = C[i.outer.j.outer.fused // 12 * 4 + i.inner, i.outer.j.outer.fused % 12 * 8 + j.inner] + A[i.outer.j.outer.fused // 12 * 4 + i.inner, k.outer * 16 + k.inner] * B[k.outer * 16 + k.inner, i.outer.j.outer.fused % 12 * 8 + j.inner]
        """,  # noqa: E501
    )


def test_init_covers_spatial_loops_between_reduction_loops():
    A, B, C = matmul(8, 8, 8)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    ko, ki = s[C].split(k, 4)
    s[C].reorder(ko, i, ki, j)
    expect(
        s,
        [A, B, C],
        """
        for i.init in range(8):
            for j.init in range(8):
                C[i.init, j.init] = T.float32(0.0)
        for k.outer in range(2):
            for i in range(8):
                for k.inner in range(4):
                    for j in range(8):
                        C[i, j] = C[i, j] + A[i, k.outer * 4 + k.inner] * B[k.outer * 4 + k.inner, j]
        """,  # noqa: E501
    )


@pytest.mark.parametrize("make", [lambda n: n, lambda n: 2 * n, lambda n: n + 1])
def test_tiles_of_an_open_extent_are_of_constant_length(make):
    n = te.size_var("n")
    a = te.placeholder((make(n),), name="A")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    _, tile = s[b].split(b.op.axis[0], factor=6)
    s[b].unroll(tile)
    kernel = tvm.build(s, [a, b, n], "llvm")
    for size in (1, 2, 3, 10):
        data = np.arange(make(size), dtype="float32")
        out = tvm.nd.array(np.zeros_like(data))
        kernel(tvm.nd.array(data), out, size)
        np.testing.assert_array_equal(out.numpy(), data + 1)


def test_inexact_split_is_guarded_and_exact_one_is_not():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    expect(
        s,
        [A, B],
        """
        for i.outer in range(3):
            for i.inner in range(4):
                if T.likely(i.outer * 4 + i.inner < 10):
                    B[i.outer * 4 + i.inner] = A[i.outer * 4 + i.inner] + T.float32(1.0)
        """,
    )
    for how in ({"factor": 2}, {"nparts": 5}):
        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0], **how)
        expect(
            s,
            [A, B],
            """
            for i.outer in range(5):
                for i.inner in range(2):
                    B[i.outer * 2 + i.inner] = A[i.outer * 2 + i.inner] + T.float32(1.0)
            """,
        )


def test_attached_producer_computes_the_region_of_one_trip():
    A = te.placeholder((18,), name="A")
    B = te.compute((18,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((16,), lambda i: B[i] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[B].compute_at(s[C], outer)
    s[B].set_scope("local")
    expect(
        s,
        [A, C],
        """
        for i.outer in range(4):
            T.realize(B[i.outer * 4:i.outer * 4 + 6], "local")
            for i in range(6):
                B[i + i.outer * 4] = A[i + i.outer * 4] * T.float32(2.0)
            for i.inner in range(4):
                C[i.outer * 4 + i.inner] = B[i.outer * 4 + i.inner] + B[i.outer * 4 + i.inner + 2]
        """,
    )


def test_loops_of_one_trip_vanish_but_keep_their_pragma():
    A = te.placeholder((1, 8), name="A")
    B = te.compute((1, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "auto_unroll_max_step", 16)
    expect(
        s,
        [A, B],
        """
        T.attr(T.iter_var(i, None, "DataPar", ""), "pragma_auto_unroll_max_step", 16)
        for j in range(8):
            B[0, j] = A[0, j] + T.float32(1.0)
        """,
    )


def test_inlined_stage_has_no_buffer():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    expect(
        s,
        [A, C],
        """
        for i in range(8):
            C[i] = (A[i] + T.float32(1.0)) * T.float32(2.0)
        """,
    )


def test_joint_reduction_computes_all_values_before_it_stores_one():
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    both = te.comm_reducer(
        lambda x, y: (x[0] + y[0], x[1] * y[1]),
        lambda a, b: (tvm.tir.const(0, a), tvm.tir.const(1, b)),
        name="both",
    )
    S, P = te.compute((4,), lambda i: both((A[i, k], A[i, k]), axis=k), name="R")
    s = te.create_schedule(S.op)
    expect(
        s,
        [A, S, P],
        """
        for i in range(4):
            R.v0[i] = T.float32(0.0)
            R.v1[i] = T.float32(1.0)
            for k in range(8):
                R.v0.new: T.float32 = R.v0[i] + A[i, k]
                R.v1.new: T.float32 = R.v1[i] * A[i, k]
                R.v0[i] = R.v0.new
                R.v1[i] = R.v1.new
        """,
    )


def test_thread_bound_loops_become_launch_attributes():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 16)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    body = text(s, [A, B])
    assert '"thread_extent", 4' in body
    assert '"thread_extent", 16' in body
    assert "blockIdx.x * 16 + threadIdx.x" in body


def test_loop_bound_to_a_thread_of_other_extent_is_refused():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis((0, 32), "threadIdx.x"))
    with pytest.raises(ScheduleError, match="of extent 64 is bound to threadIdx.x, .* extent 32"):
        tvm.driver.schedule_to_module(s, [A, B])


def test_lower_names_the_function():
    A, B, C = matmul()
    mod = tvm.lower(te.create_schedule(C.op), [A, B, C], name="mm")
    assert mod["mm"].attrs["global_symbol"] == "mm"


def test_buffers_have_their_axes_before_the_passes():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    assert "C[i, j]" in str(tvm.driver.form_irmodule(s, [A, B, C]))
    assert "C[i, j]" not in str(tvm.lower(s, [A, B, C]))


def test_user_pass_of_phase_zero_sees_multidimensional_buffers():
    A, B, C = matmul()
    seen = []

    @tvm.transform.module_pass(opt_level=0)
    def look(mod, ctx):
        seen.append(str(mod))
        return mod

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [[0, look]]}):
        tvm.lower(te.create_schedule(C.op), [A, B, C])
    assert len(seen) == 1
    assert "C[i, j]" in seen[0]


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        (None, ValueError, "args are required for a schedule"),
        (lambda A, B, C: [A, C], ValueError, "tensor B is used but neither computed nor an arg"),
        (lambda A, B, C: [A, A, B, C], ValueError, "tensor A is an argument twice"),
        (lambda A, B, C: [A, B, C, C.op], TypeError, "tensors, buffers and variables, got te.Comp"),
    ],
)
def test_wrong_arguments_are_refused(args, error, message):
    A, B, C = matmul()
    with pytest.raises(error, match=message):
        tvm.lower(te.create_schedule(C.op), args and args(A, B, C))


def windows(step, count=7):
    """C, which reads two neighbours of B in each trip; the trips are `step` apart."""
    A = te.placeholder((16,), name="A")
    r = te.reduce_axis((0, 2), name="r")
    k = te.reduce_axis((0, 1), name="k")
    B = te.compute((16,), lambda i: te.sum(A[i + k] * 2.0, axis=k), name="B")
    C = te.compute((count,), lambda i: te.sum(B[i * step + r], axis=r), name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    return s, (A, B, C)


@pytest.mark.parametrize(("step", "count"), [(1, 15), (2, 8)])
def test_an_argument_may_be_computed_piece_by_piece(step, count):
    s, (A, B, C) = windows(step, count)
    function = tvm.build(s, [A, B, C], "llvm")
    a = np.random.default_rng(0).random(16, "float32")
    b, c = tvm.nd.empty((16,)), tvm.nd.empty((count,))
    function(tvm.nd.array(a), b, c)
    np.testing.assert_array_equal(b.numpy(), a * 2)
    starts = np.arange(count) * step
    np.testing.assert_allclose(c.numpy(), 2 * (a[starts] + a[starts + 1]), rtol=1e-6)


def test_an_argument_of_unknown_extent_may_be_computed_piece_by_piece():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    function = tvm.build(s, [A, B, C], "llvm")
    a, b, c = np.arange(10, dtype="float32"), tvm.nd.empty((10,)), tvm.nd.empty((10,))
    function(tvm.nd.array(a), b, c)
    np.testing.assert_array_equal(b.numpy(), a + 1)
    np.testing.assert_array_equal(c.numpy(), 2 * (a + 1))


@pytest.mark.parametrize(("step", "count"), [(2, 7), (3, 5)])
def test_an_argument_of_which_parts_are_never_computed_is_refused(step, count):
    s, args = windows(step, count)
    with pytest.raises(ValueError, match="argument B: .* leaves elements out"):
        tvm.lower(s, args)


def test_an_argument_that_parallel_trips_compute_twice_is_refused():
    s, args = windows(1, 15)
    s[args[2]].parallel(args[2].op.axis[0])
    with pytest.raises(ValueError, match="two trips that run at the same time"):
        tvm.lower(s, args)


def test_lower_refuses_other_things():
    with pytest.raises(TypeError, match="expected a Schedule, a PrimFunc or an IRModule, got int"):
        tvm.lower(3)


def test_get_binds_makes_one_buffer_per_tensor_with_free_strides():
    A = te.placeholder((4, 8), name="A")
    binds, args = tvm.driver.get_binds([A, A])
    assert args[0].same_as(args[1])
    assert [str(s.name_hint) for s in binds[A].strides] == ["A.stride0", "A.stride1"]
    _, compact = tvm.driver.get_binds([A], compact=True)
    assert len(compact[0].strides) == 0


@pytest.mark.parametrize("promised", [True, False])
def test_the_noalias_option_decides_the_attribute_of_a_lowered_function(promised):
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with tvm.transform.PassContext(config={"tir.noalias": promised}):
        mod = tvm.lower(te.create_schedule(B.op), [A, B])
    assert bool(mod["main"].attrs["tir.noalias"]) is promised


def test_threads_past_the_end_of_fused_loops_of_one_trip_are_guarded():
    A = te.placeholder((1, 1), name="A")
    M = te.compute((1,), lambda i: A[i, 0] + 1.0, name="M")
    B = te.compute((1, 1), lambda i, j: A[i, j] - M[i], name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(s[B].fuse(*B.op.axis), 4)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(inner, te.thread_axis((0, 4), "threadIdx.x"))
    s[M].compute_at(s[B], inner)
    s[M].set_scope("local")
    body = str(tvm.lower(s, [A, B], simple_mode=True))
    assert "if T.likely(threadIdx_x < 1):" in body
    assert "M[0]" in body
    assert "M[threadIdx_x" not in body


def test_a_constant_factor_of_an_unknown_extent_stays_constant():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].parallel(outer)
    s[B].vectorize(inner)
    assert "A[T.Ramp(i_outer * 4, 1, 4)]" in str(tvm.lower(s, [A, B]))
    function = tvm.build(s, [A, B], "llvm")
    # Shorter than the factor, a multiple of it, and neither.
    for size in (1, 3, 8, 13):
        a, b = np.arange(size, dtype="float32"), tvm.nd.empty((size,))
        function(tvm.nd.array(a), b)
        np.testing.assert_array_equal(b.numpy(), a + 1)


def test_a_reduction_of_unknown_length_runs_across_a_fixed_number_of_threads():
    height, width = te.var("height"), te.var("width")
    A = te.placeholder((height, width), name="A")
    along = te.reduce_axis((0, width), "along")
    B = te.compute((height,), lambda row: te.sum(A[row, along], axis=along), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.reduce_axis[0], factor=16)
    partial = s.rfactor(B, inner)
    row, lane = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(row, te.thread_axis("blockIdx.x"))
    s[B].bind(lane, te.thread_axis("threadIdx.y"))
    thread = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], thread)
    s[partial].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(thread.var.equal(0))
    total = tvm.build(s, [A, B], tvm.target.emulated("cuda"))
    for rows, columns in ((40, 99), (3, 5)):
        a = np.random.default_rng(0).random((rows, columns), "float32")
        b = tvm.nd.empty((rows,))
        total(tvm.nd.array(a), b)
        np.testing.assert_allclose(b.numpy(), a.sum(axis=1), rtol=1e-5)
