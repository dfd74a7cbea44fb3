"""``torch.compile(backend="felix")``: results, recompilation, what PyTorch runs, what is kept."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
import torch._dynamo
from torch import nn

import tvm.felix  # noqa: F401 registers the backend
from tvm.auto_scheduler import RecordStore
from tvm.felix import patience as patience_module
from tvm.felix import torch_graph
from tvm.felix.patience import Patience
from tvm.felix.torch_backend import BackendOptions
from tvm.felix.torch_graph import _laid_out

torch.manual_seed(0)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch_graph._warned.clear()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("TVM_FELIX_CACHE", str(folder))
    return folder


def compiled(model, **options):
    return torch.compile(model, backend="felix", **options)


def agree(model, *inputs, **tolerance):
    options = {"rtol": 1e-4, "atol": 1e-5, **tolerance}
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(*inputs), model(*inputs), **options)


def test_the_backend_is_listed_by_its_name():
    assert "felix" in torch._dynamo.list_backends()


def test_a_convolutional_network_gives_the_results_of_torch_without_a_warning():
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)]
    model = nn.Sequential(*layers, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 5)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        agree(model, torch.randn(2, 3, 8, 8))


class Branching(nn.Module):
    """A branch that depends on data breaks the graph; not all results are tensors."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        y = torch.relu(self.first(x))
        if y.sum() > 0:
            y = y * 2
        return {"out": self.second(y), "none": None, "batch": x.shape[0]}


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_graph_breaks_and_results_that_are_no_tensors():
    model = Branching().eval()
    run = compiled(model)
    with torch.no_grad():
        for batch in (2, 3, 5):
            x = torch.randn(batch, 8)
            result, expected = run(x), model(x)
            torch.testing.assert_close(result["out"], expected["out"])
            assert (result["none"], result["batch"]) == (None, batch)


def test_sizes_may_change_from_call_to_call():
    model = nn.Linear(4, 3)
    run = compiled(model, dynamic=True)
    with torch.no_grad():
        for batch in (5, 2, 9, 3, 5, 2):
            x = torch.randn(batch, 4)
            torch.testing.assert_close(run(x), model(x))


