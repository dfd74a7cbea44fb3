"""Graph passes: what they do to small graphs, and that they keep the values."""

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def weights(*shape):
    return relax.const(RNG.standard_normal(shape).astype("float32"))


def data(*shape):
    return RNG.standard_normal(shape).astype("float32")


def batch_norm(x, channels):
    scale, shift, mean = weights(channels), weights(channels), weights(channels)
    var = relax.const(RNG.uniform(0.5, 2, channels).astype("float32"))
    return relax.TupleGetItem(op.nn.batch_norm(x, scale, shift, mean, var), 0)


def assert_same_values(run, before, after, *shapes, tolerance=1e-4):
    inputs = [data(*shape) for shape in shapes]
    plain = transform.FuseOps()(transform.DeadCodeElimination()(before))
    np.testing.assert_allclose(
        run(after, *inputs), run(plain, *inputs), rtol=tolerance, atol=tolerance
    )


def test_fold_batchnorm_scales_the_weights_of_the_convolution_before(make_module, op_names, run):
    mod = make_module(
        lambda bb, x: batch_norm(op.nn.conv2d(x, weights(4, 3, 3, 3)), 4), (1, 3, 6, 6)
    )
    folded = transform.DeadCodeElimination()(transform.FoldBatchnorm()(mod))
    assert op_names(folded) == ["nn.conv2d", "add"]
    assert_same_values(run, mod, folded, (1, 3, 6, 6))


def test_fold_batchnorm_takes_the_convolutions_bias_along(make_module, op_names, run):
    def body(bb, x):
        conv = op.nn.conv2d(x, weights(4, 3, 1, 1))
        return batch_norm(op.add(conv, weights(1, 4, 1, 1)), 4)

    mod = make_module(body, (1, 3, 5, 5))
    folded = transform.DeadCodeElimination()(transform.FoldBatchnorm()(mod))
    assert op_names(folded) == ["nn.conv2d", "add"]
    assert_same_values(run, mod, folded, (1, 3, 5, 5))


def test_fold_batchnorm_leaves_a_convolution_alone_that_others_read(make_module, op_names, run):
    def body(bb, x):
        conv = bb.emit(op.nn.conv2d(x, weights(4, 3, 1, 1)))
        return op.add(batch_norm(conv, 4), conv)

    mod = make_module(body, (1, 3, 5, 5))
    folded = transform.DeadCodeElimination()(transform.FoldBatchnorm()(mod))
    assert op_names(folded) == ["nn.conv2d", "multiply", "add", "add"]
    assert_same_values(run, mod, folded, (1, 3, 5, 5))


def test_fold_batchnorm_works_with_statistics_that_are_inputs(make_module, op_names, run):
    def body(bb, x, scale, shift, mean, var):
        return relax.TupleGetItem(op.nn.batch_norm(x, scale, shift, mean, op.exp(var)), 0)

    shapes = [(2, 3, 4, 4), (3,), (3,), (3,), (3,)]
    mod = make_module(body, *shapes)
    folded = transform.DeadCodeElimination()(transform.FoldBatchnorm()(mod))
    assert "nn.batch_norm" not in op_names(folded)
    assert_same_values(run, mod, folded, *shapes)


def test_convert_layout_transposes_only_at_the_borders(make_module, op_names, run):
    def body(bb, x):
        y = op.nn.relu(op.add(op.nn.conv2d(x, weights(8, 3, 3, 3), padding=1), weights(1, 8, 1, 1)))
        y = bb.emit(op.nn.max_pool2d(y, 2))
        z = op.nn.conv2d(y, weights(8, 8, 1, 1))
        return op.add(z, y)

    mod = make_module(body, (1, 3, 8, 8))
    converted = transform.DeadCodeElimination()(transform.ConvertLayout()(mod))
    assert op_names(converted) == [
        "permute_dims", "nn.conv2d", "add", "nn.relu", "nn.max_pool2d", "nn.conv2d", "add",
        "permute_dims",
    ]  # fmt: skip
    assert_same_values(run, mod, converted, (1, 3, 8, 8))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convert_layout_handles_grouped_and_depthwise_weights(make_module, op_names, run, groups):
    weight = weights(8, 4 // groups, 3, 3)
    mod = make_module(lambda bb, x: op.nn.conv2d(x, weight, groups=groups, strides=2), (1, 4, 7, 7))
    converted = transform.ConvertLayout()(mod)
    conv = converted["main"].body.blocks[0].bindings[1].value
    layout = op.attrs_of(conv)["kernel_layout"]
    assert layout == ("HWOI" if groups == 4 else "HWIO")
    assert_same_values(run, mod, converted, (1, 4, 7, 7))


def test_convert_layout_permutes_the_weights_behind_a_flatten(make_module, op_names, run):
    def body(bb, x):
        y = op.nn.conv2d(x, weights(4, 3, 3, 3))
        return op.nn.dense(op.flatten(y, 1), weights(5, 4 * 3 * 3))

    mod = make_module(body, (2, 3, 5, 5))
    converted = transform.DeadCodeElimination()(transform.ConvertLayout()(mod))
    assert op_names(converted) == ["permute_dims", "nn.conv2d", "reshape", "nn.dense"]
    assert_same_values(run, mod, converted, (2, 3, 5, 5))


def test_convert_layout_keeps_the_order_of_a_flatten_that_others_read(make_module, op_names, run):
    mod = make_module(
        lambda bb, x: op.nn.relu(op.flatten(op.nn.conv2d(x, weights(4, 3, 3, 3)), 1)), (2, 3, 5, 5)
    )
    converted = transform.DeadCodeElimination()(transform.ConvertLayout()(mod))
    assert op_names(converted)[2:] == ["permute_dims", "reshape", "nn.relu"]
    assert_same_values(run, mod, converted, (2, 3, 5, 5))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [(2, 3), (1,), (3,), None])
