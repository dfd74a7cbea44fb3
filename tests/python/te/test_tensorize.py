"""Blocks of a stage computed by an instruction: matching, binding of buffers, and numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import ScheduleError


def gemv(m, n, parts="body init update", strided=True, **params):
    """c = a @ b for a block of m x n, with loops written by hand."""
    a = te.placeholder((m, n), name="a")
    b = te.placeholder((n,), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((m,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")
    strides = [te.var("row"), 1] if strided else None
    a_block = tvm.tir.decl_buffer(a.shape, a.dtype, "a", offset_factor=1, strides=strides)

    def emit(ins, outs):
        matrix, vector = ins
        (out,) = outs

        def start(ib):
            with ib.for_range(0, m, name="r") as r:
                ib.buffer_ptr(out)[r] = 0.0

        def add(ib):
            rows, col, result = ib.buffer_ptr(matrix), ib.buffer_ptr(vector), ib.buffer_ptr(out)
            with ib.for_range(0, m, name="r") as r, ib.for_range(0, n, name="q") as q:
                result[r] = result[r] + rows[r, q] * col[q]

        def code(*steps):
            ib = tvm.tir.ir_builder.create()
            for step in steps:
                step(ib)
            return ib.get()

        made = {"body": code(start, add), "init": code(start), "update": code(add)}
        return tuple(made[p] if p in parts.split() else None for p in ("body", "init", "update"))

    return te.decl_tensor_intrin(
        c.op, emit, name="gemv", binds={a: a_block}, default_buffer_params=params
    )


def matvec(n, l):
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l,), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n,), lambda i: te.sum(A[i, k] * B[k], axis=k), name="C")
    return A, B, C


def check_matvec(sch, tensors):
    A, B, C = tensors
    func = tvm.build(sch, [A, B, C], target="llvm")
    rng = np.random.default_rng(0)
    a = rng.normal(size=[int(e) for e in A.shape]).astype("float32")
    b = rng.normal(size=[int(e) for e in B.shape]).astype("float32")
    out = tvm.nd.array(np.full(a.shape[0], 7, "float32"))
    func(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("parts", ["body init update", "body update", "init update"])
@pytest.mark.parametrize("reduce_outside", [False, True])
def test_matvec_by_blocks_equals_numpy(parts, reduce_outside):
    A, B, C = matvec(32, 24)
    s = te.create_schedule(C.op)
    (i,), (k,) = C.op.axis, C.op.reduce_axis
    io, ii = s[C].split(i, 8)
    ko, ki = s[C].split(k, 6 if reduce_outside else 24)
    s[C].reorder(io, ko, ii, ki)
    s[C].tensorize(ii, gemv(8, 6 if reduce_outside else 24, parts))
    check_matvec(s, (A, B, C))


def test_reduction_outside_of_spatial_loops_initialises_every_block():
    A, B, C = matvec(32, 24)
    s = te.create_schedule(C.op)
    (i,), (k,) = C.op.axis, C.op.reduce_axis
    io, ii = s[C].split(i, 8)
    ko, ki = s[C].split(k, 6)
    s[C].reorder(ko, io, ii, ki)
    s[C].tensorize(ii, gemv(8, 6))
    check_matvec(s, (A, B, C))


def test_block_of_a_cached_stage_finds_its_buffers():
    A, B, C = matvec(32, 24)
    s = te.create_schedule(C.op)
    cache = s.cache_write(C, "local")
    packed = s.cache_read(A, "local", [cache])
    (i,) = C.op.axis
    io, _ = s[C].split(i, 8)
    s[cache].compute_at(s[C], io)
    s[packed].compute_at(s[C], io)
    s[packed].storage_align(packed.op.axis[0], 16, 3)
    s[cache].tensorize(s[cache].op.axis[0], gemv(8, 24))
    check_matvec(s, (A, B, C))


def test_guard_around_blocks_is_kept():
    A = te.placeholder((12, 8), name="A")
    B = te.compute((12, 8), lambda i, j: A[i, j] * 2.0, name="B")
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] * 2.0, name="y")
    double = te.decl_tensor_intrin(
        y.op, lambda ins, outs: outs[0].vstore([0], ins[0].vload([0], "float32x8") * 2.0)
    )
    s = te.create_schedule(B.op)
    io, ii = s[B].split(B.op.axis[0], 5)
    s[B].tensorize(B.op.axis[1], double)
    func = tvm.build(s, [A, B], target="llvm")
    a = np.random.default_rng(0).random((12, 8)).astype("float32")
    out = tvm.nd.array(np.zeros((12, 8), "float32"))
    func(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), a * 2)


def test_whole_stage_is_a_call_of_a_c_function(tmp_path):
    import ctypes
    import shutil
    import subprocess

    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = tmp_path / "dot.c"
    source.write_text(
        "int dot_update(float* c, const float* a, const float* b, int m, int n, int row) {\n"
        "  for (int i = 0; i < m; ++i)\n"
        "    for (int j = 0; j < n; ++j) c[i] += a[i * row + j] * b[j];\n"
        "  return 0;\n}\n"
        "int dot_reset(float* c, int m) { for (int i = 0; i < m; ++i) c[i] = 0; return 0; }\n"
    )
    library = tmp_path / "libdot.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    # Generated code finds the symbols of libraries that are loaded globally.
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)

    m, n = 8, 6
    a = te.placeholder((m, n), name="a")
    b = te.placeholder((n,), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((m,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")
    row = te.var("row")
    block = tvm.tir.decl_buffer(a.shape, a.dtype, "a", offset_factor=1, strides=[row, 1])

    def emit(ins, outs):
        out = outs[0].access_ptr("rw")
        update = tvm.tir.call_extern(
            "int32", "dot_update", out, ins[0].access_ptr("r"), ins[1].access_ptr("r"), m, n, row
        )
        reset = tvm.tir.call_extern("int32", "dot_reset", outs[0].access_ptr("w"), m)
        return None, reset, update

    intrin = te.decl_tensor_intrin(c.op, emit, name="dot", binds={a: block})
    A, B, C = matvec(32, 24)
    s = te.create_schedule(C.op)
    (i,), (r,) = C.op.axis, C.op.reduce_axis
    io, ii = s[C].split(i, m)
    ro, ri = s[C].split(r, n)
    s[C].reorder(io, ro, ii, ri)
    s[C].tensorize(ii, intrin)
    assert "dot_update" in str(tvm.lower(s, [A, B, C]))
    check_matvec(s, (A, B, C))


def test_block_may_be_an_llvm_intrinsic():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: te.sqrt(x[i]), name="y")

    def emit(ins, outs):
        root = tvm.tir.call_llvm_pure_intrin(
            "float32x4", "llvm.sqrt.v4f32", ins[0].vload([0], "float32x4")
        )
        return outs[0].vstore([0], root)

    sqrt4 = te.decl_tensor_intrin(y.op, emit, name="sqrt4")
    A = te.placeholder((3, 16), name="A")
    B = te.compute((3, 16), lambda i, j: te.sqrt(A[i, j]), name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[1], 4)
    s[B].tensorize(inner, sqrt4)
    func = tvm.build(s, [A, B], target="llvm")
    a = np.random.default_rng(0).random((3, 16)).astype("float32")
    out = tvm.nd.array(np.zeros((3, 16), "float32"))
    func(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), np.sqrt(a), rtol=1e-6)


def simple(fcompute, shape=(8,), source=(8,), dtype="float32"):
    x = te.placeholder(source, name="x", dtype=dtype)
    y = te.compute(shape, lambda *i: fcompute(x, *i), name="y")
    return te.decl_tensor_intrin(y.op, lambda ins, outs: tvm.tir.Evaluate(0), name="unit")


@pytest.mark.parametrize(
    ("intrin", "message"),
    [
        (simple(lambda x, i: x[i] + 1.0, (4,), (4,)), "extent 8 in axis j, the intrinsic has 4"),
        (simple(lambda x, i: x[i] * 2.0), r"the value of the stage is .*, that of the intrinsic"),
        (
            simple(lambda x, i: x[i].astype("float32") + 1.0, dtype="int32"),
            "A has dtype float32, input x has int32",
        ),
        (simple(lambda x, i: te.const(1.0)), "the stage reads 1 tensors, the intrinsic 0"),
        (simple(lambda x, i, j, k: x[k] + 1.0, (2, 2, 8)), "has 2 axes, the intrinsic 3"),
        (
            simple(lambda x, i: x[i + 1] + 1.0, source=(9,)),
            "reads 8 elements of axis 1 of tensor A",
        ),
        (gemv(8, 8), "the stage has 0 reduction axes, the intrinsic 1"),
    ],
)
def test_mismatch_names_what_differs(intrin, message):
    A = te.placeholder((16, 8), name="A")
    B = te.compute((16, 8), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].tensorize(B.op.axis[1], intrin)
    with pytest.raises(ScheduleError, match=rf"tensorize\(B, j\) with \w+: .*{message}"):
        tvm.lower(s, [A, B])


def split_matvec(intrin, n=32, factor=8):
    A, B, C = matvec(n, 24)
    s = te.create_schedule(C.op)
    (i,), (k,) = C.op.axis, C.op.reduce_axis
    io, ii = s[C].split(i, factor)
    ko, ki = s[C].split(k, 6)
    s[C].reorder(io, ko, ii, ki)
    s[C].tensorize(ii, intrin)
    return s, [A, B, C]


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (lambda: split_matvec(gemv(8, 6, "body")), "it has no update"),
        (lambda: split_matvec(gemv(8, 6), n=30), "a block would need the guard"),
        (lambda: split_matvec(gemv(8, 6, strided=False)), "declares no strides .* stride 24"),
        (lambda: split_matvec(gemv(8, 6, offset_factor=4)), "declares offset_factor 4"),
        (lambda: split_matvec(gemv(8, 6, scope="shared")), "declares scope shared"),
    ],
)
def test_blocks_that_cannot_be_bound_are_refused(schedule, message):
    s, args = schedule()
    with pytest.raises(ScheduleError, match=message):
        tvm.lower(s, args)


def test_loops_of_a_block_hold_nothing_else():
    A, B, C = matvec(32, 24)
    s = te.create_schedule(C.op)
    cache = s.cache_read(B, "local", [C])
    io, ii = s[C].split(C.op.axis[0], 8)
    s[cache].compute_at(s[C], ii)
    s[C].tensorize(ii, gemv(8, 24))
    with pytest.raises(ScheduleError, match="loop i.inner is inside of the blocks"):
        tvm.lower(s, [A, B, C])


def test_declaration_is_checked():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
    with pytest.raises(TypeError, match="expected an operation, got Tensor; pass its .op"):
        te.decl_tensor_intrin(B, lambda ins, outs: None)
    with pytest.raises(ValueError, match="input B is computed"):
        te.decl_tensor_intrin(C.op, lambda ins, outs: None)
    with pytest.raises(ValueError, match="give a body, an update of a reduction, or both"):
        te.decl_tensor_intrin(B.op, lambda ins, outs: None)
    with pytest.raises(ValueError, match="binds has C, which the operation does not use"):
        te.decl_tensor_intrin(B.op, lambda ins, outs: None, binds={C: None})
    with pytest.raises(TypeError, match="expected statements or calls, got str"):
        te.decl_tensor_intrin(B.op, lambda ins, outs: "x")


def rows_added(rows, columns):
    """A + B, a row at a time by an intrinsic."""
    a, b = (te.placeholder((columns,), name=name) for name in "ab")
    c = te.compute((columns,), lambda i: a[i] + b[i], name="c")

    def emit(ins, outs):
        ib = tvm.tir.ir_builder.create()
        left, right, out = (ib.buffer_ptr(block) for block in (*ins, *outs))
        with ib.for_range(0, columns, name="q") as q:
            out[q] = left[q] + right[q]
        return ib.get()

    add = te.decl_tensor_intrin(c.op, emit, default_buffer_params={"offset_factor": 1})
    A, B = (te.placeholder((rows, columns), name=name) for name in "AB")
    C = te.compute((rows, columns), lambda i: add(A[i, 0:columns], B[i, 0:columns]), name="C")
    return A, B, C


@pytest.mark.parametrize("attached", [False, True])
def test_results_of_an_intrinsic_are_cached_and_copied_out(attached):
    A, B, C = rows_added(6, 8)
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    if attached:
        s[CL].compute_at(s[C], C.op.axis[0])
    assert "C_local" in str(tvm.lower(s, [A, B, C]))
    a, b = np.random.default_rng(0).normal(size=(2, 6, 8)).astype("float32")
    result = tvm.nd.empty((6, 8))
    tvm.build(s, [A, B, C], target="llvm")(tvm.nd.array(a), tvm.nd.array(b), result)
    np.testing.assert_allclose(result.numpy(), a + b, rtol=1e-6)


def test_blocks_are_cached_before_their_loops_are_split():
    _, _, C = rows_added(6, 8)
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 2)
    with pytest.raises(ScheduleError, match="cache its results before loops are split"):
        s.cache_write(C, "local")


@pytest.mark.parametrize(("n", "rows"), [(48, 8), (64, 16)])
def test_what_a_tensorized_stage_covers_can_be_asked(n, rows):
    tensors = A, B, C = matvec(n, 24)
    s = te.create_schedule(C.op)
    i, j = s[C].split(C.op.axis[0], factor=rows)
    intrin = gemv(rows, 24)
    s[C].tensorize(j, intrin)
    s = s.normalize()
    outputs, inputs = te.InferTensorizeRegion(s[C], te.schedule.InferBound(s))
    (row,) = C.op.axis
    assert (str(outputs[row].min), int(outputs[row].extent)) == (f"{i.var.name} * {rows}", rows)
    assert [int(r.extent) for r in inputs[A]] == [rows, 24]
    assert [int(r.extent) for r in inputs[B]] == [24]
    (body,) = te.MatchTensorizeBody(s[C], outputs, inputs, intrin)
    analyzer = tvm.arith.Analyzer()
    pattern = intrin.op.body[0]
    assert tvm.ir.structural_equal(analyzer.simplify(body), analyzer.simplify(pattern))
    assert te.schedule.InferTensorizeRegion is te.InferTensorizeRegion
    check_matvec(s, tensors)


def test_only_tensorized_stages_can_be_asked_what_they_cover():
    _, _, C = matvec(16, 8)
    s = te.create_schedule(C.op).normalize()
    bounds = te.schedule.InferBound(s)
    with pytest.raises(ValueError, match="stage C is not tensorized; call tensorize on it first"):
        te.InferTensorizeRegion(s[C], bounds)
    with pytest.raises(ValueError, match="the bounds have no domain of loop"):
        other = te.create_schedule(C.op)
        other[C].tensorize(other[C].op.axis[0], gemv(16, 8))
        te.InferTensorizeRegion(other.normalize()[C], {})
