"""Building modules and running them: results, memory, errors, libraries."""

import threading

import numpy as np
import pytest

import tvm
from tvm import relax, te
from tvm.relax import op

RNG = np.random.default_rng(0)


def data(*shape):
    return RNG.standard_normal(shape).astype("float32")


def machine_of(mod, **options):
    return relax.VirtualMachine(relax.build(mod, "llvm", **options), tvm.cpu())


@pytest.fixture
def chain(make_module):
    """Four dense layers; each intermediate value can take the memory of the one before the last."""
    weights = [data(16, 16) for _ in range(4)]

    def body(bb, x):
        for weight in weights:
            x = op.nn.relu(op.nn.dense(x, relax.const(weight)))
        return x

    def reference(x):
        for weight in weights:
            x = np.maximum(x @ weight.T, 0)
        return x

    return make_module(body, (4, 16)), reference


def test_result_equals_numpy_and_is_not_overwritten_by_the_next_call(chain):
    mod, reference = chain
    main = machine_of(mod)["main"]
    inputs = [data(4, 16) for _ in range(3)]
    outputs = [main(tvm.nd.array(x)) for x in inputs]
    for x, y in zip(inputs, outputs):
        np.testing.assert_allclose(y.numpy(), reference(x), rtol=1e-4, atol=1e-4)


def test_function_of_several_results_returns_them_in_order(run):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3)))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(op.exp(x))
            z = builder.emit_output(op.reshape(y, (6,)))
        builder.emit_func_output([y, x, z, y, relax.const(np.float32(5))])
    value = data(2, 3)
    results = run(builder.get(), value)
    expected = [np.exp(value), value, np.exp(value).reshape(6), np.exp(value), np.float32(5)]
    for given, wanted in zip(results, expected):
        np.testing.assert_allclose(given, wanted, rtol=1e-5)


def test_views_need_no_kernel(make_module):
    mod = make_module(lambda bb, x: op.exp(op.reshape(op.exp(x), (3, 2))), (2, 3))
    machine = machine_of(mod)
    value = data(2, 3)
    report = machine.profile("main", tvm.nd.array(value))
    assert [call["Name"] for call in report.calls] == ["fused_exp", "fused_exp1"]
    np.testing.assert_allclose(
        machine["main"](tvm.nd.array(value)).numpy(),
        np.exp(np.exp(value)).reshape(3, 2),
        rtol=1e-5,
    )


def test_split_returns_a_tuple_whose_fields_are_read(make_module, run):
    def body(bb, x):
        pieces = bb.emit(op.split(x, [1], axis=1))
        return op.add(relax.TupleGetItem(pieces, 0), relax.TupleGetItem(pieces, 1))

    value = data(2, 3)
    np.testing.assert_allclose(
        run(make_module(body, (2, 3)), value), value[:, :1] + value[:, 1:], rtol=1e-6
    )


def test_wrong_shape_and_type_are_refused_by_name(chain):
    main = machine_of(chain[0])["main"]
    with pytest.raises(
        ValueError,
        match=r"'x0' must be float32 of shape \(4, 16\), got float32 of shape \(4, 15\)",
    ):
        main(tvm.nd.array(data(4, 15)))
    with pytest.raises(ValueError, match="'x0' must be float32 .* got float64"):
        main(tvm.nd.array(np.zeros((4, 16))))
    with pytest.raises(TypeError, match=r"takes 1 inputs \(x0\), got 2"):
        main(tvm.nd.array(data(4, 16)), tvm.nd.array(data(4, 16)))
    with pytest.raises(TypeError, match="'x0' must be a tensor"):
        main(3)


def test_unknown_function_is_refused_with_the_known_ones(chain):
    with pytest.raises(AttributeError, match="no function 'other'; the executable has main"):
        machine_of(chain[0])["other"]


def test_exported_library_computes_the_same(chain, tmp_path):
    mod, reference = chain
    path = tmp_path / "net.so"
    relax.build(mod, "llvm").export_library(path)
    main = relax.VirtualMachine(relax.load_executable(path), tvm.cpu())["main"]
    x = data(4, 16)
    np.testing.assert_allclose(main(tvm.nd.array(x)).numpy(), reference(x), rtol=1e-4, atol=1e-4)


