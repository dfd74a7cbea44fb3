"""Parts of networks in two forms: both are searched, and the faster one in place is taken."""

import json

import pytest
import torch
from torch import nn

import tvm
from tvm import felix
from tvm.felix.compiler import CompiledNetwork
from tvm.felix.network import GraphOptions, Network

TARGET = tvm.target.Target("llvm")
# A convolution that Winograd's form is estimated to be less work for.
PART = "winograd 1x28x28x64x64"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def x():
    return torch.randn(1, 64, 28, 28)


def forms_of(network):
    names = {name for kernel in network.kernels for name in kernel.operators}
    return "winograd" if "nn.winograd_product" in names else "direct"


@pytest.fixture
def tune(model, x, tmp_path, monkeypatch):
    """Tune with the seconds of each form inside of the network given."""

    def run(winograd, direct, whole=None, **options):
        """`whole` : seconds of a run in each form, by default equal."""

        def seconds(network, repeats):
            taken = {"winograd": winograd, "direct": direct}[forms_of(network)]
            return {group.key: taken for group in tvm.relax.fused_groups(network.network.mod)}

        monkeypatch.setattr(CompiledNetwork, "kernel_seconds", seconds)

        def run_seconds(network):
            return whole[forms_of(network)] if whole else 1.0

        monkeypatch.setattr(CompiledNetwork, "run_seconds", run_seconds)
        options = {"trials": 2, "cache": False, "progress": False, **options}
        return felix.tune(model, x, folder=tmp_path, **options)

    return run


def test_a_part_that_is_faster_as_it_is_stays_so_and_the_folder_remembers(tune, model, x, tmp_path):
    # Three kernels of one second each against one of two.
    network = tune(winograd=1.0, direct=2.0)
    assert forms_of(network) == "direct"
    torch.testing.assert_close(network(x), model(x).detach(), rtol=1e-4, atol=1e-4)
    tasks = felix.load_tasks(tmp_path / "tasks.json")
    searched = {task.instances[0].desc: task.instances[0].is_rival for task in tasks}
    assert [rival for desc, rival in searched.items() if "winograd_product" in desc] == [False]
    assert [rival for desc, rival in searched.items() if "conv2d" in desc] == [True]
    document = json.loads((tmp_path / "forms.json").read_text())
    assert document["plain"] == [PART]
    assert document["seconds"][PART] == {"rewritten": 3.0, "plain": 2.0}
    # Compiled again nothing is timed; who asks for a form gets it.
    assert forms_of(felix.compile(model, x, records=tmp_path, cache=False)) == "direct"
    again = felix.compile(model, x, records=tmp_path, cache=False, winograd=True)
    assert forms_of(again) == "winograd"
    # A run that is continued searches the same kernels and asks again.
    network = tune(winograd=1.0, direct=3.5, trials=3)
    assert forms_of(network) == "winograd"
    assert forms_of(felix.compile(model, x, records=tmp_path, cache=False)) == "winograd"


def test_parts_that_are_far_from_faster_are_not_searched(tune, tmp_path):
    assert forms_of(tune(winograd=1.0, direct=4.0)) == "winograd"
    tasks = felix.load_tasks(tmp_path / "tasks.json")
    assert not any(task.instances[0].is_rival for task in tasks)


def test_parts_are_named_by_their_sizes_and_cost_no_second_preparation(model, x):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = model
            self.last = nn.Linear(512, 512)

        def forward(self, x, rows, q):
            attended = nn.functional.scaled_dot_product_attention(q, q, q)
            return self.conv(x), self.last(rows), attended

    inputs = x, torch.randn(196, 512), torch.randn(2, 4, 32, 16)
    both = Model().eval()
    expected = both(*inputs)
    network = Network(both, inputs, options=GraphOptions(True, True, True))
    attention, *products = network.forms
    assert attention == "attention 2x4x32x32x16"
    assert sorted(products) == ["strassen 196x512x512", PART]
    for name in network.forms:
        other = network.with_options(GraphOptions(True, True, True, (name,)))
        assert other.forms == network.forms
        operators = [n for g in tvm.relax.fused_groups(other.mod) for n in g.op_names]
        assert not any(name.split()[0] in operator for operator in operators)
        result = felix.compile(other, target=TARGET, cache=False)(*inputs)
        for ours, theirs in zip(result, expected):
            torch.testing.assert_close(ours, theirs.detach(), rtol=1e-3, atol=1e-4)


def test_a_damaged_file_of_forms_is_named(tune, model, x, tmp_path):
    tune(winograd=1.0, direct=2.0)
    (tmp_path / "forms.json").write_text('{"target": "llvm", "plain": 3}')
    with pytest.raises(ValueError, match=r"forms\.json"):
        felix.compile(model, x, records=tmp_path, cache=False)


def test_strassen_is_for_processors_that_multiply_slower_than_they_add():
    def strassen(cpu):
        target = tvm.target.Target(f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}")
        return GraphOptions.for_target(target, None).strassen

    assert strassen("znver4")
    assert not strassen("znver3") and not strassen("haswell") and not strassen("emeraldrapids")


def test_a_form_that_the_whole_network_loses_by_is_given_up(tune, model, x, tmp_path, caplog):
    network = tune(winograd=1.0, direct=2.0, whole={"winograd": 1.0, "direct": 1.1})
    assert forms_of(network) == "winograd"
    assert not {kernel.schedule for kernel in network.kernels} & {"records", "cache"}
    assert "faster with the library's schedules" in caplog.text
    assert json.loads((tmp_path / "forms.json").read_text())["plain"] == []
    again = felix.compile(model, x, records=tmp_path, cache=False)
    assert [kernel.schedule for kernel in again.kernels] == [k.schedule for k in network.kernels]
    torch.testing.assert_close(again(x), model(x).detach(), rtol=1e-4, atol=1e-4)
