"""Passes that change how a module is made up: dataflow blocks, functions in place of calls."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.transform import ConvertToDataflow, DeadCodeElimination, InlinePrivateFunctions
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Plain:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")):
        a = R.exp(x)
        b = R.add(a, x)
        _ = R.print(format="here")
        return R.multiply(b, b)


def test_bindings_without_effects_become_dataflow() -> None:
    blocks = list(ConvertToDataflow()(Plain)["main"].body.blocks)
    assert [isinstance(block, relax.DataflowBlock) for block in blocks] == [True, False]
    kinds = [isinstance(b.var, relax.DataflowVar) for b in blocks[0].bindings]
    # What is read behind the block is its output.
    assert kinds == [True, False] and len(blocks[1].bindings) == 2


@pytest.mark.parametrize(("size", "expected"), [(1, [True, False, True]), (3, [False])])
def test_short_runs_stay_as_they_are(size: int, expected: list[bool]) -> None:
    blocks = ConvertToDataflow(min_size=size)(Plain)["main"].body.blocks
    assert [isinstance(block, relax.DataflowBlock) for block in blocks] == expected


@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((2, 3), "float32")):
        a = Calls.twice(x)
        b = Calls.twice(a)
        c = Calls.shaped(y)
        return (b, c)

    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.add(x, x)
        return Calls.more(y)

    @R.function(private=True)
    def more(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(x, R.const(1.0, "float32"))

    @R.function(private=True)
    def shaped(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m", "n"), "float32"):
        n, m = T.int64(), T.int64()
        y: R.Tensor((m, n), "float32") = R.permute_dims(x)
        return y


def test_private_functions_are_put_in_place_of_their_calls() -> None:
    mod = InlinePrivateFunctions()(Calls)
    assert [str(gvar.name_hint) for gvar in mod.get_global_vars()] == ["main"]
    assert relax.analysis.well_formed(mod) and str(mod["main"]).count("R.add") == 4
    vm = relax.VirtualMachine(relax.build(mod))
    x, y = np.arange(4, dtype="float32"), np.ones((2, 3), "float32")
    b, c = vm["main"](tvm.nd.array(x), tvm.nd.array(y))
    np.testing.assert_allclose(b.numpy(), (x * 2 + 1) * 2 + 1)
    assert c.numpy().shape == (3, 2)


def test_a_circle_of_private_functions_is_refused() -> None:
    @I.ir_module
    class Circle:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return Circle.again(x)

        @R.function(private=True)
        def again(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return Circle.again(x)

    with pytest.raises(ValueError, match="call each other in a circle: again"):
        InlinePrivateFunctions()(Circle)


def test_functions_that_nothing_calls_are_gone_unless_they_are_entries() -> None:
    mod = InlinePrivateFunctions()(Calls)
    mod["unused"] = Calls["more"]
    names = [str(gvar.name_hint) for gvar in DeadCodeElimination()(mod).get_global_vars()]
    assert names == ["main"]
    kept = DeadCodeElimination(["unused"])(mod).get_global_vars()
    assert sorted(str(gvar.name_hint) for gvar in kept) == ["main", "unused"]
    with pytest.raises(ValueError, match="there is no function 'other'"):
        DeadCodeElimination(["other"])(mod)


def test_dead_code_goes_from_plain_blocks_but_effects_stay() -> None:
    @I.ir_module
    class Module:
        @R.function(pure=False)
        def main(x: R.Tensor((4,), "float32")):
            a = R.exp(x)  # noqa: F841
            _ = R.print(format="here")
            return R.add(x, x)

    text = str(DeadCodeElimination()(Module)["main"])
    assert "R.exp" not in text and "R.print" in text


def test_public_functions_get_the_name_of_their_symbol() -> None:
    one = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with one.function("helper", [x], private=True):
        one.emit_func_output(one.emit(relax.op.exp(x)))
    helper = one.get().get_global_var("helper")
    y = relax.Var("y", relax.TensorStructInfo((4,), "float32"))
    with one.function("main", [y], attrs={"global_symbol": "helper"}):
        one.emit_func_output(one.emit(relax.Call(helper, [y])))
    after = relax.transform.NormalizeGlobalVar()(one.get())
    assert sorted(str(gvar.name_hint) for gvar in after.functions) == ["helper", "helper_1"]
    assert str(after["helper"].body.blocks[0].bindings[0].value.op.name_hint) == "helper_1"
    assert tvm.ir.structural_equal(relax.transform.NormalizeGlobalVar()(Calls), Calls)
    twice = tvm.IRModule({"a": Plain["main"], "b": Plain["main"]})
    with pytest.raises(ValueError, match='a and b have the global symbol "main"'):
        relax.transform.NormalizeGlobalVar()(twice)


def test_expressions_of_extents_are_computed_by_functions() -> None:
    @I.ir_module
    class Sizes:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            n = T.int64()
            return (R.prim_value(n * 2 + 1), R.prim_value(n), R.prim_value(7))

    after = relax.transform.ComputePrimValue()(Sizes)
    func = after["compute_symbolic_expr"]
    assert len(func.params) == 1 and str(func.ret_type.dtype) == "int64"
    machine = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    got = machine["main"](tvm.nd.array(np.zeros(5, "float32")))
    assert [int(value) for value in got] == [11, 5, 7]


def test_of_reshapes_in_a_row_the_last_one_is_left() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 6), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.reshape(x, (n, 2, 3))
                b = R.reshape(a, (n * 6,))
                c = R.reshape(b, (n, 6))
                d = R.reshape(R.exp(c), (n, 6))
                e = R.reshape(R.add(d, c), (6, n))
                R.output(e)
            return e

    func = relax.transform.RemoveRedundantReshape()(Module)["main"]
    names = [b.value.op.name for block in func.body.blocks for b in block.bindings]
    assert names == ["relax.exp", "relax.add", "relax.reshape"]
    assert func.body.blocks[0].bindings[0].value.args[0].same_as(func.params[0])


def test_reshapes_of_unknown_shapes_stay() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor("float32", ndim=2), s: R.Shape(ndim=2)):
            with R.dataflow():
                a = R.reshape(x, s)
                R.output(a)
            return a

    assert relax.transform.RemoveRedundantReshape()(Module)["main"].same_as(Module["main"])


def test_a_mutator_is_told_what_stands_for_a_variable():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            y = R.nn.relu(x)
            return R.multiply(y, x)

    @relax.expr_functor.mutator
    class PlusOne(relax.PyExprMutator):
        def visit_var_binding_(self, binding):
            value = self.visit_expr(binding.value)
            if value.op == tvm.ir.Op.get("relax.nn.relu"):
                new = self.builder_.emit(relax.op.add(value, relax.const(1.0)))
                self.set_var_remap(binding.var.vid, new)
                assert self.get_var_remap(binding.var.vid).same_as(new)
                return
            super().visit_var_binding_(binding)

    func = PlusOne().visit_expr(Mod["main"])
    vm = relax.VirtualMachine(relax.build(tvm.IRModule({"main": func}), "llvm"), tvm.cpu())
    x = np.array([-1, 0, 2], "float32")
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), (np.maximum(x, 0) + 1) * x)
    first, second = (binding.var for binding in Mod["main"].body.blocks[0].bindings)
    assert first.vid == first.vid and first.vid != second.vid and first.vid.name_hint == "y"


def test_a_function_of_expressions_is_defined_kind_by_kind():
    class Depth(relax.ExprFunctor):
        def visit_call_(self, op):
            return 1 + max(map(self.visit_expr, op.args))

        def visit_var_(self, op):
            return 0

        def visit_var_binding_(self, binding):
            return self.visit_expr(binding.value)

    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    call = relax.op.add(relax.op.exp(x), x)
    assert Depth().visit_expr(call) == 2
    assert Depth().visit_binding(relax.VarBinding(x, call)) == 2
    with pytest.raises(TypeError, match="not defined for Constant; add a method visit_constant_"):
        Depth().visit_expr(relax.const(1))
