"""Networks whose sizes the importers leave open, compiled once and run at many."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from torch.export import Dim

import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx
from tvm.relax.frontend.torch import from_exported_program


def _machine(model, example, dynamic_shapes):
    with torch.no_grad():
        program = torch.export.export(model.eval(), example, dynamic_shapes=dynamic_shapes)
    return relax.VirtualMachine(relax.build(from_exported_program(program)), tvm.cpu())


def _check(machine, model, *args):
    with torch.no_grad():
        wanted = model(*args)
    got = machine["main"](*(tvm.nd.array(arg.numpy()) for arg in args))
    pairs = [(got, wanted)] if isinstance(wanted, torch.Tensor) else zip(got, wanted, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=2e-4, atol=2e-5)


class _Attention(torch.nn.Module):
    """Causal self-attention over open batch and length, with a residual."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = (
            torch.nn.LayerNorm(16),
            torch.nn.Linear(16, 48),
            torch.nn.Linear(16, 16),
        )

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm(x)).split(16, -1)
        q, k, v = (p.view(batch, length, 2, -1).transpose(1, 2) for p in parts)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, -1))


class _Shapes(torch.nn.Module):
    """Shape arithmetic of many kinds."""

    def forward(self, x, y):
        rows = x.shape[0]
        return (
            torch.cat([x, y], 0).view(-1, 4).sum(1),
            x[1:] + x[:-1],
            x.flatten() * rows,
            torch.arange(rows).float() + y.new_zeros(rows),
            x.unsqueeze(1).expand(-1, y.shape[0], -1) - y,
            torch.roll(x, 1, 0),
            x.repeat(2, 1),
            x[:, ::2].cumsum(0),
            x / rows,
            x[-1],
            torch.full((rows,), 2.0),
            torch.softmax(x @ y.T, -1),
        )


@pytest.fixture(scope="module")
def mlp():
    torch.manual_seed(0)
    layers = torch.nn.Linear(20, 48), torch.nn.ReLU(), torch.nn.Linear(48, 10), torch.nn.Softmax(-1)
    model = torch.nn.Sequential(*layers)
    return model, _machine(model, (torch.randn(4, 20),), ({0: Dim("n", max=512)},))


@settings(max_examples=7, deadline=None)
@given(rows=st.integers(1, 200))
def test_rows_of_any_number_are_computed(mlp, rows):
    model, machine = mlp
    _check(machine, model, torch.randn(rows, 20))


def test_an_image_network_of_open_batch_runs():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 8, 3, stride=2, padding=1),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )
    machine = _machine(model, (torch.randn(4, 3, 16, 16),), ({0: Dim("n", max=64)},))
    for batch in (1, 5):
        _check(machine, model, torch.randn(batch, 3, 16, 16))


def test_attention_of_open_batch_and_length_runs():
    torch.manual_seed(0)
    model = _Attention()
    dims = ({0: Dim("n", max=64), 1: Dim("t", min=2, max=128)},)
    machine = _machine(model, (torch.randn(3, 6, 16),), dims)
    for batch, length in ((1, 2), (2, 33), (3, 17)):
        _check(machine, model, torch.randn(batch, length, 16))


