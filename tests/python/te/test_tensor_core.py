"""Stages with the pragma tensor_core: right on the emulated GPU, accepted by NVIDIA's compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import te, tir
from tvm.error import ScheduleError

SUM_OF = {"float16": "float32", "int8": "int32", "uint8": "int32"}


def product(n, m, l, ta=False, tb=False, dtype="float16", acc=None):
    """C (n, m), the product of A (n, l) and B (l, m) or their transposes."""
    acc = acc or SUM_OF[dtype]
    A = te.placeholder((l, n) if ta else (n, l), name="A", dtype=dtype)
    B = te.placeholder((m, l) if tb else (l, m), name="B", dtype=dtype)
    k = te.reduce_axis((0, l), name="k")

    def term(i, j):
        a = A[k, i] if ta else A[i, k]
        b = B[j, k] if tb else B[k, j]
        return te.sum(a.astype(acc) * b.astype(acc), axis=k)

    return A, B, te.compute((n, m), term, name="C")


def copy_by_threads(s, stage, threads, vector=4):
    """All threads of a block, an (x, y, z) grid, copy a tile in turns."""
    fused = s[stage].fuse(*s[stage].op.axis)
    fused, lane = s[stage].split(fused, factor=vector)
    for extent, tag in zip(threads, "xyz"):
        fused, thread = s[stage].split(fused, factor=extent)
        s[stage].bind(thread, te.thread_axis(f"threadIdx.{tag}"))
    s[stage].vectorize(lane)


def by_threads(
    A,
    B,
    C,
    thread=(1, 8),
    grid=(32, 2, 1),
    steps=16,
    chunks=1,
    memory="shared",
    pragma="tensor_core",
    align=8,
    vthread=1,
):
    """Each of (y, x, z) threads adds up `thread` elements of a row of tiles, `steps` at a time.

    This is how TVM's own schedules for the rewrite are written.
    """
    ty_extent, tx_extent, tz_extent = grid
    s = te.create_schedule(C.op)
    tiles = [s.cache_read(t, "shared", [C]) if memory == "shared" else t for t in (A, B)]
    locals_ = [s.cache_read(t, "local", [C]) for t in tiles]
    CL = s.cache_write(C, "local")
    y, x = s[C].op.axis
    by, ty = s[C].split(y, ty_extent * thread[0])
    ty, yi = s[C].split(ty, thread[0])
    bx, xi = s[C].split(x, tz_extent * tx_extent * thread[1] * vthread)
    vx, xi = s[C].split(xi, nparts=vthread)
    tz, xi = s[C].split(xi, tx_extent * thread[1])
    tx, xi = s[C].split(xi, thread[1])
    s[C].reorder(by, bx, vx, tz, ty, tx, yi, xi)
    axes = {by: "blockIdx.y", bx: "blockIdx.x", ty: "threadIdx.y", tz: "threadIdx.z"}
    for loop, tag in {**axes, tx: "threadIdx.x"}.items():
        s[C].bind(loop, te.thread_axis(tag))
    if vthread != 1:
        s[C].bind(vx, te.thread_axis("vthread"))
    s[CL].compute_at(s[C], tx)
    i, j = s[CL].op.axis
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], steps * chunks)
    kl, ki = s[CL].split(ki, steps)
    s[CL].reorder(ko, kl, ki, i, j)
    s[CL].pragma(ko, pragma)
    for tile, local in zip(tiles, locals_):
        s[local].compute_at(s[CL], kl)
        if memory != "shared":
            continue
        s[tile].compute_at(s[CL], ko)
        s[tile].storage_align(s[tile].op.axis[0], 2 * align, align)
        copy_by_threads(s, tile, (tx_extent, ty_extent, tz_extent))
    return s


def numbers(args: list[Any], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [tuple(int(n) for n in t.shape) for t in args]
    if "int" in args[0].dtype:
        low = 0 if args[0].dtype == "uint8" else -9
        return [rng.integers(low, 9, x).astype(args[0].dtype) for x in shapes]
    return [rng.standard_normal(x).astype(args[0].dtype) for x in shapes]


def run(s: te.Schedule, args: list[Any]) -> tuple[list[np.ndarray], np.ndarray]:
    """The inputs, all but the last of `args`, and the result on the emulated GPU."""
    func = tvm.build(s, args, target=tvm.target.emulated("cuda", check_races=True))
    inputs = numbers(args[:-1])
    out = tvm.nd.empty([int(n) for n in args[-1].shape], args[-1].dtype)
    func(*[tvm.nd.array(x) for x in inputs], out)
    return inputs, out.numpy()


def check(args: tuple[Any, Any, Any], s: te.Schedule, ta: bool = False, tb: bool = False) -> None:
    assert "tvm_mma_sync" in str(tvm.lower(s, list(args)))
    (a, b), out = run(s, list(args))
    wide = np.int32 if "int" in a.dtype.name else np.float32
    a, b = a.astype(wide), b.astype(wide)
    expected = (a.T if ta else a) @ (b.T if tb else b)
    # Half precision sums carry 11 bits, float32 sums of exact products 24.
    tolerance = 2e-2 if out.dtype == np.float16 else 1e-4
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


def cuda_source(s: te.Schedule, args: list[Any]) -> str:
    pytest.importorskip("cuda.bindings.nvrtc")
    target = tvm.target.Target("cuda -arch=sm_80")
    return tvm.build(s, args, target=target).imported_modules[0].get_source()


def rewrite(s: te.Schedule, binds: Any = None) -> tir.Stmt:
    s = s.normalize()
    stmt = te.ScheduleOps(s, te.InferBound(s))
    return te.SchedulePostProcRewriteForTensorCore(stmt, s, binds)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_operands_may_be_transposed(ta, tb):
    args = product(64, 48, 32, ta, tb)
    s = by_threads(*args)
    check(args, s, ta, tb)
    source = cuda_source(s, list(args))
    for matrix, turned in (("a", ta), ("b", tb)):
        layout = "col_major" if turned else "row_major"
        assert f"wmma::matrix_{matrix}, 16, 16, 16, half, nvcuda::wmma::{layout}>" in source
    assert "nvcuda::wmma::mma_sync(" in source
    assert "nvcuda::wmma::store_matrix_sync(" in source


@pytest.mark.parametrize(
    ("thread", "grid", "shape"),
    [
        ((1, 8), (32, 2, 1), (16, 16)),
        ((1, 8), (32, 1, 2), (32, 8)),
        ((1, 8), (16, 4, 1), (8, 32)),
        ((2, 4), (8, 4, 2), (16, 16)),
        ((8, 1), (2, 32, 1), (8, 32)),
        # A warp with four fragments, and with fragments below each other.
        ((4, 8), (8, 4, 1), (16, 16)),
        ((4, 16), (16, 2, 1), (16, 16)),
    ],
)
def test_what_a_warp_computes_decides_on_the_fragments(thread, grid, shape):
    args = product(64, 64, 32)
    s = by_threads(*args, thread=thread, grid=grid)
    check(args, s)
    m, n = shape
    assert f"wmma::matrix_a, {m}, {n}, 16, half" in cuda_source(s, list(args))


@pytest.mark.parametrize(("steps", "chunks"), [(16, 2), (32, 1), (32, 2)])
def test_several_steps_from_one_shared_tile(steps, chunks):
    args = product(32, 32, 128)
    check(args, by_threads(*args, steps=steps, chunks=chunks))


@pytest.mark.parametrize(
    ("dtype", "acc", "align"),
    [("float16", "float16", 8), ("int8", "int32", 16), ("uint8", "int32", 16)],
)
def test_other_types_of_operands_and_sums(dtype, acc, align):
    args = product(32, 32, 32, dtype=dtype, acc=acc)
    s = by_threads(*args, align=align)
    check(args, s)
    assert "nvcuda::wmma::mma_sync(" in cuda_source(s, list(args))


def test_operands_may_be_read_from_global_memory():
    args = product(32, 32, 32, tb=True)
    check(args, by_threads(*args, memory="global"), tb=True)


def test_a_result_of_transposed_roles():
    A = te.placeholder((32, 16), name="A", dtype="float16")
    B = te.placeholder((16, 32), name="B", dtype="float16")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute(
        (32, 32),
        lambda j, i: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k),
        name="C",
    )
    (a, b), out = run(by_threads(A, B, C), [A, B, C])
    expected = (a.astype("float32") @ b.astype("float32")).T
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def by_warps(A, B, C, threads=32):
    """Each thread of a warp is told to compute the warp's tile of 16 x 32; they load together.

    The result may have an axis more than a matrix, in front.
    """
    s = te.create_schedule(C.op)
    tiles = [s.cache_read(t, "shared", [C]) for t in (A, B)]
    locals_ = [s.cache_read(t, "local", [C]) for t in tiles]
    CL = s.cache_write(C, "local")
    *lead, y, x = s[C].op.axis
    by, y = s[C].split(y, 32)
    bx, x = s[C].split(x, 32)
    ty, y = s[C].split(y, 16)
    s[C].reorder(*lead, by, bx, ty, y, x)
    for loop, tag in zip([bx, by, *lead], "xyz"):
        s[C].bind(loop, te.thread_axis(f"blockIdx.{tag}"))
    s[C].bind(ty, te.thread_axis("threadIdx.y"))
    s[CL].compute_at(s[C], ty)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], 16)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    s[CL].pragma(ko, "tensor_core")
    for tile, local in zip(tiles, locals_):
        s[tile].compute_at(s[CL], ko)
        s[local].compute_at(s[CL], ko)
        copy_by_threads(s, tile, (threads, 2))
    return s


def test_threads_that_are_told_the_same_share_the_work():
    args = product(64, 32, 32)
    check(args, by_warps(*args))


def test_a_batch_of_products():
    A = te.placeholder((2, 32, 32), name="A", dtype="float16")
    B = te.placeholder((2, 32, 32), name="B", dtype="float16")
    k = te.reduce_axis((0, 32), name="k")
    C = te.compute(
        (2, 32, 32),
        lambda b, i, j: te.sum(A[b, i, k].astype("float32") * B[b, k, j].astype("float32"), axis=k),
        name="C",
    )
    (a, b), out = run(by_warps(A, B, C), [A, B, C])
    expected = a.astype("float32") @ b.astype("float32")
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_operands_may_be_computed_and_the_result_used_in_shared_memory():
    A, B, P = product(32, 32, 32)
    half = te.compute((32, 32), lambda i, j: A[i, j] * tir.const(0.5, "float16"), name="half")
    k = te.reduce_axis((0, 32), name="k")
    P = te.compute(
        (32, 32),
        lambda i, j: te.sum(half[i, k].astype("float32") * B[k, j].astype("float32"), axis=k),
        name="P",
    )
    R = te.compute((32, 32), lambda i, j: te.max(P[i, j], tir.const(0.0)), name="R")
    s = te.create_schedule(R.op)
    s[half].set_scope("shared")
    BB = s.cache_read(B, "shared", [P])
    HL, BL = s.cache_read(half, "local", [P]), s.cache_read(BB, "local", [P])
    PL = s.cache_write(P, "local")
    s[P].set_scope("shared")
    block, rest = s[R].split(s[R].fuse(*s[R].op.axis), nparts=1)
    s[R].bind(block, te.thread_axis("blockIdx.x"))
    _, tx = s[R].split(rest, factor=64)
    s[R].bind(tx, te.thread_axis((0, 64), "threadIdx.x"))
    # Two warps of 32 threads, each a row of 8 columns of a tile of 32 x 8, twice.
    s[P].compute_at(s[R], block)
    warp_columns, x = s[P].split(s[P].op.axis[1], factor=8)
    outer, warp = s[P].split(warp_columns, factor=2)
    s[P].reorder(outer, warp, s[P].op.axis[0], x)
    tx = s[P].fuse(warp, s[P].op.axis[0])
    s[P].bind(tx, te.thread_axis((0, 64), "threadIdx.x"))
    s[PL].compute_at(s[P], tx)
    ko, ki = s[PL].split(s[PL].op.reduce_axis[0], 16)
    s[PL].reorder(ko, ki, *s[PL].op.axis)
    s[PL].pragma(ko, "tensor_core")
    for local in (HL, BL):
        s[local].compute_at(s[PL], ko)
    for tile in (half, BB):
        s[tile].compute_at(s[R], block)
        copy_by_threads(s, tile, (64,))
    (a, b), out = run(s, [A, B, R])
    expected = np.maximum((a * np.float16(0.5)).astype("float32") @ b.astype("float32"), 0)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


def test_without_the_pragma_the_statement_is_returned_itself():
    s = by_threads(*product(32, 32, 32), pragma="something_else").normalize()
    stmt = te.ScheduleOps(s, te.InferBound(s))
    assert te.SchedulePostProcRewriteForTensorCore(stmt, s, {}).same_as(stmt)
    assert tvm.ir_pass.RewriteForTensorCore(stmt, s, {}).same_as(stmt)


def test_the_rewritten_statement_has_no_pragma_left():
    args = product(32, 32, 32)
    s = by_threads(*args)
    assert "pragma_tensor_core" not in str(rewrite(s))
    normal = s.normalize()
    stmt = te.ScheduleOps(normal, te.InferBound(normal))
    once = tvm.ir_pass.RewriteForTensorCore(stmt, s, {})
    for name in ("fill_fragment", "load_matrix_sync", "mma_sync", "store_matrix_sync"):
        assert f"tvm_{name}" in str(once)
    assert te.SchedulePostProcRewriteForTensorCore(once, normal).same_as(once)
    func = te.SchedulePostProcToPrimFunc(list(args), once)
    assert "wmma.accumulator" in str(func)


def test_a_statement_of_another_schedule_is_refused():
    s = by_threads(*product(32, 32, 32)).normalize()
    stmt = te.ScheduleOps(s, te.InferBound(s))
    other = by_threads(*product(32, 32, 32))
    with pytest.raises(ValueError, match="marks loop k.outer, which no stage of the schedule has"):
        te.SchedulePostProcRewriteForTensorCore(stmt, other, {})


def test_strides_of_buffers_given_by_the_user_must_suit():
    args = product(32, 32, 32)
    buffers = [tir.decl_buffer((32, 32), args[2].dtype, name="C", strides=[n, 1]) for n in (40, 33)]
    s = by_threads(*args)
    assert "tvm_mma_sync" in str(rewrite(s, {args[2]: buffers[0]}))
    with pytest.raises(ScheduleError, match="rows of C are 33 elements apart.* multiple of 4"):
        tvm.lower(s, list(args), binds={args[2]: buffers[1]})
    turned = tir.decl_buffer((32, 32), args[2].dtype, name="C", strides=[1, 32])
    with pytest.raises(ScheduleError, match="the last one must be 1"):
        rewrite(s, {args[2]: turned})


def refuse(message: str, s: te.Schedule, args: tuple[Any, ...]) -> None:
    with pytest.raises(ScheduleError, match=message):
        tvm.lower(s, list(args))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"thread": (1, 4)},
            "a warp computes 16 x 8 elements in 16 steps.* 16 x 16, 32 x 8 or 8 x",
        ),
        ({"steps": 8}, "16 x 16 elements in 8 steps"),
        ({"grid": (8, 2, 1)}, "2 x 8 x 1 threads do not consist of whole warps of 32 neighbours"),
        ({"grid": (8, 3, 4)}, "threads do not consist of whole warps"),
        (
            {"align": 4},
            "rows of A.shared are 20 elements apart.*multiple of 8 .16 bytes.*storage_ali",
        ),
        ({"vthread": 2}, "in a virtual thread"),
    ],
)
def test_tiles_that_are_no_fragments_are_refused(options, message):
    args = product(64, 96, 32)
    refuse(message, by_threads(*args, **options), args)


def test_axes_that_need_guards_are_refused():
    args = product(40, 32, 32)
    refuse("under the condition .* split by factors that divide the axes", by_threads(*args), args)


@pytest.mark.parametrize(
    ("dtype", "acc"), [("float32", "float32"), ("float16", "float64"), ("int8", "int64")]
)
def test_types_that_do_not_suit_are_refused(dtype, acc):
    args = product(32, 32, 32, dtype=dtype, acc=acc)
    refuse("do not suit tensor cores; they multiply float16", by_threads(*args), args)


def test_operands_and_results_outside_of_registers_are_refused():
    args = product(32, 32, 32)
    C = args[2]
    s = te.create_schedule(C.op)
    tx = s[C].fuse(*s[C].op.axis)
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    s[C].pragma(s[C].op.reduce_axis[0], "tensor_core")
    refuse('pragma.C, k, "tensor_core".*', s, args)
    s = by_threads(*args)
    s[s.stages[-2].op].set_scope("shared")
    refuse("C.local is in shared memory and must be in registers; use cache_write", s, args)


def sum_of(body, reduce):
    A, B, _ = product(32, 32, 32)
    C = te.compute((32, 32), lambda i, j: te.sum(body(A, B, i, j), axis=reduce), name="C")
    return A, B, C


def f32(x):
    return x.astype("float32")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda A, B, i, j, k: f32(A[i, k]) + f32(B[k, j]), "must add products of two tensors"),
        (lambda A, B, i, j, k: f32(A[i, k] * B[k, j]), "must add products of two tensors"),
        (lambda A, B, i, j, k: f32(A[i, k] + B[k, j]) * f32(B[k, j]), "factors must be elements"),
        (lambda A, B, i, j, k: f32(A[i, k]) * f32(B[i, j]), "exactly one axis with the result"),
        (lambda A, B, i, j, k: f32(A[i, k]) * f32(B[i, k]), "not multiplied as matrices"),
    ],
)
def test_sums_that_are_no_products_of_matrices_are_refused(body, message):
    k = te.reduce_axis((0, 32), name="k")
    args = sum_of(lambda A, B, i, j: body(A, B, i, j, k), k)
    refuse(message, by_threads(*args), args)


def test_a_loop_that_adds_the_same_product_again_is_refused():
    A, B, _ = product(32, 32, 16)
    k, again = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 2), name="again")
    C = te.compute(
        (32, 32), lambda i, j: te.sum(f32(A[i, k]) * f32(B[k, j]), axis=[k, again]), name="C"
    )
    refuse("a box of elements, each once", by_threads(A, B, C), (A, B, C))


def test_a_function_of_the_sum_in_registers_is_refused():
    A, B, C = product(32, 32, 32)
    D = te.compute((32, 32), lambda i, j: C[i, j] + tir.const(1.0), name="D")
    s = te.create_schedule(D.op)
    s[C].set_scope("local")
    AL, BL = s.cache_read(A, "local", [C]), s.cache_read(B, "local", [C])
    ty, y = s[D].split(D.op.axis[0], factor=1)
    tx, x = s[D].split(D.op.axis[1], factor=16)
    s[D].reorder(ty, tx, y, x)
    s[D].bind(ty, te.thread_axis("threadIdx.y"))
    s[D].bind(tx, te.thread_axis("threadIdx.x"))
    s[C].compute_at(s[D], tx)
    ko, ki = s[C].split(C.op.reduce_axis[0], 16)
    s[C].reorder(ko, ki, *C.op.axis)
    s[C].pragma(ko, "tensor_core")
    for local in (AL, BL):
        s[local].compute_at(s[C], ko)
    refuse("multiplied or copied out as they are.*shared memory first", s, (A, B, D))


def test_a_target_with_wider_warps_is_refused():
    args = product(32, 32, 32)
    with (
        tvm.target.Target("cuda -thread_warp_size=64"),
        pytest.raises(ScheduleError, match="thread_warp_size 64"),
    ):
        tvm.lower(by_threads(*args), list(args))


def test_fragments_that_start_at_unaligned_elements_are_refused():
    args = product(32, 64, 32, dtype="int8")
    s = by_threads(*args, grid=(32, 1, 2), align=16)
    refuse("fragment of 16 x 8 starts at element .* of rows of B.shared.*multiple of 16", s, args)


def test_shared_tiles_may_be_double_buffered_and_loops_unrolled():
    args = product(32, 32, 64)
    s = by_threads(*args)
    for stage in s.stages:
        if stage.op.name.endswith(".shared"):
            stage.double_buffer()
        if stage.op.name == "C.local":
            stage.pragma(stage.leaf_iter_vars[1], "auto_unroll_max_step", 64)
    check(args, s)


def test_local_tiles_may_not_be_double_buffered():
    args = product(32, 32, 64)
    s = by_threads(*args)
    next(x for x in s.stages if x.op.name == "A.shared.local").double_buffer()
    refuse("fragments of A.shared.local cannot have the attribute double_buffer_scope", s, args)


@settings(max_examples=20, deadline=None)
@given(
    thread=st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 4, 8, 16])),
    grid=st.sampled_from([(32, 1, 1), (16, 2, 1), (8, 4, 2), (4, 8, 1), (32, 2, 1), (16, 1, 2)]),
    steps=st.sampled_from([16, 32]),
    memory=st.sampled_from(["shared", "global"]),
    ta=st.booleans(),
    tb=st.booleans(),
)
def test_a_marked_product_is_right_or_refused(thread, grid, steps, memory, ta, tb):
    args = product(64, 64, 64, ta, tb)
    s = by_threads(*args, thread=thread, grid=grid, steps=steps, memory=memory)
    try:
        tvm.lower(s, list(args))
    except ScheduleError:
        return
    check(args, s, ta, tb)
