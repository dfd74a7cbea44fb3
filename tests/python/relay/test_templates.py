"""Tasks of networks, and networks compiled by their records."""

import json

import numpy as np
import pytest

import tvm
from tvm import autotvm, relay
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
