"""The command line: a whole tuning run, killed and resumed, and what it refuses."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tvm.felix import network as network_module
from tvm.felix import nn
from tvm.felix.command import main
from tvm.felix.settings import TuneSettings, read_settings
from tvm.felix.tune_network import tune_network
from tvm.runtime.files import FolderLock

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "felix_tune_network.py"


@pytest.fixture(autouse=True)
def own_logging():
    """The command sends the loggers of this process to a file of the test."""
    logger = logging.getLogger("tvm")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    for handler in logger.handlers:
        if handler not in before[0]:
            handler.close()
    logger.handlers[:], logger.level, logger.propagate = before


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, str(SCRIPT), *map(str, arguments)]


def run(*arguments: str | Path, timeout: float = 400) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=timeout, cwd=ROOT
    )


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Exit status and standard error of `felix tune` in this process."""
    try:
        status = main(["tune", *map(str, arguments)])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    return status, capsys.readouterr().err


def record_identities(path: Path) -> list[str]:
    """What was measured, one text a record: workload and transform steps."""
    identities = []
    for line in path.read_text().splitlines():
        (task, state) = json.loads(line)["i"]
        identities.append(json.dumps([task[0], state[1]]))
    return identities


@pytest.mark.slow
def test_a_run_leaves_records_summary_curve_and_a_correct_network(tmp_path):
    out = tmp_path / "run"
    result = run("mlp", "--trials", "16", "--per-round", "4", "--out", out, "--no-progress")
    assert result.returncode == 0, result.stderr
    summary = json.loads((out / "summary.json").read_text())
    assert summary["network"] == "mlp"
    assert summary["measurements"] == 16
    assert summary["coverage"] == 1.0
    assert set(summary["latency_seconds"]) == {"untuned", "tuned", "pytorch"}
    assert summary["max_abs_diff"] < 1e-4
    assert sum(task["measurements"] for task in summary["tasks"]) == 16
    assert len(record_identities(out / "records.json")) == 16
    assert "16 programs measured" in (out / "tune.log").read_text()
    page = (out / "report.html").read_text()
    for title in ("Course of the search", "roofline", "between kernels", "<details>"):
        assert title in page
    assert "http" not in page
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "cost_model.ckpt").exists()
    assert json.loads((out / "tasks.json").read_text())["tasks"]
    for title in ("Tuning tasks", "Untuned ms", "Outputs against PyTorch"):
        assert title in result.stdout


