"""The script that times networks in PyTorch and TensorFlow, and TensorFlow's networks."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from tvm.felix import nn

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))


def test_networks_are_timed_and_what_is_missing_is_said(monkeypatch, capsys):
    import tf_torch_perf

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "tensorflow" else found(name)
    )
    assert tf_torch_perf.main(["mlp", "--repeat", "1"]) == 0
    skipped, line = capsys.readouterr().out.splitlines()
    assert skipped == "tensorflow: skipped, it is not installed (pip install tensorflow)"
    assert line.split()[:3] == ["mlp", "pytorch", "contiguous:"]
    assert float(line.split()[3]) > 0
    assert tf_torch_perf.main(["nothing", "--repeat", "1"]) == 1
    assert "unknown network 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize("option, least", [("--repeat", 1), ("--batch-size", 1), ("--threads", 0)])
def test_numbers_that_are_too_small_are_refused_by_option(option, least, capsys):
    import tf_torch_perf

    with pytest.raises(SystemExit):
        tf_torch_perf.main(["mlp", option, str(least - 1)])
    assert f"{option} must be >= {least}, got {least - 1}" in capsys.readouterr().err


def test_networks_of_tensorflow_say_what_they_need(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorflow, or take those of"):
        importlib.import_module("tf_nns")


@pytest.mark.parametrize("name", ["dcgan", "mobilenet_v2", "r3d_18", "resnet50", "vit_b_32"])
def test_networks_of_tensorflow_have_the_weights_of_ours(name):
    pytest.importorskip("tensorflow")
    from tf_nns import load_network

    model, inputs = nn.load_network(name)
    theirs, example = load_network(name)
    ours = sum(weight.numel() for weight in model.parameters())
    counted = sum(weight.shape.num_elements() for weight in theirs.trainable_variables)
    if name == "resnet50":
        # The convolutions of Keras have a bias in front of the batch norm.
        counted -= sum(layer.bias.shape[0] for layer in theirs.layers if hasattr(layer, "kernel"))
        counted += theirs.layers[-1].bias.shape[0]
    assert counted == ours
    shape = tuple(theirs(example, training=False).shape)
    expected = tuple(model(*inputs).shape)
    assert shape == (expected if len(expected) == 2 else (1, *expected[2:], expected[1]))
    sys.modules.pop("tf_nns", None)
