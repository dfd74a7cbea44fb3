"""Graph functions built by calls."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, topi
from tvm.script import relax as script
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import ir as I
from tvm.script.ir_builder import relax as R


def test_a_function_is_what_its_calls_say():
    with IRBuilder() as builder, R.function():
        R.func_name("f")
        R.func_attr({"Primitive": 1})
        x = R.arg("x", R.Tensor((4, "n"), "float32"))
        R.func_ret_struct_info(R.Tensor(dtype="float32", ndim=2))
        y = R.emit(R.add(x, R.nn.relu(x)))
        IRBuilder.name("y", y)
        R.func_ret_value(y)

    @script.function
    def f(x: script.Tensor((4, "n"), "float32")) -> script.Tensor("float32", ndim=2):
        script.func_attr({"Primitive": 1})
        y = script.add(x, script.nn.relu(x))
        return y  # noqa: RET504

    tvm.ir.assert_structural_equal(builder.get(), f)
    assert "y: R.Tensor" in builder.get().script()


def test_a_dataflow_block_gives_away_its_outputs():
    with IRBuilder() as builder, R.function():
        R.func_name("f")
        x = R.arg("x", R.Tensor((4,), "float32"))
        with R.dataflow() as block:
            inner = R.emit(R.exp(x))
            IRBuilder.name("inner", inner)
            out = R.emit(R.negative(inner))
            IRBuilder.name("out", out)
            R.output(out)
        (seen,) = block.output_vars
        R.func_ret_value(seen)

    @script.function
    def f(x: script.Tensor((4,), "float32")):
        with script.dataflow():
            inner = script.exp(x)
            out = script.negative(inner)
            script.output(out)
        return out

    func = builder.get()
    tvm.ir.assert_structural_equal(func, f)
    first, last = func.body.blocks[0].bindings
    assert isinstance(first.var, relax.DataflowVar)
    assert not isinstance(last.var, relax.DataflowVar)
    assert func.body.body.same_as(last.var)
    assert "out: R.Tensor" in func.script()


def test_branches_cast_and_run():
    with IRBuilder() as builder, I.ir_module(), R.function():
        R.func_name("main")
        cond = R.arg("cond", R.Tensor((), "bool"))
        x = R.arg("x", R.Tensor(ndim=1, dtype="float32"))
        known = R.emit_match_cast(x, R.Tensor((3,), "float32"))
        IRBuilder.name("known", known)
        with R.If(cond) as choice:
            with R.Then():
                IRBuilder.name("y", R.emit(R.add(known, known)))
            with R.Else():
                half = R.emit(R.negative(known))
                IRBuilder.name("y", R.emit(R.exp(half)))
        R.func_ret_value(choice.var)
    mod = builder.get()
    assert str(mod["main"].body.body.name_hint) == "y"
    run = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"]
    data = np.array([1.0, -2.0, 0.5], "float32")
    for flag, want in ((True, data + data), (False, np.exp(-data))):
        got = run(tvm.nd.array(np.array(flag)), tvm.nd.array(data))
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


def test_a_module_has_the_kernels_of_its_functions():
    with IRBuilder() as builder, I.ir_module():
        with R.function(is_private=True):
            R.func_name("twice")
            x = R.arg("x", R.Tensor((4,), "float32"))
            R.func_ret_value(R.emit_te(topi.add, x, x))
        with R.function():
            R.func_name("main")
            x = R.arg("x", R.Tensor((4,), "float32"))
            y = R.emit(relax.Call(I.lookup_global_var("twice"), [x]))
            R.func_ret_value(R.emit_te(topi.add, y, x))
    mod = builder.get()
    names = sorted(str(v.name_hint) for v in mod.get_global_vars())
    assert names == ["add", "add1", "main", "twice"]
    assert "global_symbol" not in (mod["twice"].attrs or {})
    run = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())["main"]
    data = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(tvm.nd.array(data)).numpy(), 3 * data)


def _in_function(body):
    with IRBuilder(), R.function():
        x = R.arg("x", R.Tensor((4,), "float32"))
        body(x)


def _branches_of_two_names(x):
    cond = R.arg("c", R.Tensor((), "bool"))
    with R.If(cond):
        with R.Then():
            IRBuilder.name("a", R.emit(R.exp(x)))
        with R.Else():
            IRBuilder.name("b", R.emit(R.exp(x)))


def _block_without_output(x):
    with R.dataflow():
        R.emit(R.exp(x))


def _emit_beside_branches(x):
    with R.If(R.const(True, "bool")):
        R.emit(R.exp(x))


@pytest.mark.parametrize(
    "body, kind, says",
    [
        (lambda x: R.func_attr({}), ValueError, "no result; call R.func_ret_value"),
        (_block_without_output, ValueError, "end it with R.output"),
        (_branches_of_two_names, ValueError, "end with `a` and `b`"),
        (_emit_beside_branches, ValueError, "open `with R.Then"),
        (lambda x: R.output(x), ValueError, "open `with R.dataflow"),
        (lambda x: R.arg("y", "float32"), TypeError, "type of a graph value"),
        (lambda x: R.func_ret_value(R.emit_te(topi.exp, x)), ValueError, "ir_module"),
    ],
)
def test_what_does_not_fit_is_named(body, kind, says):
    with pytest.raises(kind, match=says):
        _in_function(body)


def test_calls_belong_to_a_function():
    with IRBuilder(), pytest.raises(ValueError, match=r"with R\.function"):
        R.emit(R.const(1.0))