def test_convert_layout_carries_reductions_and_concatenation(make_module, run, axis, keepdims):
    def body(bb, x):
        y = bb.emit(op.nn.conv2d(x, weights(4, 3, 1, 1)))
        return op.mean(op.concat([y, op.exp(y)], 1), axis, keepdims)

    mod = make_module(body, (2, 3, 4, 5))
    converted = transform.DeadCodeElimination()(transform.ConvertLayout()(mod))
    assert_same_values(run, mod, converted, (2, 3, 4, 5))


def test_dead_code_elimination_drops_what_nobody_reads(make_module, op_names):
    def body(bb, x):
        bb.emit(op.exp(x))
        return op.nn.relu(x)

    mod = transform.DeadCodeElimination()(make_module(body, (2, 3)))
    assert op_names(mod) == ["nn.relu"]


def test_fold_constant_computes_what_depends_on_constants_only(make_module, op_names, run):
    table = np.arange(6, dtype="float32").reshape(2, 3)

    def body(bb, x):
        return op.add(x, op.exp(op.permute_dims(relax.const(table))))

    mod = make_module(body, (3, 2))
    folded = transform.DeadCodeElimination()(transform.FoldConstant()(mod))
    assert op_names(folded) == ["add"]
    constant = folded["main"].body.blocks[0].bindings[0].value.args[1]
    np.testing.assert_allclose(constant.data.numpy(), np.exp(table.T), rtol=1e-5)


def test_bind_params_makes_named_parameters_constants(make_module, run):
    mod = make_module(lambda bb, x, w: op.nn.dense(x, w), (2, 3), (4, 3))
    weight, x = data(4, 3), data(2, 3)
    bound = transform.BindParams("main", {"x1": tvm.nd.array(weight)})(mod)
    assert [str(p.name_hint) for p in bound["main"].params] == ["x0"]
    np.testing.assert_allclose(run(bound, x), x @ weight.T, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="no parameter y; it has x0, x1"):
        transform.BindParams("main", {"y": weight})(mod)


def groups_of(mod):
    """Names of the operators of each kernel, in order of the calls."""
    fused = transform.FuseOps()(mod)
    groups = relax.fused_groups(fused)
    return [(group.op_names, group.weight) for group in groups]


def test_fuse_ops_appends_elementwise_operators_to_a_convolution(make_module):
    def body(bb, x, shortcut):
        conv = op.nn.conv2d(x, weights(4, 3, 3, 3), padding=1)
        return op.nn.relu(op.add(op.add(conv, weights(1, 4, 1, 1)), shortcut))

    mod = make_module(body, (1, 3, 6, 6), (1, 4, 6, 6))
    assert groups_of(mod) == [(["nn.conv2d", "add", "add", "nn.relu"], 1)]


def test_fuse_ops_takes_a_diamond_behind_a_convolution(make_module, run):
    def body(bb, x):
        conv = bb.emit(op.nn.conv2d(x, weights(4, 3, 3, 3)))
        return op.multiply(conv, op.sigmoid(conv))

    mod = make_module(body, (1, 3, 6, 6))
    assert groups_of(mod) == [(["nn.conv2d", "sigmoid", "multiply"], 1)]
    unfused = transform.OptimizeForInference()(mod)
    assert_same_values(run, mod, unfused, (1, 3, 6, 6))


