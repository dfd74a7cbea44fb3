"""Calls of kernels as allocations and plain calls, and the end of purity."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.transform import CallTIRRewrite, RemovePurityChecking, ToNonDataflow
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def exp(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
        T.evaluate(0)

    @T.prim_func
    def dyn(A: T.handle, B: T.handle, n: T.int64):
        T.evaluate(0)

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), s: R.Shape(["n"])):
        n = T.int64()
        with R.dataflow():
            a = R.call_tir(Module.exp, (x,), R.Tensor((2, 3), "float32"))
            b = R.call_tir(Module.dyn, (a,), R.Tensor((n,), "float32"), tir_vars=R.shape([n]))
            c = R.call_tir_inplace(Module.exp, (a, x), [0], R.Tensor((2, 3), "float32"))
            d = R.call_dps_packed(
                "split", (c,), [R.Tensor((2,), "float32"), R.Tensor((2,), "int8")]
            )
            gv = (b, d)
            R.output(gv)
        return gv


def _lines(mod: tvm.IRModule) -> list[str]:
    calls = []
    for block in mod["main"].body.blocks:
        assert not isinstance(block, relax.DataflowBlock)
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, relax.Call):
                op = value.op
                calls.append(str(getattr(op, "name", getattr(op, "name_hint", None)) or op))
    return calls


def test_results_are_allocated_and_written() -> None:
    mod = CallTIRRewrite()(ToNonDataflow()(RemovePurityChecking()(Module)))
    names = [name.rsplit(".", 1)[-1].strip('"') for name in _lines(mod)]
    assert names[:5] == ["alloc_tensor", "exp", "alloc_tensor", "call_tir_dyn", "exp"]
    assert names[5:7] == ["alloc_tensor", "alloc_tensor"] and len(names) == 8
    assert relax.analysis.well_formed(mod)
    results = mod["main"].ret_struct_info
    assert results == Module["main"].ret_struct_info


def test_pure_calls_become_plain_ones() -> None:
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.call_pure_packed("copy", x, sinfo_args=x.struct_info))
        builder.emit_func_output(y)
    func = RemovePurityChecking()(builder.get())["main"]
    call = func.body.blocks[0].bindings[0].value
    assert isinstance(call.op, relax.ExternFunc) and str(call.op.global_symbol) == "copy"
    assert func.attrs["relax.force_pure"]
