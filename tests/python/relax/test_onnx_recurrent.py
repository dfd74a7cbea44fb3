"""Recurrent layers of ONNX as one kernel a direction, against NumPy and the loop of steps."""

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from tvm import felix
from tvm.relax.frontend.onnx import OnnxModule

STEPS, BATCH, IN, UNITS = 7, 3, 5, 20
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def model_of(kind, directions, batch=BATCH, units=UNITS, lengths=None, **attributes):
    rng = np.random.default_rng(0)
    gates = GATES[kind]

    def array(*shape):
        return rng.uniform(-0.6, 0.6, shape).astype("float32")

    weights = {
        "w": array(directions, gates * units, IN),
        "r": array(directions, gates * units, units),
        "b": array(directions, 2 * gates * units),
        "h0": array(directions, batch, units),
    }
    names = ["x", "w", "r", "b", "", "h0"]
    if lengths is not None:
        weights["lengths"] = np.asarray(lengths, "int32")
        names[4] = "lengths"
    if kind == "LSTM":
        weights["c0"] = array(directions, batch, units)
        names.append("c0")
    outputs = ["y", "yh", "yc"][: 3 if kind == "LSTM" else 2]
    node = helper.make_node(kind, names, outputs, hidden_size=units, **attributes)
    graph = helper.make_graph(
        [node],
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, batch, IN))],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, weights, array(STEPS, batch, IN)


def by_numpy(kind, weights, x, d, backwards, reset_after):
    """States of all steps of one direction, and the last ones."""
    w, r = weights["w"][d], weights["r"][d]
    of_data, of_state = np.split(weights["b"][d], 2)
    h = weights["h0"][d]
    c = weights["c0"][d] if kind == "LSTM" else None
    states = np.zeros((len(x), *h.shape), "float32")
    for step in range(len(x))[:: -1 if backwards else 1]:
        data = x[step] @ w.T + of_data
        if kind == "RNN":
            h = np.tanh(data + h @ r.T + of_state)
        elif kind == "LSTM":
            i, o, f, g = np.split(data + h @ r.T + of_state, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            parts = [np.split(a, 3, axis) for a, axis in ((data, 1), (r, 0), (of_state, 0))]
            (dz, dr, dn), (rz, rr, rn), (bz, br, bn) = parts
            z, reset = sigmoid(dz + h @ rz.T + bz), sigmoid(dr + h @ rr.T + br)
            inner = reset * (h @ rn.T + bn) if reset_after else (reset * h) @ rn.T + bn
            new = np.tanh(dn + inner)
            h = (1 - z) * new + z * h
        states[step] = h
    return [states, h] if c is None else [states, h, c]


@pytest.mark.parametrize(
    "kind, direction, reset_after",
    [
        ("LSTM", "bidirectional", 0),
        ("GRU", "reverse", 0),
        ("GRU", "bidirectional", 1),
        ("RNN", "forward", 0),
    ],
)
def test_layers_equal_numpy(kind, direction, reset_after):
    directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    more = {"linear_before_reset": reset_after} if kind == "GRU" else {}
    model, weights, x = model_of(kind, len(directions), direction=direction, **more)
    made = [
        by_numpy(kind, weights, x, d, backwards, reset_after)
        for d, backwards in enumerate(directions)
    ]
    expected = [np.stack([m[0] for m in made], 1)]
    expected += [np.stack([m[k] for m in made]) for k in range(1, len(made[0]))]
    # PyTorch's steps, and the kernel.
    eager = OnnxModule(model)(torch.from_numpy(x))
    network = felix.from_onnx(model, cache=False)
    for found in (eager, network(x)):
        for result, wanted in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-5, atol=1e-5)


def kernels_of(model, x):
    network = felix.compile(OnnxModule(model).eval(), (torch.from_numpy(x),), cache=False)
    return [use.name for use in network.kernels]


def test_a_direction_is_one_kernel():
    for kind in GATES:
        model, _, x = model_of(kind, 1)
        names = kernels_of(model, x)
        assert sum(name.startswith(f"{kind.lower()}_steps") for name in names) == 1
        assert len(names) <= 4, names


@pytest.mark.parametrize(
    "kind, more",
    [
        ("LSTM", {"lengths": [7, 2, 4]}),
        ("LSTM", {"input_forget": 1}),
        ("LSTM", {"clip": 0.2}),
        ("GRU", {"activations": ["HardSigmoid", "Tanh"]}),
        ("RNN", {"activations": ["Elu"]}),
    ],
)
def test_other_layers_go_step_by_step(kind, more):
    model, _, x = model_of(kind, 1, **more)
    names = kernels_of(model, x)
    assert not any("_steps" in name for name in names)
    found = felix.from_onnx(model, cache=False)(x)
    with torch.no_grad():
        expected = OnnxModule(model)(torch.from_numpy(x))
    for result, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(result, wanted.numpy(), rtol=1e-5, atol=1e-5)
