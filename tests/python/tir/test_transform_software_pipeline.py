"""Pipelined loops: their form, what they compute, and the instructions of asynchronous copies."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target import Target, emulated


def matmul(rows, columns, depth, stage, order, asynchronous=None, scope="shared", vector=4):
    """A product of 16 x 16 tiles whose operands come through shared memory in a pipeline."""
    A, B = te.placeholder((rows, depth), name="A"), te.placeholder((depth, columns), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = tir.Schedule(te.create_prim_func([A, B, C]))
    product = sch.get_block("C")
    i, j, k = sch.get_loops(product)
    bi, ti, ii = sch.split(i, [None, 8, 2])
    bj, tj, jj = sch.split(j, [None, 8, 2])
    ko, ki = sch.split(k, [None, 16])
    sch.reorder(bi, bj, ti, tj, ko, ki, ii, jj)
    for loop, thread in ((bi, "blockIdx.y"), (bj, "blockIdx.x"), (ti, "threadIdx.y")):
        sch.bind(loop, thread)
    sch.bind(tj, "threadIdx.x")
    for operand in range(2):
        copy = sch.cache_read(product, operand, scope)
        sch.compute_at(copy, ko)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, fy, fx, lanes = sch.split(fused, [None, 8, 8, vector])
        sch.bind(fy, "threadIdx.y")
        sch.bind(fx, "threadIdx.x")
        sch.vectorize(lanes)
    sch.reverse_compute_at(sch.cache_write(product, 0, "local"), tj)
    sch.decompose_reduction(product, ko)
    sch.annotate(ko, "software_pipeline_stage", stage)
    sch.annotate(ko, "software_pipeline_order", order)
    if asynchronous is not None:
        sch.annotate(ko, "software_pipeline_async_stages", asynchronous)
    return sch.mod


@pytest.mark.parametrize(
    ("stage", "order", "asynchronous", "scope"),
    [
        ([0, 0, 1], [0, 1, 2], None, "shared"),
        ([0, 0, 1], [1, 2, 0], None, "shared"),
        ([0, 0, 3], [0, 1, 2], None, "shared.dyn"),
        ([0, 0, 2], [0, 1, 2], [0], "shared"),
        ([0, 0, 3], [0, 2, 1], [0], "shared.dyn"),
        ([0, 1, 5], [0, 1, 2], None, "shared"),  # longer than the loop
    ],
)
def test_pipelined_product_is_the_product(stage, order, asynchronous, scope):
    mod = matmul(32, 16, 64, stage, order, asynchronous, scope)
    run = tvm.build(mod, target=emulated("cuda"))
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, shape).astype("float32") for shape in ((32, 64), (64, 16)))
    out = tvm.nd.empty((32, 16), "float32")
    run(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-5)


def cuda_text(mod):
    with tvm.transform.PassContext(config={"tir.use_async_copy": True}):
        return tvm.build(mod, target=Target("cuda -arch=sm_80")).imported_modules[0].get_source()


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1]])
def test_waits_allow_no_group_that_is_read_next(order):
    """Four trips are written out whole, so the text is the order of events."""
    text = cuda_text(matmul(32, 16, 64, [0, 0, 3], order, [0]))
    committed, trip = 0, 0
    group_of_a_trip = 1 if order == [0, 1, 2] else 2
    for event in re.findall(r'commit_group|wait_group %0;" :: "n"\((\d+)\)', text):
        if not event:
            committed += 1
            continue
        # Groups end in the order in which they were committed.
        done = committed - int(event)
        assert done >= (trip + 1) * group_of_a_trip, f"trip {trip} reads what may be under way"
        trip += 1
    assert trip == 4
    assert committed == 4 * group_of_a_trip
    assert text.count("cp.async.cg.shared.global") == 8


def test_synchronous_builds_have_no_asynchronous_copies():
    lowered = tvm.lower(matmul(16, 16, 64, [0, 0, 1], [0, 1, 2], [0]))
    assert "ptx_cp_async" not in str(lowered)


@T.prim_func
def three_parts(A: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in range(16):
            with T.block("body"):
                T.reads(A[tx, i])
                T.writes(D[tx, i])
                B = T.alloc_buffer((16,), scope="shared")
                C = T.alloc_buffer((16,), scope="local")
                with T.block("first"):
                    T.reads(A[tx, i])
                    T.writes(B[tx])
                    B[tx] = A[tx, i] * T.float32(2)
                with T.block("second"):
                    T.reads(B[tx])
                    T.writes(C[tx])
                    C[tx] = B[tx] + T.float32(1)
                with T.block("third"):
                    T.reads(C[tx])
                    T.writes(D[tx, i])
                    D[tx, i] = C[tx]


def annotated(func, **annotations):
    def annotate(stmt):
        if isinstance(stmt, tir.For) and stmt.loop_var.name == "i":
            return tir.For(
                stmt.loop_var, stmt.min, stmt.extent, stmt.kind, stmt.body, None, annotations
            )
        return None

    body = tir.stmt_functor.ir_transform(func.body, None, annotate, ["tir.For"])
    return tvm.IRModule({"main": func.with_body(body)})


def allocated(mod):
    """Shapes of all buffers of blocks."""
    found = {}

    def visit(node):
        if isinstance(node, tir.Block):
            found.update({buf.name: [int(e) for e in buf.shape] for buf in node.alloc_buffers})

    tir.stmt_functor.post_order_visit(mod["main"].body, visit)
    return found


@pytest.mark.parametrize(
    ("stage", "order", "copies"),
    [
        ([0, 1, 2], [0, 1, 2], {"B": [2, 16], "C": [2, 16]}),
        ([0, 1, 2], [2, 1, 0], {"B": [16], "C": [16]}),  # readers come before writers
        ([0, 0, 3], [0, 1, 2], {"B": [16], "C": [4, 16]}),
    ],
)
def test_buffers_have_as_many_copies_as_are_in_use(stage, order, copies):
    mod = annotated(three_parts, software_pipeline_stage=stage, software_pipeline_order=order)
    assert allocated(tir.transform.InjectSoftwarePipeline()(mod)) == copies


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"software_pipeline_stage": [0, 1, 2]}, "but not software_pipeline_order"),
        (
            {"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]},
            "has 2 numbers for 3 statements",
        ),
        (
            {"software_pipeline_stage": [0, 1, 2], "software_pipeline_order": [0, 1, 1]},
            "both have order 1",
        ),
        (
            {"software_pipeline_stage": [0, 1, 1], "software_pipeline_order": [0, 2, 1]},
            "reads what statement 1 writes to C",
        ),
        (
            {"software_pipeline_stage": [1, 0, 2], "software_pipeline_order": [0, 1, 2]},
            "it needs a later stage",
        ),
        (
            {"software_pipeline_stage": [0, 1, -2], "software_pipeline_order": [0, 1, 2]},
            "numbers that are not negative",
        ),
    ],
)
def test_annotations_that_fit_no_pipeline_are_refused(annotations, message):
    with pytest.raises(ValueError, match=message):
        tir.transform.InjectSoftwarePipeline()(annotated(three_parts, **annotations))


def copy_of(dtype, lanes, guarded=False):
    ib = tir.ir_builder.create()
    tx = te.thread_axis("threadIdx.x")
    A = tir.decl_buffer((32 * lanes,), dtype, "A")
    ib.scope_attr(tx, "thread_extent", 32)
    shared = ib.allocate(dtype, 32 * lanes, "tile", scope="shared")
    at = tir.Ramp(tx.var * lanes, 1, lanes) if lanes > 1 else tx.var
    value = tir.BufferLoad(A, [at])
    if guarded:
        zero = tir.const(0, dtype)
        zero = tir.Broadcast(zero, lanes) if lanes > 1 else zero
        value = tir.if_then_else(tx.var < 30, value, zero)
    store = tir.BufferStore(shared.buffer, value, [at])
    ib.emit(tir.AttrStmt(tir.const(0), "async_scope", tir.const(1), store))
    return tvm.IRModule({"main": tir.PrimFunc([A], ib.get())})


@pytest.mark.parametrize(
    ("dtype", "lanes", "copied"),
    [
        ("float32", 1, 4),
        ("float16", 4, 8),
        ("int8", 16, 16),
        ("float16", 1, None),
        ("float32", 8, None),
    ],
)
@pytest.mark.parametrize("guarded", [False, True])
def test_copies_of_the_sizes_of_the_instruction_are_asynchronous(dtype, lanes, copied, guarded):
    body = tir.transform.InjectPTXAsyncCopy()(copy_of(dtype, lanes, guarded))["main"].body
    calls = []
    tir.stmt_functor.post_order_visit(
        body,
        lambda node: (
            calls.append(node)
            if isinstance(node, tir.Call) and "cp_async" in str(node.op)
            else None
        ),
    )
    assert "async_scope" not in str(body)
    assert len(calls) == (copied is not None)
    for call in calls:
        assert call.args[4].value == copied
        assert len(call.args) == 5 + guarded


def test_a_wait_has_a_constant_number_of_groups():
    ib = tir.ir_builder.create()
    with ib.for_range(0, 4, "i") as i:
        ib.scope_attr(tir.const(0), "async_wait_queue_scope", 0)
        ib.scope_attr(tir.const(0), "async_wait_inflight_count", 5 - i)
        ib.emit(tir.Evaluate(i))
    mod = tvm.IRModule({"main": tir.PrimFunc([], ib.get())})
    text = str(tir.transform.InjectPTXAsyncCopy()(mod))
    assert "T.ptx_wait_group(2)" in text  # the least of what the trips allow


def test_threads_meet_behind_a_wait_for_copies():
    ib = tir.ir_builder.create()
    tx = te.thread_axis("threadIdx.x")
    out = tir.decl_buffer((32,), name="out")
    ib.scope_attr(tx, "thread_extent", 32)
    shared = ib.allocate("float32", 32, "tile", scope="shared")
    with ib.new_scope():
        ib.scope_attr(tir.const(0), "async_wait_queue_scope", 0)
        ib.scope_attr(tir.const(0), "async_wait_inflight_count", 1)
        ib.emit(tir.BufferStore(out, shared[31 - tx.var], [tx.var]))
    mod = tvm.IRModule({"main": tir.PrimFunc([out], ib.get())})
    text = str(tir.transform.ThreadSync("shared")(mod))
    assert text.index("async_wait_inflight_count") < text.index('tvm_storage_sync("shared")')


def test_barriers_of_dynamic_shared_memory_leave_other_memory_alone():
    @T.prim_func
    def exchange(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        tx = T.launch_thread("threadIdx.x", 32)
        dynamic = T.decl_buffer((32,), scope="shared.dyn")
        static = T.decl_buffer((32,), scope="shared")
        static[tx] = A[tx]
        B[tx] = static[31 - tx]
        dynamic[tx] = A[tx]
        B[tx] = B[tx] + dynamic[31 - tx]

    mod = tvm.IRModule({"main": exchange})
    count = [
        str(tir.transform.ThreadSync(scope)(mod)).count("tvm_storage_sync")
        for scope in ("shared", "shared.dyn")
    ]
    assert count == [2, 1]


def test_views_see_compacted_buffers_with_their_strides():
    """The view's stride is that of the padded tile, and it begins where the tile does."""

    @T.prim_func
    def func(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
        for i in range(4):
            with T.block(""):
                T.reads(A[i * 16 : i * 16 + 16, 0:64])
                T.writes(B[i * 16 : i * 16 + 16, 0:64])
                tile = T.alloc_buffer((64, 64), scope="shared")
                for x, y in T.grid(16, 64):
                    with T.block("fill"):
                        T.reads(A[i * 16 + x, y])
                        T.writes(tile[i * 16 + x, y])
                        T.block_attr({"buffer_dim_align": [[0, 0, 32, 8]]})
                        tile[i * 16 + x, y] = A[i * 16 + x, y]
                with T.block("use"):
                    T.reads(tile[i * 16 : i * 16 + 16, 0:64])
                    T.writes(B[i * 16 : i * 16 + 16, 0:64])
                    stride = T.int32()
                    view = T.match_buffer(
                        tile[i * 16 : i * 16 + 16, 0:64],
                        (16, 64),
                        strides=[stride, 1],
                        offset_factor=1,
                        scope="shared",
                    )
                    T.evaluate(T.call_extern("use", view.access_ptr("r"), stride, dtype="int32"))

    text = str(tvm.lower(tvm.IRModule({"main": func})))
    assert re.search(r'T.call_extern\("int32", "use", .*, 72\)', text), text
    assert re.search(r"T.allocate\(\[1152\]", text), text  # 16 rows of 72
