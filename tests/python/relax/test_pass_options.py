"""What graph passes leave in corner cases: names, orders, variables and options of theirs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.ir import assert_structural_equal
from tvm.relax import transform
from tvm.relax.dpl import is_op, wildcard
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Scaled:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((2, 3), "float32")):
        return R.multiply(x, w)


def test_parameters_are_bound_by_variable_or_name() -> None:
    values = np.full((2, 3), 2, "float32")
    by_name = transform.BindParams("main", {"w": values})(Scaled)
    by_variable = transform.BindParams("main", {Scaled["main"].params[1]: values})(Scaled)
    assert_structural_equal(by_name, by_variable)
    assert [p.name_hint for p in by_name["main"].params] == ["x"]
    other = relax.Var("w", R.Tensor((2, 3), "float32"))
    with pytest.raises(ValueError, match="the variable 'w' is no parameter of the function"):
        transform.BindParams("main", {other: values})(Scaled)


def test_tensors_are_let_go_of_before_their_storage() -> None:
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32")):
            s = R.memory.alloc_storage(R.shape([8]), 0, "global", "float32")
            y = R.memory.alloc_tensor(s, 0, R.shape([2]), "float32")
            _ = R.call_packed("fill", x, y, sinfo_args=(R.Tuple,))
            return R.add(x, y)

    bindings = transform.KillAfterLastUse()(Module)["main"].body.blocks[0].bindings
    kills = [str(b.value.op.name) for b in bindings[-2:]]
    assert kills == ["relax.memory.kill_tensor", "relax.memory.kill_storage"]


def test_computed_scalars_have_variables_of_their_own() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(["n"], "float32")):
            n = T.int64()
            if R.prim_value(n % 16 == 0):
                y = R.call_pure_packed("fast", x, sinfo_args=[x.struct_info])
            else:
                y = R.call_pure_packed("slow", x, sinfo_args=[x.struct_info])
            return y

    after = transform.ComputePrimValue()(Module)
    (extent,) = after["main"].params[0].struct_info.shape.values
    assert not after["compute_symbolic_expr"].params[0].same_as(extent)
    assert_structural_equal(tvm.script.from_source(after.script()), after)


def test_fields_of_tuples_join_the_first_block() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")):
            return Module.first((a, b))

        @R.function(private=True)
        def first(
            pair: R.Tuple([R.Tensor((2,), "float32"), R.Tensor((2,), "float32")]),
        ) -> R.Tensor((2,), "float32"):
            return pair[0]

    first = transform.ExpandTupleArguments()(Module)["first"]
    assert [p.name_hint for p in first.params] == ["pair_0", "pair_1"]
    assert [len(block.bindings) for block in first.body.blocks] == [2]


def test_options_of_orders_are_checked_when_the_pass_is_made() -> None:
    with pytest.raises(ValueError, match='order must be "depth-first" or "breadth-first"'):
        transform.TopologicalSort(order="upwards")


def test_every_function_gets_a_symbol_and_kernels_the_prefix() -> None:
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def kernel(a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32")):
            for i in range(2):
                b[i] = a[i]

        @R.function(private=True)
        def main(x: R.Tensor((2,), "float32")):
            cls = Module
            return R.call_tir(cls.kernel, (x,), R.Tensor((2,), "float32"))

    def symbols(mod: tvm.IRModule) -> dict[str, str]:
        return {g.name_hint: f.attrs["global_symbol"] for g, f in mod.functions.items()}

    assert symbols(transform.AttachGlobalSymbol()(Module)) == {"kernel": "kernel", "main": "main"}
    linked = Module.with_attr("system_lib_prefix", "net_")
    after = transform.AttachGlobalSymbol()(linked)
    assert symbols(after) == {"net_kernel": "net_kernel", "main": "main"}
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.args[0].name_hint == "net_kernel"


def test_patterns_are_looked_for_in_named_functions() -> None:
    @I.ir_module
    class Module:
        @R.function
        def first(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                R.output(y)
            return y

        @R.function
        def second(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                R.output(y)
            return y

    patterns = [("own.relu", is_op("relax.nn.relu")(wildcard()))]
    after = transform.FuseOpsByPattern(patterns, entry_functions=["second"])(Module)
    assert_structural_equal(after["first"], Module["first"])
    assert "R.nn.relu" not in after["second"].script() and len(after.functions) == 3
    with pytest.raises(KeyError, match="third"):
        transform.FuseOpsByPattern(patterns, entry_functions=["third"])(Module)


class TestSharedTransform:
    @I.ir_module
    class Two:
        @R.function
        def prefill(
            x: R.Tensor((4, 8), "float32"),
            w1: R.Tensor((8, 8), "float32"),
            w2: R.Tensor((8, 8), "float32"),
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                t = R.permute_dims(w1)
                own = R.exp(w2)
                y = R.matmul(x, t)
                z = R.matmul(y, own)
                R.output(z)
            return z

        @R.function
        def decode(
            x: R.Tensor((1, 8), "float32"),
            w1: R.Tensor((8, 8), "float32"),
            w2: R.Tensor((8, 8), "float32"),
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                t = R.permute_dims(w1)
                y = R.matmul(x, t)
                z = R.matmul(y, w2)
                R.output(z)
            return z

    def test_one_function_computes_what_all_have(self) -> None:
        after = transform.LiftTransformParams(shared_transform=True)(self.Two)
        assert {g.name_hint for g in after.functions} == {"prefill", "decode", "transform_params"}
        shared = after["transform_params"]
        assert shared.attrs["num_input"] == 0 and shared.attrs["global_symbol"]
        assert "R.exp" not in shared.script() and "R.exp" in after["prefill"].script()
        for name in ("prefill", "decode"):
            assert [p.name_hint for p in after[name].params] == ["x", "w2", "t"]

        rng = np.random.default_rng(0)
        x, w1, w2 = (rng.normal(size=s).astype("float32") for s in ((1, 8), (8, 8), (8, 8)))
        machine = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
        weights = machine["transform_params"]([tvm.nd.array(w1), tvm.nd.array(w2)])
        found = machine["decode"](tvm.nd.array(x), *weights).numpy()
        np.testing.assert_allclose(found, x @ w1.T @ w2, rtol=1e-4, atol=1e-4)

    def test_named_functions_share_and_others_do_not(self) -> None:
        after = transform.LiftTransformParams(shared_transform=["decode"])(self.Two)
        names = {g.name_hint for g in after.functions}
        assert names == {"prefill", "decode", "prefill_transform_params", "transform_params"}
        with pytest.raises(ValueError, match="no function 'train' with the attribute"):
            transform.LiftTransformParams(shared_transform=["train"])(self.Two)

    def test_other_weights_are_refused(self) -> None:
        func = self.Two["decode"]
        fewer = func.bind_params({"w2": np.zeros((8, 8), "float32")})
        mod = tvm.IRModule({"prefill": self.Two["prefill"], "decode": fewer})
        with pytest.raises(ValueError, match="'decode' has the weights w1; a shared function"):
            transform.LiftTransformParams(shared_transform=True)(mod)


@I.ir_module
class Calls:
    @R.function(private=True)
    def twice(x: R.Tensor(["n"], "float32")) -> R.Tensor(["n"], "float32"):
        return R.add(x, x)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Calls
        return cls.twice(x)

    @R.function
    def forever(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Calls
        return cls.forever(x)


@pytest.mark.parametrize("key", ["twice", Calls.get_global_var("twice")])
def test_bodies_take_the_place_of_calls(key: object) -> None:
    inlined = Calls["main"].inline_functions({key: Calls["twice"]})
    values = [b.value for b in inlined.body.blocks[0].bindings]
    assert str(values[0].op.name) == "relax.add"
    assert_structural_equal(values[0].struct_info, relax.TensorStructInfo((2,), "float32"))


def test_what_cannot_be_inlined_is_refused() -> None:
    main = Calls["main"]
    with pytest.raises(ValueError, match="in a circle: forever"):
        main.inline_functions({"forever": Calls["forever"]})
    with pytest.raises(ValueError, match="'twice' is given twice"):
        main.inline_functions({"twice": main, Calls.get_global_var("twice"): main})
    with pytest.raises(TypeError, match="only graph functions have a body"):
        main.inline_functions({"twice": tir.PrimFunc([], tir.Evaluate(0))})


def test_a_function_ends_once() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2,), "float32"))
    with (
        pytest.raises(ValueError, match="'f' has its result already"),
        builder.function("f", [x]),
    ):
        builder.emit_func_output(x)
        builder.emit_func_output(x)


def test_blocks_are_opened_by_tvms_names() -> None:
    @relax.expr_functor.mutator
    class Doubler(relax.PyExprMutator):
        def visit_dataflow_block_(self, block: relax.DataflowBlock) -> relax.DataflowBlock:
            self.builder_._begin_dataflow_block()
            for binding in block.bindings:
                self.visit_binding(binding)
            self.builder_.emit(relax.op.add(binding.var, binding.var))
            return self.builder_._end_block()

    @R.function
    def func(x: R.Tensor((2,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    assert len(Doubler().visit_expr(func).body.blocks[0].bindings) == 2
