"""relax.transform.VMShapeLower: symbolic extents on a heap."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.testing.runtime_builtin import MakeShapeCode, MatchShapeCode
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

STORE, LOAD = MatchShapeCode.STORE_TO_HEAP, MatchShapeCode.ASSERT_EQUAL_TO_LOAD


def lowered(mod, **options):
    return relax.transform.VMShapeLower(**options)(mod)


def calls(mod, name="main"):
    """Names of the runtime's functions with the numbers that they are called with."""
    found = []
    for block in mod[name].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, relax.Call) and isinstance(call.op, relax.ExternFunc):
                numbers = [int(a.value.value) for a in call.args if isinstance(a, relax.PrimValue)]
                found.append((str(call.op.global_symbol).removeprefix("vm.builtin."), numbers))
    return found


def machine(mod):
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def zeros(*shape, dtype="float32"):
    return tvm.nd.array(np.zeros(shape, dtype))


@I.ir_module
class Computed:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(ndim=3)) -> R.Shape(ndim=3):
        R.func_attr({"relax.force_pure": True})
        n, m, k = T.int64(), T.int64(), T.int64()
        z = R.match_cast(y, R.Tensor((k, m, k + 1)))  # noqa: F841
        return R.shape([k + 1, m * n, 2])


def test_extents_are_stored_compared_and_computed_on_the_heap():
    mod = lowered(Computed, emit_err_ctx=False)
    assert calls(mod) == [
        ("check_tensor_info", [2]),
        ("check_tensor_info", [3]),
        ("match_shape", [2, STORE, 0, STORE, 1]),
        ("match_shape", [3, STORE, 2, LOAD, 1, MatchShapeCode.NO_OP, 0]),
        ("match_shape", [3, LOAD, 2, LOAD, 1, LOAD, 3]),
        ("make_shape", [3, MakeShapeCode.LOAD_SHAPE, 3, 1, 4, MakeShapeCode.USE_IMM, 2]),
    ]
    kernels = [g.name_hint for g in mod.get_global_vars() if "shape_func" in g.name_hint]
    assert len(kernels) == 2


@pytest.mark.parametrize("change", [lambda mod: mod, lowered], ids=["as it is", "lowered"])
def test_programs_give_the_same_shapes_and_errors_lowered_or_not(change):
    vm = machine(change(Computed))
    assert tuple(vm["main"](zeros(2, 3), zeros(4, 3, 5))) == (5, 6, 2)
    with pytest.raises(ValueError, match="has extent 2 of 6, must be 5"):
        vm["main"](zeros(2, 3), zeros(4, 3, 6))
    with pytest.raises(ValueError, match="has extent 1 of 2, must be 3"):
        vm["main"](zeros(2, 3), zeros(4, 2, 5))


def test_fixed_shapes_need_no_heap():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Shape([2, 3]):
            R.func_attr({"relax.force_pure": True})
            return R.shape([2, 3])

    mod = lowered(Module)
    assert calls(mod) == [("check_tensor_info", [2]), ("match_shape", [2, 0, 2, 0, 3])]
    assert "R.null_value()" in mod.script()


def test_fields_of_tuples_are_checked_one_by_one():
    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Shape(["n", 4]), R.Prim("int64"))),
            f: R.Callable,
        ) -> R.Object:
            R.func_attr({"relax.force_pure": True})
            return x

    mod = lowered(Module)
    assert [name for name, _ in calls(mod)] == [
        "check_tuple_info", "tuple_getitem", "check_tensor_info", "tuple_getitem",
        "check_tuple_info", "tuple_getitem", "check_shape_info", "tuple_getitem",
        "check_prim_value_info", "check_func_info", "match_shape", "match_shape",
    ]  # fmt: skip
    assert calls(mod)[-1] == ("match_shape", [2, LOAD, 0, MatchShapeCode.ASSERT_EQUAL_TO_IMM, 4])


def test_numbers_are_matched_and_taken_from_the_heap():
    @I.ir_module
    class Doubled:
        @R.function
        def main(x: R.Tensor(("n",), "float32"), p: R.Prim(value="n")) -> R.Prim("int64"):
            R.func_attr({"relax.force_pure": True})
            n = T.int64()
            return R.prim_value(n * 2)

    mod = lowered(Doubled)
    assert ("match_prim_value", [LOAD, 0]) in calls(mod)
    vm = machine(mod)
    assert vm["main"](zeros(5), 5) == 10
    with pytest.raises(ValueError, match="main.*must be 5"):
        vm["main"](zeros(5), 4)


def test_results_are_compared_with_what_the_function_says_of_them():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", "m")), y: R.Object) -> R.Tuple(R.Tensor(("n", "m")), R.Shape):
            R.func_attr({"relax.force_pure": True})
            n, m = T.int64(), T.int64()
            return (y, R.shape([n, m]))

    name, numbers = calls(lowered(Module))[-1]
    assert name == "match_shape" and numbers == [2, LOAD, 0, LOAD, 1]


def test_weights_are_checked_only_for_symbolic_extents():
    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor(("n",), "float32"),
            w: R.Tensor((4,), "float32"),
            p: R.Tuple(R.Tensor((3,), "float32"), R.Tensor(("n",), "float32")),
        ) -> R.Tensor(("n",), "float32"):
            R.func_attr({"relax.force_pure": True, "num_input": 1})
            return x

    names = [name for name, _ in calls(lowered(Module))]
    assert names == ["check_tensor_info", "check_tuple_info", "tuple_getitem", "check_tensor_info",
                     "match_shape", "match_shape"]  # fmt: skip


def test_errors_name_function_and_parameter_if_asked_to():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", "n"), "float32")) -> R.Object:
            R.func_attr({"relax.force_pure": True})
            return x

    text = lowered(Module).script()
    assert "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor(" in text
    assert "ErrorContext" not in lowered(Module, emit_err_ctx=False).script()
    with pytest.raises(ValueError, match="extent 1"):
        machine(lowered(Module))["main"](zeros(2, 3))


def test_extents_that_nothing_gives_are_refused():
    n = tvm.tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor("float32", ndim=1))
    body = relax.SeqExpr([], relax.ShapeExpr([n]))
    func = relax.Function([x], body, R.Shape(ndim=1), attrs=None)
    mod = tvm.IRModule({tvm.ir.GlobalVar("main"): func.with_attr("relax.force_pure", True)})
    unchecked = tvm.transform.PassContext(config={"ir.verify": False})
    with unchecked, pytest.raises(ValueError, match="nothing gives the extent n a value"):
        lowered(mod)
