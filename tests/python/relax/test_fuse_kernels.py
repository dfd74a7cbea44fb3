"""Kernels that say how they may be fused, in groups, and as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.relax import op
from tvm.relax.op import OpPattern
from tvm.relax.transform import AnnotateTIROpPattern, FuseOps, FuseTIR, LegalizeOps
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T
from tvm.transform import Sequential


def _module(make: Any, *shapes: tuple[Any, ...]) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float32"))
        for i, shape in enumerate(shapes)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make(*params))
        builder.emit_func_output(result)
    return builder.get()


def _grouped(mod: tvm.IRModule) -> tvm.IRModule:
    return Sequential([LegalizeOps(), AnnotateTIROpPattern(), FuseOps()])(mod)


def _kernels(mod: tvm.IRModule) -> list[str]:
    functions = mod.functions.items()
    return sorted(str(gvar.name_hint) for gvar, f in functions if isinstance(f, tir.PrimFunc))


@pytest.mark.parametrize(
    ("make", "shapes", "pattern"),
    [
        (op.exp, [(3, 4)], OpPattern.ELEMWISE),
        (op.add, [(3, 4), (4,)], OpPattern.BROADCAST),
        (lambda x: op.permute_dims(x), [(3, 4)], OpPattern.INJECTIVE),
        (lambda x: op.reshape(x, (6, 2)), [(3, 4)], OpPattern.INJECTIVE),
        (lambda x: op.sum(x, 1), [(3, 4)], OpPattern.COMM_REDUCE),
        (op.matmul, [(3, 4), (4, 5)], OpPattern.OUT_FUSABLE),
        (lambda x: op.nn.softmax(x), [(3, 4)], OpPattern.OPAQUE),
        (lambda x, w: op.nn.conv2d(x, w, padding=1), [(1, 2, 5, 5), (3, 2, 3, 3)],
         OpPattern.OUT_FUSABLE),
    ],
)  # fmt: skip
def test_patterns_are_read_off_programs(make: Any, shapes: Any, pattern: OpPattern) -> None:
    mod = AnnotateTIROpPattern()(LegalizeOps()(_module(make, *shapes)))
    (name,) = _kernels(mod)
    assert int(mod[name].attrs["op_pattern"]) == pattern


def test_an_attribute_that_is_there_stays() -> None:
    mod = LegalizeOps()(_module(op.exp, (3, 4)))
    mod["tir_exp"] = mod["tir_exp"].with_attr("op_pattern", 8)
    assert int(AnnotateTIROpPattern()(mod)["tir_exp"].attrs["op_pattern"]) == 8


def _layer(x: Any, w: Any, b: Any) -> Any:
    a = op.nn.relu(op.add(op.matmul(x, w), b))
    c = op.permute_dims(op.exp(a))
    return op.sum(op.multiply(c, c), 1)


def test_what_follows_a_product_and_precedes_a_sum_goes_with_it() -> None:
    mod = _grouped(_module(_layer, (4, 8), (8, 6), (6,)))
    fused = [str(g.name_hint) for g, f in mod.functions.items() if "Primitive" in f.attrs]
    assert sorted(fused) == ["fused_matmul_add_relu_tir_exp", "fused_multiply_sum"]
    assert relax.analysis.well_formed(mod)


def test_values_that_are_read_elsewhere_end_a_group() -> None:
    mod = _grouped(_module(lambda x, w: relax.Tuple([op.matmul(x, w), op.exp(x)]), (4, 4), (4, 4)))
    assert not any("Primitive" in f.attrs for f in mod.functions.values())


@pytest.mark.parametrize("rows", [4, tir.Var("n", "int64")], ids=["fixed", "open"])
def test_a_group_is_one_kernel_and_computes_the_same(rows: Any) -> None:
    plain = _module(_layer, (rows, 8), (8, 6), (6,))
    mod = FuseTIR()(_grouped(plain))
    assert "fused_matmul_add_relu_tir_exp" in _kernels(mod) and "matmul" not in _kernels(mod)
    assert "Primitive" not in str(mod["main"]) and relax.analysis.well_formed(mod)
    blocks: list[str] = []
    tir.stmt_functor.post_order_visit(
        mod["fused_matmul_add_relu_tir_exp"].body,
        lambda node: blocks.append(str(node.name_hint)) if isinstance(node, tir.Block) else None,
    )
    assert len(set(blocks)) == len(blocks) == 5
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype("float32") for s in [(4, 8), (8, 6), (6,)])
    vm = relax.VirtualMachine(relax.build(mod))
    got = vm["main"](*(tvm.nd.array(a) for a in (x, w, b))).numpy()
    c = np.exp(np.maximum(x @ w + b, 0)).T
    np.testing.assert_allclose(got, (c * c).sum(1), rtol=1e-4)


def test_long_chains_are_groups_of_the_largest_size() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with builder.function("main", [x]), builder.dataflow():
        value = x
        for _ in range(1000):
            value = builder.emit(relax.op.add(relax.op.tanh(value), x))
        builder.emit_func_output(builder.emit_output(value))
    config = {"relax.FuseOps.max_depth": 100}
    with tvm.transform.PassContext(config=config):
        mod = relax.transform.LegalizeOps()(builder.get())
        mod = relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(mod))
    calls = [b.value for block in mod["main"].body.blocks for b in block.bindings]
    assert len([c for c in calls if isinstance(c, relax.Call)]) == 20


def test_one_kernel_called_twice_has_blocks_of_its_own() -> None:
    mod = FuseTIR()(_grouped(_module(lambda x: op.exp(op.exp(x)), (5,))))
    assert _kernels(mod) == ["fused_tir_exp_tir_exp"]
    tir.analysis.verify_well_formed(mod["fused_tir_exp_tir_exp"], assert_mode=True)
    vm = relax.VirtualMachine(relax.build(mod))
    x = np.linspace(-1, 1, 5).astype("float32")
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), np.exp(np.exp(x)), rtol=1e-5)


def test_kernels_that_a_pattern_finds_are_one() -> None:
    chain: Any = relax.dpl.wildcard()
    for _ in range(2):
        chain = relax.dpl.is_op("relax.call_tir")(
            relax.dpl.GlobalVarPattern(), relax.dpl.TuplePattern([chain]), add_constraint=False
        )
    legal = LegalizeOps()(_module(lambda x: op.sum(op.exp(x), 1), (3, 4)))
    found = relax.transform.FuseOpsByPattern([("exp_sum", chain)])(legal)
    mod = FuseTIR()(found)
    assert len(_kernels(found)) == 2 and len(_kernels(mod)) == 1
    assert sum(isinstance(f, relax.Function) for f in mod.functions.values()) == 1
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    np.testing.assert_allclose(
        machine["main"](tvm.nd.array(x)).numpy(), np.exp(x).sum(1), rtol=1e-5
    )


def test_functions_that_call_others_are_refused() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def copy(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.block("copy"):
                    vi = T.axis.spatial(4, i)
                    b[vi] = a[vi]

        @R.function(private=True)
        def fused(x: R.Tensor((4,), "float32")):
            R.func_attr({"Primitive": 1})
            with R.dataflow():
                y = R.call_tir(Module.copy, (x,), R.Tensor((4,), "float32"))
                z = R.exp(y)
                R.output(z)
            return z

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return Module.fused(x)

    with pytest.raises(ValueError, match="calls kernels only"):
        FuseTIR()(Module)
