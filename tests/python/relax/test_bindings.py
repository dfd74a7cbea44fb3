"""Passes that simplify bindings, and graphs with conditionals, casts and symbolic extents."""

import pytest

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def test_normalize_gives_operands_names():
    x = relax.Var("x", R.Tensor((2,), "float32"))
    body = relax.SeqExpr([], relax.op.add(relax.op.exp(x), x))
    func = relax.Function([x], body, R.Tensor((2,), "float32"), attrs={"global_symbol": "main"})
    after = relax.transform.Normalize()(tvm.IRModule({"main": func}))["main"]

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        y = R.exp(x)
        z = R.add(y, x)
        return z  # noqa: RET504

    tvm.ir.assert_structural_equal(after, main)


def test_canonical_bindings_name_each_value_once():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = x
                pair = (y, y)
                z = R.add(pair[0], y)
                unused = R.exp(z)
                out = z
                R.output(unused, out)
            return out

    @I.ir_module
    class After:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                pair = (x, x)  # noqa: F841
                out = R.add(x, x)
                unused = R.exp(out)  # noqa: F841
                R.output(out)
            return out

    mod = relax.transform.CanonicalizeBindings()(Before)
    tvm.ir.assert_structural_equal(mod, After)
    assert relax.analysis.well_formed(mod)


def test_common_values_are_computed_once_where_effects_allow_it():
    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        a = R.exp(x)
        b = R.exp(x)
        R.print(a, format="{}")
        R.print(a, format="{}")
        return R.add(a, b)

    after = relax.transform.EliminateCommonSubexpr()(tvm.IRModule({"main": main}))
    text = str(after)
    assert text.count("R.exp(x)") == 1
    assert text.count("R.print(") == 2


def test_symbolic_extents_are_bound_by_name():
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        return R.exp(x)

    mod = tvm.IRModule({"main": main})
    bound = relax.transform.BindSymbolicVars({"n": 3})(mod)["main"]
    tvm.ir.assert_structural_equal(bound.ret_struct_info, R.Tensor((3, 4), "float32"))
    with pytest.raises(ValueError, match="no function has the extent 'k'"):
        relax.transform.BindSymbolicVars({"k": 3})(mod)


@I.ir_module
class Control:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        if c:
            y = R.exp(x)
        else:
            y = R.add(x, x)
        z = R.match_cast(y, R.Tensor((n, 4), "float32"))

        @R.function
        def twice(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.add(a, a)

        w = Control.other(z)
        return w  # noqa: RET504

    @R.function(private=True)
    def other(x: R.Tensor(("m", 4), "float32")) -> R.Tensor(("m", 4), "float32"):
        return R.exp(x)


def test_control_flow_is_well_formed_and_comes_back_from_text():
    assert relax.analysis.well_formed(Control)
    again = tvm.script.from_source(Control.script())
    tvm.ir.assert_structural_equal(again, Control)


def test_a_conditional_in_a_dataflow_block_is_refused():
    x = relax.Var("x", R.Tensor((), "int32"))
    y = relax.Var("y", R.Tensor((), "int32"))
    both = relax.SeqExpr([], x)
    value = relax.If(relax.const(True, "bool"), both, both)
    func = relax.Function(
        [x], relax.SeqExpr([relax.DataflowBlock([relax.VarBinding(y, value)])], y)
    )
    with pytest.raises(ValueError, match="conditional in a dataflow block"):
        relax.analysis.check_well_formed(func)


def test_promises_of_blocks_and_functions_are_left_behind():
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, y)
            R.output(z)
        return z

    mod = relax.transform.ToNonDataflow()(tvm.IRModule({"main": main}))
    text = str(mod["main"])
    assert "R.dataflow" not in text and "z: R.Tensor" in text
    assert relax.analysis.well_formed(mod)
    forced = relax.transform.RemovePurityChecking()(mod)["main"]
    assert forced.attrs["relax.force_pure"]
