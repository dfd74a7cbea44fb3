"""Passes over modules: functions inlined, called from C, and scheduled by default."""

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import transform


@I.ir_module
class Caller:
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32")):
        for i in range(4):
            cls.row(T.address_of(A[i, 0]), T.float32(i))  # noqa: F821

    @T.prim_func(private=True)
    def row(p: T.handle("float32"), value: T.float32):
        row = T.decl_buffer(8, "float32", data=p)
        for j in range(8):
            row[j] = value


def names(mod):
    return sorted(str(var.name_hint) for var in mod.functions)


def test_a_private_function_is_written_out_where_it_is_called():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer(8, "float32"), B: T.Buffer(8, "float32")):
            cls.fill(A.data, T.float32(1))  # noqa: F821
            cls.fill(B.data, T.float32(2))  # noqa: F821

        @T.prim_func(private=True)
        def fill(p: T.handle("float32"), value: T.float32):
            row = T.decl_buffer(8, "float32", data=p)
            for j in range(8):
                row[j] = value

    after = transform.InlinePrivateFunctions()(Before)
    assert names(after) == ["main"]
    assert tvm.tir.analysis.verify_well_formed(after)
    tvm.tir.analysis.verify_ssa(after["main"])
    a, b = (tvm.nd.array(np.zeros(8, "float32")) for _ in range(2))
    tvm.build(after, "llvm")(a, b)
    assert a.numpy().tolist() == [1] * 8 and b.numpy().tolist() == [2] * 8


def test_functions_that_cannot_be_inlined_stay():
    @I.ir_module
    class Before:
        @T.prim_func
        def main(A: T.Buffer(1, "int32")):
            A[0] = cls.value(3)  # noqa: F821
            cls.endless(3)  # noqa: F821

        @T.prim_func(private=True)
        def value(n: T.int32) -> T.int32:
            T.ret(n + 1)

        @T.prim_func(private=True)
        def endless(n: T.int32):
            if n > 0:
                cls.endless(n - 1)  # noqa: F821

        @T.prim_func(private=True)
        def unused(n: T.int32):
            T.evaluate(n)

        @T.prim_func(private=True)
        def caller():
            cls.unused(2)  # noqa: F821

    assert names(transform.InlinePrivateFunctions()(Before)) == ["endless", "main", "value"]


def test_the_interface_of_c_has_pointers_and_an_error_code():
    target = tvm.target.Target("cuda", host="llvm")
    func = Caller["main"].with_attr("target", target)
    mod = transform.MakeUnpackedAPI()(tvm.IRModule({"main": func, "row": Caller["row"]}))
    main = mod["main"]
    assert [str(param.name) for param in main.params] == ["A"] and len(main.buffer_map) == 0
    assert main.attrs["target"].kind.name == "llvm" and str(main.ret_type.dtype) == "int32"
    assert main.body.attr_key == "device_id" and main.body.body.attr_key == "device_type"
    assert int(main.body.body.value) == 2 and "T.ret(0)" in str(main)
    assert mod["row"].same_as(Caller["row"])
    with pytest.raises(ValueError, match="function main has no target; run BindTarget"):
        transform.MakeUnpackedAPI()(Caller)


@pytest.mark.parametrize("size", [40, 1024 * 300])
def test_an_unscheduled_program_runs_on_threads(size):
    a = te.placeholder((size // 8, 8), name="a")
    b = te.compute(a.shape, lambda i, j: a[i, j] * 2, name="b")
    c = te.compute(a.shape, lambda i, j: b[i, j] + 1, name="c")
    mod = tvm.IRModule({"main": te.create_prim_func([a, c])})
    gpu = tvm.target.emulated("cuda")
    with gpu:
        mod = transform.DefaultGPUSchedule()(mod)
    assert mod["main"].attrs["tir.is_scheduled"]
    again = transform.DefaultGPUSchedule()(mod)
    assert tvm.ir.structural_equal(again, mod)
    text = str(mod["main"])
    assert text.count('"blockIdx.x"') == text.count('"threadIdx.x"') == 2
    if size == 40:
        x = np.random.default_rng(0).uniform(size=(5, 8)).astype("float32")
        given, result = tvm.nd.array(x), tvm.nd.array(np.zeros_like(x))
        tvm.build(mod, gpu)(given, result)
        np.testing.assert_allclose(result.numpy(), x * 2 + 1, rtol=1e-6)


def test_programs_for_processors_are_left_as_they_are():
    with tvm.target.Target("llvm"):
        assert tvm.ir.structural_equal(transform.DefaultGPUSchedule()(Caller), Caller)