def test_fuse_ops_stops_where_a_second_reader_is_not_elementwise(make_module):
    def body(bb, x):
        conv = bb.emit(op.nn.conv2d(x, weights(3, 3, 1, 1)))
        again = op.nn.conv2d(conv, weights(3, 3, 1, 1))
        return op.add(op.nn.relu(conv), again)

    mod = make_module(body, (1, 3, 6, 6))
    # The first convolution is read by the second, so its relu cannot be part of its kernel. The
    # second one's kernel ends in the addition.
    assert [names for names, _ in groups_of(mod)] == [
        ["nn.conv2d"],
        ["nn.relu"],
        ["nn.conv2d", "add"],
    ]


def test_fuse_ops_gives_a_shared_addition_to_the_larger_convolution(make_module):
    def body(bb, x):
        shortcut = bb.emit(op.nn.conv2d(x, weights(4, 3, 1, 1)))
        main = bb.emit(op.nn.conv2d(x, weights(4, 3, 3, 3), padding=1))
        return op.add(main, shortcut)

    mod = make_module(body, (1, 3, 6, 6))
    assert [names for names, _ in groups_of(mod)] == [["nn.conv2d"], ["nn.conv2d", "add"]]


def test_fuse_ops_keeps_a_value_that_is_also_returned(make_module, run):
    def body(bb, x):
        dense = bb.emit_output(op.nn.dense(x, weights(4, 3)))
        return relax.Tuple([dense, bb.emit_output(op.nn.relu(dense))])

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3)))
    with builder.function("main", [x]):
        with builder.dataflow():
            pair = body(builder, x)
        builder.emit_func_output(pair)
    dense, relu = run(builder.get(), data(2, 3))
    np.testing.assert_array_equal(relu, np.maximum(dense, 0))


def test_fuse_ops_shares_a_kernel_between_equal_layers(make_module):
    def body(bb, x):
        for _ in range(3):
            x = bb.emit(op.nn.relu(op.nn.dense(x, weights(4, 4))))
        return x

    assert groups_of(make_module(body, (2, 4))) == [(["nn.dense", "nn.relu"], 3)]


def test_fuse_ops_chains_injective_operators(make_module):
    mod = make_module(
        lambda bb, x: op.exp(op.permute_dims(op.add(x, relax.const(2.0)), (1, 0))), (2, 3)
    )
    assert groups_of(mod) == [(["add", "permute_dims", "exp"], 1)]


def test_fuse_ops_does_not_repeat_work_for_a_larger_result(make_module):
    mod = make_module(lambda bb, x, y: op.add(op.exp(x), y), (1, 3), (4, 3))
    assert [names for names, _ in groups_of(mod)] == [["exp"], ["add"]]


def test_bind_params_makes_symbolic_extents_numbers():
    n, m = tvm.tir.Var("n", "int64"), tvm.tir.Var("m", "int64")
    x, y = (relax.Var(name, relax.TensorStructInfo((n, m), "float32")) for name in "xy")
    info = relax.TensorStructInfo((n, m * 2), "float32")
    call = op.call_dps_packed("join", [x, y], info)
    body = relax.SeqExpr(
        [relax.BindingBlock([relax.VarBinding(relax.Var("z", info), call)])], relax.Tuple([])
    )
    mod = tvm.IRModule({"main": relax.Function([x, y], body)})
    bound = transform.BindParams("main", {"y": data(2, 3)})(mod)["main"]
    assert [str(p.struct_info) for p in bound.params] == ['R.Tensor((2, 3), dtype="float32")']
    binding = bound.body.blocks[0].bindings[0]
    assert str(binding.var.struct_info) == 'R.Tensor((2, 6), dtype="float32")'
    assert str(binding.value.sinfo_args[0]) == 'R.Tensor((2, 6), dtype="float32")'
    with pytest.raises(ValueError, match="'x' makes the extent n 5, another parameter makes it 2"):
        transform.BindParams("main", {"y": data(2, 3), "x": data(5, 3)})(mod)


def test_fold_pad_leaves_borders_of_zeros_to_the_convolution(make_module, op_names, run):
    def body(bb, x):
        padded = bb.emit(op.nn.pad(x, ((0, 0), (0, 0), (0, 1), (2, 1))))
        return op.nn.conv2d(padded, weights(4, 3, 3, 3), strides=2, padding=1)

    mod = make_module(body, (1, 3, 8, 8))
    folded = transform.DeadCodeElimination()(transform.FoldPad()(mod))
    assert op_names(folded) == ["nn.conv2d"]
    assert list(op.attrs_of(folded["main"].body.blocks[0].bindings[0].value)["padding"]) == [
        1, 3, 2, 2,
    ]  # fmt: skip
    assert_same_values(run, mod, folded, (1, 3, 8, 8))


