"""Strategies: programs say how operators are computed and scheduled on a target."""

import numpy as np
import pytest

import tvm
from tvm import relay, te, topi
from tvm.contrib import graph_executor
from tvm.relay.backend import te_compiler
from tvm.relay.op import strategy as strategies

# A key of its own, so that nothing that is registered here counts elsewhere.
DEVICE = tvm.target.Target("llvm -keys=strategydev,cpu")


def _run(func, *arrays, target=DEVICE):
    lib = relay.build(tvm.IRModule.from_expr(func), target)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**{f"x{k}": array for k, array in enumerate(arrays)})
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]


def _vars(*shapes):
    return [relay.var(f"x{k}", shape=shape) for k, shape in enumerate(shapes)]


def _doubled(attrs, inputs, out_type):
    return [te.compute(inputs[0].shape, lambda *i: 2.0 * inputs[0](*i), name="doubled")]


def test_an_operator_of_ones_own_is_computed_and_scheduled_by_its_strategy():
    op = relay.op.register("strategy.double", "twice the operand")
    op.set_num_inputs(1)
    op.add_type_rel("Identity")
    seen = []

    def split(attrs, outs, target):
        schedule = te.create_schedule([o.op for o in outs])
        seen.append(target)
        schedule[outs[0]].split(outs[0].op.axis[-1], 4)
        return schedule

    @relay.op.register_strategy("strategy.double")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(_doubled, split, name="strategy.double.split")
        return made

    (x,) = _vars((3, 8))
    array = np.random.default_rng(0).random((3, 8), "float32")
    func = relay.Function([x], relay.exp(relay.Call(op, [relay.exp(x)])))
    np.testing.assert_allclose(_run(func, array)[0], np.exp(2 * np.exp(array)), rtol=1e-5)
    assert seen
    assert str(seen[0].keys[0]) == "strategydev"
    run = relay.create_executor("vm", tvm.IRModule.from_expr(func), target="llvm").evaluate()
    np.testing.assert_allclose(run(array).numpy(), np.exp(2 * np.exp(array)), rtol=1e-5)


def test_a_version_for_a_target_takes_the_place_of_the_librarys_there_only():
    called = []

    def dense(data, weight, bias, out_dtype):
        called.append(out_dtype)
        return topi.nn.dense(data, weight, bias, out_dtype)

    @strategies.dense_strategy.register("strategydev")
    def dense_of_the_device(attrs, inputs, out_type, target):
        made = strategies.OpStrategy()
        compute = strategies.wrap_compute_dense(dense)
        made.add_implementation(compute, strategies.naive_schedule, "dense.strategydev")
        return made

    x, w = _vars((5, 7), (3, 7))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 7), "float32"), rng.standard_normal((3, 7), "float32")
    expected = np.maximum(a @ b.T, 0)
    np.testing.assert_allclose(_run(func, a, b, target="llvm")[0], expected, rtol=1e-4, atol=1e-5)
    assert not called
    np.testing.assert_allclose(_run(func, a, b)[0], expected, rtol=1e-4, atol=1e-5)
    assert set(called) == {"float32"}


def test_operators_that_are_written_in_others_have_strategies():
    @strategies.dense_pack_strategy.register("strategydev")
    def packed(attrs, inputs, out_type, target):
        def compute(attrs, inputs, out_type):
            x, w = inputs
            k = te.reduce_axis((0, x.shape[1]))
            return [
                te.compute(
                    out_type.shape,
                    lambda i, j: te.sum(x[i, k] * w[te.indexdiv(j, 8), k, te.indexmod(j, 8)], k),
                    name="of_the_device",
                )
            ]

        made = strategies.OpStrategy()
        made.add_implementation(compute, strategies.naive_schedule)
        return made

    x, w = _vars((3, 5), (2, 5, 8))
    func = relay.Function([x, w], relay.nn.contrib_dense_pack(x, w, "NC8n"))
    rng = np.random.default_rng(0)
    a, b = rng.random((3, 5), "float32"), rng.random((2, 5, 8), "float32")
    expected = a @ b.transpose(1, 0, 2).reshape(5, 16)
    for target in ("llvm", DEVICE):
        np.testing.assert_allclose(_run(func, a, b, target=target)[0], expected, rtol=1e-5)
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"].body
    _, outs = te_compiler.select_implementation(
        typed.op, typed.attrs, [te.placeholder(a.shape), te.placeholder(b.shape)],
        typed.checked_type, DEVICE,
    )  # fmt: skip
    assert outs[0].op.name == "of_the_device"