@pytest.mark.slow
def test_a_killed_run_resumes_without_losing_or_repeating_a_measurement(tmp_path):
    out = tmp_path / "run"
    records = out / "records.json"
    process = subprocess.Popen(
        command("mlp", "--trials", "24", "--per-round", "4", "--out", out, "--no-progress"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 300
        while not records.exists() or len(records.read_text().splitlines()) < 6:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "no records appeared"
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    kept = [line for line in records.read_text().splitlines() if line.endswith("}")]
    # A kill in the middle of a write leaves a torn line.
    with records.open("a") as file:
        file.write(kept[0][: len(kept[0]) // 2])

    result = run("--resume", out, "--no-progress")
    assert result.returncode == 0, result.stderr
    assert f"Resumed with {len(kept)} measurements" in result.stdout
    lines = records.read_text().splitlines()
    assert lines[: len(kept)] == kept
    whole = [line for line in lines if line.endswith("}") and line.startswith("{")]
    assert len(whole) == 24
    measured = [json.dumps(json.loads(line)["i"]) for line in whole]
    assert len(set(measured)) == len(measured)
    assert json.loads((out / "summary.json").read_text())["measurements"] == 24


@pytest.mark.slow
def test_tuning_exports_the_network_once(tmp_path, monkeypatch):
    exports = []
    export = network_module.export_for_inference
    monkeypatch.setattr(
        network_module, "export_for_inference", lambda *a: exports.append(a) or export(*a)
    )
    model, inputs = nn.load_network("mlp")
    settings = TuneSettings(network="mlp", trials=2, per_round=2, timing_rounds=1)
    threads = torch.get_num_threads()
    try:
        tune_network(model, inputs, settings, tmp_path, progress=False)
    finally:
        torch.set_num_threads(threads)
    assert len(exports) == 1


def test_two_runs_do_not_share_a_folder(tmp_path, capsys):
    with FolderLock(tmp_path):
        status, text = refused(capsys, "mlp", "--trials", "1", "--out", tmp_path)
    assert status == 1
    assert f"in use by process {os.getpid()}" in text
    assert not (tmp_path / "run.json").exists()


def test_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    status, text = refused(capsys, "mlp", "--out", tmp_path / "file" / "run")
    assert status == 1
    assert "Not a directory" in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"network": "mlp",\n "trials": }', r"run\.json:2: column 12"),
        ("[1]", r"run\.json: expected an object with options, got list"),
        ('{"network": "mlp", "trails": 3}', r"run\.json: there is no option 'trails'; known are"),
        ('{"network": "mlp", "trials": "3"}', r"run\.json: trials is a int, got '3'"),
        ('{"trials": 3}', r"run\.json: it names no network"),
    ],
)
def test_damaged_options_of_a_run_are_named(tmp_path, text, reason):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read_settings(tmp_path)


def test_an_unknown_network_is_refused_and_the_known_ones_listed(tmp_path, capsys):
    status, text = refused(capsys, "resnet19", "--out", tmp_path / "run")
    assert status == 1
    for name in ("resnet19", "mlp", "resnet18", "mobilenet_v2"):
        assert name in text


def test_an_unknown_target_is_refused_and_the_known_ones_listed(tmp_path, capsys):
    status, text = refused(capsys, "mlp", "--target", "abacus", "--out", tmp_path / "run")
    assert status == 1
    assert "abacus" in text
    assert "llvm" in text


def test_resuming_a_folder_without_a_run_is_refused(tmp_path, capsys):
    status, text = refused(capsys, "--resume", tmp_path)
    assert status == 1
    assert "nothing to resume" in text


def test_a_folder_with_records_is_not_overwritten(tmp_path, capsys):
    (tmp_path / "records.json").write_text("")
    status, text = refused(capsys, "mlp", "--out", tmp_path)
    assert status == 1
    assert "already holds a run" in text


def test_options_out_of_range_are_refused_before_anything_runs(tmp_path, capsys):
    status, text = refused(capsys, "mlp", "--trials", "0", "--out", tmp_path / "run")
    assert status == 2
    assert "trials must be >= 1" in text
    assert not (tmp_path / "run").exists()


def test_unsupported_operators_are_reported_together_with_their_modules(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "odd_network.py").write_text(
        "import torch\n"
        "class Sorter(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.linalg.matrix_exp(x)\n"
        "class Odd(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.sorter = Sorter()\n"
        "    def forward(self, x):\n"
        "        return torch.linalg.eigvalsh(self.sorter(x))\n"
        "def make():\n"
        "    return Odd(), (torch.eye(4),)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    status, text = refused(capsys, "odd_network:make", "--out", tmp_path / "run")
    assert status == 1
    for name in ("matrix_exp", "eig", "sorter"):
        assert name in text


def test_a_run_from_before_there_was_winograd_resumes_without_it(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"network": "mlp", "trials": 8}))
    assert read_settings(tmp_path).winograd is False
    assert TuneSettings(network="mlp").winograd is None


PAIR = """
import torch
from torch import nn
def narrow():
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (torch.ones(2, 8),)
def wide():
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh()), (torch.ones(2, 8),)
"""


def test_networks_named_together_are_tuned_and_compared_in_one_run(tmp_path, monkeypatch, capsys):
    (tmp_path / "pair_of_networks.py").write_text(PAIR)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TVM_FELIX_CACHE", "off")
    first, second, out = "pair_of_networks:narrow", "pair_of_networks:wide", tmp_path / "run"
    options = ["--trials", "4", "--per-round", "2", "--timing-rounds", "1", "--no-progress"]
    assert main(["tune", first, "--with", second, "--out", str(out), *options]) == 0
    assert f"Network {second}" in capsys.readouterr().out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["network"] == first and summary["measurements"] == 4
    (name, other), *rest = summary["together"].items()
    assert (name, rest) == (second, [])
    assert other["coverage"] == 1.0 and other["max_abs_diff"] < 1e-4
    assert set(other["latency_seconds"]) == {"untuned", "tuned", "pytorch"}
    assert read_settings(out).together == [second]
    # The folder says what else is to be tuned; how long, the command line may say anew.
    assert main(["tune", "--resume", str(out), "--no-progress"]) == 0
    assert len(record_identities(out / "records.json")) == 4
    assert main(["tune", "--resume", str(out), "--no-progress", "--trials", "6"]) == 0
    assert len(record_identities(out / "records.json")) == 6
    assert read_settings(out).trials == 6 and read_settings(out).per_round == 2
    capsys.readouterr()
    for change, reason in {
        ("--seed", "7"): "--seed: the run in",
        ("--with", first): "--with: the run in",
        ("--out", str(tmp_path / "other")): "--out: the results of",
    }.items():
        assert reason in refused(capsys, "--resume", out, *change)[1]
    assert refused(capsys, first, "--with", first)[1].endswith(f"with: {first} is named twice\n")
