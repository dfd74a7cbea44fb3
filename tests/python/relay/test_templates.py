"""Tasks of networks, and networks compiled by their records."""

import json

import numpy as np
import pytest
import torch

import tvm
from tvm import autotvm, relay, te
from tvm.contrib import graph_executor

TARGET = "llvm"


def _network():
    rng = np.random.default_rng(0)

    def weight(*shape):
        return relay.const(rng.standard_normal(shape).astype("float32") * 0.2)

    def conv(x, out, inputs, **options):
        kernel = options.pop("kernel", 3)
        w = weight(out, inputs // options.get("groups", 1), kernel, kernel)
        y = relay.nn.conv2d(x, w, channels=out, kernel_size=kernel, **options)
        return relay.nn.relu(relay.nn.bias_add(y, weight(out)))

    x = relay.var("x", shape=(1, 3, 16, 16))
    stem = conv(x, 16, 3, padding=1)
    deep = conv(stem, 16, 16, padding=1, groups=16)
    body = conv(deep, 16, 16, kernel=1) + stem
    pooled = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(conv(body, 32, 16, strides=2)))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(pooled, weight(10, 32))))


def _records(tasks, choose):
    """A result for each task, as a tuner would log it."""
    for task in tasks:
        config = choose(task)
        entry = autotvm.MeasureInput(task.target, task, config)
        yield entry, autotvm.MeasureResult((1e-5,), 0, 0.0, 0.0)


def _any_point(seed):
    rng = np.random.default_rng(seed)

    def choose(task):
        space = task.config_space
        indices = (int(i) for i in rng.permutation(space.range_length))
        return space.get(next(i for i in indices if space.is_index_valid(i)))

    return choose


def _run(lib, x):
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=x)
    return module.get_output(0).numpy()


def test_extraction_names_each_workload_once_with_the_templates_for_it():
    mod = _network()
    tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=TARGET)
    assert [task.name for task in tasks] == [
        *("conv2d_NCHWc.x86", "depthwise_conv2d_NCHWc.x86"),
        *("conv2d_NCHWc.x86", "conv2d_NCHWc.x86"),
        *("dense_nopack.x86", "dense_pack.x86"),
    ]
    assert tasks[0].workload == (
        "conv2d_NCHWc.x86",
        *(("TENSOR", (1, 3, 16, 16), "float32"), ("TENSOR", (16, 3, 3, 3), "float32")),
        *((1, 1), (1, 1, 1, 1), (1, 1), "NCHW", "NCHW", "float32"),
    )
    dense = [relay.op.get("nn.dense")]
    only = autotvm.task.extract_from_program(mod, params=None, target=TARGET, ops=dense)
    assert {task.name for task in only} == {"dense_nopack.x86", "dense_pack.x86"}
    # Values may be arrays of NumPy.
    values = {"unused": np.zeros(3, "float32")}
    both = autotvm.task.extract_from_multiple_program([mod, mod], [None, values], TARGET)
    assert len(both) == len(tasks)


def test_extraction_for_functions_instead_of_operators_is_refused():
    with pytest.raises(TypeError, match=r'such as relay.op.get\("nn.dense"\), got dense'):
        autotvm.task.extract_from_program(_network(), None, TARGET, ops=(relay.op.nn.dense,))


def test_extraction_from_programs_without_a_table_of_parameters_each_is_refused():
    with pytest.raises(ValueError, match="2 programs need as many tables of parameters, got 1"):
        autotvm.task.extract_from_multiple_program([_network()] * 2, [None], TARGET)


@pytest.mark.parametrize("seed", range(3))
def test_a_network_built_by_records_computes_the_same(seed, tmp_path):
    mod = _network()
    tasks = autotvm.task.extract_from_program(mod, params=None, target=TARGET)
    log = tmp_path / "records.log"
    autotvm.callback.log_to_file(str(log))(None, *zip(*_records(tasks, _any_point(seed))))
    x = np.random.default_rng(seed).standard_normal((1, 3, 16, 16)).astype("float32")
    want = _run(relay.build(mod, TARGET), x)
    with autotvm.apply_history_best(str(log)):
        lib = relay.build(mod, TARGET)
    names = [node["name"] for node in json.loads(lib.graph_json)["nodes"]]
    assert sum("conv2d_NCHWc" in name for name in names) == 4
    np.testing.assert_allclose(_run(lib, x), want, rtol=1e-4, atol=1e-4)