def test_several_operands_of_a_tuple_and_several_results():
    op = relay.op.register("strategy.sums", "sum and difference of the fields of a tuple")
    op.set_num_inputs(1)
    op.add_type_rel("Fields", lambda types, attrs: types[0])

    def compute(attrs, inputs, out_type):
        a, b = inputs
        return [te.compute(a.shape, lambda *i: a(*i) + b(*i)),
                te.compute(a.shape, lambda *i: a(*i) - b(*i))]  # fmt: skip

    @relay.op.register_strategy("strategy.sums")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(compute, strategies.schedule_injective)
        return made

    x, y = _vars((4,), (4,))
    a, b = np.arange(4, dtype="float32"), np.ones(4, "float32")
    for operand in (relay.Tuple([x, y]), relay.Call(op, [relay.Tuple([x, y])])):
        result = relay.Call(op, [operand])
        func = relay.Function([x, y], result)
        expected = (a + b, a - b) if isinstance(operand, relay.Tuple) else (2 * a, 2 * b)
        for got, wanted in zip(_run(func, a, b), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_schedule_for_a_computation_that_is_registered_by_itself():
    op = relay.op.register("strategy.halve", "half of the operand")
    op.add_type_rel("Identity")
    scheduled = []

    @relay.op.register_schedule("strategy.halve")
    def schedule(attrs, outs, target):
        scheduled.append(outs[0].op.name)
        return te.create_schedule([outs[0].op])

    (x,) = _vars((4,))
    func = relay.Function([x], relay.Call(op, [x]))
    with pytest.raises(tvm.error.ValueError, match=r"has a schedule, but no computation"):
        _run(func, np.ones(4, "float32"))

    @relay.op.register_compute("strategy.halve")
    def compute(attrs, inputs, out_type):
        return [te.compute(inputs[0].shape, lambda i: inputs[0][i] / 2.0, name="halved")]

    np.testing.assert_array_equal(_run(func, np.ones(4, "float32"))[0], np.full(4, 0.5))
    assert scheduled == ["halved"]


def test_the_level_and_the_condition_choose_among_implementations():
    op = relay.op.register("strategy.chosen", "the operand")
    op.add_type_rel("Identity")

    @relay.op.register_strategy("strategy.chosen")
    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        naive = strategies.naive_schedule
        made.add_implementation(_doubled, naive, "any")
        with te.SpecializedCondition(inputs[0].shape[0] >= 16):
            made.add_implementation(_doubled, naive, "long", plevel=15)
            with te.SpecializedCondition([inputs[0].shape[0] % 4 == 0]) as inner:
                assert te.SpecializedCondition.current() is inner
                made.add_implementation(_doubled, naive, "even", plevel=12)
        return made

    def names(extent):
        x = te.placeholder((extent,))
        type_ = relay.TensorType((extent,), "float32")
        valid = te_compiler.get_valid_implementations(op, None, [x], type_, "llvm")
        chosen, outs = te_compiler.select_implementation(op, None, [x], type_, "llvm")
        assert outs[0].op.name == "doubled"
        return [i.name for i in valid], chosen.name

    assert names(7) == (["any"], "any")
    assert names(8) == (["any", "even"], "even")
    assert names(18) == (["any", "long"], "long")
    assert names(te.var("n")) == (["any"], "any")


@pytest.mark.parametrize(
    ("make", "wrapped"),
    [
        (
            lambda x, w: relay.nn.conv2d(x, w, strides=(2, 1), padding=(1, 1)),
            strategies.wrap_compute_conv2d(topi.nn.conv2d_nchw),
        ),
        (
            lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1)),
            strategies.wrap_compute_conv2d(
                topi.nn.conv2d, need_data_layout=True, need_kernel_layout=True
            ),
        ),
    ],
)
def test_functions_of_topi_are_wrapped(make, wrapped):
    x, w = _vars((1, 3, 8, 8), (4, 3, 3, 3))
    func = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], make(x, w))))
    call = func["main"].body
    inputs = [te.placeholder([int(e) for e in a.checked_type.shape]) for a in call.args]
    outs = wrapped(call.attrs, inputs, call.checked_type)
    assert [int(e) for e in outs[0].shape] == [int(e) for e in call.checked_type.shape]
    library, expected = te_compiler.select_implementation(
        call.op, call.attrs, inputs, call.checked_type, "llvm"
    )
    assert library.name == "nn.conv2d.cpu"
    built = [
        tvm.build(schedule, [*inputs, out], "llvm")
        for schedule, out in (
            (strategies.wrap_topi_schedule(topi.generic.schedule_conv2d_nchw)(
                call.attrs, outs, tvm.target.Target("llvm")), outs[0]),
            (library.schedule(call.attrs, expected, "llvm"), expected[0]),
        )
    ]  # fmt: skip
    rng = np.random.default_rng(1)
    arrays = [rng.random([int(e) for e in i.shape], "float32") for i in inputs]
    results = []
    for run in built:
        result = tvm.nd.empty([int(e) for e in call.checked_type.shape])
        run(*map(tvm.nd.array, arrays), result)
        results.append(result.numpy())
    np.testing.assert_allclose(*results, rtol=1e-5)