class _Flat(torch.nn.Module):
    """Rows of an open length and a fixed batch as those of one product, as GPT-2 has them."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 24)

    def forward(self, x, places):
        flat = torch.addmm(self.fc.bias, x.view(-1, 16), self.fc.weight.t())
        mask = places[torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])]
        return torch.relu(flat).view(x.shape[0], x.shape[1], 24) * mask[..., None]


def test_rows_whose_number_is_a_multiple_of_a_size_are_computed():
    torch.manual_seed(0)
    model = _Flat()
    length = Dim("length", min=2, max=64)
    example = (torch.randn(2, 8, 16), torch.ones(2, 8, dtype=torch.int32))
    machine = _machine(model, example, ({1: length}, {1: length}))
    for rows in (2, 3, 33):
        _check(machine, model, torch.randn(2, rows, 16), torch.ones(2, rows, dtype=torch.int32))


def test_shape_arithmetic_follows_the_sizes():
    model = _Shapes()
    dims = ({0: Dim("u", min=3)}, {0: Dim("t", min=2, max=64)})
    machine = _machine(model, (torch.randn(5, 4), torch.randn(7, 4)), dims)
    for rows, others in ((4, 5), (8, 3), (17, 40)):
        _check(machine, model, torch.randn(rows, 4), torch.randn(others, 4))


def test_a_size_that_is_twice_another_is_checked():
    class Pairs(torch.nn.Module):
        def forward(self, x):
            return x.view(x.shape[0] // 2, 2, -1).sum(1)

    machine = _machine(Pairs(), (torch.randn(6, 4),), ({0: 2 * Dim("m", max=32)},))
    _check(machine, Pairs(), torch.randn(10, 4))
    with pytest.raises(ValueError, match="has extent 0 of 7, must be 6"):
        machine["main"](tvm.nd.array(np.zeros((7, 4), "float32")))


def test_sizes_out_of_range_are_refused_by_input_and_dimension():
    model = torch.nn.Linear(4, 5)
    machine = _machine(model, (torch.randn(8, 4),), ({0: Dim("n", min=4, max=64)},))
    for rows in (3, 65):
        with pytest.raises(
            ValueError, match=rf"'input' has extent 0 of {rows}, must be in \[4, 64"
        ):
            machine["main"](tvm.nd.array(np.zeros((rows, 4), "float32")))
    with pytest.raises(ValueError, match="'input' has extent 1 of 3, must be 4"):
        machine["main"](tvm.nd.array(np.zeros((8, 3), "float32")))


def test_bits_of_numbers_are_read_as_another_type():
    class Bits(torch.nn.Module):
        def forward(self, x):
            return x.view(torch.int32)

    machine = _machine(Bits(), (torch.randn(3, 4),), None)
    x = np.array([[1.0, -0.0, np.inf, 2.5]] * 3, "float32")
    np.testing.assert_array_equal(machine["main"](tvm.nd.array(x)).numpy(), x.view(np.int32))


def _model(nodes, inputs, outputs, initial):
    make = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "graph",
        [make(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [make(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.array(value), name) for name, value in initial.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _run_onnx(model, machine, *arrays):
    names = [value.name for value in model.graph.input]
    wanted = ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))
    got = machine["main"](*map(tvm.nd.array, arrays))
    for ours, theirs in zip([got] if len(wanted) == 1 else got, wanted):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


def test_an_onnx_model_computes_with_the_shapes_of_its_inputs():
    node = helper.make_node
    one = helper.make_tensor("v", TensorProto.INT64, [1], [1])
    model = _model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["rows"]),
            node("Unsqueeze", ["rows", "first"], ["rows1"]),
            node("Concat", ["rows1", "rest"], ["flat_shape"], axis=0),
            node("Reshape", ["x", "flat_shape"], ["flat"]),
            node("ConstantOfShape", ["three"], ["ones"], value=one),
            node("Equal", ["s", "minus"], ["unset"]),
            node("Where", ["unset", "ones", "s"], ["wide"]),
            node("Expand", ["bias", "wide"], ["spread"]),
            node("Add", ["x", "spread"], ["sum"]),
            node("Div", ["rows", "two"], ["half"]),
            node("Unsqueeze", ["half", "first"], ["half1"]),
            node("Slice", ["x", "first", "half1", "first"], ["top"]),
            node("Range", ["zero", "rows", "step"], ["range"]),
            node("Cast", ["range"], ["places"], to=TensorProto.FLOAT),
        ],
        {"x": ["batch", 3, "length"], "bias": [1, 3, 1]},
        ["flat", "sum", "top", "places"],
        {
            "zero": np.int64(0),
            "first": np.array([0]),
            "rest": np.array([-1]),
            "three": np.array([3]),
            "minus": np.array([-1, -1, -1]),
            "two": np.int64(2),
            "step": np.int64(1),
        },
    )
    mod = from_onnx(model)
    assert [str(e) for e in mod["main"].params[0].struct_info.shape.values] == [
        "batch",
        "T.int64(3)",
        "length",
    ]
    machine = relax.VirtualMachine(relax.build(mod), tvm.cpu())
    rng = np.random.default_rng(0)
    for batch, length in ((2, 5), (7, 3)):
        x, bias = (
            rng.standard_normal(s).astype("float32") for s in ((batch, 3, length), (1, 3, 1))
        )
        _run_onnx(model, machine, x, bias)


def test_onnx_extents_of_one_name_must_be_equal():
    nodes = [helper.make_node("Relu", ["x"], ["u"]), helper.make_node("Relu", ["y"], ["v"])]
    model = _model(nodes, {"x": ["n", 2], "y": ["n", 3]}, ["u", "v"], {})
    machine = relax.VirtualMachine(relax.build(from_onnx(model)), tvm.cpu())
    x, y = np.ones((4, 2), "float32"), np.ones((5, 3), "float32")
    _run_onnx(model, machine, x, y[:4])
    with pytest.raises(ValueError, match="'y' has extent 0 of 5, must be 4"):
        machine["main"](tvm.nd.array(x), tvm.nd.array(y))


def test_an_onnx_input_of_unknown_rank_is_refused_by_name():
    node = helper.make_node("Relu", ["x"], ["y"])
    model = _model([node], {"x": None}, ["y"], {})
    with pytest.raises(relax.frontend.onnx.OnnxError, match="rank of input 'x' is unknown"):
        from_onnx(model)
    assert isinstance(model, onnx.ModelProto)