def test_only_what_is_recorded_changes_its_layout():
    mod = _network()
    tasks = autotvm.task.extract_from_program(mod, params=None, target=TARGET)
    x = np.ones((1, 3, 16, 16), "float32")
    want = _run(relay.build(mod, TARGET), x)
    with autotvm.apply_history_best(list(_records(tasks[2:3], _any_point(1)))):
        lib = relay.build(mod, TARGET)
    assert lib.graph_json.count("contrib_conv2d_NCHWc") >= 1
    np.testing.assert_allclose(_run(lib, x), want, rtol=1e-4, atol=1e-4)


def _altered(mod, target=TARGET):
    with tvm.target.Target(target):
        altered = relay.transform.AlterOpLayout()(mod)
    found = []

    def look(expr):
        if isinstance(expr, relay.Call) and "conv2d" in str(expr.op.name):
            found.append([str(expr.attrs[k]) for k in ("data_layout", "kernel_layout")])

    relay.analysis.post_order_visit(altered["main"], look)
    return altered, found


def test_layouts_are_altered_to_blocks_of_vectors_for_the_target_around():
    mod = _network()
    altered, layouts = _altered(mod, "llvm -mcpu=core-avx2")
    assert layouts == [
        ["NCHW3c", "OIHW3i8o"],
        ["NCHW8c", "OIHW1i8o"],
        ["NCHW8c", "OIHW8i8o"],
        ["NCHW8c", "OIHW8i8o"],
    ]
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype("float32")
    want = _run(relay.build(mod, TARGET), x)
    np.testing.assert_allclose(_run(relay.build(altered, TARGET), x), want, rtol=1e-4, atol=1e-4)


def test_layouts_are_altered_as_records_say():
    mod = _network()
    tasks = autotvm.task.extract_from_program(mod, params=None, target=TARGET)
    records = list(_records(tasks[:1], _any_point(3)))
    outer, inner = (int(records[0][0].config[knob].size[-1]) for knob in ("tile_oc", "tile_ic"))
    with autotvm.apply_history_best(records):
        _, layouts = _altered(mod)
    assert layouts[0] == [f"NCHW{inner}c", f"OIHW{inner}i{outer}o"]


def test_layouts_are_left_without_a_target_and_in_other_layouts():
    x = relay.var("x", shape=(1, 8, 8, 4))
    w = relay.var("w", shape=(3, 3, 4, 8))
    conv = relay.nn.conv2d(
        x, w, data_layout="NHWC", kernel_layout="HWIO", channels=8, kernel_size=3
    )
    mod = tvm.IRModule.from_expr(relay.Function([x, w], conv))
    assert _altered(mod)[1] == [["NHWC", "HWIO"]]
    plain = relay.transform.InferType()(_network())
    assert tvm.ir.structural_equal(relay.transform.AlterOpLayout()(plain), plain)


def _weight(seed, *shape):
    rng = np.random.default_rng(seed)
    return relay.const(rng.standard_normal(shape).astype("float32") * 0.2)


def _volumes_and_transposed():
    x = relay.var("x", shape=(1, 3, 4, 8, 8))
    y = relay.nn.conv3d(x, _weight(0, 8, 3, 3, 3, 3), padding=1, channels=8, kernel_size=3)
    y = relay.nn.relu(relay.nn.bias_add(y, _weight(1, 8)))
    y = relay.nn.conv3d(
        y, _weight(2, 16, 8, 3, 3, 3), strides=2, padding=1, channels=16, kernel_size=3
    )
    z = relay.nn.conv2d_transpose(
        relay.reshape(y, (1, 32, 4, 4)), _weight(3, 32, 12, 4, 4),
        channels=12, kernel_size=4, strides=2, padding=1,
    )  # fmt: skip
    z = relay.nn.relu(relay.nn.bias_add(z, _weight(4, 12)))
    z = relay.nn.conv2d_transpose(
        z, _weight(5, 12, 5, 3, 3), channels=5, kernel_size=3, padding=1, dilation=1, strides=2,
        output_padding=1,
    )  # fmt: skip
    z = relay.nn.conv2d_transpose(z, _weight(6, 5, 4, 3, 3), channels=4, kernel_size=3)
    return tvm.IRModule.from_expr(relay.Function([x], relay.tanh(z)))


def _scheduled_by(monkeypatch):
    """Names of the templates that schedule kernels of builds from now on."""
    from tvm.relay.backend import templates

    names = []
    scheduled = templates._scheduled

    def note(choice, *args):
        names.append(choice.name)
        return scheduled(choice, *args)

    monkeypatch.setattr(templates, "_scheduled", note)
    return names


