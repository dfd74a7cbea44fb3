"""Planned storage, half precision, and edits of blocks; numbers stay the same."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


def run(mod: tvm.IRModule, *args: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return machine["main"](*[tvm.nd.array(arg) for arg in args]).numpy()


def bindings(func: relax.Function) -> list[relax.Binding]:
    return [b for block in func.body.blocks for b in block.bindings]


def operators(func: relax.Function) -> list[str]:
    values = [b.value for b in bindings(func)]
    return [
        str(v.op.name).removeprefix("relax.")
        for v in values
        if isinstance(v, relax.Call) and isinstance(v.op, tvm.ir.Op)
    ]


@I.ir_module
class Chain:
    @R.function
    def main(
        x: R.Tensor((2, 8), "float32"),
        w: R.Tensor((8, 8), "float32"),
        w2: R.Tensor((8, 8), "float32"),
    ):
        with R.dataflow():
            y = R.nn.relu(x)
            a = R.matmul(y, w)
            b = R.nn.relu(a)
            c = R.add(b, R.const(1.0))
            d = R.matmul(c, w2)
            e = R.split(d, 2, axis=1)
            f = e[0]
            g = R.nn.softmax(f)
            R.output(g)
        return g


def inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype("float32") for s in [(2, 8), (8, 8), (8, 8)]]


LOWER = [
    transform.LegalizeOps(), transform.ToNonDataflow(), transform.RemovePurityChecking(),
    transform.CallTIRRewrite(),
]  # fmt: skip


def planned(mod: tvm.IRModule) -> tvm.IRModule:
    return tvm.transform.Sequential([*LOWER, transform.StaticPlanBlockMemory()])(mod)


def sizes(func: relax.Function) -> list[object]:
    return [
        b.value.args[0].values[0]
        for b in bindings(func)
        if isinstance(b.value, relax.Call)
        and b.value.op.same_as(tvm.ir.Op.get("relax.memory.alloc_storage"))
    ]


def test_tensors_that_follow_each_other_share_storage() -> None:
    after = planned(Chain)
    assert [int(size) for size in sizes(after["main"])] == [64, 64, 32]
    # The result belongs to the caller, so it has memory of its own.
    assert operators(after["main"]).count("builtin.alloc_tensor") == 1
    np.testing.assert_allclose(run(after, *inputs()), run(Chain, *inputs()), rtol=1e-5)


def test_storage_grows_to_its_largest_tensor() -> None:
    @I.ir_module
    class Growing:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.concat((a, a), axis=0)
                c = R.concat((b, b), axis=0)
                d = R.exp(c)
                R.output(d)
            return d

    after = planned(Growing)
    assert [int(size) for size in sizes(after["main"])] == [32, 16]
    x = np.array([0.5, -1], "float32")
    np.testing.assert_allclose(run(after, x), run(Growing, x), rtol=1e-5)


@I.ir_module
class Open:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        R.func_attr({"tir_var_upper_bound": {"m": 3}})
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            c = R.exp(b)
            d = R.tanh(c)
            R.output(d)
        return d


def test_open_sizes_share_with_equal_ones_or_count_as_their_bound() -> None:
    after = planned(Open)
    assert len(sizes(after["main"])) == 2
    bounded = tvm.IRModule({"main": Open["main"].with_attr("tir_var_upper_bound", {"n": 10})})
    limited = planned(bounded)
    assert [int(size) for size in sizes(limited["main"])] == [160, 160]
    x = np.random.default_rng(1).random((7, 4)).astype("float32")
    for mod in (after, limited):
        np.testing.assert_allclose(run(mod, x), run(Open, x), rtol=1e-5)


def test_memory_is_told_before_and_after_planning() -> None:
    text = relax.analysis.estimate_memory_usage(planned(Chain))
    assert "Without memory planning, there are 8 constant-size memory allocation(s)" in text
    assert "With memory planning, there are 4 constant-size memory allocation(s)" in text
    assert "reduces constant memory size to 46.2%." in text
    assert "and 4 dynamic-size" in relax.analysis.estimate_memory_usage(
        tvm.transform.Sequential(LOWER)(Open)
    )


@pytest.mark.parametrize("out_dtype", ["float32", "float16"])
def test_products_take_halves(out_dtype: str) -> None:
    after = transform.ToMixedPrecision(out_dtype)(Chain)
    products = [
        b.value
        for b in bindings(after["main"])
        if isinstance(b.value, relax.Call) and b.value.op.same_as(tvm.ir.Op.get("relax.matmul"))
    ]
    assert [str(a.struct_info.dtype) for p in products for a in p.args] == ["float16"] * 4
    assert [str(p.struct_info.dtype) for p in products] == [out_dtype] * 2
    by_name = {str(b.var.name_hint): str(b.var.struct_info) for b in bindings(after["main"])}
    # Between two products everything is half; what the function gives is not.
    assert "float16" in by_name["c"] and "float32" in by_name["g"]
    np.testing.assert_allclose(run(after, *inputs()), run(Chain, *inputs()), rtol=2e-2, atol=1e-3)


def test_what_somebody_reads_in_full_stays_full() -> None:
    @I.ir_module
    class Shared:
        @R.function
        def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                a = R.matmul(y, w)
                z = R.add(a, y)
                R.output(z)
            return z

    after = transform.ToMixedPrecision()(Shared)
    by_name = {str(b.var.name_hint): str(b.var.struct_info.dtype) for b in bindings(after["main"])}
    assert by_name["y"] == by_name["z"] == "float32"
    assert operators(after["main"]).count("astype") == 2


def test_weights_may_come_as_halves() -> None:
    after = transform.ToMixedPrecision(fp16_input_names=["w", "w2"])(Chain)
    assert [str(p.struct_info.dtype) for p in after["main"].params] == [
        "float32", "float16", "float16",
    ]  # fmt: skip
    x, *weights = inputs()
    got = run(after, x, *[w.astype("float16") for w in weights])
    np.testing.assert_allclose(got, run(Chain, x, *weights), rtol=2e-2, atol=1e-3)


@I.ir_module
class Edited:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(x)  # noqa: F841
            c = R.add(a, a)
            R.output(c)
        return c


def edit() -> tuple[relax.DataflowBlockRewrite, dict[str, relax.Var]]:
    func = Edited["main"]
    variables = {str(b.var.name_hint): b.var for b in bindings(func)}
    return relax.DataflowBlockRewrite(func.body.blocks[0], func), variables


def test_edits_of_a_block_show_in_the_function_and_the_module() -> None:
    rewrite, variables = edit()
    rewrite.replace_all_uses(variables["a"], variables["b"])
    rewrite.remove_unused(variables["a"])
    x = np.array([0.1, 1, 2, -3], "float32")
    np.testing.assert_allclose(run(rewrite.mutate_irmodule(Edited), x), 2 * np.tanh(x), rtol=1e-5)
    assert operators(Edited["main"]) == ["exp", "tanh", "add"]


def test_what_is_read_cannot_be_removed() -> None:
    rewrite, variables = edit()
    with pytest.raises(ValueError, match="'a' is read"):
        rewrite.remove_unused(variables["a"])
    with pytest.raises(ValueError, match="does not bind 'x'"):
        rewrite.remove_unused(Edited["main"].params[0])
    rewrite.remove_unused(Edited["main"].params[0], allow_undef=True)
    rewrite.remove_all_unused()
    assert operators(rewrite.mutated_root_fn()) == ["exp", "add"]


def test_bindings_are_added_with_names_of_their_own() -> None:
    rewrite, variables = edit()
    rewrite.add(relax.op.exp(variables["c"]), "extra", is_dfvar=True)
    rewrite.add(relax.op.exp(variables["c"]))
    names = [str(b.var.name_hint) for b in rewrite.mutated_dfb().bindings]
    assert names[:4] == ["a", "b", "c", "extra"] and len(set(names)) == 5


def test_a_copy_shares_no_variables() -> None:
    copy = relax.utils.copy_with_new_vars(Open["main"])
    tvm.ir.assert_structural_equal(copy, Open["main"])
    for a in relax.analysis.all_vars(copy):
        assert not any(a.same_as(b) for b in relax.analysis.all_vars(Open["main"]))
    assert not relax.analysis.defined_symbolic_vars(copy)[0].same_as(
        relax.analysis.defined_symbolic_vars(Open["main"])[0]
    )


def test_kernels_that_copy_in_order_are_told_from_others() -> None:
    def kernel(function, shape, *rest):
        x = tvm.te.placeholder(shape, "float32")
        return tvm.te.create_prim_func([x, function(x, *rest)])

    has = relax.analysis.has_reshape_pattern
    assert has(kernel(tvm.topi.reshape, (4, 6), (2, 12)))
    assert has(kernel(tvm.topi.expand_dims, (4, 6), 1))
    assert not has(kernel(tvm.topi.transpose, (4, 4)))
    assert not has(kernel(tvm.topi.exp, (4, 6)))
    assert not has(kernel(tvm.topi.strided_slice, (8,), [0], [4]))


def test_lowered_operators_are_the_machine_s_and_compute_the_same() -> None:
    after = tvm.transform.Sequential(
        [transform.StaticPlanBlockMemory(), transform.LowerAllocTensor()]
    )(tvm.transform.Sequential(LOWER)(Chain))
    killed = transform.KillAfterLastUse()(after)
    lowered = transform.LowerRuntimeBuiltin()(killed)
    names = set(operators(lowered["main"]))
    assert {"vm.alloc_storage", "vm.alloc_tensor", "vm.kill_object"} <= names
    assert not any(name.startswith("memory.") for name in names)
    np.testing.assert_allclose(run(lowered, *inputs()), run(Chain, *inputs()), rtol=1e-5)


def test_shapes_and_closures_become_calls_of_functions() -> None:
    @I.ir_module
    class Values:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
            @R.function
            def shifted(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return R.add(a, y)

            z = shifted(y)
            s = R.shape_of(x)
            r = R.reshape(z, (2, 2))
            return (s, r)

    passes = [
        transform.LambdaLift(), transform.ToNonDataflow(), transform.RemovePurityChecking(),
        transform.LowerRuntimeBuiltin(),
    ]  # fmt: skip
    after = tvm.transform.Sequential(passes)(Values)
    text = after["main"].script()
    for name in ("make_closure", "invoke_closure", "shape_of", "reshape"):
        assert f'"vm.builtin.{name}"' in text
    machine = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    y = np.arange(4, dtype="float32")
    shape, value = machine["main"](tvm.nd.array(np.zeros((3, 4), "float32")), tvm.nd.array(y))
    assert tuple(shape) == (3, 4)
    np.testing.assert_array_equal(value.numpy(), (2 * y).reshape(2, 2))
