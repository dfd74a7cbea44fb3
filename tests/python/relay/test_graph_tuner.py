"""Blocks of channels chosen for a whole network."""

import numpy as np
import pytest

import tvm
from tvm import autotvm, relay
from tvm.autotvm.graph_tuner import DPTuner, PBQPTuner
from tvm.autotvm.task.space import ConfigEntity, OtherOptionEntity, SplitEntity
from tvm.contrib import graph_executor

TARGET = "llvm"
CONV = [relay.op.get("nn.conv2d")]


def _network():
    """Two convolutions after each other, and their sum with the first."""
    rng = np.random.default_rng(0)

    def conv(x, out, inputs):
        w = relay.const(rng.standard_normal((out, inputs, 3, 3)).astype("float32") * 0.2)
        return relay.nn.conv2d(x, w, channels=out, kernel_size=3, padding=1)

    x = relay.var("x", shape=(1, 8, 10, 10))
    first = relay.nn.relu(conv(x, 16, 8))
    second = conv(first, 16, 16)
    body = relay.nn.max_pool2d(second + first, (2, 2), (2, 2))
    return tvm.IRModule.from_expr(relay.Function([x], body))


def _record(task, inner, outer, seconds):
    knobs = {
        "tile_ic": SplitEntity([-1, inner]),
        "tile_oc": SplitEntity([-1, outer]),
        "tile_ow": SplitEntity([-1, 5]),
        "unroll_kw": OtherOptionEntity(False),
    }
    entry = autotvm.MeasureInput(
        task.target, task, ConfigEntity(0, task.config_space.code_hash, knobs)
    )
    return entry, autotvm.MeasureResult((seconds,), 0, 0.0, 0.0)


@pytest.fixture(scope="module")
def records():
    """What is fastest alone reads blocks of 4 where its neighbour gives blocks of 16."""
    first, second = autotvm.task.extract_from_program(_network(), None, TARGET, ops=CONV)
    return [
        _record(first, 8, 16, 1e-6),
        _record(first, 8, 4, 1.1e-6),
        _record(second, 4, 16, 1e-6),
        _record(second, 4, 4, 1.1e-6),
    ]


def _tuner(records, kind=DPTuner, **options):
    options = {"verbose": False, "log_file": None, **options}
    return kind(_network()["main"], {"x": (1, 8, 10, 10)}, records, CONV, TARGET, **options)


@pytest.fixture(scope="module")
def slow_moves():
    """Records of every move that choices for the network may need: a millisecond each."""

    def record(shape, before, after):
        task = autotvm.task.create(
            "layout_transform", [("TENSOR", shape, "float32"), before, after], TARGET
        )
        entry = autotvm.MeasureInput(task.target, task, task.config_space.get(0))
        return entry, autotvm.MeasureResult((1e-3,), 0, 0.0, 0.0)

    image = {"NCHW": (1, 16, 10, 10), "NCHW4c": (1, 4, 10, 10, 4), "NCHW16c": (1, 1, 10, 10, 16)}
    pooled = {"NCHW4c": (1, 4, 5, 5, 4), "NCHW16c": (1, 1, 5, 5, 16)}
    return [
        record((1, 8, 10, 10), "NCHW", "NCHW8c"),
        *(record(image[a], a, b) for a in image for b in image if a != b),
        *(record(shape, layout, "NCHW") for layout, shape in pooled.items()),
    ]


def _blocks(tuner):
    return [
        (int(inp.config["tile_ic"].size[-1]), int(inp.config["tile_oc"].size[-1]))
        for inp, _ in tuner.get_optimal_records()
    ]


@pytest.mark.parametrize("kind", [DPTuner, PBQPTuner])
def test_neighbours_get_blocks_that_need_no_move_between_them(kind, records, slow_moves, tmp_path):
    log = tmp_path / "tuner.log"
    tuner = _tuner(records, kind, log_file=str(log))
    with pytest.raises(RuntimeError, match=r"call benchmark_layout_transform\(\) before run"):
        tuner.run()
    tuner.benchmark_layout_transform(layout_records=slow_moves)
    assert tuner.layout_records == []
    tuner.run()
    assert _blocks(tuner) == [(8, 4), (4, 4)]
    assert "Chosen" in log.read_text()


def test_times_of_moves_may_be_inferred_from_those_of_others(records, slow_moves):
    tuner = _tuner(records)
    tuner.benchmark_layout_transform(layout_records=slow_moves[:1], infer_layout=True)
    assert tuner.layout_records == []
    tuner.run()
    assert _blocks(tuner) == [(8, 4), (4, 4)]


def test_chosen_records_are_applied_in_the_order_of_the_network(records, slow_moves, tmp_path):
    mod = _network()
    tuner = _tuner(records)
    tuner.benchmark_layout_transform(layout_records=slow_moves)
    tuner.run()
    path = str(tmp_path / "opt.log")
    tuner.write_opt_sch2record_file(path)
    x = np.random.default_rng(0).standard_normal((1, 8, 10, 10)).astype("float32")

    def run(lib):
        module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
        module.run(x=x)
        return module.get_output(0).numpy()

    with autotvm.apply_graph_best(path):
        tuned = relay.build(mod, TARGET)
    assert "contrib_conv2d_NCHWc" in tuned.graph_json
    np.testing.assert_allclose(run(tuned), run(relay.build(mod, TARGET)), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_moves_are_timed_on_this_machine(records):
    tuner = _tuner(records)
    tuner.benchmark_layout_transform(min_exec_num=2)
    assert all(0 < float(result.costs[0]) < 1 for _, result in tuner.layout_records)


def test_networks_that_do_not_fit_are_refused(records):
    with pytest.raises(ValueError, match="no operator of the network has a record"):
        DPTuner(_network(), {}, records[:0], CONV, TARGET, verbose=False, log_file=None)
    with pytest.raises(ValueError, match=r"input 'x' has the shape \[1, 8, 10, 10\], got \[1, 8\]"):
        DPTuner(_network(), {"x": (1, 8)}, records, CONV, TARGET, verbose=False, log_file=None)