@pytest.mark.parametrize("seed", range(2))
def test_volumes_and_transposed_convolutions_are_built_by_records(seed, monkeypatch):
    mod = _volumes_and_transposed()
    tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=TARGET)
    assert [task.name for task in tasks] == [*["conv3d_ncdhw.x86"] * 2, *["conv2d_NCHWc.x86"] * 3]
    # The four phases of each result are filters of a plain convolution.
    assert [task.args[1][1] for task in tasks[2:]] == [(48, 32, 2, 2), (20, 12, 2, 2), (4, 5, 3, 3)]
    x = np.random.default_rng(seed).standard_normal((1, 3, 4, 8, 8)).astype("float32")
    want = _run(relay.build(mod, TARGET), x)
    names = _scheduled_by(monkeypatch)
    with autotvm.apply_history_best(list(_records(tasks, _any_point(seed)))):
        lib = relay.build(mod, TARGET)
    assert sorted(names) == sorted(task.name for task in tasks)
    np.testing.assert_allclose(_run(lib, x), want, rtol=1e-4, atol=1e-4)


def test_transposed_convolutions_of_computed_weights_stay():
    x, w = relay.var("x", shape=(1, 8, 4, 4)), relay.var("w", shape=(8, 6, 4, 4))
    conv = relay.nn.conv2d_transpose(x, w, channels=6, kernel_size=4, strides=2, padding=1)
    mod = tvm.IRModule.from_expr(relay.Function([x, w], conv))
    tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=TARGET)
    with autotvm.apply_history_best(list(_records(tasks, _any_point(0)))):
        lib = relay.build(mod, TARGET)
    arrays = {v.name: _weight(k, *map(int, v.type_annotation.shape)).data.numpy()
              for k, v in enumerate((x, w))}  # fmt: skip
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**arrays)
    want = torch.nn.functional.conv_transpose2d(
        torch.from_numpy(arrays["x"]), torch.from_numpy(arrays["w"]), None, 2, 1
    )
    np.testing.assert_allclose(module.get_output(0).numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def _network_for_gpus():
    x = relay.var("x", shape=(1, 4, 8, 8))
    y = relay.nn.conv2d(x, _weight(0, 8, 4, 3, 3), padding=1, channels=8, kernel_size=3)
    y = relay.nn.relu(relay.nn.bias_add(y, _weight(1, 8)))
    y = relay.nn.conv2d(y, _weight(2, 8, 1, 3, 3), groups=8, channels=8, kernel_size=3, padding=1)
    y = relay.nn.conv2d(y, _weight(3, 8, 4, 1, 1), groups=2, channels=8, kernel_size=1, strides=2)
    y = relay.nn.conv2d_transpose(
        y, _weight(4, 8, 6, 4, 4), channels=6, kernel_size=4, strides=2, padding=1
    )
    v = relay.nn.conv3d(
        relay.reshape(y, (1, 3, 2, 8, 8)), _weight(5, 4, 3, 2, 3, 3),
        padding=(0, 1, 1), channels=4, kernel_size=(2, 3, 3),
    )  # fmt: skip
    small = relay.nn.relu(relay.nn.dense(relay.reshape(v, (1, -1)), _weight(6, 12, 256)))
    large = relay.nn.dense(relay.reshape(v, (32, 8)), _weight(7, 16, 8))
    pair = relay.reshape(large, (2, 16, 16))
    product = relay.nn.batch_matmul(relay.nn.batch_matmul(pair, pair, transpose_b=False), pair)
    return tvm.IRModule.from_expr(relay.Function([x], relay.Tuple([small, relay.tanh(product)])))


def _point_for_gpu(task):
    rng = np.random.default_rng(0)
    while True:
        config = task.config_space.get(int(rng.integers(task.config_space.range_length)))
        try:
            task.instantiate(config)
        except autotvm.InstantiationError:
            continue
        return config


def test_networks_for_gpus_are_built_by_records(monkeypatch):
    mod, gpu = _network_for_gpus(), tvm.target.emulated("cuda -arch=sm_80")
    tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=gpu)
    convolutions = [
        *("conv2d_nchw.cuda", "depthwise_conv2d_nchw.cuda", "group_conv2d_nchw.cuda"),
        *("conv2d_nchw.cuda", "conv3d_ncdhw.cuda"),
    ]
    dense = ["dense_small_batch.gpu"] * 2 + ["dense_large_batch.gpu"]
    assert [task.name for task in tasks] == [*convolutions, *dense, *["batch_matmul.cuda"] * 2]
    tasks = [task for task in tasks if task.name != "dense_small_batch.gpu"] + tasks[5:6]
    x = np.random.default_rng(0).standard_normal((1, 4, 8, 8)).astype("float32")

    def outputs(lib):
        module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        module.run(x=x)
        return [module.get_output(k).numpy() for k in range(2)]

    want = outputs(relay.build(mod, TARGET))
    names = _scheduled_by(monkeypatch)
    with autotvm.apply_history_best(list(_records(tasks, _point_for_gpu))):
        lib = relay.build(mod, gpu)
    assert sorted(names) == sorted(task.name for task in tasks)
    for got, expected in zip(outputs(lib), want):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_templates_of_a_strategy_of_the_programs_own_are_tasks():
    @autotvm.register_topi_compute("tests/scaled_dense")
    def compute(cfg, data, weight):
        cfg.define_split("tile", weight.shape[0], num_outputs=2)
        return tvm.topi.nn.dense(data, weight)

    @autotvm.register_topi_schedule("tests/scaled_dense")
    def schedule(cfg, outs):
        s = te.create_schedule(outs[0].op)
        cfg["tile"].apply(s, outs[0], outs[0].op.axis[1])
        return s

    op = relay.op.get("nn.dense")
    key = "FTVMStrategy"
    before = op.get_attr(key)

    def strategy(attrs, inputs, out_type, target):
        made = relay.op.OpStrategy()
        made.add_implementation(
            lambda attrs, inputs, out_type: [compute(*inputs)],
            lambda attrs, outs, target: schedule(outs),
            "tests/scaled_dense",
        )
        return made

    op.reset_attr(key)
    relay.op.register_strategy("nn.dense", strategy)
    try:
        x = relay.var("x", shape=(4, 8))
        mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, _weight(0, 6, 8))))
        tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=TARGET)
        assert [task.name for task in tasks] == ["tests/scaled_dense"]
        with autotvm.apply_history_best(list(_records(tasks, _any_point(1)))):
            lib = relay.build(mod, TARGET)
        data = np.ones((4, 8), "float32")
        want = data @ _weight(0, 6, 8).data.numpy().T
        np.testing.assert_allclose(_run(lib, data), want, rtol=1e-5, atol=1e-5)
    finally:
        op.reset_attr(key)
        if before is not None:
            tvm.ir.register_op_attr("nn.dense", key, before)


