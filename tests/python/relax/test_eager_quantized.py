"""Networks that PyTorch quantised in eager mode, against PyTorch's own integer kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.ao import quantization
from torch.ao.nn.quantized import FloatFunctional

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relax.frontend.torch.export import export_for_inference

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def exact_engine(monkeypatch):
    # PyTorch's default engine gives other results for transposed convolutions than its real
    # numbers, by more than a hundred steps.
    monkeypatch.setattr(torch.backends.quantized, "engine", "fbgemm")


class Stubs(torch.nn.Module):
    """What a network between real numbers on both sides has around it."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()

    def forward(self, x):
        return self.dequant(self.body(self.quant(x)))


class Residual(Stubs):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn = torch.nn.BatchNorm2d(8)
        self.relu = torch.nn.ReLU()
        self.conv2 = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pool = torch.nn.AdaptiveAvgPool2d(1)
        self.fc = torch.nn.Linear(8, 10)
        self.add = FloatFunctional()

    def body(self, x):
        y = self.relu(self.bn(self.conv1(x)))
        y = self.add.add_relu(y, self.conv2(y))
        return self.fc(torch.flatten(self.pool(y), 1))


class Gates(Stubs):
    """Squeeze and excitation, a joined branch, a larger picture, and one that is convolved back."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.act = torch.nn.Hardswish()
        self.gate = torch.nn.Conv2d(8, 8, 1)
        self.up = torch.nn.ConvTranspose2d(16, 4, 2, stride=2)
        self.leaky = torch.nn.LeakyReLU(0.1)
        self.mul, self.cat, self.scaled = FloatFunctional(), FloatFunctional(), FloatFunctional()

    def body(self, x):
        y = self.act(self.conv(x))
        gate = torch.sigmoid(self.gate(y.mean([2, 3], keepdim=True)))
        y = self.mul.mul(y, gate)
        y = self.cat.cat([y, torch.nn.functional.max_pool2d(y, 3, 1, 1)], 1)
        y = torch.nn.functional.interpolate(self.leaky(self.up(y)), scale_factor=2.0)
        return self.scaled.mul_scalar(self.scaled.add_scalar(y, 0.25), -2.0)


class Lines(Stubs):
    """Convolutions of lines, halves that change places, and operators that keep a scale."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 8, 3, padding=1)
        self.act, self.pool, self.tanh = torch.nn.ReLU6(), torch.nn.AvgPool2d(2), torch.nn.Tanh()
        self.cat = FloatFunctional()

    def body(self, x):
        first, last = torch.chunk(self.act(self.conv(x.flatten(2))), 2, 1)
        y = self.cat.cat([last, first], 1).view(x.shape[0], 8, 16, 16)
        return self.tanh(self.pool(y))


def quantized(model, *inputs):
    """The network with scales from some inputs, and integer weights."""
    model.eval()
    if isinstance(model, Residual):
        quantization.fuse_modules(model, [["conv1", "bn", "relu"]], inplace=True)
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    for part in model.modules():
        if isinstance(part, torch.nn.ConvTranspose2d):
            # PyTorch has no kernels with a scale for each channel of these.
            part.qconfig = quantization.default_qconfig
    quantization.prepare(model, inplace=True)
    for data in inputs:
        model(data)
    return quantization.convert(model, inplace=True)


def steps_apart(got, want):
    """Differences of results, in steps of the last scale."""
    values = np.unique(want)
    step = np.diff(values).min()
    return np.abs(got - want).max() / step


@pytest.mark.parametrize("make", [Residual, Gates, Lines])
def test_a_network_computes_what_its_integers_say(make):
    torch.manual_seed(0)
    model = quantized(make(), *(torch.rand(2, 3, 16, 16) for _ in range(4)))
    data = torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        want = model(data).numpy()
        traced = torch.jit.trace(model, data).eval()
    mod, params = relay.frontend.from_pytorch(traced, [("input", (1, 3, 16, 16))])
    name = "conv1" if make is Residual else "conv"
    assert str(params[f"{name}.weight"].dtype) == "int8"
    run = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    run.run(input=data.numpy())
    # Where a real number lies between two integers, either is right.
    assert steps_apart(run.get_output(0).numpy(), want) <= 1.01
    in_vm = relay.create_executor("vm", mod, target="llvm").evaluate()(data.numpy(), **params)
    assert steps_apart(in_vm.numpy(), want) <= 1.01
    # A network that is not traced yet is imported as well.
    program = export_for_inference(model, (data,))
    assert steps_apart(program.module()(data).numpy(), want) <= 1.01


def test_layers_whose_scales_come_with_the_data():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    net = quantization.quantize_dynamic(net.eval(), {torch.nn.Linear}, dtype=torch.qint8)
    data = torch.rand(3, 16)
    with torch.no_grad():
        want = net(data).numpy()
    mod, params = relay.frontend.from_pytorch(torch.jit.trace(net, data), [("x", (3, 16))])
    run = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    run.run(x=data.numpy())
    np.testing.assert_allclose(run.get_output(0).numpy(), want, rtol=1e-4, atol=1e-5)


def test_weights_that_are_read_back_have_the_names_of_layers():
    model = quantized(Residual(), torch.rand(2, 3, 16, 16))
    traced = torch.jit.trace(model, torch.rand(1, 3, 16, 16))
    inputs = [("input", (1, 3, 16, 16))]
    mod, params = relay.frontend.from_pytorch(traced, inputs, keep_quantized_weight=True)
    assert {"conv1.weight", "conv1.scales", "conv1.bias", "fc.weight"} <= set(params)
    assert "qnn.quantize" in mod.astext(show_meta_data=False)
    with pytest.raises(ValueError, match="stay integers"):
        relay.frontend.from_pytorch(traced, inputs, keep_quantized_weight=False)


def test_operators_without_a_translation_are_all_named():
    class Net(Stubs):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(8)
            self.act = torch.nn.ELU()

        def body(self, x):
            return self.act(self.norm(x))

    model = quantized(Net(), torch.rand(2, 8))
    with pytest.raises(ValueError, match=r"quantized::elu.*quantized::layer_norm.*dequantise"):
        export_for_inference(model, (torch.rand(2, 8),))


def test_scripts_are_read_unless_they_branch():
    class Net(Stubs):
        def __init__(self, branches):
            super().__init__()
            self.fc, self.branches = torch.nn.Linear(8, 4), branches

        def body(self, x):
            if self.branches and x.size(0) == 1:
                return x
            return self.fc(x)

    data = torch.rand(2, 8)
    plain = quantized(Net(False), data)
    program = export_for_inference(torch.jit.script(plain), (data,))
    assert steps_apart(program.module()(data).numpy(), plain(data).detach().numpy()) <= 1.01
    with pytest.raises(ValueError, match=r"prim::If; .*torch\.jit\.trace"):
        export_for_inference(torch.jit.script(quantized(Net(True), data)), (data,))
