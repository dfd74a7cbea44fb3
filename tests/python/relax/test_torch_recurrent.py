"""Recurrent layers of PyTorch, whose steps are one kernel, against PyTorch."""

import json

import numpy as np
import pytest
import torch

import tvm
from tvm import felix, relax, te, topi
from tvm.relax.frontend.torch import from_exported_program, from_module


def compiled(mod):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())

    def run(*tensors):
        return [t.numpy() for t in machine["main"](*[tvm.nd.array(t.numpy()) for t in tensors])]

    return run


def flat(result):
    return [t.detach().numpy() for t in torch.utils._pytree.tree_leaves(result)]


def check(layer, *inputs, tolerance=1e-5):
    layer = layer.eval()
    run = compiled(from_module(layer, inputs))
    for found, expected in zip(run(*inputs), flat(layer(*inputs)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "make, batch, given",
    [
        # Units that fill vectors, that leave some, and fewer than a vector has.
        (lambda: torch.nn.LSTM(3, 32, 2, bidirectional=True), 5, False),
        (lambda: torch.nn.LSTM(3, 21), 9, True),
        (lambda: torch.nn.LSTM(3, 20, 2, proj_size=9, bidirectional=True, bias=False), 3, False),
        (lambda: torch.nn.GRU(3, 19, bidirectional=True), 4, True),
        (lambda: torch.nn.GRU(3, 5, bias=False), 1, False),
        (lambda: torch.nn.RNN(3, 17, 2, nonlinearity="relu"), 2, True),
        (lambda: torch.nn.RNN(3, 8, bias=False).double(), 3, False),
        # Panels of several vectors, the last of fewer units; tiles of rows, the last of fewer.
        (lambda: torch.nn.LSTM(3, 75), 17, False),
        (lambda: torch.nn.GRU(3, 68), 13, True),
        (lambda: torch.nn.RNN(3, 130), 1, False),
    ],
)
def test_layers_equal_torch(make, batch, given):
    torch.manual_seed(0)
    layer = make()
    dtype = layer.weight_ih_l0.dtype
    x = torch.randn(6, batch, 3, dtype=dtype)
    states = layer.num_layers * (2 if layer.bidirectional else 1)
    kinds = 2 if isinstance(layer, torch.nn.LSTM) else 1
    initial = [torch.randn(states, batch, layer.hidden_size, dtype=dtype) for _ in range(kinds)]
    hidden = tuple(initial) if kinds == 2 else initial[0]

    class Called(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, *initial):
            return self.layer(x, hidden if given else None)

    check(Called(), x, tolerance=1e-12 if dtype == torch.float64 else 1e-5)


def test_gates_far_from_zero_saturate():
    torch.manual_seed(0)
    for layer in (torch.nn.LSTM(4, 16), torch.nn.GRU(4, 16), torch.nn.RNN(4, 16)):
        check(layer, 100 * torch.randn(6, 3, 4), tolerance=1e-6)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_constant_weights_are_stored_as_they_are_read(kind):
    layer = getattr(torch.nn, kind)(8, 24).eval()
    network = felix.compile(layer, (torch.randn(4, 2, 8),), cache=False)
    (steps,) = (c for c in network.profile().calls if f"{kind.lower()}_steps" in c["Name"])
    # Panels of units, groups of gates, state, gates of a group, units of a panel.
    stored = steps["Argument Shapes"].split("float32")[2].rstrip(", ")
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    panels, groups, state, of_group, width = json.loads(stored)
    assert (groups * of_group, state) == (gates, 24) and panels * width >= 24


def test_weights_that_come_with_the_call_are_laid_out_in_the_kernel():
    torch.manual_seed(0)
    gates, weight = torch.randn(5, 3, 60), torch.randn(20, 60) / 5
    hidden, bias = torch.randn(3, 20), torch.randn(20)
    for reset_after in (True, False):
        names = [relax.Var(n, relax.TensorStructInfo(t.shape, "float32")) for n, t in
                 (("g", gates), ("w", weight), ("h", hidden), ("b", bias))]  # fmt: skip
        builder = relax.BlockBuilder()
        with builder.function("main", names):
            with builder.dataflow():
                made = builder.emit_output(relax.op.nn.gru_steps(*names, reset_after=reset_after))
            builder.emit_func_output(made)
        states, last = compiled(builder.get())(gates, weight, hidden, bias)
        h, expected = hidden, []
        for row in gates:
            sums = row[:, :40] + h @ weight[:, :40]
            reset, update = torch.sigmoid(sums).chunk(2, 1)
            if reset_after:
                inner = reset * (h @ weight[:, 40:] + bias)
            else:
                inner = (reset * h) @ weight[:, 40:] + bias
            h = (1 - update) * torch.tanh(row[:, 40:] + inner) + update * h
            expected.append(h)
        np.testing.assert_allclose(states, torch.stack(expected).numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(last, h.numpy(), rtol=1e-5, atol=1e-5)


def test_sixteen_bits_are_rounded_once():
    torch.manual_seed(0)
    layer, x = torch.nn.LSTM(4, 8).half().eval(), torch.randn(12, 2, 4).half()
    [found, *_] = compiled(from_module(layer, (x,)))(x)
    expected = layer.float()(x.float())[0].detach().half().numpy()
    np.testing.assert_array_almost_equal_nulp(found, expected, 1)


def test_the_batch_may_be_open():
    torch.manual_seed(0)
    layer = torch.nn.GRU(3, 20, batch_first=True).eval()
    batch = torch.export.Dim("batch", min=1, max=16)
    program = torch.export.export(
        layer, (torch.randn(3, 6, 3),), dynamic_shapes={"input": {0: batch}}
    )
    run = compiled(from_exported_program(program))
    for rows in (1, 5, 16):
        x = torch.randn(rows, 6, 3)
        for found, expected in zip(run(x), flat(layer(x)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_threads_of_a_block_share_the_state():
    steps, batch, units, state = 3, 2, 20, 8
    shapes = [(steps, batch, 4 * units), (state, 4 * units), (batch, state), (batch, units)]
    shapes.append((units, state))
    rng = np.random.default_rng(0)
    arrays = [tvm.nd.array(rng.standard_normal(shape).astype("float32")) for shape in shapes]

    def run(target):
        with target:
            inputs = [te.placeholder(shape) for shape in shapes]
            outputs = topi.nn.lstm_steps(*inputs, backwards=True)
            schedule = topi.schedule_for(outputs)
            function = tvm.build(schedule, [*inputs, *outputs], target=target)
        results = [tvm.nd.empty([int(e) for e in out.shape]) for out in outputs]
        function(*arrays, *results)
        return [result.numpy() for result in results]

    on_threads = run(tvm.target.emulated("cuda", check_races=True))
    for found, expected in zip(on_threads, run(tvm.target.Target("llvm"))):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_steps_refuse_what_does_not_fit():
    def tensor(*shape, dtype="float32"):
        return te.placeholder(shape, dtype)

    gates, weight, hidden = tensor(3, 2, 32), tensor(8, 32), tensor(2, 8)
    with pytest.raises(ValueError, match=r"cell is of shape \[2, 8\], got \[2, 7\]"):
        topi.nn.lstm_steps(gates, weight, hidden, tensor(2, 7))
    with pytest.raises(ValueError, match="8 units are no state of 6 without a projection"):
        topi.nn.lstm_steps(gates, tensor(6, 32), tensor(2, 6), hidden)
    with pytest.raises(ValueError, match="activation is tanh or relu, got 'elu'"):
        topi.nn.rnn_steps(tensor(3, 2, 8), tensor(8, 8), hidden, "elu")
    with pytest.raises(ValueError, match="float32 or float64, got float16"):
        topi.nn.gru_steps(tensor(3, 2, 24, dtype="float16"), weight, hidden, tensor(8))
