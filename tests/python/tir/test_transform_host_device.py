"""Functions for several targets: parts for devices, their launches, and which target is whose."""

import pytest

import tvm
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import transform

CUDA = tvm.target.Target("cuda", host="llvm")


@I.ir_module
class Doubled:
    @T.prim_func
    def main(a: T.handle, b: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        blocks: T.int32 = (n + 31) // 32
        block = T.launch_thread("blockIdx.x", blocks)
        thread = T.launch_thread("threadIdx.x", 32)
        if block * 32 + thread < n:
            B[block * 32 + thread] = A[block * 32 + thread] * T.float32(2)


def split(mod, *passes):
    return tvm.transform.Sequential(
        [
            transform.BindTarget(CUDA),
            transform.AnnotateDeviceRegions(),
            transform.SplitHostDevice(),
            *passes,
        ]
    )(mod)


def test_a_kernel_is_a_private_function_that_declares_its_buffers():
    mod = split(Doubled)
    assert [str(var.name_hint) for var in mod.functions] == ["main", "main_kernel"]
    kernel = mod["main_kernel"]
    assert [str(param.name) for param in kernel.params] == ["A", "B", "blocks", "n"]
    assert kernel.attrs["target"].host is None and "global_symbol" not in kernel.attrs
    assert str(kernel).count("T.decl_buffer") == 2
    assert "cls.main_kernel(A.data, B.data, blocks, n)" in str(mod)
    tvm.tir.analysis.verify_well_formed(mod)


def test_a_launch_has_the_extents_in_terms_of_its_arguments():
    mod = split(Doubled, transform.MakePackedAPI(), transform.LowerDeviceKernelLaunch())
    kernel = mod["main_kernel"]
    assert [str(tag) for tag in kernel.attrs["tir.kernel_launch_params"]] == [
        "blockIdx.x",
        "threadIdx.x",
    ]
    assert kernel.attrs["calling_conv"] == tvm.ir.CallingConv.DEVICE_KERNEL_LAUNCH
    assert kernel.attrs["global_symbol"] == "main_kernel"
    assert ", blocks, n, blocks, 32)" in str(mod)


def test_a_part_for_another_processor_reports_errors():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(n: T.int32):
            T.func_attr({"target": T.target("cuda", host="llvm")})
            with T.attr(T.target("llvm -mcpu=skylake"), "target", 0):
                T.evaluate(n)

    mod = transform.SplitHostDevice()(Before)
    assert "T.ret(0)" in str(mod["main_kernel"])
    assert 'assert kernel_error_code == 0, "Error executing compute kernel"' in str(mod["main"])


def test_functions_for_two_processors_call_each_other_by_name():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(n: T.int32):
            T.func_attr({"target": T.target("llvm")})
            T.evaluate(cls.worker(n))  # noqa: F821

        @T.prim_func(private=True)
        def worker(n: T.int32) -> T.int32:
            T.func_attr({"target": T.target("c")})
            T.ret(n + 1)

    mod = transform.LowerDeviceKernelLaunch()(Before)
    assert 'T.call_extern("int32", "worker", n)' in str(mod["main"])
    assert mod["worker"].attrs["global_symbol"] == "worker"


def test_an_extent_that_only_the_kernel_knows_is_refused():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((8,), "int32")):
            T.func_attr({"target": T.target("cuda", host="llvm")})
            with T.attr(T.target("cuda"), "target", 0):
                size: T.int32 = A[0]
                thread = T.launch_thread("threadIdx.x", size)
                A[thread] = 0

    with pytest.raises(ValueError, match="threadIdx.x = size.*known inside of the kernel only"):
        split(Before, transform.MakePackedAPI(), transform.LowerDeviceKernelLaunch())


def test_regions_need_a_target():
    with pytest.raises(ValueError, match="has no target; run BindTarget before"):
        transform.AnnotateDeviceRegions()(Doubled)


def test_a_private_function_gets_the_part_of_the_target_that_it_runs_on():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer((8,), "int32")):
            T.evaluate(cls.on_host(A.data))  # noqa: F821
            for i in T.thread_binding(8, "threadIdx.x"):
                T.evaluate(cls.on_device(A.data, i))  # noqa: F821

        @T.prim_func(private=True)
        def on_host(p: T.handle("int32")):
            T.evaluate(0)

        @T.prim_func(private=True)
        def on_device(p: T.handle("int32"), i: T.int32):
            T.evaluate(i)

    mod = transform.BindTarget(CUDA)(Before)
    kinds = {str(v.name_hint): str(f.attrs["target"].kind.name) for v, f in mod.functions.items()}
    assert kinds == {"main": "cuda", "on_host": "llvm", "on_device": "cuda"}
    assert mod["main"].attrs["target"].host is not None
    assert mod["on_device"].attrs["target"].host is None


def test_a_function_of_the_host_is_marked_and_bound_to_it():
    func = Doubled["main"].with_attr("tir.is_host_func", True)
    bound = transform.BindTarget(CUDA)(tvm.IRModule({"main": func}))["main"]
    assert bound.attrs["target"].kind.name == "llvm" and "tir.is_host_func" not in bound.attrs


def test_the_only_named_function_is_the_entry():
    mod = transform.AnnotateEntryFunc()(split(Doubled))
    assert (
        mod["main"].attrs["tir.is_entry_func"]
        and "tir.is_entry_func" not in mod["main_kernel"].attrs
    )