def _dense_layers():
    x = relay.var("x", shape=(4, 1, 32))
    rows = relay.squeeze(x, axis=[1])
    hidden = relay.nn.relu(relay.nn.dense(rows, _weight(0, 48, 32)))
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.dense(hidden, _weight(1, 7, 48))))


def _weights_of_dense_layers(altered):
    found = []

    def look(expr):
        if isinstance(expr, relay.Call) and "dense" in str(expr.op.name):
            found.append(str((expr.attrs or {}).get("weight_layout", "NC")))

    relay.analysis.post_order_visit(altered["main"], look)
    return found


def test_weights_of_dense_layers_are_altered_to_panels():
    mod = _dense_layers()
    with tvm.target.Target("llvm -mcpu=core-avx2"):
        altered = relay.transform.AlterOpLayout()(mod)
    assert _weights_of_dense_layers(altered) == ["NC16n", "NC7n"]
    x = np.random.default_rng(0).standard_normal((4, 1, 32)).astype("float32")
    want = _run(relay.build(mod, TARGET), x)
    np.testing.assert_allclose(_run(relay.build(altered, TARGET), x), want, rtol=1e-4, atol=1e-5)


def test_panels_of_dense_layers_are_those_of_the_fastest_record():
    mod = _dense_layers()
    tasks = autotvm.task.extract_from_program(mod["main"], params=None, target=TARGET)
    entries = list(_records(tasks[:2], _any_point(1)))
    for faster in (0, 1):
        timed = [
            (entry, autotvm.MeasureResult((1e-5 if k == faster else 1e-3,), 0, 0.0, 0.0))
            for k, (entry, _) in enumerate(entries)
        ]
        with autotvm.apply_history_best(timed), tvm.target.Target(TARGET):
            altered = relay.transform.AlterOpLayout()(mod)
        block = int(entries[1][0].config["tile_x"].size[-1])
        assert tasks[faster].name == ("dense_nopack.x86", "dense_pack.x86")[faster]
        assert _weights_of_dense_layers(altered)[0] == ("NC", f"NC{block}n")[faster]
