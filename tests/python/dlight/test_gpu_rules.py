"""Default schedules for graphics processors: what they compute, and that a device takes them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import dlight as dl
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import Target, emulated

RNG = np.random.default_rng(7)
ALL = [
    dl.gpu.Matmul,
    dl.gpu.GEMV,
    dl.gpu.Reduction,
    dl.gpu.GeneralReduction,
    dl.gpu.Transpose,
    dl.gpu.Fallback,
]


def check(tensors, answer, *rules):
    """The scheduled module, after it was run on random operands and compared with `answer`."""
    func = te.create_prim_func(tensors)
    gpu = emulated("cuda")
    with gpu:
        mod = dl.ApplyDefaultSchedule(*(rule() for rule in rules))(tvm.IRModule({"main": func}))
    assert mod["main"].attrs["tir.is_scheduled"]
    arrays = [
        RNG.uniform(0.5, 1.5, [int(n) for n in tensor.shape]).astype("float32")
        for tensor in tensors
    ]
    args = [tvm.nd.array(array) for array in arrays]
    tvm.build(mod, target=gpu)(*args)
    np.testing.assert_allclose(args[-1].numpy(), answer(*arrays[:-1]), rtol=2e-4, atol=1e-5)
    with Target("cuda"):
        kernel = tvm.lower(mod)["main"]
    limits = {"max_threads_per_block": 1024, "max_shared_memory_per_block": 48 * 1024}
    assert tir.analysis.verify_gpu_code(kernel, limits)
    return mod


def threads(mod):
    """Thread axes of the loops of a module."""
    found = set()

    def visit(node):
        if isinstance(node, tir.For) and node.thread_binding is not None:
            found.add(str(node.thread_binding.thread_tag))

    tir.stmt_functor.post_order_visit(mod["main"].body, visit)
    return found


def matmul(m, n, k, transposed=False):
    A = te.placeholder((m, k), name="A")
    B = te.placeholder((n, k) if transposed else (k, n), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r] * (B[j, r] if transposed else B[r, j]), axis=r),
        name="C",
    )
    return [A, B, C]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m, n, k", [(64, 32, 32), (33, 40, 20)])
def test_matmul(m, n, k, transposed):
    answer = (lambda a, b: a @ b.T) if transposed else (lambda a, b: a @ b)
    mod = check(matmul(m, n, k, transposed), answer, dl.gpu.Matmul)
    assert {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"} <= threads(mod)


def test_batched_matmul():
    A, B = te.placeholder((2, 32, 16), name="A"), te.placeholder((2, 16, 32), name="B")
    r = te.reduce_axis((0, 16), name="r")
    C = te.compute((2, 32, 32), lambda b, i, j: te.sum(A[b, i, r] * B[b, r, j], axis=r), name="C")
    assert "blockIdx.z" in threads(check([A, B, C], np.matmul, dl.gpu.Matmul))


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("n, k", [(64, 128), (30, 100)])
def test_gemv(n, k, by_columns):
    A = te.placeholder((k, n) if by_columns else (n, k), name="A")
    x = te.placeholder((k,), name="x")
    r = te.reduce_axis((0, k), name="r")
    y = te.compute(
        (n,), lambda i: te.sum((A[r, i] if by_columns else A[i, r]) * x[r], axis=r), name="y"
    )
    answer = (lambda a, v: v @ a) if by_columns else (lambda a, v: a @ v)
    assert {"threadIdx.x", "threadIdx.y"} <= threads(check([A, x, y], answer, dl.gpu.GEMV))


def few_vectors(n, k, epilogue):
    m = te.var("m", "int64")
    A, B = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")
    out = te.compute((m, n), lambda i, j: C[i, j] * 2.0, name="out") if epilogue else C
    return te.create_prim_func([A, B, out], index_dtype_override="int64")


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("n, k, bucket", [(48, 96, 4), (30, 100, 2)])
def test_a_few_vectors_in_buckets(n, k, bucket, epilogue):
    gpu = emulated("cuda")
    with gpu:
        mod = dl.ApplyDefaultSchedule(dl.gpu.LowBatchGEMV(bucket))(
            tvm.IRModule({"main": few_vectors(n, k, epilogue)})
        )
    assert {"blockIdx.y", "threadIdx.x", "threadIdx.y"} <= threads(mod)
    kernel = tvm.build(mod, target=gpu)
    for m in (1, bucket, bucket + 1):
        a, b = (RNG.uniform(-1, 1, shape).astype("float32") for shape in ((m, k), (n, k)))
        out = tvm.nd.array(np.zeros((m, n), "float32"))
        kernel(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), (2 if epilogue else 1) * a @ b.T, 1e-4, 1e-5)


def test_vectors_of_a_fixed_number_are_left_to_other_rules():
    mod = tvm.IRModule({"main": te.create_prim_func(matmul(4, 48, 96, transposed=True))})
    with Target("cuda"):
        same = dl.ApplyDefaultSchedule(dl.gpu.LowBatchGEMV(4))(mod)
    tvm.ir.assert_structural_equal(same, mod)
    with pytest.raises(ValueError, match="bucket of 1 or more, got 0"):
        dl.gpu.LowBatchGEMV(0)


def test_a_part_of_threads_is_known_by_its_value():
    # Element h // 32 of what thread h % 32 holds is the same in all threads.
    @T.prim_func
    def squares(A: T.Buffer((128,), "float32"), B: T.Buffer((1,), "float32")):
        own = T.alloc_buffer((4,), scope="local")
        for _ in T.thread_binding(1, thread="blockIdx.x"):
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(4):
                    with T.block("keep"):
                        h = T.axis.spatial(128, i * 32 + tx)
                        own[h // 32] = A[h] * 2.0
            for tx in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(4):
                    with T.block("add"):
                        vt, vi = T.axis.remap("RR", [tx, i])
                        with T.init():
                            B[0] = 0.0
                        B[0] = B[0] + own[vi]

    kernel = tvm.build(squares, target=emulated("cuda"))
    a = RNG.uniform(-1, 1, 128).astype("float32")
    out = tvm.nd.array(np.zeros(1, "float32"))
    kernel(tvm.nd.array(a), out)
    np.testing.assert_allclose(out.numpy(), [2 * a.sum()], 1e-4)


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(32, 256), (7, 50)])
def test_reduction(shape, axis, epilogue):
    A = te.placeholder(shape, name="A")
    r = te.reduce_axis((0, shape[axis]), name="r")
    n = shape[1 - axis]
    B = te.compute((n,), lambda i: te.max(A[r, i] if axis == 0 else A[i, r], axis=r), name="B")
    if not epilogue:
        check([A, B], lambda a: a.max(axis=axis), dl.gpu.Reduction)
        return
    C = te.compute((n,), lambda i: te.sqrt(B[i]) + 1.0, name="C")
    check([A, C], lambda a: np.sqrt(a.max(axis=axis)) + 1, dl.gpu.Reduction)


def test_reduction_to_one_number():
    A = te.placeholder((300,), name="A")
    r = te.reduce_axis((0, 300), name="r")
    B = te.compute((1,), lambda i: te.sum(A[r], axis=r), name="B")
    check([A, B], lambda a: a.sum(keepdims=True), dl.gpu.Reduction)


@pytest.mark.parametrize("n, m", [(8, 256), (5, 37)])
def test_softmax(n, m):
    A = te.placeholder((n, m), name="A")
    r0, r1 = te.reduce_axis((0, m), name="r0"), te.reduce_axis((0, m), name="r1")
    most = te.compute((n,), lambda i: te.max(A[i, r0], axis=r0), name="most")
    power = te.compute((n, m), lambda i, j: te.exp(A[i, j] - most[i]), name="power")
    total = te.compute((n,), lambda i: te.sum(power[i, r1], axis=r1), name="total")
    out = te.compute((n, m), lambda i, j: power[i, j] / total[i], name="out")

    def softmax(a):
        powers = np.exp(a - a.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    mod = check([A, out], softmax, dl.gpu.GeneralReduction)
    assert threads(mod) == {"blockIdx.x", "threadIdx.x"}


@pytest.mark.parametrize("n, m", [(64, 32), (20, 45)])
def test_transpose(n, m):
    A = te.placeholder((n, m), name="A")
    B = te.compute((m, n), lambda i, j: A[j, i], name="B")
    mod = check([A, B], np.transpose, dl.gpu.Transpose)
    assert "shared" in str(mod)


def test_fallback_takes_everything():
    A = te.placeholder((6, 50), name="A")
    r = te.reduce_axis((0, 50), name="r")
    doubled = te.compute((6, 50), lambda i, j: A[i, j] * 2.0, name="doubled")
    total = te.compute((6,), lambda i: te.sum(doubled[i, r], axis=r), name="total")
    out = te.compute((6, 50), lambda i, j: doubled[i, j] / total[i], name="out")
    check([A, out], lambda a: a / a.sum(axis=1, keepdims=True), dl.gpu.Transpose, dl.gpu.Fallback)


@pytest.mark.parametrize("which", ["matmul", "sum", "add"])
def test_rules_in_the_usual_order(which):
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    r = te.reduce_axis((0, 16), name="r")
    if which == "matmul":
        check(matmul(32, 32, 16), np.matmul, *ALL)
    elif which == "sum":
        out = te.compute((16,), lambda i: te.sum(A[i, r], axis=r), name="out")
        check([A, out], lambda a: a.sum(axis=1), *ALL)
    else:
        out = te.compute((16, 16), lambda i, j: A[i, j] + B[i, j], name="out")
        check([A, B, out], np.add, *ALL)


def test_functions_that_have_a_schedule_stay():
    func = te.create_prim_func(matmul(16, 16, 16)).with_attr("tir.is_scheduled", True)
    with Target("cuda"):
        mod = dl.ApplyDefaultSchedule(dl.gpu.Fallback())(tvm.IRModule({"main": func}))
    tvm.ir.assert_structural_equal(mod["main"], func)


def test_rules_for_gpus_leave_other_targets():
    mod = tvm.IRModule({"main": te.create_prim_func(matmul(16, 16, 16))})
    with Target("llvm"):
        same = dl.ApplyDefaultSchedule(dl.gpu.Fallback())(mod)
    tvm.ir.assert_structural_equal(same, mod)


def test_without_a_target():
    mod = tvm.IRModule({"main": te.create_prim_func(matmul(16, 16, 16))})
    with pytest.raises(ValueError, match="target"):
        dl.ApplyDefaultSchedule(dl.gpu.Fallback())(mod)


def test_blocks_and_their_loops():
    @T.prim_func
    def turned(A: T.Buffer((8, 4), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for k, i in T.grid(8, 4):
            with T.block("B"):
                vk, vi = T.axis.remap("RS", [k, i])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk, vi]

    sch = tir.Schedule(turned)
    (info,) = dl.normalize_prim_func(sch)
    assert info.name == "B" and info.dom_kind() == "SR" and info.is_reduction()
    assert [int(extent) for extent in info.dom()] == [4, 8]
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("B")] == [4, 8]


def test_axes_of_one_step_are_no_loops_of_a_normal_form():
    A, B = te.placeholder((1, 24), name="A"), te.placeholder((12, 24), name="B")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((1, 12), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    func = te.create_prim_func([A, B, C])
    sch = tir.Schedule(func)
    (info,) = dl.normalize_prim_func(sch)
    assert info.dom_kind() == "SR" and [int(n) for n in info.dom()] == [12, 24]
    blocks, loops, axes, reduces = tvm.get_global_func("tir.schedule.NormalizePrimFunc")(
        tir.Schedule(func)
    )
    assert len(blocks) == len(loops) == len(axes) == 1 and [bool(each) for each in reduces] == [
        True
    ]
    assert [int(axis.dom.extent) for axis in axes[0]] == [12, 24]
    first = te.compute((1,), lambda i: A[i, 0], name="D")
    (info,) = dl.normalize_prim_func(tir.Schedule(te.create_prim_func([A, first])))
    assert [int(n) for n in info.dom()] == [1]


def test_what_rules_ask_of_a_block():
    A = te.placeholder((16, 8), name="A")
    bias = te.placeholder((8,), name="bias")
    B = te.compute((16, 8), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((16, 8), lambda i, j: B[i, j] + bias[j], name="C")
    D = te.compute((16, 8), lambda i, j: bias[j] + bias[j], name="D")
    sch = tir.Schedule(te.create_prim_func([A, bias, C, D]))
    infos = {info.name: info for info in dl.normalize_prim_func(sch)}
    assert infos["B"].is_elementwise(sch) and not infos["C"].is_elementwise(sch)
    node = sch.get(infos["C"].block_rv)
    i, j = (axis.var for axis in node.iter_vars)
    used = [
        dl.base.collect_block_iter_vars_used_in_access_region(node, read.region)
        for read in node.reads
    ]
    assert {i, j} in used and {j} in used
    place = dl.base.detect_dominant_read(node)
    assert dl.base.collect_vars_used_in_prim_expr(place) == {i, j}
    assert not dl.base.is_broadcast_epilogue(sch, infos["B"].block_rv, infos["C"].block_rv)
    with pytest.raises(ValueError, match="reads nothing that B writes"):
        dl.base.is_broadcast_epilogue(sch, infos["B"].block_rv, infos["D"].block_rv)
    assert str(sch.get(dl.base.get_root_block(sch)).name_hint) == "root"
    assert [info.name for info in dl.try_inline_contiguous_spatial(sch, list(infos.values()))] == [
        "C", "D",
    ]  # fmt: skip


def test_limits_of_a_target():
    gpu = Target("nvidia/nvidia-a100")
    assert dl.base.get_max_threads_per_block(gpu) == 1024
    assert dl.base.get_max_shared_memory_per_block(gpu) == 48 * 1024
    with pytest.raises(ValueError, match="with the key gpu"):
        dl.base.get_max_threads_per_block(Target("llvm"))
