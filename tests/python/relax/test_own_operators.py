"""Operators that programs register, and kernels of operators with open sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

_numbers = itertools.count()


def run(mod: tvm.IRModule, *args: np.ndarray) -> list[np.ndarray]:
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = machine["main"](*[tvm.nd.array(arg) for arg in args])
    return [result.numpy()] if isinstance(result, tvm.nd.NDArray) else [r.numpy() for r in result]


@pytest.mark.parametrize("through_builder", [False, True])
def test_an_operator_of_a_program_becomes_others_and_they_kernels(through_builder: bool) -> None:
    name = f"test_own.biased_product{next(_numbers)}"
    seen = []

    def info(call: relax.Call, builder: relax.BlockBuilder) -> relax.StructInfo:
        seen.append(isinstance(builder, relax.BlockBuilder))
        a, b, _ = (arg.struct_info for arg in call.args)
        return relax.TensorStructInfo([a.shape[0], b.shape[1]], a.dtype)

    def legal(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
        a, b, bias = call.args
        product = relax.op.matmul(a, b)
        return relax.op.add(builder.emit(product) if through_builder else product, bias)

    op = tvm.ir.register_op_attr(name, "FInferStructInfo", info) and tvm.ir.Op.get(name)
    tvm.ir.register_op_attr(name, "FLegalize", legal)
    tvm.ir.register_op_attr(name, "FPurity", True)

    @I.ir_module
    class Module:
        @R.function
        def main(
            a: R.Tensor((2, 3), "float32"),
            b: R.Tensor((3, 4), "float32"),
            c: R.Tensor((4,), "float32"),
        ):
            with R.dataflow():
                y = relax.Call(op, [a, b, c])
                R.output(y)
            return y

    assert seen and all(seen)
    after = relax.transform.LegalizeOps()(Module)
    tvm.ir.assert_structural_equal(relax.transform.LegalizeOps()(after), after)
    kernels = [b.value.op for b in after["main"].body.blocks[0].bindings]
    assert kernels == [tvm.ir.Op.get("relax.call_tir")] * 2
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(s).astype("float32") for s in [(2, 3), (3, 4), (4,)])
    np.testing.assert_allclose(run(Module, a, b, c)[0], a @ b + c, rtol=1e-5)


def test_an_operator_says_that_it_has_effects() -> None:
    name = f"test_own.effect{next(_numbers)}"
    tvm.ir.register_op_attr(name, "FInferStructInfo", lambda call, ctx: relax.ObjectStructInfo())
    tvm.ir.register_op_attr(name, "FPurity", False)
    call = relax.Call(tvm.ir.Op.get(name), [])
    assert relax.analysis.find_impure_call(call) is not None


def test_pieces_that_cannot_be_equal_end_with_a_shorter_one() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 10), "float32"), y: R.Tensor((2, "n"), "float32")):
            a = R.split(x, 3, axis=1)
            b = R.split(y, 3, axis=1)
            return (a[0], a[1], a[2], b[0], b[1], b[2])

    rng = np.random.default_rng(0)
    x = rng.random((2, 10)).astype("float32")
    for width in (7, 9):
        y = rng.random((2, width)).astype("float32")
        expected = np.split(x, [4, 8], axis=1) + np.split(y, [3, 6], axis=1)
        for got, want in zip(run(Module, x, y), expected, strict=True):
            np.testing.assert_array_equal(got, want)


def test_updates_are_scattered_into_open_sizes() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor(("a", "b"), "float32"),
            i: R.Tensor(("m", "n"), "int64"),
            u: R.Tensor(("m", "n"), "float32"),
        ):
            return R.scatter_elements(x, i, u, axis=1)

    rng = np.random.default_rng(0)
    x = rng.random((3, 5)).astype("float32")
    index, update = np.array([[0, -1], [2, 3]]), rng.random((2, 2)).astype("float32")
    expected = x.copy()
    np.put_along_axis(expected[:2], index % 5, update, axis=1)
    np.testing.assert_array_equal(run(Module, x, index, update)[0], expected)


def test_images_in_blocks_of_channels_are_resized() -> None:
    @I.ir_module
    class Blocked:
        @R.function
        def main(x: R.Tensor(("n", "c", "h", "w", 4), "float32")):
            return R.image.resize2d(x, (8, 6), layout="NCHW4c", method="linear")

    @I.ir_module
    class Planar:
        @R.function
        def main(x: R.Tensor((1, 8, 4, 3), "float32")):
            return R.image.resize2d(x, (8, 6), layout="NCHW", method="linear")

    x = np.random.default_rng(0).random((1, 2, 4, 3, 4)).astype("float32")
    (got,) = run(Blocked, x)
    (want,) = run(Planar, x.transpose(0, 1, 4, 2, 3).reshape(1, 8, 4, 3))
    got = got.transpose(0, 1, 4, 2, 3).reshape(want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_rules_ask_for_those_of_other_operators() -> None:
    a, b = (relax.Var(n, relax.TensorStructInfo((4, 4), "float32")) for n in "ab")
    rule = tvm.ir.Op.get("relax.matmul").get_attr("FInferStructInfo")
    info = rule(relax.op.matmul(a, b), relax.BlockBuilder())
    tvm.ir.assert_structural_equal(info, relax.TensorStructInfo((4, 4), "float32"))
    assert tvm.ir.Op.get("relax.matmul").get_attr("FPurity") is True
    assert tvm.ir.Op.get("relax.print").get_attr("FPurity") is False


@pytest.mark.parametrize("ordered", [True, False])
def test_different_elements_are_found_when_it_runs(ordered: bool) -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, "n"), "float32")):
            flat = R.unique(x, sorted=ordered, return_index=True, return_counts=True)
            return (flat[0], flat[1], flat[2])

    x = np.array([[3, 1, 3], [2, 1, 1]], "float32")
    values, first, counts = run(Module, x)
    want, places, _, many = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(len(want)) if ordered else np.argsort(places)
    np.testing.assert_array_equal(values, want[order])
    np.testing.assert_array_equal(first, places[order])
    np.testing.assert_array_equal(counts, many[order])


def test_places_of_what_is_not_zero_are_found_when_it_runs() -> None:
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), mask: R.Tensor((2, 3), "bool")):
            filled = R.masked_fill(x, mask, 0.0)
            return R.nonzero(filled)

    x = np.array([[3, 0, 3], [2, 1, 1]], "float32")
    mask = np.array([[True, False, False], [False, True, False]])
    (places,) = run(Module, x, mask)
    np.testing.assert_array_equal(places, np.array(np.nonzero(np.where(mask, 0, x))))
