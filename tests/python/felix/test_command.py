"""The command `felix` beside tuning: compile, report, records, profile."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from torch import nn

import tvm
from tvm import felix, relax
from tvm.felix.command import main
from tvm.felix.html_report import write_report

SMALL = """
import torch
from torch import nn
def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (torch.ones(2, 8),)
"""


@pytest.fixture(autouse=True)
def small_network(tmp_path, monkeypatch):
    (tmp_path / "small_network_of_a_test.py").write_text(SMALL)
    monkeypatch.syspath_prepend(tmp_path)
    return "small_network_of_a_test:make"


def test_compile_writes_a_library_that_runs(small_network, tmp_path, capsys):
    assert main(["compile", small_network, "-o", str(tmp_path / "net.so")]) == 0
    assert "1 kernels in 1 calls" in capsys.readouterr().out
    machine = relax.VirtualMachine(relax.load_executable(tmp_path / "net.so"))
    torch.manual_seed(0)
    expected = torch.relu(nn.Linear(8, 4)(torch.ones(2, 8))).detach()
    found = machine["main"](tvm.nd.array(torch.ones(2, 8).numpy()))
    torch.testing.assert_close(torch.from_numpy(found.numpy()), expected)


def test_weights_go_to_a_file_of_their_own(small_network, tmp_path, capsys):
    library, weights = tmp_path / "net.so", tmp_path / "net.weights"
    assert main(["compile", small_network, "-o", str(library), "--weights-file", str(weights)]) == 0
    assert str(weights) in capsys.readouterr().out
    machine = relax.VirtualMachine(relax.load_executable(library))
    assert machine["main"](tvm.nd.array(torch.ones(2, 8).numpy())).shape == (2, 4)
    missing = str(tmp_path / "no" / "w")
    assert main(["compile", small_network, "-o", str(library), "--weights-file", missing]) != 0
    assert "there is no folder" in capsys.readouterr().err


def test_profile_lists_every_kernel(small_network, capsys):
    assert main(["profile", small_network, "--runs", "2", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)
    assert kernel["operators"] == "nn.dense add nn.relu"
    assert kernel["calls"] == 1 and kernel["seconds"] > 0
    assert main(["profile", small_network, "--runs", "1"]) == 0
    assert "ms a call" in capsys.readouterr().out


def test_records_are_read_from_files_and_from_folders(tmp_path, capsys):
    layer = nn.Linear(8, 4)
    (task,) = felix.extract_tasks(layer, torch.ones(2, 8))
    search = task.instances[0].ansor_task
    program = tvm.auto_scheduler.MeasureInput(search, search.compute_dag.get_init_state())
    result = tvm.auto_scheduler.MeasureResult([0.002], 0, "", 1.0, 0.0)
    tvm.auto_scheduler.save_records(str(tmp_path / "records.json"), [program], [result])
    for given in (tmp_path / "records.json", tmp_path):
        assert main(["records", "list", str(given)]) == 0
        assert "2.0000 ms" in capsys.readouterr().out
    assert main(["records", "list", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["r"][0] == [0.002]


def test_stores_are_merged_counted_pruned_and_written_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TVM_FELIX_CACHE", str(tmp_path / "cache"))
    (task,) = felix.extract_tasks(nn.Linear(8, 4), torch.ones(2, 8))
    search = task.instances[0].ansor_task
    program = tvm.auto_scheduler.MeasureInput(search, search.compute_dag.get_init_state())
    for name, seconds in (("one", 0.002), ("two", 0.001)):
        (tmp_path / name).mkdir()
        result = tvm.auto_scheduler.MeasureResult([seconds], 0, "", 1.0, 0.0)
        tvm.auto_scheduler.save_records(tmp_path / name / "records.json", [program], [result])

    def records(*arguments):
        assert main(["records", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    store = tmp_path / "both.db"
    assert "2 records are new" in records("merge", tmp_path / "one", tmp_path / "two", "-o", store)
    assert "0 records are new" in records("merge", tmp_path / "one", "-o", store)
    assert "2 records are new" in records("merge", store)  # into what this machine remembers
    assert "1.0000 ms" in records("best")
    assert "1.0000 ms" in records("best", store) and "2.0000" not in records("best", store)
    assert "2 measured      0 failed  of 1 kernels" in records("count", store)
    assert "of 0 kernels" in records("count", store, "--processor", "z80")
    assert "2 measured" in records("count", tmp_path / "one", tmp_path / "two")
    assert "0 records are left out" in records("prune", store, "--keep", "1")
    out = tmp_path / "out.json"
    assert "2 records are in" in records("merge", store, "-o", out)
    assert len(out.read_text().splitlines()) == 2
    for arguments, reason in (
        (["prune", str(out)], "is no record store"),
        (["prune", str(tmp_path / "no.db")], "there is no such record store"),
        (["merge"], "name what to merge"),
        (["merge", str(store), "-o", str(tmp_path / "no" / "x.db")], "a folder that exists"),
    ):
        assert main(["records", *arguments]) == 1
        assert reason in capsys.readouterr().err


def test_what_is_not_there_is_said_in_one_line(small_network, tmp_path, capsys):
    for arguments, reason in (
        (["report", str(tmp_path)], "has no summary.json"),
        (["records", "list", str(tmp_path)], "holds no records"),
        (["profile", small_network, "--records", str(tmp_path)], "does not exist; tune first"),
        (["tune", str(tmp_path)], "is a folder and no network; a run goes on with --resume"),
        (["compile", __file__], "is no file of a network; the names of those end with .onnx, .pt"),
    ):
        assert main(arguments) == 1
        text = capsys.readouterr().err
        assert text.startswith("error: ") and text.count("\n") == 1
        assert reason in text


@pytest.mark.parametrize("action", ["list", "best", "count"])
@pytest.mark.parametrize("text", ['{"i": [["key"', '{"a": 1}', "[1, 2]\n[3]"])
def test_a_file_without_a_record_is_an_error_and_not_an_empty_table(action, text, tmp_path, capsys):
    """A run that was killed may leave one line less; another file than was meant leaves none."""
    file = tmp_path / "records.json"
    file.write_text(text)
    assert main(["records", action, str(file)]) == 1
    assert f"error: {file}" in capsys.readouterr().err
    file.write_text("")
    assert main(["records", action, str(file)]) == 0  # a run that measured nothing yet


def test_summaries_of_other_versions_give_no_report(tmp_path):
    (tmp_path / "summary.json").write_text('{"network": "mlp", "tasks": []}')
    with pytest.raises(ValueError, match="not the summary of a run of this version"):
        write_report(tmp_path)


# What a run without tasks leaves in its summary.
FACTS = {
    "network": "mlp",
    "target": "llvm",
    "threads": 1,
    "batch_size": 1,
    "measurements": 0,
    "search_seconds": 0.0,
    "interrupted": False,
    "coverage": 0.0,
    "tasks": [],
    "history": [],
    "versions": {},
}


def test_names_in_a_report_are_no_html(tmp_path):
    facts = {**FACTS, "network": "<script>", "versions": {"tvm": "<b>"}}
    (tmp_path / "summary.json").write_text(json.dumps(facts))
    page = write_report(tmp_path).read_text()
    assert "<script>" not in page and "<b>" not in page
    assert "&lt;script&gt;" in page


def test_a_report_is_written_again_by_another_process(tmp_path):
    """Which knows the workloads that records name from the folder alone."""
    (task,) = felix.extract_tasks(
        nn.Linear(8, 4), torch.ones(2, 8), save_to=str(tmp_path / "tasks.json")
    )
    search = task.instances[0].ansor_task
    program = tvm.auto_scheduler.MeasureInput(search, search.compute_dag.get_init_state())
    result = tvm.auto_scheduler.MeasureResult([0.002], 0, "", 1.0, 0.0)
    tvm.auto_scheduler.save_records(str(tmp_path / "records.json"), [program], [result])
    row = {
        "workload_key": search.workload_key,
        "operators": "nn.dense add",
        "output_shape": [2, 4],
        "weight": 1,
        "flop": 128.0,
        "bytes": 224,
        "sketches": 1,
        "untuned_seconds": 0.003,
        "best_seconds": 0.002,
        "keeps_library": False,
        "remembered": False,
        "measurements": 1,
        "errors": {},
    }
    (tmp_path / "summary.json").write_text(json.dumps({**FACTS, "tasks": [row]}))
    code = "import sys; from tvm.felix.command import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "report", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text()
    assert "nn.dense add" in page and "<details>" in page


def test_the_package_runs_as_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "tvm.felix", "tune"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "name a network, or a folder with --resume" in done.stderr
