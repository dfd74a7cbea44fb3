"""Rewrites as values: read from functions, joined, applied to modules."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.dpl import (
    ExprPatternRewriter,
    OrRewriter,
    PatternMatchingRewriter,
    TupleRewriter,
    is_op,
    wildcard,
)
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

RNG = np.random.default_rng(3)


@R.rewriter
class TwiceAdded:
    @R.function
    def pattern(x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")):
        return R.add(R.add(x, y), y)

    @R.function
    def replacement(x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")):
        return R.add(x, R.multiply(y, R.const(2.0, "float32")))


@I.ir_module
class Added:
    @R.function
    def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        c = R.add(a, b)
        d = R.add(c, b)
        return R.exp(d)


def operators(func):
    """Names of the operators that a function calls, in order."""
    return [
        str(binding.value.op.name).removeprefix("relax.")
        for block in func.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]


def run(mod, *arrays):
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](*map(tvm.nd.array, arrays))
    return [r.numpy() for r in result] if not hasattr(result, "numpy") else result.numpy()


def test_functions_describe_a_rewrite():
    after = TwiceAdded(Added)
    assert operators(after["main"]) == ["multiply", "add", "exp"]
    a, b = RNG.normal(size=(2, 4)).astype("float32")
    np.testing.assert_allclose(run(after, a, b), np.exp(a + 2 * b), rtol=1e-6)
    assert isinstance(TwiceAdded, ExprPatternRewriter)


def test_a_function_may_be_rewritten_alone():
    assert operators(TwiceAdded(Added["main"])) == ["multiply", "add", "exp"]


def test_what_does_not_match_stays_the_same_object():
    @I.ir_module
    class Other:
        @R.function
        def main(a: R.Tensor((4,), "float16"), b: R.Tensor((4,), "float16")):
            c = R.add(a, b)
            return R.add(c, b)

    assert TwiceAdded(Other).same_as(Other)
    assert TwiceAdded(Other["main"]).same_as(Other["main"])


@R.rewriter
class WidthOfConcat:
    @R.function
    def pattern(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("n", "k"), "float32")):
        return R.concat((x, y), axis=0)

    @R.function
    def replacement(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("n", "k"), "float32")):
        n = T.int64()
        k = T.int64()
        return R.add(R.zeros(R.shape([n * 2, k]), "float32"), R.concat((x, y), axis=0))


def test_symbolic_extents_stand_for_what_is_found():
    @I.ir_module
    class Two:
        @R.function
        def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                c = R.concat((a, b), axis=0)
                R.output(c)
            return c

    @I.ir_module
    class Uneven:
        @R.function
        def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor((5, 3), "float32")):
            return R.concat((a, b), axis=0)

    after = WidthOfConcat(Two)
    assert operators(after["main"]) == ["zeros", "concat", "add"]
    a, b = RNG.normal(size=(2, 2, 3)).astype("float32")
    np.testing.assert_allclose(run(after, a, b), np.concatenate([a, b]))
    # Both must have the same number of rows.
    assert WidthOfConcat(Uneven).same_as(Uneven)


@R.rewriter
class Flattened:
    @R.function
    def pattern(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        return R.reshape(x, R.shape([n * m]))

    @R.function
    def replacement(x: R.Tensor(("n", "m"), "float32")):
        return R.flatten(x)


@R.rewriter
class ReshapedTwice:
    @R.function
    def pattern(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        return (R.reshape(x, R.shape([m, n])), R.reshape(x, R.shape([n * m])))

    @R.function
    def replacement(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        flat = R.flatten(x)
        return (R.reshape(flat, R.shape([m, n])), flat)


@pytest.mark.parametrize(("shape", "matches"), [((24,), True), ((6, 4), False), ((4, 6), False)])
def test_shapes_of_symbolic_extents_are_those_of_the_operands(shape, matches):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.reshape(x, shape))
        builder.emit_func_output(result)
    mod = builder.get()
    new = Flattened(mod)
    assert operators(new["main"]) == (["flatten"] if matches else ["reshape"])
    data = RNG.normal(size=(4, 6)).astype("float32")
    np.testing.assert_array_equal(run(new, data), data.reshape(shape))


@pytest.mark.parametrize(("shape", "matches"), [((6, 4), True), ((4, 6), False), ((2, 12), False)])
def test_shapes_of_several_results_are_those_of_the_operands(shape, matches):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.reshape(x, shape))
            second = builder.emit(relax.op.reshape(x, (24,)))
            result = builder.emit_output(relax.Tuple([first, second]))
        builder.emit_func_output(result)
    new = ReshapedTwice(builder.get())
    assert ("flatten" in operators(new["main"])) == matches
    data = RNG.normal(size=(4, 6)).astype("float32")
    for got, want in zip(run(new, data), (data.reshape(shape), data.reshape(24)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_settings_of_calls_must_be_the_same():
    @R.rewriter
    class OfRows:
        @R.function
        def pattern(x: R.Tensor(ndim=2, dtype="float32")):
            return R.sum(x, axis=[1])

        @R.function
        def replacement(x: R.Tensor(ndim=2, dtype="float32")):
            return R.max(x, axis=[1])

    @I.ir_module
    class Sums:
        @R.function
        def main(a: R.Tensor((3, 4), "float32")):
            rows = R.sum(a, axis=[1])
            columns = R.sum(a, axis=[0])
            return (rows, columns)

    assert operators(OfRows(Sums)["main"]) == ["max", "sum"]


@R.rewriter
class ProductsTogether:
    @R.function
    def pattern(
        x: R.Tensor((4, 8), "float32"),
        v: R.Tensor((8, 8), "float32"),
        w: R.Tensor((8, 8), "float32"),
    ):
        first = R.matmul(x, v)
        second = R.matmul(x, w)
        return (first, second)

    @R.function
    def replacement(
        x: R.Tensor((4, 8), "float32"),
        v: R.Tensor((8, 8), "float32"),
        w: R.Tensor((8, 8), "float32"),
    ):
        both = R.split(R.matmul(x, R.concat((v, w), axis=1)), 2, axis=1)
        return (both[0], both[1])


def test_several_results_are_rewritten_together():
    @I.ir_module
    class Attention:
        @R.function
        def main(
            x: R.Tensor((4, 8), "float32"),
            q: R.Tensor((8, 8), "float32"),
            k: R.Tensor((8, 8), "float32"),
        ):
            with R.dataflow():
                a = R.matmul(x, q)
                b = R.exp(a)
                c = R.matmul(x, k)
                d = R.add(b, c)
                R.output(d)
            return d

    after = ProductsTogether(Attention)
    assert isinstance(ProductsTogether, TupleRewriter)
    assert operators(after["main"]).count("matmul") == 1
    x = RNG.normal(size=(4, 8)).astype("float32")
    q, k = RNG.normal(size=(2, 8, 8)).astype("float32") / 4
    np.testing.assert_allclose(run(after, x, q, k), np.exp(x @ q) + x @ k, rtol=1e-4, atol=1e-4)


def test_rewrites_are_joined():
    def negate(pattern):
        part = wildcard()
        return PatternMatchingRewriter.from_pattern(
            is_op(pattern)(part), lambda _, found: relax.op.negative(found[_key(found)])
        )

    def _key(found):
        return next(p for p in found if type(p).__name__ == "WildcardPattern")

    @I.ir_module
    class Chain:
        @R.function
        def main(a: R.Tensor((4,), "float32")):
            b = R.exp(a)
            return R.sin(b)

    both = negate("relax.exp") | negate("relax.sin")
    assert isinstance(both, OrRewriter)
    assert operators(both(Chain)["main"]) == ["negative", "negative"]


def test_a_function_of_python_may_leave_a_match():
    part = wildcard()
    leaves = PatternMatchingRewriter.from_pattern(is_op("relax.exp")(part), lambda *_: None)
    assert leaves(Added).same_as(Added)


def test_what_is_no_rewrite_is_refused():
    with pytest.raises(ValueError, match="named pattern and replacement"):
        PatternMatchingRewriter.from_module(Added)
    with pytest.raises(TypeError, match="a graph function or a module"):
        TwiceAdded(3)
    with pytest.raises(ValueError, match="calls, tuples or fields"):
        TupleRewriter([wildcard()], lambda *_: None)(Added)
    with pytest.raises(ValueError, match="does not use its parameter y"):

        @R.rewriter
        class Unused:
            @R.function
            def pattern(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
                return R.exp(x)

            @R.function
            def replacement(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
                return R.sin(y)

    with pytest.raises(ValueError, match="do not give as many values"):

        @R.rewriter
        class Counts:
            @R.function
            def pattern(x: R.Tensor((4,), "float32")):
                return (R.exp(x), R.sin(x))

            @R.function
            def replacement(x: R.Tensor((4,), "float32")):
                return R.sin(x)