def test_library_without_a_network_is_refused(tmp_path):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    path = tmp_path / "kernel.so"
    tvm.build(te.create_schedule(b.op), [a, b], "llvm").export_library(str(path))
    with pytest.raises(ValueError, match='holds no network but a module of kind "library"'):
        relax.load_executable(path)


def test_schedule_may_store_a_constant_in_another_layout(make_module):
    weight = data(8, 16)
    mod = make_module(lambda bb, x: op.nn.dense(x, relax.const(weight)), (4, 16))

    def transposed(group):
        x, _, _ = group.args
        stored = te.placeholder((16, 8), name="stored")
        k = te.reduce_axis((0, 16), name="k")
        out = te.compute((4, 8), lambda i, j: te.sum(x[i, k] * stored[k, j], axis=k), name="out")
        assert group.constant_inputs == {1}
        return relax.GroupSchedule(
            te.create_schedule(out.op), [x, stored, out], {1: lambda array: array.T}
        )

    x = data(4, 16)
    result = machine_of(mod, schedules=transposed)["main"](tvm.nd.array(x))
    np.testing.assert_allclose(result.numpy(), x @ weight.T, rtol=1e-4, atol=1e-4)


def test_schedule_of_another_shape_is_refused(make_module):
    mod = make_module(lambda bb, x: op.nn.relu(x), (4, 16))

    def wrong(group):
        x = te.placeholder((4, 15), name="x")
        y = te.compute((4, 15), lambda i, j: x[i, j], name="y")
        return relax.GroupSchedule(te.create_schedule(y.op), [x, y])

    with pytest.raises(ValueError, match=r"argument 0 .* of 'relu' .* shape \[4, 15\]"):
        relax.build(mod, "llvm", schedules=wrong)


def test_calls_from_several_threads_do_not_mix(chain):
    mod, reference = chain
    main = machine_of(mod)["main"]
    inputs = [data(4, 16) for _ in range(4)]
    results = [[] for _ in inputs]

    def work(i):
        for _ in range(20):
            results[i].append(main(tvm.nd.array(inputs[i])).numpy())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for x, outputs in zip(inputs, results):
        for y in outputs:
            np.testing.assert_allclose(y, reference(x), rtol=1e-4, atol=1e-4)


def test_vm_function_can_be_timed(chain):
    machine = machine_of(chain[0])
    timer = machine.module.time_evaluator("main", tvm.cpu(), number=3)
    assert timer(tvm.nd.array(data(4, 16))).mean > 0


def test_small_constants_that_share_a_block_keep_their_values_in_memory_and_in_a_file(
    make_module, tmp_path
):
    tables = [data(300, size) for size in (1000, 7, 1100)]

    def body(bb, *inputs):
        sums = [bb.emit(op.add(x, relax.const(t))) for x, t in zip(inputs, tables)]
        wide = bb.emit(op.concat(sums, axis=1))
        return op.nn.relu(wide)

    inputs = [data(300, table.shape[1]) for table in tables]
    executable = relax.build(make_module(body, *(x.shape for x in inputs)), "llvm")
    path = str(tmp_path / "tables.so")
    executable.export_library(path)
    expected = np.maximum(np.concatenate([x + t for x, t in zip(inputs, tables)], 1), 0)
    for built in (executable, relax.load_executable(path)):
        main = relax.VirtualMachine(built, tvm.cpu())["main"]
        np.testing.assert_array_equal(main(*map(tvm.nd.array, inputs)).numpy(), expected)


def test_kinds_of_memory_are_checked():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.exp(x)))
    executable = relax.build(builder.get(), "llvm")
    for kind in (None, "naive", "pooled", {tvm.cpu(): "naive"}):
        machine = relax.VirtualMachine(executable, tvm.cpu(), memory_cfg=kind)
        assert machine["main"](tvm.nd.array(np.zeros(2, "float32"))).numpy()[0] == 1
    with pytest.raises(ValueError, match='memory_cfg is "naive" or "pooled"'):
        relax.VirtualMachine(executable, tvm.cpu(), memory_cfg="large")