def test_products_and_softmax_are_wrapped():
    a, b = te.placeholder((2, 5, 4)), te.placeholder((2, 3, 4))
    x, y = relay.var("a", shape=(2, 5, 4)), relay.var("b", shape=(2, 3, 4))
    product = relay.transform.InferTypeLocal
    calls = {
        "batch": (
            relay.nn.batch_matmul(x, y),
            strategies.wrap_compute_batch_matmul(topi.nn.batch_matmul, need_out_dtype=True),
            [a, b],
        ),
        "softmax": (
            relay.nn.softmax(x, axis=1),
            strategies.wrap_compute_softmax(topi.nn.softmax),
            [a],
        ),
        "exp": (relay.exp(x), strategies.wrap_topi_compute(topi.exp), [a]),
    }
    for call, wrapped, inputs in calls.values():
        type_ = product(call)
        (out,) = wrapped(call.attrs, inputs, type_)
        assert [int(e) for e in out.shape] == [int(e) for e in type_.shape]


def test_what_is_no_strategy_is_refused():
    with pytest.raises(tvm.error.TypeError, match="a strategy is a function, got 'dense'"):
        relay.op.register_strategy("nn.dense", "dense")
    with pytest.raises(tvm.error.TypeError, match=r"schedule is a function, got None; .*naive"):
        relay.op.OpStrategy().add_implementation(_doubled, None)
    with pytest.raises(tvm.error.TypeError, match="a clause is a comparison"):
        te.SpecializedCondition(te.var("n") + 1)
    x = te.placeholder((4,))
    with pytest.raises(tvm.error.ValueError, match="bound to threads"):
        strategies.naive_schedule(None, [x], tvm.target.Target("cuda -arch=sm_80"))
    op = relay.op.register("strategy.nothing", "")
    with pytest.raises(tvm.error.ValueError, match="'strategy.nothing' has no computation"):
        te_compiler.select_implementation(op, None, [x], relay.scalar_type("float32"), "llvm")
    op.set_attr("FTVMStrategy", lambda attrs, inputs, out_type, target: relay.op.OpStrategy())
    with pytest.raises(tvm.error.ValueError, match="has no implementation whose condition holds"):
        te_compiler.select_implementation(op, None, [x], relay.scalar_type("float32"), "llvm")
