"""Tuning for a GPU that is not there: the whole run on a model of the device."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import tvm
from testing_gpu import random_states, sym_task
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import MeasureErrorNo, MeasureInput
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.felix.command import main
from tvm.felix.optim import Optimizer
from tvm.felix.settings import TuneSettings
from tvm.felix.tune_network import tune_network
from tvm.target import Target

TARGET = "cuda -arch=sm_80"
no_gpu = pytest.mark.skipif(tvm.cuda(0).exist, reason="this machine has a GPU")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder of a finished run on a tiny network, and its summary."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU(), torch.nn.Linear(48, 8))
    folder = tmp_path_factory.mktemp("run")
    settings = TuneSettings(
        network="tiny",
        target=TARGET,
        trials=4,
        per_round=2,
        config_seeds=2,
        grad_steps=2,
        simulate=True,
    )
    return folder, tune_network(model, [torch.randn(16, 32)], settings, folder, progress=False)


def test_a_run_is_marked_as_simulated_everywhere(run):
    folder, summary = run
    assert summary["simulated"] is True
    assert summary["measurements"] == 4
    assert "pytorch" not in summary["latency_seconds"]
    lines = [json.loads(line) for line in (folder / "records.json").read_text().splitlines()]
    assert len(lines) == 4
    for line in lines:
        assert "-simulated=1" in line["i"][0][1]
        assert line["r"][1] == 0
        [kernel] = line["k"].values()
        assert kernel["registers"] > 0
        assert kernel["spill_bytes"] == 0


def test_the_report_of_a_run_says_that_no_device_was_used(run, capsys):
    folder, summary = run
    (folder / "report.html").unlink()
    assert main(["report", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "Tasks, simulated" in printed and "No device was used" in printed
    page = (folder / "report.html").read_text()
    for text in ("simulated</h1>", "No device was used", "modeled ms", TARGET.split("=")[1]):
        assert text in page
    for task in summary["tasks"]:
        assert task["operators"] in page


def test_the_kernels_of_a_run_compute_what_the_network_does(run):
    # They run in the emulator, which looks for races.
    assert run[1]["max_rel_diff"] < 1e-5


def test_simulated_records_are_never_taken_for_measured_ones(run, caplog):
    folder, _ = run
    line = json.loads((folder / "records.json").read_text().splitlines()[0])
    key = line["i"][0][0]
    simulated = auto_scheduler.simulated(TARGET)
    best, _ = auto_scheduler.load_best_record(folder / "records.json", key, simulated)
    assert best is not None
    none, _ = auto_scheduler.load_best_record(folder / "records.json", key, Target(TARGET))
    assert none is None
    assert not Target(TARGET).is_same_machine(simulated)
    assert not simulated.is_same_machine(Target(TARGET))
    rounding = Target(f"{TARGET} -allow_tf32=1")
    assert rounding.is_same_machine(rounding)
    assert not Target(TARGET).is_same_machine(rounding)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_search_fills_the_device_with_one_row(has_bias):
    data, weight = te.placeholder((1, 2048), name="data"), te.placeholder((1000, 2048), name="w")
    bias = te.placeholder((1000,), name="bias")
    product = topi.nn.dense(data, weight)
    tensors = [data, weight, bias, topi.add(product, bias)] if has_bias else [data, weight, product]
    task = tvm.felix.make_task(tensors, auto_scheduler.simulated(TARGET))
    optimizer = Optimizer(
        [task], LatencyModel(), runner=auto_scheduler.SimulatedRunner(), against_library=False
    )
    try:
        [row] = optimizer.tune(8, 8, 8, 8, progress=False).tasks
    finally:
        optimizer.session.close()
    # The weights once through the memory are 5.3 us, and a launch 2. One thread a result takes
    # more than 200.
    assert row.best_seconds < 12e-6
    [policy] = [task.policy for task in optimizer.tasks]
    schedule = str(policy.get_measure_input(row.best).state)
    assert "blockIdx.x" in schedule and "threadIdx.x k.1" in schedule


def test_only_gpus_have_a_model():
    with pytest.raises(ValueError, match="only the target cuda has a model"):
        auto_scheduler.simulated("llvm")


@no_gpu
def test_a_gpu_that_is_not_there_is_one_clear_line(tmp_path):
    settings = TuneSettings(network="tiny", target=TARGET)
    with pytest.raises(ValueError, match="this machine has no GPU.*--simulate") as failure:
        tune_network(torch.nn.Linear(2, 2), [torch.randn(1, 2)], settings, tmp_path / "run")
    assert "\n" not in str(failure.value)
    assert not (tmp_path / "run").exists()


@no_gpu
def test_the_program_says_so_too(capsys, tmp_path):
    assert main(["tune", "mlp", "--target", "cuda", "--out", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: target cuda: this machine has no GPU")
    assert error.count("\n") == 1


def modeled(n, m, k, tile, threads):
    """Modeled seconds of a product with `tile` results a thread and `threads` squared threads."""
    a, b = te.placeholder((n, k), name="a"), te.placeholder((k, m), name="b")
    out = topi.nn.matmul(a, b)
    s = te.create_schedule(out.op)
    i, j = s[out].op.axis
    for axis, name in ((i, "y"), (j, "x")):
        outer, inner = s[out].split(axis, factor=tile)
        block, thread = s[out].split(outer, factor=threads)
        s[out].bind(block, te.thread_axis(f"blockIdx.{name}"))
        s[out].bind(thread, te.thread_axis(f"threadIdx.{name}"))
        s[out].unroll(inner)
    return auto_scheduler.modeled_seconds(s, [a, b, out], Target(TARGET))


def test_the_model_ranks_what_is_known_to_matter():
    assert modeled(512, 512, 512, 4, 16) == modeled(512, 512, 512, 4, 16)
    # More work takes longer; full warps and reuse in registers are faster.
    assert modeled(1024, 1024, 512, 4, 16) > 2 * modeled(512, 512, 512, 4, 16)
    assert modeled(512, 512, 512, 1, 2) > 1.5 * modeled(512, 512, 512, 1, 16)


def test_a_program_without_threads_has_no_seconds():
    a = te.placeholder((8,), name="a")
    out = te.compute((8,), lambda i: a[i] + 1.0, name="out")
    with pytest.raises(ValueError, match="the program has no kernel"):
        auto_scheduler.modeled_seconds(te.create_schedule(out.op), [a, out], Target(TARGET))


def test_what_a_runner_cannot_simulate_fails_with_a_reason():
    # Of the real target: its records would look like measurements.
    task = sym_task("chain").ansor_task
    [state] = random_states("chain", 0, 1)
    measurer = auto_scheduler.ProgramMeasurer(
        auto_scheduler.LocalBuilder(n_parallel=1), auto_scheduler.SimulatedRunner()
    )
    try:
        [result] = measurer.measure([MeasureInput(task, state)])
    finally:
        measurer.close()
    assert int(result.error_no) == MeasureErrorNo.RUNTIME_DEVICE
    assert "is no simulated target" in str(result.error_msg)


def test_a_kernel_that_spills_is_not_run():
    # 128 accumulators in each of 1024 threads, which have 64 registers each.
    a, b = te.placeholder((1024, 64), name="a"), te.placeholder((64, 1024), name="b")
    out = topi.nn.matmul(a, b)
    task = auto_scheduler.SearchTask(compute_dag=[a, b, out], target=TARGET)
    [sketch] = tvm.felix.make_task([a, b, out], TARGET).task.sketches
    config = dict.fromkeys(map(str, sketch_knobs(sketch)), 1)
    config |= {"sp_0_1": 32, "sp_1_1": 32, "sp_0_2": 8, "sp_1_2": 16}
    state = sketch.state_from_config(config)
    builder = auto_scheduler.LocalBuilder(n_parallel=1, timeout=60)
    try:
        [built] = builder.build([MeasureInput(task, state)])
    finally:
        builder.pool.close()
    assert int(built.error_no) == MeasureErrorNo.COMPILE_DEVICE
    assert "spills" in str(built.error_msg)
    assert "registers a thread are not enough" in str(built.error_msg)


def sketch_knobs(sketch):
    return [var.name for group in sketch.context.split_groups for var in group.vars]


@no_gpu
def test_running_without_a_device_fails_with_a_reason():
    task = sym_task("chain").ansor_task
    [state] = random_states("chain", 0, 1)
    with auto_scheduler.MeasureSession() as session:
        [result] = session.measurer.measure([MeasureInput(task, state)])
    assert int(result.error_no) == MeasureErrorNo.RUNTIME_DEVICE
    assert np.isclose(result.mean_cost, 1e10)
