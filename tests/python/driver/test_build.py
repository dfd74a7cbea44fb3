"""Building: host and device parts, their modules, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te


def doubled(bind=True, n=20):
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    s = te.create_schedule(b.op)
    if bind:
        outer, inner = s[b].split(b.op.axis[0], factor=8)
        s[b].bind(outer, te.thread_axis("blockIdx.x"))
        s[b].bind(inner, te.thread_axis("threadIdx.x"))
    return s, [a, b]


def names(passes):
    return [str(p.info.name).split(".")[-1] for p in passes]


def test_passes_of_the_three_parts_in_order():
    passes = tvm.driver.build_passes(tvm.target.Target("cuda", host="llvm"))
    assert names(passes["mixed"]) == [
        "FixScalableVectors",
        "PromoteAccumulators",
        "BindTarget",
        "VerifyMemory",
        "UnifyThreadBinding",
        "ThreadSync",
        "MergeSharedMemoryAllocations",
        "ThreadSync",
        "LowerThreadAllreduce",
        "AsyncCopiesOfSchedules",
        "AnnotateDeviceRegions",
        "SplitHostDevice",
        "MakePackedAPI",
        "LowerDeviceKernelLaunch",
    ]
    assert names(passes["host"]) == [
        "KeepHostFunctions",
        "FP8StorageLegalize",
        "LowerTVMBuiltin",
        "LowerIntrin",
    ]
    assert names(passes["device"]) == [
        "KeepKernels",
        "FP8StorageLegalize",
        "LowerWarpMemory",
        "Simplify",
        "LowerIntrin",
    ]


def test_a_kernel_ends_on_the_device_and_its_launch_on_the_host():
    s, args = doubled()
    target = tvm.target.Target("cuda", host="llvm")
    with target:
        lowered = tvm.lower(s, args, name="double")
    host, device = tvm.driver.split_dev_host_funcs(lowered, target)
    assert [str(v.name_hint) for v in host.functions] == ["double"]
    assert [str(v.name_hint) for v in device.functions] == ["double_kernel"]
    assert "tvm_call_packed_lowered" in str(host) and "thread_extent" not in str(host)
    assert str(host["double"].attrs["target"].kind.name) == "llvm"


def test_a_program_for_a_processor_has_no_kernels():
    s, args = doubled(bind=False)
    _, device = tvm.driver.split_dev_host_funcs(tvm.lower(s, args), "llvm")
    assert len(device.functions) == 0
    assert tvm.driver.device_build(device, "llvm") is None


def test_the_host_module_imports_one_device_module():
    s, args = doubled()
    module = tvm.build(s, args, tvm.target.emulated("cuda"))
    assert len(module.imported_modules) == 1
    x = np.arange(20, dtype="float32")
    out = tvm.nd.array(np.zeros(20, "float32"))
    module(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), 2 * x)


def test_parts_for_two_targets_share_one_host_module():
    on_gpu, args = doubled()
    on_cpu, cpu_args = doubled(bind=False)
    gpu = tvm.target.emulated("cuda")
    with gpu:
        first = tvm.lower(on_gpu, args, name="on_gpu")
    second = tvm.lower(on_cpu, cpu_args, name="on_cpu")
    module = tvm.build({gpu: [first], "llvm": [second]})
    assert len(module.imported_modules) == 1
    x = np.arange(20, dtype="float32")
    for name in ("on_gpu", "on_cpu"):
        out = tvm.nd.array(np.zeros(20, "float32"))
        module[name](tvm.nd.array(x), out)
        np.testing.assert_array_equal(out.numpy(), 2 * x)


def test_a_list_of_lowered_functions_gives_them_all():
    parts = [tvm.lower(*doubled(bind=False, n=n), name=f"double{n}") for n in (3, 5)]
    module = tvm.build(parts, target="llvm")
    for n in (3, 5):
        out = tvm.nd.array(np.zeros(n, "float32"))
        module[f"double{n}"](tvm.nd.array(np.ones(n, "float32")), out)
        assert out.numpy().tolist() == [2] * n


def test_a_schedule_needs_its_arguments():
    with pytest.raises(ValueError, match="args are required for a schedule"):
        tvm.build(doubled()[0])


@pytest.mark.parametrize("inputs", [5, "program", None])
def test_what_is_no_program_is_refused(inputs):
    with pytest.raises(TypeError, match="build: expected a schedule, a PrimFunc, an IRModule"):
        tvm.build(inputs)
    with pytest.raises(TypeError, match="element 0 of the list must be a PrimFunc or an IRModule"):
        tvm.build([inputs])


def test_an_unbound_loop_is_refused_for_a_gpu():
    s, args = doubled(bind=False)
    with pytest.raises(ValueError, match="default_function writes B on the host.*forget to bind"):
        tvm.build(s, args, tvm.target.emulated("cuda"))


def test_two_functions_of_one_name_are_refused():
    part = tvm.lower(*doubled(bind=False), name="same")
    with pytest.raises(ValueError, match="two functions are called same"):
        tvm.build({"llvm": part, tvm.target.Target("llvm -num-cores=1"): part})


def test_arrays_must_be_on_the_device_of_the_target():
    s, args = doubled()
    target = tvm.target.Target("cuda", host="llvm")
    with target:
        lowered = tvm.lower(s, args, name="double")
    host, _ = tvm.driver.split_dev_host_funcs(lowered, target)
    double = tvm.target.codegen.build_module(host, "llvm")["double"]
    x = tvm.nd.array(np.zeros(20, "float32"))
    with pytest.raises(ValueError, match=r"argument 0 \(A\).*device, cuda, got memory of cpu"):
        double(x, x)


def test_a_packed_call_finds_imports_before_globals():
    @tvm.register_func("testing.build.answer", override=True)
    def answer():
        return 1

    call = tvm.tir.call_packed("testing.build.answer")
    result = tvm.tir.decl_buffer((1,), "int32", "R")
    handle = tvm.tir.Var("r", "handle")
    body = tvm.tir.BufferStore(result, call, [0])
    func = tvm.tir.PrimFunc([handle], body, buffer_map={handle: result})
    module = tvm.build(func, target="llvm", name="ask")
    out = tvm.nd.array(np.zeros(1, "int32"))
    module["ask"](out)
    assert out.numpy()[0] == 1


def test_the_target_of_a_module_may_stand_second():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    mod = tvm.lower(te.create_schedule(B.op), [A, B])
    assert tvm.build(mod, "c").type_key == "c"
    assert tvm.build(mod["main"], tvm.target.Target("c")).type_key == "c"
    assert tvm.build(mod, [A, B], target="c", name="double").type_key == "c"
    with pytest.raises(TypeError, match="this PrimFunc has its parameters already"):
        tvm.lower(mod["main"], [A])


def test_a_list_is_no_target():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(TypeError, match="expected text, a dict or a Target, got list"):
        tvm.build(te.create_schedule(B.op), [A, B], target=["llvm"])
