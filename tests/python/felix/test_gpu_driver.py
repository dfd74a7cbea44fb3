"""CUDA drivers that are too old or find nothing, and devices lost in the middle of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testing_cuda_driver import build_driver, driver_environment

pytest.importorskip("cuda.bindings.nvrtc")

SCRIPT = Path(__file__).parents[3] / "scripts" / "felix_tune_network.py"
NETWORK = """
from torch import nn, ones
def make():
    return nn.Sequential(nn.Linear(512, 384), nn.ReLU()), (ones(32, 512),)
"""
SMALL = ["--trials", "6", "--per-round", "2", "--config-seeds", "2", "--grad-steps", "2"]
# Measures the same program six times, and says what came of each.
MEASURE = """
from testing_gpu import random_states, sym_task
from tvm import auto_scheduler
from tvm.auto_scheduler.measure_local import DeviceLostError
task = sym_task("chain").ansor_task
[state] = random_states("chain", 0, 1)
session = auto_scheduler.MeasureSession(
    auto_scheduler.LocalBuilder(n_parallel=1),
    auto_scheduler.LocalRunner(number=1, repeat=2, min_repeat_ms=0),
)
session.on_result.append(lambda _, result: print(int(result.error_no), flush=True))
with session:
    session.start_workers()
    before = session.measurer.runner.pool.process_ids()
    try:
        session.measurer.measure([auto_scheduler.MeasureInput(task, state)] * 6)
    except DeviceLostError as error:
        print(error)
    print(before == session.measurer.runner.pool.process_ids())
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    return build_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture(autouse=True)
def no_launches(driver):
    (driver / "launches").unlink(missing_ok=True)


def tune(driver, folder, *arguments, **options):
    """Status and standard error of the script."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        env=driver_environment(driver, **options) | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=600,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"version": 10020}, "a driver of CUDA 10.2, and CUDA 11.4 or later is needed"),
        ({"devices": 0}, "libcuda.so.1 finds no device"),
        ({"version": 11080}, "the driver is of CUDA 11.8, which does not load what NVRTC"),
    ],
)
def test_what_is_wrong_with_the_driver_is_one_line(driver, tmp_path, options, reason):
    status, text = tune(driver, tmp_path, "mlp", "--target", "cuda", "--out", "run", **options)
    assert status == 1
    assert text.startswith("error: ") and text.count("\n") == 1
    assert reason in text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("target", ["cuda -arch=sm_1234", "cuda -arch=fast"])
def test_an_architecture_that_nobody_knows_is_one_line(driver, tmp_path, target):
    for simulate in ([], ["--simulate"]):
        status, text = tune(driver, tmp_path, "mlp", "--target", target, "--out", "run", *simulate)
        assert status == 1 and text.count("\n") == 1
        assert "makes no code for -arch=" in text and "sm_80" in text


@pytest.mark.slow
def test_a_run_whose_device_is_lost_goes_on_when_it_is_back(driver, tmp_path):
    (tmp_path / "small_network_of_gpu_driver.py").write_text(NETWORK)
    network = ["small_network_of_gpu_driver:make", "--target", "cuda", "--out", "run", *SMALL]
    # So many launches are the network as it is, the library's schedule, and some programs.
    status, text = tune(driver, tmp_path, *network, fail_from=140, error=46)
    assert status == 1
    last = text.strip().splitlines()[-1]
    assert last.startswith("error: the device cuda(0) is lost: ")
    assert "CUDA_ERROR_DEVICE_UNAVAILABLE" in last and "--resume run" in last
    records = tmp_path / "run" / "records.json"
    kept = records.read_text().splitlines()
    assert 1 <= len(kept) < 6 and f"{len(kept)} programs were measured before" in last
    assert all(json.loads(line)["r"][1] == 0 for line in kept)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["measurements"] == len(kept) and "is lost" in summary["device_lost"]
    assert (tmp_path / "run" / "report.html").exists()

    status, text = tune(driver, tmp_path, "--resume", "run")
    assert status == 0, text
    after = records.read_text().splitlines()
    assert len(after) == 6 and after[: len(kept)] == kept
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "device_lost" not in summary and summary["latency_seconds"]["tuned"] > 0


def measured(driver, **options):
    paths = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env=driver_environment(driver, **options) | {"PYTHONPATH": str(paths)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_device_that_fails_once_costs_its_process_and_no_program(driver):
    lines = measured(driver, fail_from=9, failures=1)
    assert lines == ["0"] * 6 + ["False"]


def test_a_program_that_fails_twice_is_to_blame(driver):
    lines = measured(driver, fail_from=9, failures=2)
    assert lines == ["0", "0", "4", "0", "0", "0", "False"]


def test_a_lost_device_is_no_result_of_the_programs(driver):
    lines = measured(driver, fail_from=9, error=214)
    assert lines[:2] == ["0", "0"] and len(lines) == 4
    assert "the device cuda(0) is lost: " in lines[2] and "ECC" in lines[2]