class Unusual(nn.Module):
    """Has an operator in the middle that no one compiles."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x):
        middle = torch.linalg.matrix_exp(torch.relu(self.first(x)) * 0.1)
        return self.second(torch.tanh(middle) + 1)


def test_a_text_that_grows_is_not_compiled_for_each_length(monkeypatch):
    seen = []
    compile_graph = torch_graph.GraphCompiler.compile

    def counted(self, module, inputs, **more):
        seen.append(tuple(inputs[-1].shape))
        return compile_graph(self, module, inputs, **more)

    monkeypatch.setattr(torch_graph.GraphCompiler, "compile", counted)
    model = nn.Linear(4, 4)
    fast = compiled(model, dynamic=True, options={"cache": False, "sizes": 3})
    with torch.no_grad():
        for length in range(2, 12):
            x = torch.randn(length, 4)
            torch.testing.assert_close(fast(x), model(x))
    assert seen == [(2, 4), (3, 4), (4, 4)]


def test_a_size_that_stays_is_compiled_in_time(monkeypatch):
    now = [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(patience_module, "time", clock)
    patience = Patience(at_once=1)
    assert patience.is_worth("first", compiled=0)
    with patience.compiling("first"):
        now[0] += 0.05
    for _ in range(3):
        assert not patience.is_worth("second", compiled=1)
        with patience.running("second"):
            now[0] += 0.02
    assert patience.is_worth("second", compiled=1)
    assert not patience.is_worth("third", compiled=1)


class Cache(nn.Module):
    """Attends to what it was given so far, in tensors of fixed size that the caller holds."""

    def forward(self, x, keys, place):
        keys.index_copy_(0, place, x)
        place += 1
        seen = torch.arange(keys.shape[0]) < place
        return torch.where(seen[:, None], keys, 0.0).sum(0) * x, keys[:2].view(-1)


def test_graphs_that_write_to_their_inputs_are_compiled(cache):
    for _ in range(2):
        # The second time, the compiled graph is loaded.
        torch._dynamo.reset()
        fast = compiled(Cache().eval())
        sides = [(torch.zeros(4, 3), torch.zeros(1, dtype=torch.int64)) for _ in range(2)]
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("error", UserWarning)
            for _ in range(3):
                x = torch.randn(1, 3)
                expected, found = Cache()(x, *sides[0]), fast(x, *sides[1])
                torch.testing.assert_close(found, expected)
                torch.testing.assert_close(sides[1], sides[0])


def test_gradients_through_a_graph_that_writes_are_those_of_torch():
    def function(x, seen):
        seen.add_(1)
        return x * seen

    x = torch.randn(3, requires_grad=True)
    fast = compiled(function, options={"cache": False})
    fast(x, torch.ones(3)).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 2.0))


def test_a_graph_of_numbers_alone_is_left_to_torch_without_a_word():
    def function(x):
        count = x.shape[0] * 2
        torch._dynamo.graph_break()
        return x.repeat(count, 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fast = compiled(function, dynamic=True, options={"cache": False})
        for rows in (2, 3):
            x = torch.randn(rows, 2)
            torch.testing.assert_close(fast(x), function(x))


@pytest.mark.parametrize("inside", [False, True])
def test_autocast_has_its_types_in_compiled_code(inside, cache):
    def short():
        return torch.autocast("cpu", torch.bfloat16)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(3, 8, 3)
            self.norm = nn.LayerNorm(8)

        def forward(self, x):
            with short() if inside else nullcontext():
                return self.norm(self.convolution(x).mean((2, 3)))

    # Few numbers are normalised, so that of some weights the types differ by more than they round.
    torch.manual_seed(0)
    model, x = Network().eval(), torch.randn(2, 3, 6, 6)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        plain = compiled(model)(x)
        torch._dynamo.reset()
        with nullcontext() if inside else short():
            found, expected = compiled(model)(x), model(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
    # What was kept without autocast is not taken for the same.
    assert torch.equal(plain, found.float()) == inside


def test_a_network_that_trains_is_tried_once(monkeypatch):
    tried = []
    compile_graph = torch_graph.GraphCompiler.compile
    monkeypatch.setattr(
        torch_graph.GraphCompiler,
        "compile",
        lambda self, *args, **more: tried.append(1) or compile_graph(self, *args, **more),
    )
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).train()
    twin = copy.deepcopy(model)
    fast = compiled(model, options={"cache": False})
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (model, twin)]
    with pytest.warns(UserWarning, match="PyTorch runs a graph that cannot be compiled"):
        for _ in range(4):
            x = torch.randn(2, 3, 5, 5)
            for run, optimizer in zip((fast, twin), optimizers):
                optimizer.zero_grad()
                run(x).square().sum().backward()
                optimizer.step()
    assert tried == [1]
    torch.testing.assert_close(model.state_dict(), twin.state_dict())


def test_operators_that_cannot_be_compiled_are_run_by_torch_with_one_warning():
    model = Unusual().eval()
    x = torch.randn(6, 6)
    run = compiled(model)
    with torch.no_grad():
        with pytest.warns(UserWarning, match=r"PyTorch runs .*linalg_matrix_exp") as seen:
            first = run(x)
        assert len([w for w in seen if "felix" in str(w.message)]) == 1
        torch.testing.assert_close(first, model(x), rtol=1e-4, atol=1e-5)


def test_gradients_are_those_of_torch():
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
    x = torch.randn(3, 5, requires_grad=True)
    compiled(model)(x).square().sum().backward()
    found = [x.grad.clone(), *(p.grad.clone() for p in model.parameters())]
    x.grad = None
    model.zero_grad()
    model(x).square().sum().backward()
    expected = [x.grad, *(p.grad for p in model.parameters())]
    torch.testing.assert_close(found, expected)


def test_changed_weights_count():
    model = nn.Linear(4, 4).eval()
    run, x = compiled(model), torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(run(x), model(x))
            model.weight.mul_(0.5)
            model.bias.data = torch.randn(4)
        torch.testing.assert_close(run(x), model(x))


def test_parts_give_the_strides_that_the_program_says():
    def function(x, mask):
        turned = (x @ x.T).relu().T
        # Memory of a slice is read beyond its end: PyTorch runs this.
        windows = turned[1:].as_strided((2, 3), (1, 4), 0)
        return windows * 2 + x[mask].sum()

    x, mask = torch.randn(4, 4), torch.rand(4) < 0.5
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs"):
        torch.testing.assert_close(compiled(function)(x, mask), function(x, mask))


class KeepsAnchors(nn.Module):
    """Puts a tensor that is no parameter in its own place at each call, as detectors do."""

    def __init__(self, scale=None):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.anchors = [torch.randn(3, 4)]
        self.scale = scale

    def forward(self, x):
        self.anchors = [anchors.to(x.dtype) for anchors in self.anchors]
        if self.scale is not None:
            self.anchors = [anchors * self.scale for anchors in self.anchors]
        return torch.cat([self.layer(x), *self.anchors])


@pytest.fixture
def compilations(monkeypatch):
    """The inputs of each graph that is compiled."""
    found = []
    original = torch_graph.GraphCompiler.compile

    def compile(self, module, inputs, *args, **kwargs):
        found.append(len(inputs))
        return original(self, module, inputs, *args, **kwargs)

    monkeypatch.setattr(torch_graph.GraphCompiler, "compile", compile)
    return found


def test_results_that_are_inputs_are_the_same_tensors(compilations):
    model, x = KeepsAnchors().eval(), torch.randn(2, 4)
    run, anchors = compiled(model), model.anchors[0]
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(run(x), model(x))
            assert model.anchors[0] is anchors
    assert compilations == [1]


def test_only_weights_that_keep_changing_become_inputs(compilations):
    model, twin = KeepsAnchors(2.0).eval(), KeepsAnchors(2.0).eval()
    twin.load_state_dict(model.state_dict())
    twin.anchors = [model.anchors[0].clone()]
    run, x = compiled(model), torch.randn(2, 4)
    with torch.no_grad():
        for _ in range(5):
            torch.testing.assert_close(run(x), twin(x))
    assert compilations == [1, 1, 2]


@pytest.mark.filterwarnings("ignore:torch.compile")
def test_a_module_that_trains_keeps_its_statistics():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    twin = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).train()
    twin.load_state_dict(model.state_dict())
    run = compiled(model)
    for _ in range(2):
        x = torch.randn(8, 4)
        torch.testing.assert_close(run(x), twin(x))
    torch.testing.assert_close(model[1].running_mean, twin[1].running_mean)


SECOND = """
import torch, tvm.felix, sys
from tvm import relax
from torch import nn
def refuse(*args): raise AssertionError("compiled again")
relax.build = refuse
torch.manual_seed(1)
model = nn.Linear(6, 5)
x = torch.randn(2, 6)
with torch.no_grad():
    torch.testing.assert_close(torch.compile(model, backend="felix")(x), model(x))
