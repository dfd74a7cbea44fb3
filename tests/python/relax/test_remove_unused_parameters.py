"""Private functions take what they depend on, and compute what they did."""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Chain:
    @R.function
    def main(A: R.Tensor((4, "n"), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor(
        (4, "n"), "float32"
    ):
        n = T.int64()
        out: R.Tensor((4, n), "float32") = Chain.outer(A, B)
        return out

    @R.function(private=True)
    def outer(A: R.Tensor((4, "n"), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor(
        (4, "n"), "float32"
    ):
        n = T.int64()
        ones: R.Tensor((4, n), "float32") = Chain.inner(A, B)
        out: R.Tensor((4, n), "float32") = R.add(A, ones)
        return out

    @R.function(private=True)
    def inner(A: R.Tensor((4, "n"), "float32"), B: R.Tensor((4,), "float32")) -> R.Tensor(
        (4, "n"), "float32"
    ):
        n = T.int64()
        out: R.Tensor((4, n), "float32") = R.ones(R.shape([4, n]), "float32")
        return out


def test_what_only_an_inner_function_took_goes_from_all():
    after = relax.transform.RemoveUnusedParameters()(Chain)
    assert len(after["main"].params) == 2
    assert [str(p.name_hint) for p in after["outer"].params] == ["A"]
    [extent] = after["inner"].params
    assert isinstance(extent.struct_info, relax.PrimStructInfo)
    relax.analysis.check_well_formed(after)


def test_a_module_without_such_parameters_stays_itself():
    after = relax.transform.RemoveUnusedParameters()(Chain)
    assert relax.transform.RemoveUnusedParameters()(after).same_as(after)


def test_functions_that_are_values_keep_what_they_take():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    y = relax.Var("y", relax.TensorStructInfo((2,), "float32"))
    inner = relax.Function([x, y], relax.SeqExpr([], x), attrs={})
    gvar = builder.add_func(inner.without_attr("global_symbol"), "inner")
    a = relax.Var("a", relax.TensorStructInfo((2,), "float32"))
    with builder.function("main", [a]):
        builder.emit(relax.Call(gvar, [a, a]))
        builder.emit_func_output(relax.Tuple([a, gvar]))
    mod = builder.get()
    after = relax.transform.RemoveUnusedParameters()(mod)
    tvm.ir.assert_structural_equal(after, mod)


def test_calls_give_what_is_left():
    @I.ir_module
    class Module:
        @R.function
        def main(A: R.Tensor((3, 5), "float32"), B: R.Tensor((5,), "float32")):
            out: R.Tensor((3, 5), "float32") = Module.scaled(A, B, A)
            return out

        @R.function(private=True)
        def scaled(
            unused: R.Tensor((3, 5), "float32"),
            B: R.Tensor((5,), "float32"),
            A: R.Tensor((3, 5), "float32"),
        ) -> R.Tensor((3, 5), "float32"):
            out: R.Tensor((3, 5), "float32") = R.multiply(A, B)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(A: R.Tensor((3, 5), "float32"), B: R.Tensor((5,), "float32")):
            out: R.Tensor((3, 5), "float32") = Expected.scaled(B, A)
            return out

        @R.function(private=True)
        def scaled(B: R.Tensor((5,), "float32"), A: R.Tensor((3, 5), "float32")) -> R.Tensor(
            (3, 5), "float32"
        ):
            out: R.Tensor((3, 5), "float32") = R.multiply(A, B)
            return out

    after = relax.transform.RemoveUnusedParameters()(Module)
    tvm.ir.assert_structural_equal(after, Expected)
