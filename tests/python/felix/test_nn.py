"""The example networks and how they are found by name."""

import subprocess
import sys

import pytest
import torch

from tvm.felix import nn as networks


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("mlp", 669706),
        ("resnet18", 11689512),
        ("resnet50", 25557032),
        ("mobilenet_v2", 3504872),
        ("efficientnet_b0", 5288548),
        ("convnext_tiny", 28589128),
        ("vit_b_32", 88224232),
        ("bert_base", 109482240),
        ("r3d_18", 33371472),
        ("dcgan", 3576704),
    ],
)
def test_network_has_the_parameter_count_of_its_paper(name, parameters):
    model, _ = networks.load_network(name)
    assert sum(p.numel() for p in model.parameters()) == parameters


@pytest.mark.parametrize(("name", "outputs"), [("mlp", 10)])
def test_load_network_gives_inputs_of_the_batch_and_eval_mode(name, outputs):
    model, inputs = networks.load_network(name, batch=3)
    assert not model.training
    assert model(*inputs).shape == (3, outputs)


def test_resnet18_classifies_small_images():
    with torch.no_grad():
        assert networks.resnet18().eval()(torch.randn(1, 3, 32, 32)).shape == (1, 1000)


def test_unknown_network_error_lists_the_known_ones():
    with pytest.raises(ValueError, match="'vgg'.*bert_base, .*mlp, mobilenet_v2, .*resnet18"):
        networks.load_network("vgg")
    with pytest.raises(ValueError, match=r"'vit' \(did you mean vit_b_32\?\); known"):
        networks.load_network("vit")
    with pytest.raises(ValueError, match=r"did you mean resnet18 or resnet50\?"):
        networks.load_network("resnet")


def test_saved_weights_are_loaded(tmp_path):
    model, inputs = networks.load_network("mlp")
    path = tmp_path / "weights.pt"
    torch.save(model.state_dict(), path)
    again, _ = networks.load_network("mlp", weights=path)
    assert torch.equal(again(*inputs), model(*inputs))


def test_user_network_is_found_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "own_net.py").write_text(
        "import torch\n"
        "def make():\n"
        "    return torch.nn.Linear(4, 2), (torch.ones(1, 4),)\n"
        "def exported():\n"
        "    model, inputs = make()\n"
        "    return torch.export.export(model, inputs), inputs\n"
        "def wrong():\n"
        "    return 3\n"
    )
    monkeypatch.chdir(tmp_path)
    model, inputs = networks.load_network("own_net:make")
    assert model(*inputs).shape == (1, 2)
    program, inputs = networks.load_network("own_net:exported")
    assert program(*inputs).shape == (1, 2)
    with pytest.raises(ValueError, match="no function 'absent'"):
        networks.load_network("own_net:absent")
    with pytest.raises(ValueError, match=r"must return \(model, example_inputs\), got int"):
        networks.load_network("own_net:wrong")
    with pytest.raises(ValueError, match="no module named 'absent_net'"):
        networks.load_network("absent_net:make")


def test_networks_are_found_as_an_attribute_of_felix():
    program = "from tvm import felix; felix.nn.mlp; assert 'nn' in dir(felix)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
