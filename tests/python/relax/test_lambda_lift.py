"""Functions inside of functions become functions of the module, with what they capture."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def names(mod: tvm.IRModule) -> list[str]:
    return sorted(str(gvar.name_hint) for gvar in mod.functions)


def calls(func: relax.Function) -> list[str]:
    """Operators and functions that a function calls, in order."""
    values = [binding.value for block in func.body.blocks for binding in block.bindings]
    return [
        str(v.op.name_hint if isinstance(v.op, tvm.ir.GlobalVar) else v.op.name)
        for v in values
        if isinstance(v, relax.Call)
    ]


def test_what_captures_nothing_is_called_by_name():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            @R.function
            def twice(a: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                b: R.Tensor((2, 3), "float32") = R.add(a, a)
                return b

            y: R.Tensor((2, 3), "float32") = twice(x)
            z: R.Tensor((2, 3), "float32") = twice(y)
            return z

        @R.function
        def main_twice(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
            return x

    after = relax.transform.LambdaLift()(Module)
    assert names(after) == ["main", "main_twice", "main_twice_0"]
    assert calls(after["main"]) == ["main_twice_0", "main_twice_0"]
    assert "global_symbol" not in (after["main_twice_0"].attrs or {})
    relax.analysis.check_well_formed(after)


def test_what_captures_is_a_closure():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Tensor(
            ("n", 3), "float32"
        ):
            n = T.int64()

            @R.function
            def shifted(a: R.Tensor((n, 3), "float32")) -> R.Tensor((n, 3), "float32"):
                b: R.Tensor((n, 3), "float32") = R.add(a, y)
                return b

            z: R.Tensor((n, 3), "float32") = shifted(x)
            return z

    after = relax.transform.LambdaLift()(Module)
    assert calls(after["main"]) == ["relax.make_closure", "relax.invoke_pure_closure"]
    assert [str(p.name_hint) for p in after["main_shifted"].params] == ["a", "y"]
    outer = set(relax.analysis.defined_symbolic_vars(after["main"]))
    assert outer.isdisjoint(relax.analysis.defined_symbolic_vars(after["main_shifted"]))


def test_extents_that_no_parameter_gives_are_captured():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            n = T.int64()

            @R.function
            def ones() -> R.Tensor((n,), "float32"):
                b: R.Tensor((n,), "float32") = R.ones(R.shape([n]), "float32")
                return b

            z: R.Tensor((n,), "float32") = ones()
            return z

    after = relax.transform.LambdaLift()(Module)
    [extent] = after["main_ones"].params
    assert isinstance(extent.struct_info, relax.PrimStructInfo)
    relax.analysis.check_well_formed(after)


def test_modules_without_such_functions_stay():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y: R.Tensor((2,), "float32") = R.add(x, x)
            return y

    tvm.ir.assert_structural_equal(relax.transform.LambdaLift()(Module), Module)
