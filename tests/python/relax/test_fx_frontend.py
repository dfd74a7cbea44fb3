"""Graphs of torch.fx as graph functions."""

import numpy as np
import pytest

import tvm
from tvm import relax

torch = pytest.importorskip("torch")
from tvm.relax.frontend import detach_params  # noqa: E402
from tvm.relax.frontend.torch import (  # noqa: E402
    dynamo_capture_subgraphs,
    from_fx,
    relax_dynamo,
)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        y = torch.nn.functional.avg_pool2d(y, 2)
        return self.head(y.view(-1, 16)) * 2.0 + 1


def test_an_imported_graph_computes_what_torch_computes():
    torch.manual_seed(0)
    model = Network().eval()
    data = torch.randn(2, 3, 4, 4)
    graph = torch.fx.symbolic_trace(model)
    mod = from_fx(graph, [((2, 3, 4, 4), "float32")])
    assert relax.analysis.well_formed(mod)
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    out = vm["main"](tvm.nd.array(data.numpy()))
    expected = model(data).detach().numpy()
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_parameters_may_stay_inputs():
    graph = torch.fx.symbolic_trace(torch.nn.Linear(4, 2))
    info = [((3, 4), "float32")]
    mod = from_fx(graph, info, keep_params_as_input=True)
    mod, params = detach_params(mod)
    assert len(mod["main"].params) == 1 + len(params["main"]) == 3


def test_converters_of_ones_own_go_first_and_unknown_operations_are_named():
    class Swap(torch.nn.Module):
        def forward(self, x):
            return torch.erfinv(x)

    graph = torch.fx.symbolic_trace(Swap())
    info = [((3,), "float32")]
    with pytest.raises(ValueError, match="function erfinv .* is not supported"):
        from_fx(graph, info)
    mod = from_fx(
        graph, info, custom_convert_map={"erfinv": lambda a: a.emit(relax.op.erf(a.data))}
    )
    assert "R.erf(" in str(mod)


def test_what_is_written_in_place_is_what_readers_see() -> None:
    class Written(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = torch.nn.ReLU(inplace=True)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            a = x + 1
            a.fill_(1.5)
            b = a * 2
            c = x - 0.5
            d = self.relu(c)
            e = x * 3
            torch.nn.functional.relu(e, inplace=True)
            return b + c, d, e

    model = Written()
    x = torch.randn(3, 4)
    mod = from_fx(torch.fx.symbolic_trace(model), [((3, 4), "float32")])
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    got = machine["main"](tvm.nd.array(x.numpy()))
    for ours, theirs in zip(got, model(x.clone()), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)


class Branching(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(torch.relu(self.first(x)))
        if y.sum() > -1e9:  # known when it runs, so the graph ends here
            y = y + x
        return self.last(y)


def test_torch_compile_runs_graphs_by_relax() -> None:
    torch._dynamo.reset()
    model = Branching().eval()
    x = torch.randn(5, 4)
    with torch.no_grad():
        got = torch.compile(model, backend=relax_dynamo(), dynamic=False)(x)
        np.testing.assert_allclose(got.numpy(), model(x).numpy(), rtol=1e-4, atol=1e-5)


def test_the_backend_that_pytorch_ships_finds_the_compiler(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch._dynamo.reset()
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU()).eval()
    x = torch.randn(4, 16)
    pipeline = relax.get_pipeline("static_shape_tuning", target="llvm", total_trials=2)
    with torch.no_grad():
        want = model(x).numpy()
        got = torch.compile(model, backend="tvm")(x)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)
        torch._dynamo.reset()
        tuned = torch.compile(model, backend="tvm", options={"pipeline": pipeline})(x)
        np.testing.assert_allclose(tuned.numpy(), want, rtol=1e-4, atol=1e-5)


def test_every_graph_of_a_model_is_a_function() -> None:
    model = Branching().eval()
    x = torch.randn(5, 4)
    mod = dynamo_capture_subgraphs(model, x)
    assert sorted(str(g.name_hint) for g in mod.functions) == ["subgraph_0", "subgraph_1"]
    assert [len(mod[name].params) for name in ("subgraph_0", "subgraph_1")] == [1, 2]
    kept, params = detach_params(dynamo_capture_subgraphs(model, x, keep_params_as_input=True))
    assert len(kept["subgraph_1"].params) == 2 + len(params["subgraph_1"]) == 4
