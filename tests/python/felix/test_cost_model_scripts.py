"""The scripts that make data sets and train cost models."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tvm import auto_scheduler, felix, te
from tvm.auto_scheduler import MeasureInput, MeasureResult
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.felix.pretrain import measure_programs


@pytest.fixture
def train(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "scripts"))
    return importlib.import_module("train_cost_model")


def make_product():
    a, b = (te.placeholder((16, 16), name=name) for name in "AB")
    r = te.reduce_axis((0, 16), name="r")
    return [a, b, te.compute((16, 16), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def test_a_data_set_of_nothing_is_refused(tmp_path, train, capsys):
    """Programs of Ansor's space have steps that felix's sketches have not."""
    task = felix.make_task(make_product(), target="llvm", desc="product")
    felix.save_tasks([task], tmp_path / "tasks.json")
    search_task = task.instances[0].ansor_task
    state = search_task.compute_dag.get_init_state()
    out_tensor = list(search_task.compute_dag.tensors)[-1]
    state.split(out_tensor, state[out_tensor].iters[0], [3])
    candidate = MeasureInput(search_task, state)
    result = MeasureResult([1e-3], 0, None, 0.1, 1.0)
    auto_scheduler.save_records(str(tmp_path / "records.json"), [candidate], [result])
    out = tmp_path / "data.npz"
    assert train.main(["felix_dataset", "-l", str(tmp_path), "-o", str(out)]) == 1
    assert "is a point of felix's sketches" in capsys.readouterr().err
    assert not out.exists()


def test_nothing_to_measure_or_to_train_on_is_refused(tmp_path, train, capsys):
    """A data set as large as the packaged one, so that only the options are wrong."""
    replay = str(felix.packaged_checkpoint().with_suffix(".replay.npz"))
    out = tmp_path / "out"
    for arguments, message in [
        (["measure", "-o", str(out)], "name a network, or ask for random operators by --random N"),
        (["measure", "mlp", "--per-task", "0", "-o", str(out)], "per_task must be >= 1, got 0"),
        (["measure", "mlp", "--guided", "3", "-o", str(out)], r"guided must be in [0, 1], got 3"),
        (["train_mlp", "-d", replay, "--epochs", "0", "-o", str(out)], "epochs must be >= 1"),
        (["train_mlp", "-d", replay, "--replay", "-5", "-o", str(out)], "replay >= 0, got 200"),
        (["train_mlp", "-d", __file__, "-o", str(out)], "is an archive of arrays; of records, "),
    ]:
        assert train.main(arguments) == 1
        assert message in capsys.readouterr().err
    assert not out.is_file()


def test_programs_that_cannot_run_here_are_not_measured(tmp_path, train, capsys, monkeypatch):
    monkeypatch.setattr("tvm.runtime.Device.exist", property(lambda self: False))
    out = ["-o", str(tmp_path / "out")]
    assert train.main(["measure", "no.such:network", "--target", "cuda", *out]) == 1
    assert "no GPU to measure on" in capsys.readouterr().err
    task = felix.make_task(make_product(), target="cuda")
    with pytest.raises(ValueError, match="no GPU to measure on"):
        measure_programs([task], 1, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["measure", "mlp", "--seed", "-1"],
        ["--seed", "-1", "measure", "mlp"],
        ["recreate", "--seeds", "3", "-2"],
    ],
)
def test_seeds_below_zero_are_named(train, capsys, arguments):
    with pytest.raises(SystemExit, match="2"):
        train.parse_arguments([*arguments, "-o", "out"], None)
    assert "a seed must be >= 0, got -" in capsys.readouterr().err


def test_what_is_printed_of_a_model_is_what_it_predicts(tmp_path, train, capsys):
    """Trees predict throughputs; a perceptron over the same features only orders programs."""
    task = auto_scheduler.SearchTask(compute_dag=make_product(), target="llvm")
    records, states = tmp_path / "records.json", []
    for factor in (1, 2, 4, 8):
        state = task.compute_dag.get_init_state()
        state.split(state.stage_ops[2], state[state.stage_ops[2]].iters[0], [factor])
        states.append(state)
    auto_scheduler.save_records(
        records,
        [MeasureInput(task, state) for state in states],
        [MeasureResult([1e-3 * k], 0, None, 0.1, 1.0) for k in (1, 2, 3, 4)],
    )
    some = ["-l", str(records), "--min-programs", "1", "--split", "within_task"]
    for model, has_levels in (("xgb", True), ("mlp", False)):
        arguments = [*some, "--train-ratio", "0.5", "-m", model, "-o", str(tmp_path / model)]
        assert train.main(["train_ansor", "--epochs", "1", *arguments]) == 0
        printed = capsys.readouterr().out
        assert "spearman" in printed and "top_8_recall" in printed
        assert all((name in printed) == has_levels for name in ("rmse", "r2", "log_error"))


def test_the_packaged_model_is_made_anew_by_one_command(tmp_path, train, capsys):
    out = tmp_path / "mine.ckpt"
    sizes = ["--random", "2", "--per-task", "2", "--epochs", "1", "--train-ratio", "0.5"]
    arguments = ["recreate", "--seeds", "6", *sizes, "--replay", "2", "-o", str(out)]
    assert train.main(arguments) == 0
    assert "spearman" in capsys.readouterr().out
    model = LatencyModel(pretrained=out)
    assert model.trained and len(model.replay) == 2
    assert all(meta.target and meta.sketch >= 0 for meta in model.replay.conf_meta)
    lines = (tmp_path / "mine-6" / "records.json").read_text()
    # What was measured is not measured again.
    assert train.main(arguments) == 0
    assert (tmp_path / "mine-6" / "records.json").read_text() == lines


def test_scripts_for_one_command_take_its_arguments_and_the_seed(train, capsys):
    options = train.parse_arguments(["-l", "a", "-o", "b", "--seed", "3"], "train_ansor")
    assert (options.command, options.seed) == ("train_ansor", 3)
    assert train.parse_arguments(["--seed", "4", "train_mlp", "-d", "a", "-o", "b"], None).seed == 4
    assert train.parse_arguments(["-d", "a", "-o", "b"], "train_mlp").seed == 0
    with pytest.raises(SystemExit):
        train.parse_arguments([], "train_ansor")
    assert "train_ansor" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["felix_dataset", "-l", "{here}", "{here}/no", "-o", "{here}/d"], "no file {here}/no/t"),
        (["train_mlp", "-d", "{here}/no.npz", "-o", "{here}/m"], "no file {here}/no.npz"),
        (
            ["train_mlp", "-d", "{replay}", "--start", "{here}/no.ckpt", "-o", "{here}/m"],
            "no file {here}/no.ckpt",
        ),
        (["train_ansor", "-l", "{here}/no.json", "-o", "{here}/m"], "no file {here}/no.json"),
        (
            ["train_mlp", "-d", "{replay}", "-o", "{here}/no/m"],
            "--out: there is no folder {here}/no",
        ),
    ],
)
def test_files_are_looked_for_before_anything_is_done(
    tmp_path, train, capsys, monkeypatch, arguments, message
):
    for name in ("tasks.json", "records.json"):
        (tmp_path / name).touch()

    def too_late(*_):
        raise AssertionError("the files were not looked for")

    for name in ("_felix_dataset", "_train_mlp", "_train_ansor"):
        monkeypatch.setattr(train, name, too_late)
    replay = felix.packaged_checkpoint().with_suffix(".replay.npz")
    written = {"here": tmp_path, "replay": replay}
    assert train.main([argument.format(**written) for argument in arguments]) == 1
    assert message.format(**written) in capsys.readouterr().err
