"""Passes that rewrite products, weights and results of functions; numbers stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


def arrays(shapes: Sequence[Sequence[int]], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def as_tensors(value):
    if isinstance(value, (tuple, list)):
        return tuple(as_tensors(item) for item in value)
    return tvm.nd.array(value) if isinstance(value, np.ndarray) else value


def run(mod: tvm.IRModule, *args, name: str = "main") -> list[np.ndarray]:
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = machine[name](*[as_tensors(arg) for arg in args])
    parts = [result] if isinstance(result, tvm.nd.NDArray) else list(result)
    return [part.numpy() for part in parts]


def same(a: tvm.IRModule, b: tvm.IRModule, *args, name: str = "main") -> None:
    for x, y in zip(run(a, *args, name=name), run(b, *args, name=name), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def operators(func: relax.Function) -> list[str]:
    values = [b.value for block in func.body.blocks for b in block.bindings]
    return [
        str(value.op.name).removeprefix("relax.")
        for value in values
        if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op)
    ]


# Products


@I.ir_module
class Parallel:
    @R.function
    def main(
        x: R.Tensor((2, 8, 16), "float32"),
        w0: R.Tensor((16, 4), "float32"),
        w1: R.Tensor((16, 6), "float32"),
        w2: R.Tensor((16, 4), "float32"),
        b0: R.Tensor((4,), "float32"),
        b1: R.Tensor((6,), "float32"),
    ):
        with R.dataflow():
            p0 = R.matmul(x, w0)
            s0 = R.add(p0, b0)
            r0 = R.nn.relu(s0)
            p1 = R.matmul(x, w1)
            s1 = R.add(p1, b1)
            r1 = R.nn.relu(s1)
            p2 = R.matmul(x, w2)
            R.output(r0, r1, p2)
        return (r0, r1, p2)


PARALLEL = [(2, 8, 16), (16, 4), (16, 6), (16, 4), (4,), (6,)]


def test_products_of_one_operand_with_one_kind_of_rest_are_one() -> None:
    after = transform.CombineParallelMatmul()(Parallel)
    # The third has no bias and no activation, and so stays apart.
    assert operators(after["main"]).count("matmul") == 2
    assert operators(after["main"]).count("nn.relu") == 1
    same(Parallel, after, *arrays(PARALLEL))


def test_a_check_decides_which_products_are_combined() -> None:
    seen = []

    def check(left, rights, biases, values):
        seen.append((str(left.name_hint), len(rights), len(biases), len(values) > 0))
        return False

    assert transform.CombineParallelMatmul(check)(Parallel)["main"].same_as(Parallel["main"])
    assert seen == [("x", 2, 2, True)]


def chain(shapes: Sequence[Sequence[int]], right: bool, attrs: dict | None = None):
    builder = relax.BlockBuilder()
    a, b, c = (
        relax.Var(name, relax.TensorStructInfo(shape, "float32"))
        for name, shape in zip("abc", shapes)
    )
    with builder.function("main", [a, b, c], attrs=attrs or {}):
        with builder.dataflow():
            if right:
                out = relax.op.matmul(a, relax.op.matmul(b, c))
            else:
                out = relax.op.matmul(relax.op.matmul(a, b), c)
            result = builder.emit_output(out)
        builder.emit_func_output(result)
    return builder.finalize()


def first_product(mod: tvm.IRModule) -> list[str]:
    first = mod["main"].body.blocks[0].bindings[0].value
    return [str(arg.name_hint) for arg in first.args]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    ("shapes", "expected"),
    [([(2, 64), (64, 4), (4, 64)], ["a", "b"]), ([(64, 4), (4, 64), (64, 2)], ["b", "c"])],
)
def test_three_factors_are_multiplied_in_the_cheaper_order(shapes, expected, right) -> None:
    before = chain(shapes, right)
    after = transform.AdjustMatmulOrder()(before)
    assert first_product(after) == expected
    same(before, after, *arrays(shapes))


def test_factors_that_are_known_early_are_multiplied_first() -> None:
    before = chain([(2, 64), (64, 4), (4, 64)], right=False, attrs={"num_input": 1})
    assert first_product(transform.AdjustMatmulOrder()(before)) == ["b", "c"]


def test_bounds_of_symbolic_extents_decide_the_order() -> None:
    n = tvm.tir.Var("rank", "int64")
    before = chain([(1, 64), (64, n), (n, 64)], right=True)
    bounded = chain(
        [(1, 64), (64, n), (n, 64)], right=True, attrs={"tir_var_upper_bound": {"rank": 16}}
    )
    assert first_product(transform.AdjustMatmulOrder()(bounded)) == ["a", "b"]
    assert len(first_product(transform.AdjustMatmulOrder()(before))) == 2


@I.ir_module
class Adapter:
    @R.function
    def main(
        x: R.Tensor((1, 64), "float32"),
        w: R.Tensor((32, 64), "float32"),
        a: R.Tensor((32, 4), "float32"),
        b: R.Tensor((4, 64), "float32"),
    ):
        with R.dataflow():
            low = R.matmul(a, b)
            whole = R.add(w, low)
            turned = R.permute_dims(whole)
            y = R.matmul(x, turned)
            R.output(y)
        return y


def test_a_product_of_a_sum_becomes_cheap_products() -> None:
    expanded = transform.ExpandMatmulOfSum()(Adapter)
    assert operators(expanded["main"]).count("matmul") == 3
    ordered = transform.AdjustMatmulOrder()(expanded)
    shapes = [
        [int(v) for v in b.var.struct_info.shape.values]
        for b in ordered["main"].body.blocks[0].bindings
    ]
    assert [32, 64] not in shapes  # the product of the adapter's factors is computed no more
    inputs = arrays([(1, 64), (32, 64), (32, 4), (4, 64)])
    same(Adapter, expanded, *inputs)
    same(Adapter, ordered, *inputs)


@I.ir_module
class Moves:
    @R.function
    def main(
        x: R.Tensor((5, 64), "float32"),
        w0: R.Tensor((32, 64), "float32"),
        w1: R.Tensor((16, 64), "float32"),
        i: R.Tensor((3,), "int64"),
    ):
        with R.dataflow():
            a = R.permute_dims(w0)
            b = R.permute_dims(w1)
            c = R.concat((a, b), axis=1)
            t = R.take(c, i, axis=1)
            y = R.matmul(x, t)
            R.output(y)
        return y


def test_moves_of_elements_come_after_what_they_feed() -> None:
    inputs = [*arrays([(5, 64), (32, 64), (16, 64)]), np.array([3, 40, 0])]
    after = transform.ReorderTakeAfterMatmul()(Moves)
    assert operators(after["main"])[-1] == "take"
    same(Moves, after, *inputs)
    joined = transform.ReorderPermuteDimsAfterConcat()(after)
    assert operators(joined["main"]).count("permute_dims") == 1
    same(Moves, joined, *inputs)


# Weights


@I.ir_module
class Net:
    @R.function
    def main(
        x: R.Tensor((1, 3, 8, 8), "float32"),
        w: R.Tensor((3, 4, 3, 3), "float32"),
        g: R.Tensor((4,), "float32"),
        m: R.Tensor((4,), "float32"),
        v: R.Tensor((4,), "float32"),
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w, axes=[1, 0, 2, 3])
            y = R.nn.conv2d(x, t, padding=1)
            e = R.exp(g)
            n = R.nn.batch_norm(y, e, g, m, v)
            z = n[0]
            r = R.reshape(z, (1, 4, 64))
            q = R.tanh(r)
            R.output(q)
        return q


NET = [(1, 3, 8, 8), (3, 4, 3, 3), (4,), (4,), (4,)]


def net_inputs() -> list[np.ndarray]:
    return [np.abs(array) + 0.1 if len(array.shape) == 1 else array for array in arrays(NET)]


def test_what_follows_from_weights_runs_once() -> None:
    after = transform.LiftTransformParams()(Net)
    assert "permute_dims" not in operators(after["main"])
    assert "permute_dims" in operators(after["main_transform_params"])
    x, *weights = net_inputs()
    machine = relax.VirtualMachine(relax.build(after, "llvm"), tvm.cpu())
    made = machine["main_transform_params"](as_tensors(tuple(weights)))
    got = machine["main"](as_tensors(x), *made).numpy()
    np.testing.assert_allclose(got, run(Net, x, *weights)[0], rtol=1e-4, atol=1e-4)


def test_what_is_stopped_stays_with_its_reader() -> None:
    @I.ir_module
    class Stopped:
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                a = R.exp(w)
                b = R.builtin.stop_lift_params(a)
                c = R.tanh(b)
                y = R.add(x, c)
                R.output(y)
            return y

    after = transform.LiftTransformParams()(Stopped)
    assert operators(after["main"]) == ["tanh", "add"]
    assert operators(after["main_transform_params"]) == ["exp"]


def test_weights_become_one_tuple() -> None:
    after = transform.BundleModelParams("weights")(Net)
    assert [str(p.name_hint) for p in after["main"].params] == ["x", "weights"]
    x, *weights = net_inputs()
    np.testing.assert_allclose(run(after, x, tuple(weights))[0], run(Net, x, *weights)[0], 1e-5)


def test_more_inputs_than_parameters_are_an_error() -> None:
    mod = tvm.IRModule({"main": Net["main"].with_attr("num_input", 9)})
    with pytest.raises(ValueError, match='"num_input" is 9, but the function has 5 parameters'):
        transform.BundleModelParams()(mod)


def test_weights_are_asked_for_once_each_when_they_are_read() -> None:
    after = transform.LazyGetInput()(Net)
    x, *weights = net_inputs()
    asked = []

    def get(place: int, name: str):
        asked.append((int(place), str(name)))
        return tvm.nd.array(weights[int(place)])

    got = run(after, x, tvm.runtime.convert(get))[0]
    np.testing.assert_allclose(got, run(Net, x, *weights)[0], rtol=1e-4, atol=1e-4)
    assert asked == [(0, "w"), (1, "g"), (2, "m"), (3, "v")]


@I.ir_module
class TwoResults:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.tanh(a)
            R.output(a, b)
        return (b, a, x)


def test_results_are_handed_over_when_they_are_ready() -> None:
    after = transform.LazySetOutput()(TwoResults)
    given: list[tuple[int, np.ndarray]] = []

    def put(place: int, value) -> None:
        given.append((int(place), value.numpy()))

    (x,) = arrays([(4,)])
    assert run(after, x, tvm.runtime.convert(put)) == []
    assert [place for place, _ in given] == [2, 1, 0]
    expected = [np.tanh(np.exp(x)), np.exp(x), x]
    for place, value in given:
        np.testing.assert_allclose(value, expected[place], rtol=1e-5)


def test_transforming_weights_loads_and_hands_over_one_by_one() -> None:
    x, *weights = net_inputs()
    lifted = transform.LiftTransformParams()(Net)
    lazy = transform.LazyTransformParams(
        "test_graph_rewrites.get", "test_graph_rewrites.set", extra_get_item_params=[relax.const(7)]
    )(lifted)
    made: dict[int, tvm.nd.NDArray] = {}

    def get(extra, place: int):
        assert int(extra.numpy()) == 7
        return tvm.nd.array(weights[int(place)])

    def put(place: int, value) -> None:
        made[int(place)] = tvm.nd.array(value.numpy())

    tvm.register_func("test_graph_rewrites.get", get, override=True)
    tvm.register_func("test_graph_rewrites.set", put, override=True)
    machine = relax.VirtualMachine(relax.build(lazy, "llvm"), tvm.cpu())
    machine["main_transform_params"]()
    got = machine["main"](as_tensors(x), *[made[i] for i in range(len(made))]).numpy()
    np.testing.assert_allclose(got, run(Net, x, *weights)[0], rtol=1e-4, atol=1e-4)


def test_kernels_say_which_operands_are_weights() -> None:
    after = transform.AttachAttrLayoutFreeBuffers()(transform.LegalizeOps()(Net))
    kernels = {
        str(g.name_hint): list(f.attrs.get("layout_free_buffers", []))
        for g, f in after.functions.items()
        if isinstance(f, tvm.tir.PrimFunc)
    }
    assert [int(i) for i in next(v for k, v in kernels.items() if "transpose" in k)] == [0]
    assert kernels["reshape"] == []


# Operators and structure


@pytest.mark.parametrize("mode", ["Inference", "Training"])
def test_batch_norms_are_written_out(mode: str) -> None:
    after = getattr(transform, f"DecomposeOpsFor{mode}")()(Net)
    assert "nn.batch_norm" not in operators(after["main"])
    inputs = net_inputs()
    if mode == "Inference":
        same(Net, after, *inputs)
        return
    # Of a batch normalised by its own statistics every channel has mean beta and deviation gamma.
    x, w, g, m, v = inputs
    (got,) = run(after, x, w, g, m, v)
    values = np.arctanh(got.astype("float64").clip(-0.9999999, 0.9999999))
    assert np.all(np.abs(np.median(values, axis=2)[0] - g) < 3 * np.exp(g))


def test_training_moves_the_statistics() -> None:
    @I.ir_module
    class Norm:
        @R.function
        def main(
            x: R.Tensor((2, 3, 5), "float32"),
            g: R.Tensor((3,), "float32"),
            b: R.Tensor((3,), "float32"),
            m: R.Tensor((3,), "float32"),
            v: R.Tensor((3,), "float32"),
            ones: R.Tensor((5,), "float32"),
            zeros: R.Tensor((5,), "float32"),
        ):
            with R.dataflow():
                n = R.nn.batch_norm(x, g, b, m, v, axis=1, momentum=0.25)
                rows = R.nn.layer_norm(x, ones, zeros, axes=[2])
                a = n[0]
                c = n[1]
                d = n[2]
                R.output(a, c, d, rows)
            return (a, c, d, rows)

    x, g, b, m, v = arrays([(2, 3, 5), (3,), (3,), (3,), (3,)])
    got = run(
        transform.DecomposeOpsForTraining()(Norm),
        x,
        g,
        b,
        m,
        v,
        np.ones(5, "float32"),
        np.zeros(5, "float32"),
    )
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    normal = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    np.testing.assert_allclose(got[0], normal * g[:, None] + b[:, None], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got[1], 0.75 * m + 0.25 * mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], 0.75 * v + 0.25 * variance, rtol=1e-4, atol=1e-5)
    rows = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got[3], rows, rtol=1e-4, atol=1e-4)


def test_approximations_are_close() -> None:
    after = transform.FastMathTransform()(Net)
    assert "tanh" not in operators(after["main"]) and "exp" not in operators(after["main"])
    inputs = net_inputs()
    np.testing.assert_allclose(run(after, *inputs)[0], run(Net, *inputs)[0], rtol=1e-3, atol=1e-3)


def test_kernels_that_reshape_are_reshapes() -> None:
    after = transform.RewriteDataflowReshape()(transform.LegalizeOps()(Net))
    assert operators(after["main"]).count("reshape") == 1
    same(Net, after, *net_inputs())


def test_lowered_memory_is_let_go_of_after_its_last_reader() -> None:
    passes = [
        transform.LegalizeOps(), transform.RewriteDataflowReshape(), transform.ToNonDataflow(),
        transform.RemovePurityChecking(), transform.CallTIRRewrite(), transform.LowerAllocTensor(),
        transform.KillAfterLastUse(),
    ]  # fmt: skip
    after = tvm.transform.Sequential(passes)(Net)
    names = operators(after["main"])
    assert names.count("memory.alloc_storage") == names.count("memory.kill_storage") + 1
    # The reshaped tensor is the memory of another one, which lives as long.
    assert names.index("reshape") < names.index("vm.kill_object")
    same(Net, after, *net_inputs())


@pytest.mark.parametrize("order", ["depth-first", "breadth-first"])
@pytest.mark.parametrize("direction", ["from-inputs", "from-outputs"])
def test_sorted_bindings_follow_what_they_read(order: str, direction: str) -> None:
    before = transform.DecomposeOpsForInference()(Net)
    after = transform.TopologicalSort(order, direction)(before)
    assert relax.analysis.well_formed(after)
    same(before, after, *net_inputs())


def test_depth_first_goes_on_with_what_it_has() -> None:
    @I.ir_module
    class Two:
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(y)
                c = R.tanh(a)
                d = R.tanh(b)
                e = R.add(c, d)
                R.output(e)
            return e

    def names(**options: str) -> list[str]:
        after = transform.TopologicalSort(**options)(Two)
        return [str(b.var.name_hint) for b in after["main"].body.blocks[0].bindings]

    assert names() == ["a", "c", "b", "d", "e"]
    assert names(order="breadth-first") == ["a", "b", "c", "d", "e"]
    with pytest.raises(ValueError, match='order must be "depth-first" or "breadth-first"'):
        names(order="random")


@I.ir_module
class Private:
    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        pair = (x, y)
        three = Private.inner(pair)
        first = three[0]
        last = three[2]
        return (first, last)

    @R.function(private=True)
    def inner(
        args: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")),
    ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        a = args[0]
        b = args[1]
        c = R.add(a, b)
        d = R.multiply(a, b)
        e = R.subtract(a, b)
        return (c, d, e)


def test_results_that_nobody_reads_are_gone() -> None:
    after = transform.RemoveUnusedOutputs()(Private)
    assert len(after["inner"].ret_struct_info.fields) == 2
    assert "multiply" not in operators(after["inner"])
    same(Private, after, *arrays([(4,), (4,)]))


def test_a_single_result_that_is_left_is_no_tuple() -> None:
    @I.ir_module
    class Single:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            both = Single.inner(x)
            return both[1]

        @R.function(private=True)
        def inner(
            x: R.Tensor((4,), "float32"),
        ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            a = R.exp(x)
            b = R.tanh(x)
            return (a, b)

    after = transform.RemoveUnusedOutputs()(Single)
    assert isinstance(after["inner"].ret_struct_info, relax.TensorStructInfo)
    same(Single, after, *arrays([(4,)]))


def test_tuples_are_given_field_by_field() -> None:
    after = transform.ExpandTupleArguments()(Private)
    assert [str(p.name_hint) for p in after["inner"].params] == ["args_0", "args_1"]
    same(Private, after, *arrays([(4,), (4,)]))


def test_other_parameters_change_what_follows() -> None:
    def info(param: relax.Var):
        is_x = str(param.name_hint) == "x"
        return relax.TensorStructInfo((2, 8, 16), "float32") if is_x else None

    def wider(param: relax.Var):
        is_x = str(param.name_hint) == "x"
        return relax.TensorStructInfo((5, 8, 16), "float32") if is_x else None

    assert tvm.ir.structural_equal(transform.UpdateParamStructInfo(info)(Parallel), Parallel)
    after = transform.UpdateParamStructInfo(wider)(Parallel)
    assert [int(v) for v in after["main"].ret_struct_info.fields[0].shape.values] == [5, 8, 4]


def test_a_function_over_functions_is_a_pass() -> None:
    @transform.function_pass(opt_level=1, name="tag")
    def tag(func, mod, ctx):
        return func.with_attr("tag", 1)

    assert tag.info.name == "tag" and int(tag(Net)["main"].attrs["tag"]) == 1

    @transform.function_pass(opt_level=1)
    class Tag:
        def __init__(self, value: int) -> None:
            self.value = value

        def transform_function(self, func, mod, ctx):
            return func.with_attr("tag", self.value)

    assert int(Tag(3)(Net)["main"].attrs["tag"]) == 3
    with pytest.raises(ValueError, match="opt_level"):
        transform.function_pass(lambda func, mod, ctx: func)


def test_a_pass_over_blocks_keeps_their_outputs() -> None:
    @transform.dataflowblock_pass(opt_level=1)
    def reverse(block, mod, ctx):
        return relax.DataflowBlock([b for b in block.bindings if str(b.var.name_hint) != "b"])

    with pytest.raises(ValueError, match="leaves out b, which code outside"):
        reverse(TwoResults)
