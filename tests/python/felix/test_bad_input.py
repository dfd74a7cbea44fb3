"""What users of the command line give that cannot be: one line that names it, and no traceback."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest
import torch

from tvm.felix.command import main
from tvm.felix.console import describe_error, run_command
from tvm.target.machine import host_triple

SMALL = """
import torch
from torch import nn
def make():
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (torch.ones(2, 8),)
def broken():
    raise AttributeError("of the user's own")
class Odd(nn.Module):
    def forward(self, x):
        return x + torch.ones(3)
def odd():
    return Odd(), (torch.ones(2, 4),)
"""


class Hostile:
    """Executes a command where it is unpickled."""

    def __init__(self, proof):
        self.proof = str(proof)

    def __reduce__(self):
        return os.mkdir, (self.proof,)


@pytest.fixture(autouse=True)
def small_network(tmp_path, monkeypatch):
    (tmp_path / "small_network_of_bad_input.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TVM_FELIX_CACHE", "off")
    return "small_network_of_bad_input:make"


def refused(capsys, *arguments) -> str:
    """The one line that a command line is refused with."""
    assert main([str(a) for a in arguments]) == 1
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1, text
    return text


@pytest.fixture
def files(tmp_path):
    """Files that are no tensors, by what is wrong with them."""
    made = {name: tmp_path / name for name in ("random", "empty", "objects", "pickle", "folder")}
    made["random"].write_bytes(bytes(range(250)))
    made["empty"].write_bytes(b"")
    torch.save({"weights": Hostile(tmp_path / "executed")}, made["objects"])
    made["pickle"].write_bytes(pickle.dumps(Hostile(tmp_path / "executed")))
    made["folder"].mkdir()
    return made


@pytest.mark.parametrize("option", ["--cost-model", "--weights"])
@pytest.mark.parametrize("kind", ["random", "empty", "objects", "pickle", "folder", "missing"])
def test_files_that_are_no_tensors(small_network, files, tmp_path, capsys, option, kind):
    path = files.get(kind, tmp_path / kind)
    text = refused(capsys, "tune", small_network, option, path, "--out", tmp_path / "run")
    assert str(path) in text and "weights_only" not in text
    assert not (tmp_path / "executed").exists()
    assert not (tmp_path / "run" / "run.json").exists()


def test_weights_of_another_network_are_told_by_name(small_network, tmp_path, capsys):
    torch.save({"x": torch.ones(2)}, tmp_path / "w.pt")
    text = refused(capsys, "compile", small_network, "--weights", tmp_path / "w.pt")
    assert '"0.weight", "0.bias"' in text and "w.pt" in text
    torch.save({f"x{k}": torch.ones(2) for k in range(99)}, tmp_path / "w.pt")
    text = refused(capsys, "compile", small_network, "--weights", tmp_path / "w.pt")
    assert '"x0", "x1", "x2" and 96 more' in text and "x50" not in text
    torch.save([1, 2], tmp_path / "w.pt")
    assert "got list" in refused(capsys, "compile", small_network, "--weights", tmp_path / "w.pt")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cost-model", "packagedd"], "cost_model: there is no checkpoint packagedd"),
        (["--target", "llvm -mcpu=pentium4"], "'pentium4' is"),
        (["--target", ""], "Target"),
    ],
)
def test_options_are_looked_at_before_the_network_is_made(capsys, tmp_path, options, reason):
    # There is no such network, which is found later.
    text = refused(capsys, "tune", "no.such:network", *options, "--out", tmp_path / "run")
    assert reason in text


@pytest.mark.parametrize(
    ("option", "value"),
    [("--seed", -1), ("--seed", 2**70), ("--per-round", 0), ("--config-seeds", -3)],
)
def test_numbers_out_of_range_are_named_as_they_were_written(capsys, tmp_path, option, value):
    with pytest.raises(SystemExit, match="2"):
        main(["tune", "no.such:network", option, str(value), "--out", str(tmp_path / "run")])
    text = capsys.readouterr().err
    assert f"{option} must be" in text and f"got {value}" in text


def test_a_gpu_that_is_not_there_is_what_is_said(small_network, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tvm.runtime.Device.exist", property(lambda self: False))
    text = refused(capsys, "tune", small_network, "--target", "cuda", "--out", tmp_path / "run")
    assert "no GPU" in text and "--simulate" in text
    # Of other GPUs there is no model.
    text = refused(capsys, "tune", small_network, "--target", "rocm", "--out", tmp_path / "run")
    assert "no GPU" in text and "--simulate" not in text
    for target in ("rocm", "llvm"):
        given = ("--target", target, "--simulate", "--out", tmp_path / "run")
        text = refused(capsys, "tune", small_network, *given)
        assert "only the target cuda has a model" in text
    assert not (tmp_path / "run").exists()


def test_programs_that_would_crash_here_are_refused_before_anything_is_imported(
    small_network, tmp_path, capsys, monkeypatch
):
    # A machine with narrower vectors than the target's.
    monkeypatch.setattr("tvm.felix.settings.runs_here", lambda target: False)
    text = refused(capsys, "tune", small_network, "--out", tmp_path / "run")
    assert "cannot run its programs" in text and "RPCRunner" in text
    assert not (tmp_path / "run").exists()


def test_another_kind_of_processor_is_refused_before_anything_is_imported(
    small_network, tmp_path, capsys
):
    here = host_triple().partition("-")[0]
    other = "aarch64" if here == "x86_64" else "x86_64"
    target = f"llvm -mtriple={other}-linux-gnu"
    text = refused(capsys, "tune", small_network, "--target", target, "--out", tmp_path / "run")
    assert f"programs for {other} cannot be measured on this machine, which is {here}" in text
    assert not (tmp_path / "run").exists()


def test_results_need_a_folder(small_network, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(capsys, "tune", small_network, "--out", tmp_path / "file")
    text = refused(capsys, "compile", small_network, "-o", tmp_path / "no" / "net.so")
    assert "there is no folder" in text


@pytest.mark.parametrize("content", ["", "[", "[1]", '{"network": "mlp", "seed": -1}'])
def test_damaged_options_of_a_run(tmp_path, capsys, content):
    (tmp_path / "run.json").write_text(content)
    text = refused(capsys, "tune", "--resume", tmp_path)
    assert "run.json" in text or "seed" in text


def test_an_onnx_file_that_is_none(tmp_path, capsys):
    pytest.importorskip("onnx")
    (tmp_path / "net.onnx").write_bytes(b"abc")
    assert "not an ONNX model" in refused(capsys, "compile", tmp_path / "net.onnx")
    assert "net.onnx" in refused(capsys, "compile", tmp_path / "net.onnx", 2)


def test_errors_of_the_users_own_functions_keep_their_traceback(tmp_path):
    for name, kind in (("broken", AttributeError), ("odd", RuntimeError)):
        with pytest.raises(kind):
            main(["compile", f"small_network_of_bad_input:{name}"])


def test_signals_end_a_command_in_one_line(capsys):
    def interrupted():
        raise KeyboardInterrupt

    assert run_command(interrupted) == 130
    assert capsys.readouterr().err == "interrupted\n"
    before = signal.getsignal(signal.SIGTERM)

    def terminated():
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(10)

    assert run_command(terminated) == 143
    assert capsys.readouterr().err == "terminated\n"
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [(signal.SIGINT, 130, "interrupted\n"), (signal.SIGTERM, 143, "terminated\n")],
)
def test_a_signal_that_python_drops_ends_the_command_all_the_same(number, status, line, capsys):
    hook = sys.unraisablehook
    reached = []

    class SignalledWhileItDies:
        def __del__(self):
            signal.raise_signal(number)

    def dropped():
        SignalledWhileItDies()
        reached.append(True)
        threading.Event().wait(10)

    # A process in the background starts without Python's handler of Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run_command(dropped) == status
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached
    assert capsys.readouterr().err == line
    assert sys.unraisablehook is hook


def test_unexpected_errors_say_their_kind_and_one_line():
    assert describe_error(RuntimeError("first\nsecond")) == "RuntimeError: first"
    assert describe_error(MemoryError()) == "out of memory"
    assert describe_error(KeyError("no such thing")) == "no such thing"


MISTAKES = {
    "a damaged run": (["tune", "--resume", "run"], "run.json:1: column 5"),
    "no run": (["tune", "--resume", "nothing"], "no run.json"),
    "a cost model that is not there": (["tune", "mlp", "--cost-model", "nope"], "no checkpoint"),
    "a target that nobody knows": (["tune", "mlp", "--target", "nonsense"], "nonsense"),
    "a file in the place of a folder": (["tune", "mlp", "--out", "run/run.json"], "is a file"),
    "nothing to measure": (["tune", "mlp", "--trials", "0"], "--trials"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_before_torch_is_there(mistake, tmp_path):
    arguments, expected = MISTAKES[mistake]
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"x"')
    program = (
        "import sys\nfrom tvm.felix.command import main\n"
        f"try:\n    status = main({arguments!r})\n"
        "except SystemExit as end:\n    status = end.code\n"
        "assert status and 'torch' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert expected in done.stderr