@pytest.mark.parametrize(
    ("borders", "value"),
    [(((0, 0), (0, 1), (0, 0), (0, 0)), 0.0), (((0, 0), (0, 0), (1, 1), (1, 1)), 1.0)],
    ids=["channels", "ones"],
)
def test_fold_pad_keeps_other_borders(make_module, op_names, borders, value):
    def body(bb, x):
        padded = bb.emit(op.nn.pad(x, borders, pad_value=value))
        return op.nn.conv2d(padded, weights(4, 3 + borders[1][1], 3, 3))

    mod = make_module(body, (1, 3, 8, 8))
    assert op_names(transform.FoldPad()(mod)) == ["nn.pad", "nn.conv2d"]


def test_convert_layout_takes_pads_and_the_networks_own_transposes(make_module, op_names, run):
    def body(bb, x):
        y = bb.emit(op.nn.conv2d(x, weights(4, 3, 3, 3)))
        y = bb.emit(op.nn.pad(y, ((0, 0), (1, 0), (0, 2), (0, 0)), pad_value=2.0))
        y = bb.emit(op.permute_dims(y, (0, 2, 3, 1)))
        y = bb.emit(op.nn.dense(y, weights(6, 5)))
        y = bb.emit(op.permute_dims(y, (0, 3, 1, 2)))
        return op.nn.conv2d(y, weights(2, 6, 1, 1))

    mod = make_module(body, (1, 3, 6, 7))
    converted = transform.DeadCodeElimination()(transform.ConvertLayout()(mod))
    assert op_names(converted) == [
        "permute_dims", "nn.conv2d", "nn.pad", "nn.dense", "nn.conv2d", "permute_dims",
    ]  # fmt: skip
    assert_same_values(run, mod, converted, (1, 3, 6, 7))


def test_chains_whose_values_are_read_twice_end_somewhere(make_module, run):
    """Written as one expression, the last of forty would have 2^40 operators."""

    def body(bb, x):
        for k in range(40):
            x = bb.emit(op.multiply(x, bb.emit(op.add(x, relax.const(1.0 + k / 100, "float32")))))
            x = bb.emit(op.tanh(x))
        return x

    mod = make_module(body, (5, 7))
    fused = transform.FuseOps()(mod)
    assert 1 < len(relax.fused_groups(fused)) < 40
    x = np.random.default_rng(0).standard_normal((5, 7)).astype("float32")
    expected = x
    for k in range(40):
        expected = np.tanh(expected * (expected + np.float32(1.0 + k / 100)))
    np.testing.assert_allclose(run(fused, x), expected, rtol=1e-4, atol=1e-5)


def test_elementwise_chains_join_the_one_that_reads_them(make_module, run, op_names):
    """Two products that only their sum reads, as in rotary embeddings."""

    def body(bb, x, cos, sin):
        left = bb.emit(op.multiply(x, cos))
        right = bb.emit(op.multiply(bb.emit(op.negative(x)), sin))
        return op.add(left, right)

    shapes = [(4, 6), (4, 6), (4, 6)]
    mod = make_module(body, *shapes)
    fused = transform.FuseOps()(mod)
    assert [len(group.op_names) for group in relax.fused_groups(fused)] == [4]
    arrays = [np.random.default_rng(k).standard_normal((4, 6)).astype("float32") for k in range(3)]
    np.testing.assert_allclose(
        run(fused, *arrays), arrays[0] * arrays[1] - arrays[0] * arrays[2], rtol=1e-5, atol=1e-6
    )


def test_kernels_with_a_pattern_are_folded():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            ones = relax.const(np.ones(3, "float32"))
            two = builder.emit(relax.op.add(ones, ones))
            out = builder.emit_output(relax.op.multiply(x, relax.op.exp(two)))
        builder.emit_func_output(out)
    mod = transform.AnnotateTIROpPattern()(transform.LegalizeOps()(builder.get()))
    folded = transform.FoldConstant()(mod)
    values = [b.value for b in folded["main"].body.blocks[0].bindings]
    assert len(values) == 1
    constant = values[0].args[1].fields[1]
    np.testing.assert_allclose(constant.data.numpy(), np.exp([2, 2, 2]), rtol=1e-6)