"""


@pytest.mark.slow
def test_compiled_graphs_are_kept_for_other_processes(cache):
    torch.manual_seed(1)
    model, x = nn.Linear(6, 5), torch.randn(2, 6)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))
    (stored,) = (cache / "networks").iterdir()
    assert {file.name for file in stored.iterdir()} == {"network.so", "network.json"}
    environment = {**os.environ, "TVM_FELIX_CACHE": str(cache)}
    subprocess.run([sys.executable, "-c", SECOND], check=True, env=environment, timeout=120)


def test_a_damaged_kept_graph_is_compiled_again(cache):
    model, x = nn.Linear(6, 5), torch.randn(2, 6)
    with torch.no_grad():
        compiled(model)(x)
        (stored,) = (cache / "networks").iterdir()
        (stored / "network.so").write_bytes(b"cut short")
        torch._dynamo.reset()
        torch.testing.assert_close(compiled(model)(x), model(x))


def test_other_weights_are_another_kept_graph(cache):
    x = torch.randn(2, 6)
    with torch.no_grad():
        for _ in range(2):
            torch._dynamo.reset()
            model = nn.Linear(6, 5)
            torch.testing.assert_close(compiled(model)(x), model(x))
    assert len(list((cache / "networks").iterdir())) == 2


@pytest.mark.slow
def test_trials_measure_programs_before_the_first_call_returns(cache, tmp_path):
    model, x = nn.Linear(64, 64).eval(), torch.randn(4, 64)
    options = {"trials": 4, "records": str(tmp_path / "run")}
    with torch.no_grad():
        result = compiled(model, options=options)(x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)
    assert len((tmp_path / "run/records.json").read_text().splitlines()) == 4
    assert len(RecordStore(cache / "records.db").kernels()) == 1


@pytest.mark.slow
def test_what_was_tuned_once_is_loaded_and_not_searched_again(cache, monkeypatch):
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(64, 48), nn.Linear(48, 32)

        def forward(self, x):
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    model, x = Broken().eval(), torch.randn(4, 64)
    with torch.no_grad():
        compiled(model, options={"trials": 2})(x)
        torch._dynamo.reset()

        def refuse(*args):
            raise AssertionError("searched again")

        monkeypatch.setattr("tvm.felix.torch_backend.search_kernels", refuse)
        result = compiled(model, options={"trials": 2})(x)
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "options", "reason"),
    [
        ("fastest", None, "unknown mode 'fastest'; known are default"),
        (None, {"trails": 3}, "unknown options trails; known are target, trials"),
        (None, {"trials": -1}, "trials must be a number >= 0, got -1"),
        (None, {"trials": True}, "trials must be a number >= 0, got True"),
        (None, {"winograd": "yes"}, "winograd must be True, False or None, got 'yes'"),
        (None, {"cache": 1}, "cache must be True or False, got 1"),
        (None, {"records": 5}, "records must be a folder or a file, got 5"),
        (None, {"sizes": 0}, "sizes must be a number >= 1, got 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(mode, options, reason):
    with pytest.raises(ValueError, match=reason):
        BackendOptions.read(mode, options)
    assert BackendOptions.read("max-autotune", None).trials == 300
    assert BackendOptions.read("max-autotune", {"trials": 7}).trials == 7


def test_expanded_results_of_parts_have_the_strides_of_the_program():
    expanded = torch.randn(3, 1).expand(3, 4)
    made = _laid_out(expanded.contiguous(), expanded.stride())
    assert made.stride() == expanded.stride()
    torch.testing.assert_close(made, expanded)
