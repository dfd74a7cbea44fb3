"""Operators for other compilers: found by patterns, made functions, compiled, called."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tvm
import tvm.relax.backend.contrib.cublas
import tvm.relax.backend.contrib.cutlass
from tvm import relax, te, topi
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.transform import (
    FuseOpsByPattern,
    FusionPattern,
    MergeCompositeFunctions,
    PatternCheckContext,
    RunCodegen,
)
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.exp(b)
            d = R.add(c, b)
            R.output(d)
        return d


PRODUCT = is_op("relax.matmul")(wildcard(), wildcard())
RECTIFIED = is_op("relax.nn.relu")(PRODUCT)
SUM = is_op("relax.add")(wildcard(), wildcard())


def _names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(gvar.name_hint) for gvar in mod.get_global_vars())


def test_matches_become_composite_functions() -> None:
    mod = FuseOpsByPattern([("own.product", RECTIFIED), ("own.sum", SUM)])(Module)
    assert _names(mod) == ["fused_relax_add", "fused_relax_matmul_relax_nn_relu", "main"]
    assert mod["fused_relax_add"].attrs["Composite"] == "own.sum"
    assert relax.analysis.well_formed(mod)


def test_the_first_pattern_goes_before() -> None:
    mod = FuseOpsByPattern([("own.plain", PRODUCT), ("own.product", RECTIFIED)])(Module)
    assert _names(mod) == ["fused_relax_matmul", "main"]


def test_a_check_sees_the_match() -> None:
    seen: list[PatternCheckContext] = []
    lhs = wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.matmul")(lhs, wildcard()))

    def check(context: PatternCheckContext) -> bool:
        seen.append(context)
        return False

    rule = FusionPattern("own.product", pattern, {"lhs": lhs}, check)
    assert FuseOpsByPattern([rule])(Module).same_as(Module)
    assert [str(var.name_hint) for var in seen[0].matched_bindings] == ["b", "a"]
    assert seen[0].annotated_expr["lhs"].same_as(Module["main"].params[0])
    usages = {str(k.name_hint): len(v) for k, v in seen[0].var_usages.items()}
    assert usages == {"x": 1, "w": 1, "a": 1, "b": 2, "c": 1}


def test_a_part_that_says_how_it_is_made_is_a_value() -> None:
    product = is_op("relax.matmul")(wildcard(), wildcard())
    seen: list[PatternCheckContext] = []

    def check(context: PatternCheckContext) -> bool:
        seen.append(context)
        return True

    pattern = is_op("relax.nn.relu")(product)
    rule = FusionPattern("own.product", pattern, {"product": product}, check)
    FuseOpsByPattern([rule])(Module)
    call = seen[0].annotated_expr["product"]
    assert isinstance(call, relax.Call) and call.op.name == "relax.matmul"
    assert seen[0].matched_bindings[seen[0].value_to_bound_var[call]].same_as(call)


def test_attributes_from_a_match() -> None:
    rule = FusionPattern("own.sum", SUM, {}, None, lambda parts: {"alpha": 3})
    assert FuseOpsByPattern([rule])(Module)["fused_relax_add"].attrs["alpha"] == 3


def test_groups_that_need_each_other_are_refused() -> None:
    pattern = is_op("relax.add")(is_op("relax.exp")(wildcard()), RECTIFIED)
    assert FuseOpsByPattern([("own.all", pattern)])(Module)
    around = is_op("relax.add")(wildcard(), RECTIFIED)
    with pytest.raises(ValueError, match="A cyclic dependency detected"):
        FuseOpsByPattern([("own.around", around)])(Module)


def test_a_variable_bound_twice_is_refused() -> None:
    mod = tvm.IRModule({"main": Module["main"], "copy": Module["main"]})
    with pytest.raises(ValueError, match="'a' is bound more than once"):
        FuseOpsByPattern([("own.product", PRODUCT)])(mod)


def test_neighbours_are_merged_unless_something_is_between() -> None:
    patterns = [("own.product", RECTIFIED), ("own.exp", is_op("relax.exp")(wildcard()))]
    mod = MergeCompositeFunctions()(FuseOpsByPattern(patterns)(Module))
    assert len(_names(mod)) == 2 and all(n == "main" or n.endswith("_own") for n in _names(mod))
    patterns = [("own.product", RECTIFIED), ("own.sum", SUM)]
    mod = MergeCompositeFunctions()(FuseOpsByPattern(patterns)(Module))
    assert len(_names(mod)) == 3
    assert relax.analysis.well_formed(mod)


def _one_kernel(func: relax.Function, names: dict) -> tvm.runtime.Module:
    """What a compiler for matrix products and rectifiers makes of a function."""
    x = te.placeholder((4, 8), name="x")
    w = te.placeholder((8, 8), name="w")
    y = topi.nn.relu(topi.nn.matmul(x, w))
    return tvm.build(te.create_schedule(y.op), [x, w, y], name=str(func.attrs["global_symbol"]))


@pytest.fixture
def own_compiler() -> Iterator[list]:
    calls: list = []

    def compile_all(functions, options, names):
        calls.append((len(functions), dict(options)))
        return [_one_kernel(func, names) for func in functions]

    tvm.register_func("relax.ext.own", compile_all, override=True)
    yield calls
    tvm._ffi.registry.remove_global_func("relax.ext.own")


@pytest.mark.parametrize("merge", [False, True])
def test_compiled_functions_are_linked_and_run(own_compiler: list, merge: bool) -> None:
    patterns = [("own.product", RECTIFIED)]
    mod = FuseOpsByPattern(patterns, annotate_codegen=not merge)(Module)
    mod = MergeCompositeFunctions()(mod) if merge else mod
    mod = RunCodegen({"own": {"level": 2}})(mod)
    assert own_compiler == [(1, {"level": 2})]
    assert _names(mod) == ["main"] and len(mod.attrs["external_mods"]) == 1
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype("float32") for s in [(4, 8), (8, 8)])
    vm = relax.VirtualMachine(relax.build(mod))
    got = vm["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
    b = np.maximum(x @ w, 0)
    np.testing.assert_allclose(got, np.exp(b) + b, rtol=1e-5)


def test_a_compiler_that_is_not_there_is_named() -> None:
    mod = FuseOpsByPattern([("nobody.product", PRODUCT)], annotate_codegen=True)(Module)
    with pytest.raises(ValueError, match="nothing compiles functions for 'nobody'"):
        RunCodegen()(mod)


def test_patterns_are_kept_by_name_and_later_ones_go_before() -> None:
    registry = relax.backend.pattern_registry
    registry.register_patterns([("kept.plain", PRODUCT), FusionPattern("kept.relu", RECTIFIED)])
    names = [pattern.name for pattern in registry.get_patterns_with_prefix("kept")]
    assert names == ["kept.relu", "kept.plain"]
    assert registry.get_pattern("kept.plain").pattern is PRODUCT
    assert registry.get_pattern("kept.other") is None
    mod = FuseOpsByPattern(registry.get_patterns_with_prefix("kept"))(Module)
    assert mod["fused_relax_matmul_relax_nn_relu"].attrs["Composite"] == "kept.relu"


@I.ir_module
class Layer:
    @R.function
    def main(
        x: R.Tensor((4, 8), "float16"),
        w: R.Tensor((16, 8), "float16"),
        bias: R.Tensor((16,), "float16"),
        skip: R.Tensor((4, 16), "float16"),
    ):
        with R.dataflow():
            t = R.permute_dims(w)
            a = R.matmul(x, t)
            b = R.add(a, bias)
            c = R.add(b, skip)
            R.output(c)
        return c


def test_libraries_take_products_with_what_follows() -> None:
    mod = relax.backend.contrib.cutlass.partition_for_cutlass(Layer)
    whole = "fused_relax_permute_dims_relax_matmul_relax_add_relax_add_cutlass"
    assert _names(mod) == [whole, "main"] and mod[whole].attrs["Codegen"] == "cutlass"
    mod = relax.backend.contrib.cublas.partition_for_cublas(Layer)
    # cuBLAS adds a bias, but no residual.
    assert "fused_relax_permute_dims_relax_matmul_relax_add_cublas" in _names(mod)
    assert "R.add" in str(mod["main"])


def test_a_second_name_of_a_value_ends_a_group() -> None:
    x = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    a = relax.DataflowVar("a", x.struct_info)
    b = relax.DataflowVar("b", x.struct_info)
    c = relax.Var("c", x.struct_info)
    bindings = [
        relax.VarBinding(a, relax.op.matmul(x, x)),
        relax.VarBinding(b, a),
        relax.VarBinding(c, relax.op.nn.relu(b)),
    ]
    func = relax.Function([x], relax.SeqExpr([relax.DataflowBlock(bindings)], c))
    mod = FuseOpsByPattern([("own.product", RECTIFIED)])(tvm.IRModule({"main": func}))
    assert _names(mod) == ["main"]
