"""One call tunes a network; what is known is not tuned again; records are of their network."""

from __future__ import annotations

import json
import logging
import platform

import pytest
import torch
from torch import nn

import tvm
from tvm import felix
from tvm.auto_scheduler import RecordStore
from tvm.auto_scheduler.measure_session import MeasureSession
from tvm.felix import tuning
from tvm.felix.compiler import CompiledNetwork
from tvm.felix.coverage import SEARCHED
from tvm.felix.network import Network
from tvm.felix.optim import Optimizer
from tvm.felix.schedules import ScheduleSourceError

torch.manual_seed(0)
OTHER_PROCESSOR = "nehalem" if platform.machine() == "x86_64" else "cortex-a53"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TVM_FELIX_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A tuned dense layer: the model, its input, the folder of the run, the network."""
    folder = tmp_path_factory.mktemp("tuned") / "run"
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    network = felix.tune(model, x, trials=2, folder=folder, cache=False, progress=False)
    return model, x, folder, network


def test_tune_gives_the_network_with_what_it_found(run):
    model, x, folder, network = run
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    assert len((folder / "records.json").read_text().splitlines()) == 2
    # Two programs need not beat the library's schedule.
    assert network.kernels[0].schedule in ("records", "library")
    assert network.coverage.tuned_share == 1.0
    text = repr(network)
    assert text.startswith("CompiledNetwork of Linear for llvm")
    assert "1 (100.0% of the work) by " in text


def test_kernels_that_the_budget_did_not_reach_were_not_searched(cache, tmp_path):
    model = nn.Sequential(nn.Linear(32, 48), nn.Flatten(0), nn.Linear(4 * 48, 16)).eval()
    x = torch.randn(4, 32)
    network = felix.tune(model, x, trials=1, folder=tmp_path, progress=False)
    # Only the library's schedule was measured of the other one, so nothing was searched.
    first, second = sorted(network.kernels, key=lambda k: k.schedule in ("hand", "default"))
    assert first.schedule in SEARCHED and second.schedule in ("hand", "default")
    assert network.coverage.tuned_share < 1.0
    assert network.coverage.untuned == [second]
    # What nobody searched is not known to the next run, and what was is.
    again = {kernel.workload_key: kernel.schedule for kernel in felix.compile(model, x).kernels}
    assert again[first.workload_key] in SEARCHED
    assert again[second.workload_key] in ("hand", "default")
    more = felix.tune(model, x, trials=2, progress=False)
    assert {kernel.schedule for kernel in more.kernels} <= set(SEARCHED)


def test_compile_shows_what_nobody_tuned():
    model = nn.Sequential(nn.Linear(32, 8), nn.Flatten(0), nn.Linear(32, 16)).eval()
    network = felix.compile(model, torch.randn(4, 32))
    assert network.coverage.tuned_share == 0.0
    assert {k.schedule for k in network.kernels} <= {"hand", "default"}
    assert "not tuned: nn.dense add 4x8" in repr(network)


def test_work_of_programs_that_the_library_writes_whole_is_shown():
    def attention(query, key, value):
        return nn.functional.scaled_dot_product_attention(query, key, value)

    heads = tuple(torch.randn(1, 2, 16, 8) for _ in range(3))
    [kernel] = felix.compile(attention, heads, target="llvm").kernels
    assert (kernel.schedule, kernel.workload_key) == ("program", "")
    # Two products of 16 x 16 x 8 for each head, and the softmax between them.
    assert kernel.flop >= 2 * 2 * 2 * 16 * 16 * 8


@pytest.mark.parametrize("winograd", [None, True])
def test_a_network_that_the_library_writes_whole_is_returned_as_it_is(winograd, tmp_path):
    def attention(heads):
        return nn.functional.scaled_dot_product_attention(heads, heads, heads)

    heads = torch.randn(1, 2, 32, 16)
    network = felix.tune(
        attention, heads, trials=2, winograd=winograd, folder=tmp_path, cache=False, progress=False
    )
    torch.testing.assert_close(network(heads), attention(heads), rtol=1e-4, atol=1e-5)
    if winograd:
        assert [kernel.schedule for kernel in network.kernels] == ["program"]
        assert not (tmp_path / "records.json").exists()
    with pytest.raises(ValueError, match="nothing to tune"):
        felix.extract_tasks(attention, heads, winograd=True)


def test_a_network_is_imported_once_for_all_that_is_done_with_it(run):
    model, x, folder, _ = run
    network = Network(model, x)
    for records in (None, folder):
        compiled = felix.compile(network, records=records)
        torch.testing.assert_close(compiled(x), model(x).detach(), rtol=1e-4, atol=1e-5)
        assert compiled.network.program is network.program


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_search_descends_whatever_the_mode_of_the_caller(mode, tmp_path):
    with mode():
        model, x = nn.Linear(96, 80).eval(), torch.randn(24, 96)
        network = felix.tune(
            model, x, trials=24, folder=tmp_path, cache=False, progress=False, winograd=False
        )
        torch.testing.assert_close(network(x), model(x), rtol=1e-4, atol=1e-5)
    assert len((tmp_path / "records.json").read_text().splitlines()) == 24


def test_functions_and_single_tensors_are_taken():
    x = torch.randn(3, 4)
    double = felix.compile(lambda x: x + x, x)
    torch.testing.assert_close(double(x), 2 * x)
    with pytest.raises(TypeError, match="expected a module or a function of tensors, got int"):
        felix.compile(3, x)


def test_a_wrong_number_of_inputs_is_said_in_numbers(run):
    _, x, _, network = run
    with pytest.raises(TypeError, match="takes 1 input like the example, got 2 inputs"):
        network(x, x)
    with pytest.raises(TypeError, match="takes 1 input like the example, got 0 inputs and input"):
        network(input=x)


def test_records_of_another_network_are_refused(run):
    _, _, folder, _ = run
    with pytest.raises(ScheduleSourceError, match="is of another network: none of its 1 kernels"):
        felix.compile(nn.Linear(32, 24), torch.randn(4, 32), records=folder)


def test_records_of_another_machine_are_refused(run, tmp_path):
    model, x, folder, network = run
    here = network.target.with_machine().mcpu
    text = (
        (folder / "records.json").read_text().replace(f"-mcpu={here}", f"-mcpu={OTHER_PROCESSOR}")
    )
    (tmp_path / "records.json").write_text(text)
    with pytest.raises(ScheduleSourceError, match=f"for other machines only: .*{OTHER_PROCESSOR}"):
        felix.compile(model, x, records=tmp_path)


def test_records_of_a_part_of_the_network_are_used_with_a_warning(run, caplog):
    _, x, folder, _ = run
    logging.getLogger("tvm").propagate = True
    model = nn.Sequential(nn.Linear(32, 16), nn.Linear(16, 24))
    network = felix.compile(model, x, records=folder)
    assert "schedules for 1 of the network's 2 kernels" in caplog.text
    assert [k.schedule in ("records", "library") for k in network.kernels].count(True) == 1


def test_a_kernel_that_was_tuned_is_not_tuned_again_in_another_network(cache, monkeypatch):
    first, x = nn.Linear(32, 16), torch.randn(4, 32)
    felix.tune(first, x, trials=2, progress=False)
    assert len(RecordStore(cache / "records.db").kernels()) == 1

    def refuse(*_, **__):
        raise AssertionError("tuned again")

    monkeypatch.setattr(tuning, "Optimizer", refuse)
    second = nn.Linear(32, 16)
    for network in (felix.tune(second, x, trials=2), felix.compile(second, x)):
        torch.testing.assert_close(network(x), second(x).detach(), rtol=1e-4, atol=1e-5)
        assert network.coverage.tuned_share == 1.0
    assert network.kernels[0].schedule in ("cache", "library")
    with pytest.raises(AssertionError, match="tuned again"):
        felix.tune(second, x, trials=2, cache=False)


def test_the_folder_of_a_run_has_what_was_remembered(cache, tmp_path, monkeypatch):
    x = torch.randn(4, 32)
    felix.tune(nn.Linear(32, 16), x, trials=2, progress=False)
    felix.tune(nn.Linear(32, 16), x, trials=2, folder=tmp_path / "run")
    monkeypatch.setenv("TVM_FELIX_CACHE", "off")
    network = felix.compile(nn.Linear(32, 16), x, records=tmp_path / "run")
    assert network.kernels[0].schedule in ("records", "library")


def test_networks_tuned_together_share_kernels_records_and_model(tmp_path):
    shared = nn.Linear(32, 16)
    networks = {
        "first": (nn.Sequential(shared, nn.Flatten(0)).eval(), [torch.randn(4, 32)]),
        "second": (nn.Sequential(shared, nn.Softmax(-1)).eval(), [torch.randn(4, 32)]),
    }
    compiled = felix.tune_together(
        networks, trials=12, folder=tmp_path / "run", cache=False, progress=False
    )
    assert list(compiled) == ["first", "second"]
    for name, (model, inputs) in networks.items():
        expected = model(*inputs).detach()
        torch.testing.assert_close(compiled[name](*inputs), expected, rtol=1e-4, atol=1e-5)
        assert compiled[name].coverage.tuned_share == 1.0
        # Compiled again, the folder serves each of them.
        again = felix.compile(model, inputs, records=tmp_path / "run")
        assert again.coverage.tuned_share == 1.0
    tasks = felix.load_tasks(tmp_path / "run" / "tasks.json")
    dense = [i for task in tasks for i in task.instances if "dense" in i.desc]
    assert [instance.weight for instance in dense] == [2]
    assert len((tmp_path / "run" / "records.json").read_text().splitlines()) == 12
    with pytest.raises(ValueError, match="no network to tune"):
        felix.tune_together({})


def test_weights_are_read_ahead_where_that_is_faster_inside_the_network(tmp_path, monkeypatch):
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    monkeypatch.setattr(MeasureSession, "measure_library", lambda *_: None)
    monkeypatch.setattr(Optimizer, "_confirm", lambda *_: None)
    folder = tmp_path / "run"

    def reads_ahead(network):
        (kernels,) = network.executable.mod.imported_modules
        return "llvm.prefetch" in kernels.get_source("ll")

    def tune(ahead, near):
        def seconds(network, repeats):
            (kernel,) = network.kernels
            if kernel.schedule == "hand":
                return {kernel.workload_key: 9.0}
            return {kernel.workload_key: ahead if reads_ahead(network) else near}

        monkeypatch.setattr(CompiledNetwork, "task_seconds", seconds)
        monkeypatch.setattr(
            CompiledNetwork, "run_seconds", lambda self: sum(seconds(self, 1).values())
        )
        return felix.tune(model, x, trials=2, folder=folder, cache=False, progress=False)

    for ahead, near in ((1.0, 2.0), (2.0, 1.0), (1.0, 2.0)):
        network = tune(ahead, near)
        assert network.kernels[0].schedule == "records"
        assert reads_ahead(network) == (ahead < near)
        torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
        again = felix.compile(model, x, records=folder, cache=False)
        assert reads_ahead(again) == (ahead < near)


def test_kernels_that_are_faster_by_hand_inside_the_network_stay_so(tmp_path, monkeypatch):
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    # Alone, nothing is known of the library's schedule, so that the record counts.
    monkeypatch.setattr(MeasureSession, "measure_library", lambda *_: None)
    monkeypatch.setattr(Optimizer, "_confirm", lambda *_: None)
    folder = tmp_path / "run"

    def tune(found, library):
        def seconds(network, repeats):
            by_hand = network.kernels[0].schedule == "hand"
            return {network.kernels[0].workload_key: library if by_hand else found}

        monkeypatch.setattr(CompiledNetwork, "task_seconds", seconds)
        monkeypatch.setattr(
            CompiledNetwork, "run_seconds", lambda self: sum(seconds(self, 1).values())
        )
        return felix.tune(model, x, trials=2, folder=folder, cache=False, progress=False)

    (kernel,) = tune(found=1.0, library=2.0).kernels
    assert kernel.schedule == "records"
    network = tune(found=2.0, library=1.0)
    (kernel,) = network.kernels
    assert kernel.schedule == "library"
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
    # The folder remembers; a folder tuned further is asked again.
    (again,) = felix.compile(model, x, records=folder, cache=False).kernels
    assert again.schedule == "library"
    (kernel,) = tune(found=1.0, library=2.0).kernels
    assert kernel.schedule == "records"
    # What earlier releases wrote knows of the library alone.
    key = kernel.workload_key
    document = {"target": str(tvm.target.Target("llvm")), "seconds": {key: {"library": 1.0}}}
    (folder / "in_place.json").write_text(json.dumps(document))
    (again,) = felix.compile(model, x, records=folder, cache=False).kernels
    assert again.schedule == "library"
    (folder / "in_place.json").write_text('{"target": 3}')
    with pytest.raises(ValueError, match=r"in_place\.json"):
        felix.compile(model, x, records=folder, cache=False)


def test_a_network_knows_its_schedules_when_the_temporary_folder_of_its_run_is_gone(monkeypatch):
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    monkeypatch.setattr(MeasureSession, "measure_library", lambda *_: None)
    monkeypatch.setattr(Optimizer, "_confirm", lambda *_: None)
    monkeypatch.setattr(
        tuning, "_choose_parts", lambda _1, _2, tuned, untuned, *_: (tuned, tuned, untuned)
    )
    monkeypatch.setattr(tuning, "keep_untuned", lambda *_: ["Linear"])
    network = felix.tune(model, x, trials=2, cache=False, progress=False)
    assert [kernel.schedule for kernel in network.kernels] == ["records"]
    assert "1 (100.0% of the work) by " in repr(network)


def test_records_of_any_search_are_timed_inside_of_the_network(tmp_path, monkeypatch):
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    monkeypatch.setattr(MeasureSession, "measure_library", lambda *_: None)
    monkeypatch.setattr(Optimizer, "_confirm", lambda *_: None)
    tasks = felix.extract_tasks(model, x)
    records = tmp_path / "records.json"
    felix.Optimizer(tasks, felix.MLPModelPLWrapper()).tune(2, log_file=records, progress=False)

    def in_network(found, library):
        def seconds(network, repeats=1):
            by_hand = network.kernels[0].schedule == "hand"
            return {network.kernels[0].workload_key: library if by_hand else found}

        monkeypatch.setattr(CompiledNetwork, "task_seconds", seconds)
        monkeypatch.setattr(
            CompiledNetwork, "run_seconds", lambda self: sum(seconds(self).values())
        )
        network = felix.compile_in_place(model, x, records=tmp_path, cache=False)
        torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-5)
        return network.kernels[0].schedule

    assert felix.compile(model, x, records=tmp_path, cache=False).kernels[0].schedule == "records"
    assert in_network(found=2.0, library=1.0) == "library"
    assert felix.compile(model, x, records=records, cache=False).kernels[0].schedule == "library"
    assert in_network(found=1.0, library=2.0) == "records"
    elsewhere = tmp_path / "felix_configs.json"
    elsewhere.write_text(records.read_text())
    with pytest.raises(ValueError, match=r"beside records\.json, not felix_configs\.json: give"):
        felix.compile_in_place(model, x, records=elsewhere)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        felix.compile_in_place(model, x, records=tmp_path / "no.json")


@pytest.mark.parametrize("found", [1.0, 2.0])
def test_a_network_that_was_not_timed_in_parts_is_timed_as_a_whole(tmp_path, monkeypatch, found):
    """As after an interruption, or where a fleet measured."""
    model, x = nn.Linear(32, 16).eval(), torch.randn(4, 32)
    monkeypatch.setattr(MeasureSession, "measure_library", lambda *_: None)
    monkeypatch.setattr(Optimizer, "_confirm", lambda *_: None)
    folder = tmp_path / "run"
    tuned = felix.tune(model, x, trials=2, folder=folder, cache=False, progress=False)
    monkeypatch.setattr(
        CompiledNetwork,
        "run_seconds",
        lambda self: 1.5 if self.kernels[0].schedule == "hand" else found,
    )
    monkeypatch.setattr(CompiledNetwork, "task_seconds", None)
    target = tvm.target.Target("llvm")
    (network,) = tuning.compile_tuned([tuned.network], target, folder, None, in_place=False)
    (again,) = felix.compile(model, x, records=folder, cache=False).kernels
    expected = "records" if found < 1.5 else "library"
    assert network.kernels[0].schedule == again.schedule == expected
