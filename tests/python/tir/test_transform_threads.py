"""Passes for kernels: what they change, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply
from testing_tir import run_prim_func
from tvm import tir
from tvm.tir import transform

CUDA = tvm.target.Target("cuda", host="llvm")


def axis(tag):
    return tir.IterVar(None, tir.Var(tag.replace(".", "_"), "int32"), 4, tag)


class Kernel:
    """A function over A and B whose body is written with a builder, inside of threads."""

    def __init__(self, shape=(64,), threads=(("blockIdx.x", 2), ("threadIdx.x", 32))):
        self.ib = tir.ir_builder.create()
        self.a_buffer = tir.decl_buffer(shape, name="A")
        self.b_buffer = tir.decl_buffer(shape, name="B")
        self.a = self.ib.buffer_ptr(self.a_buffer)
        self.b = self.ib.buffer_ptr(self.b_buffer)
        self.axes = []
        for tag, extent in threads:
            self.axes.append(axis(tag))
            self.ib.scope_attr(self.axes[-1], "thread_extent", extent)

    def function(self, target=CUDA):
        params = [tir.Var("a", "handle"), tir.Var("b", "handle")]
        buffers = dict(zip(params, [self.a_buffer, self.b_buffer], strict=True))
        func = tir.PrimFunc(params, self.ib.get(), buffer_map=buffers)
        return func.with_attr("target", target) if target is not None else func


def barriers(func):
    return str(func).count("tvm_storage_sync")


def test_no_barrier_where_each_thread_reads_what_it_wrote():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    shared[tx] = k.a[tx]
    k.b[tx] = shared[tx] * 2.0
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 0


def test_no_barrier_where_an_index_holds_all_digits_of_the_thread():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 48, name="s", scope="shared")
    place = tir.floordiv(tx, 4) * 6 + tir.floormod(tx, 4)
    shared[place] = k.a[tx]
    k.b[tx] = shared[place] * 2.0
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 0


@pytest.mark.parametrize("row", [3, 6])
def test_a_barrier_where_digits_are_missing_or_meet(row):
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 48, name="s", scope="shared")
    # Rows of 3 begin before four elements have ended; of the rest by 2 the upper digit is missing.
    column = tir.floormod(tx, 4) if row == 3 else tir.floormod(tx, 2)
    place = tir.floordiv(tx, 4) * row + column
    shared[place] = k.a[tx]
    k.b[tx] = shared[place] * 2.0
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 1


def test_a_barrier_where_a_thread_reads_what_another_wrote():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    shared[tx] = k.a[tx]
    k.b[tx] = shared[31 - tx]
    text = str(apply(transform.ThreadSync("shared"), k.function()))
    assert text.index("s[threadIdx_x] =") < text.index("storage_sync") < text.index("s[31")


def test_barriers_of_a_loop_count_what_the_last_trip_read():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    with k.ib.for_range(0, 4, name="i") as i:
        shared[tx] = k.a[tx + i]
        k.b[tx] = k.b[tx] + shared[31 - tx]
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 2


def test_an_existing_barrier_is_enough():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    shared[tx] = k.a[tx]
    k.ib.emit(tir.Evaluate(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared")))
    k.b[tx] = shared[31 - tx]
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 1


def test_one_write_to_half_of_a_double_buffer_needs_one_barrier_a_trip():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 64, name="s", scope="shared")
    with k.ib.for_range(0, 4, name="i") as i:
        with k.ib.new_scope():
            k.ib.scope_attr(shared.asobject().data, "double_buffer_write", 1)
            shared[(i + 1) % 2 * 32 + tx] = k.a[tx + i]
        k.b[tx] = k.b[tx] + shared[i % 2 * 32 + 31 - tx]
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 1


def test_halves_of_a_double_buffer_whose_loop_is_gone_are_waited_for():
    # What was the next trip reads the half that the last one wrote: after both stores is one more.
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 64, name="s", scope="shared")
    shared[tx] = k.a[tx]
    with k.ib.new_scope():
        k.ib.scope_attr(shared.asobject().data, "double_buffer_write", 1)
        shared[tx + 32] = k.a[tx + 1]
    k.b[tx] = shared[31 - tx]
    k.b[tx] = k.b[tx] + shared[63 - tx]
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 2


def test_a_barrier_that_only_some_threads_would_reach_is_refused():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    with k.ib.if_scope(tx < 7):
        shared[tx] = k.a[tx]
        k.b[tx] = shared[6 - tx]
    with pytest.raises(ValueError, match="condition that differs between threads"):
        apply(transform.ThreadSync("shared"), k.function())


def test_a_condition_on_the_block_may_hold_a_barrier():
    k = Kernel()
    bx, tx = (a.var for a in k.axes)
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    with k.ib.if_scope(bx < 1):
        shared[tx] = k.a[tx]
        k.b[tx] = shared[31 - tx]
    assert barriers(apply(transform.ThreadSync("shared"), k.function())) == 1


def test_threads_can_wait_in_two_scopes_only():
    with pytest.raises(ValueError, match='got "global"'):
        transform.ThreadSync("global")


def test_host_access_to_device_memory_is_named():
    k = Kernel(threads=())
    k.b[0] = k.a[0]
    func = k.function()
    assert not tir.analysis.verify_memory(func)
    with pytest.raises(ValueError, match="main writes B on the host.*Did you forget to bind"):
        apply(transform.VerifyMemory(), func)
    assert tir.analysis.verify_memory(k.function(tvm.target.Target("llvm")))


@pytest.mark.parametrize(
    ("limit", "value", "fits"),
    [
        ("max_threads_per_block", 32, True),
        ("max_threads_per_block", 31, False),
        ("max_thread_x", 16, False),
        ("max_shared_memory_per_block", 128, True),
        ("max_shared_memory_per_block", 127, False),
        ("max_local_memory_per_block", 511, False),
        ("max_vector_bytes", 8, True),
        ("max_vthread", 1, True),
    ],
)
def test_limits_of_the_device_are_checked(limit, value, fits):
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared")
    local = k.ib.allocate("float32", 4, name="l", scope="local")
    shared[tx] = k.a[tx]
    local[0] = shared[tx]
    k.b[tx] = local[0]
    func = k.function()
    assert tir.analysis.verify_gpu_code(func, {limit: value}) == fits
    if not fits:
        with pytest.raises(ValueError, match=f"{limit} is {value}"):
            apply(transform.VerifyGPUCode({limit: value}), func)


def test_an_unknown_limit_is_refused():
    k = Kernel()
    k.b[0] = k.a[0]
    with pytest.raises(ValueError, match="no limit called max_registers"):
        tir.analysis.verify_gpu_code(k.function(), {"max_registers": 1})


def test_dynamic_shared_memory_becomes_one_allocation():
    k = Kernel()
    tx = k.axes[1].var
    first = k.ib.allocate("float16", 5, name="p", scope="shared.dyn")
    second = k.ib.allocate("float32", 32, name="q", scope="shared.dyn")
    first[0] = k.a[tx].astype("float16")
    second[tx] = k.a[tx]
    k.b[tx] = second[tx]
    func = apply(transform.MergeDynamicSharedMemoryAllocations(), k.function())
    text = str(func)
    # Five halves take ten bytes, rounded up to 32: element 8 of the floats that follow.
    assert 'T.allocate([160], "uint8", "shared.dyn")' in text
    assert "q[threadIdx_x + 8]" in text or "q[8 + threadIdx_x]" in text


def test_static_shared_memory_becomes_one_allocation_on_request():
    k = Kernel()
    tx = k.axes[1].var
    first = k.ib.allocate("float16", 32, name="p", scope="shared")
    second = k.ib.allocate("float32", 32, name="q", scope="shared")
    first[tx] = k.a[31 - tx].astype("float16")
    second[tx] = k.a[tx]
    k.b[tx] = second[31 - tx] + first[31 - tx].astype("float32")
    func = k.function(None)
    assert apply(transform.MergeSharedMemoryAllocations(), func).body.same_as(func.body)
    a = np.arange(64, dtype="float32")
    expected = a[:32][::-1] + a[:32]
    with tvm.transform.PassContext(config={"tir.merge_static_smem": True}):
        merged = str(apply(transform.MergeSharedMemoryAllocations(), func))
        kernel = tvm.build(func, target=tvm.target.emulated("cuda", check_races=True))
    assert 'T.allocate([192], "uint8", "shared")' in merged
    out = tvm.nd.empty((64,))
    kernel(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy()[:32], expected)


def test_instructions_take_pointers_into_merged_memory():
    k = Kernel()
    tx = k.axes[1].var
    parts = [k.ib.allocate("float16", 64, name=name, scope="shared.dyn") for name in "pq"]
    for part in parts:
        part[tx] = k.a[tx].astype("float16")
    data = [part._buffer.data for part in parts]
    pointer = tir.call_intrin(
        "handle", "tir.tvm_access_ptr", tir.const(0, "float16"), data[1], 4, 8, 1
    )
    k.ib.emit(tir.call_extern("int32", "f", pointer))
    registers = k.ib.allocate("float16", 8, name="r", scope="local")
    load = ("float16", False, 4, ".b16", registers._buffer.data, 0, data[1], 16)
    k.ib.emit(tir.call_intrin(load[0], "tir.ptx_ldmatrix", *load[1:]))
    text = str(apply(transform.MergeSharedMemoryAllocations(), k.function()))
    assert "buf_dyn_shmem, 68, 8, 1" in text
    assert "[64]), 16" in text


def test_a_launch_states_its_dynamic_shared_memory():
    k = Kernel()
    tx = k.axes[1].var
    shared = k.ib.allocate("float32", 32, name="s", scope="shared.dyn")
    shared[tx] = k.a[tx]
    k.b[tx] = shared[31 - tx]
    host, device = tvm.driver.split_dev_host_funcs(
        tvm.IRModule({"main": k.function(None).with_attr("global_symbol", "main")}), CUDA
    )
    (kernel,) = device.functions.values()
    params = [str(tag) for tag in kernel.attrs["tir.kernel_launch_params"]]
    assert params == ["blockIdx.x", "threadIdx.x", "tir.use_dyn_shared_memory"]
    assert kernel.attrs["calling_conv"] == tvm.ir.CallingConv.DEVICE_KERNEL_LAUNCH
    assert kernel.attrs["target"].host is None
    assert "main_kernel" in str(host)


def test_thread_axes_are_bound_once_per_launch():
    k = Kernel(threads=(("blockIdx.x", 2),))
    for _ in range(2):
        with k.ib.new_scope():
            lane = axis("threadIdx.x")
            k.ib.scope_attr(lane, "thread_extent", 32)
            k.b[lane.var] = k.a[lane.var]
    assert str(apply(transform.UnifyThreadBinding(), k.function())).count("thread_extent") == 2


def test_one_axis_cannot_have_two_extents_in_a_launch():
    k = Kernel(threads=(("blockIdx.x", 2),))
    for extent in (32, 16):
        with k.ib.new_scope():
            lane = axis("threadIdx.x")
            k.ib.scope_attr(lane, "thread_extent", extent)
            k.b[lane.var] = k.a[lane.var]
    with pytest.raises(ValueError, match=r"extents 32 and 16 to threadIdx.x"):
        apply(transform.UnifyThreadBinding(), k.function())


def virtual(extent):
    k = Kernel()
    tx = k.axes[1].var
    thread = axis("vthread")
    k.ib.scope_attr(thread, "virtual_thread", extent)
    local = k.ib.allocate("float32", 4, name="l", scope="local")
    with k.ib.for_range(0, 4, name="i") as i:
        local[i] = k.a[tx + thread.var]
        k.b[tx * 2 + thread.var] = local[i]
    return apply(transform.InjectVirtualThread(), k.function())


def test_few_virtual_threads_are_written_out_with_memory_for_each():
    text = str(virtual(2))
    assert "[8]" in text
    assert "l[0 * 4 + i] =" in text
    assert "l[1 * 4 + i] =" in text
    assert "virtual_thread" not in text


@pytest.mark.parametrize("extent", [20, tir.SizeVar("v", "int32")])
def test_many_or_a_symbolic_number_of_virtual_threads_run_in_a_loop(extent):
    k = Kernel()
    thread = axis("vthread")
    k.ib.scope_attr(thread, "virtual_thread", extent)
    k.b[thread.var] = k.a[thread.var]
    func = k.function()
    if not isinstance(extent, int):
        func = tir.PrimFunc([*func.params, extent], func.body, buffer_map=func.buffer_map)
    text = str(apply(transform.InjectVirtualThread(), func))
    assert f"in range({extent})" in text or f"T.serial({extent})" in text


def test_memory_whose_size_depends_on_the_virtual_thread_belongs_to_its_trip():
    k = Kernel(threads=())
    thread = axis("vthread")
    k.ib.scope_attr(thread, "virtual_thread", 2)
    local = k.ib.allocate("float32", thread.var * 4 + 4, name="l", scope="local")
    with k.ib.for_range(0, 4, name="i") as i:
        local[i] = k.a[thread.var]
        k.b[i * 2 + thread.var] = local[i]
    func = apply(transform.InjectVirtualThread(), k.function(target=None))
    free = tir.analysis.undefined_vars(func.body, list(func.params))
    assert {var.name for var in free} <= {"A", "B"}
    values, out = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    run_prim_func(func, values, out)
    np.testing.assert_array_equal(out[:8], [0, 1] * 4)


def test_packed_calls_write_their_arguments_to_the_stack():
    k = Kernel(threads=())
    k.ib.emit(tir.Evaluate(tir.call_packed("f", 1, 2.0, "text", k.a)))
    text = str(apply(transform.LowerTVMBuiltin(), k.function()))
    assert 'tvm_stack_alloca("tvm_any", 5)' in text
    assert "tvm_call_packed_lowered" in text
    assert text.count("tvm_struct_set") == 8


def test_memory_of_a_warp_needs_a_store_by_its_own_thread():
    k = Kernel()
    tx = k.axes[1].var
    warp = k.ib.allocate("float32", 32, name="w", scope="warp")
    warp[31 - tx] = k.a[tx]
    k.b[tx] = warp[tx]
    with pytest.raises(ValueError, match="LowerWarpMemory"):
        apply(transform.LowerWarpMemory(), k.function())


def test_memory_of_a_warp_becomes_registers_and_shuffles():
    k = Kernel()
    tx = k.axes[1].var
    warp = k.ib.allocate("float32", 64, name="w", scope="warp")
    warp[tx] = k.a[tx]
    warp[tx + 32] = k.a[tx + 32]
    k.b[tx] = warp[(tx + 1) % 32 + 32] + warp[tx]
    text = str(apply(transform.LowerWarpMemory(), k.function()))
    assert text.count("tvm_warp_shuffle") == 1
    assert '[2], "float32", "local"' in text
