"""The example networks, imported, optimised and built without tuning, against PyTorch."""

import numpy as np
import pytest
import torch

import tvm
from tvm import felix, relax
from tvm.felix import nn
from tvm.felix.nn import load_network
from tvm.relax.frontend.torch import from_module


def randomise_statistics(model):
    """Batch normalisation that changes something, as after training."""
    generator = torch.Generator().manual_seed(0)
    for module in model.modules():
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)):
            module.running_mean.normal_(0, 0.1, generator=generator)
            module.running_var.uniform_(0.5, 1.5, generator=generator)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mlp", None),
        pytest.param("resnet18", (3, 64, 64), marks=pytest.mark.slow),
        pytest.param("mobilenet_v2", (3, 64, 64), marks=pytest.mark.slow),
    ],
)
def test_network_equals_torch(name, shape):
    torch.manual_seed(0)
    model, (x,) = load_network(name)
    randomise_statistics(model)
    if shape is not None:
        x = torch.randn(1, *shape)
    mod = from_module(model, (x,))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    with torch.no_grad():
        expected = model(x).numpy()
    result = machine["main"](tvm.nd.array(x.numpy())).numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def check_compiled(model, inputs, rtol=1e-3, atol=1e-4):
    """The compiled network against PyTorch, with parameters and statistics as after training."""
    torch.manual_seed(1)
    for parameter in model.parameters():
        # Scales of 1 and biases of 0 would hide that they are left out.
        if parameter.ndim == 1:
            parameter.data += torch.randn_like(parameter) * 0.1
    randomise_statistics(model)
    model.eval()
    with torch.no_grad():
        expected = model(*inputs)
    compiled = felix.compile(model, inputs)
    torch.testing.assert_close(compiled(*inputs), expected, rtol=rtol, atol=atol)


def image(size, batch=1):
    return (torch.randn(batch, 3, size, size),)


SMALL = {
    "bert": lambda: (nn.Bert(50, 32, 2, 4, 16), (torch.randint(50, (2, 9)),)),
    "bert_with_mask": lambda: (
        nn.Bert(50, 32, 1, 4, 16),
        (torch.randint(50, (2, 9)), (torch.arange(9) < torch.tensor([[9], [5]])).long()),
    ),
    "llama": lambda: (nn.Llama(50, 32, 2, 4, 2, 48), (torch.randint(50, (2, 7)),)),
    "vit": lambda: (nn.VisionTransformer(32, 8, 32, 2, 4, 10), image(32, 2)),
    "convnext": lambda: (nn.ConvNeXt((1, 2), (16, 32), 10), image(32)),
    "dcgan": lambda: (nn.Generator(10, 8), (torch.randn(2, 10, 1, 1),)),
    "unet": lambda: (nn.UNet((16, 32)), (*image(8, 2), torch.tensor([3.0, 500.0]))),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_network_equals_torch(name):
    torch.manual_seed(0)
    check_compiled(*SMALL[name]())


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["bert_base", "convnext_tiny", "dcgan", "efficientnet_b0", "llama_small", "r3d_18", "resnet50",
     "unet_small", "vit_b_32"],
)  # fmt: skip
def test_network_of_the_zoo_equals_torch(name):
    torch.manual_seed(0)
    check_compiled(*load_network(name))


def test_resnet18_has_its_known_kernels():
    model, inputs = load_network("resnet18")
    tasks = relax.extract_tasks(from_module(model, inputs))
    convolutions = [t for t in tasks if "nn.conv2d" in t.op_names]
    assert sum(t.weight for t in convolutions) == 20
    # 1.81 billion multiplications and as many additions, bias and activations on top.
    total = sum(t.weight * t.flop for t in tasks)
    assert 3.6e9 < total < 3.7e9
    assert len({t.key for t in tasks}) == len(tasks)
    # The addition of the shortcut and its relu belong to the convolution before it.
    assert sum(t.weight for t in tasks if t.op_names == ["nn.conv2d", "add", "add", "nn.relu"]) == 8


def test_mobilenet_v2_keeps_no_operator_between_convolutions():
    model, inputs = load_network("mobilenet_v2")
    tasks = relax.extract_tasks(from_module(model, inputs))
    assert sum(t.weight for t in tasks if "nn.conv2d" in t.op_names) == 52
    others = [t.op_names for t in tasks if "nn.conv2d" not in t.op_names]
    assert others == [["nn.adaptive_avg_pool2d"], ["nn.dense", "add"]]


def test_group_keys_do_not_depend_on_the_weights():
    keys = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model, inputs = load_network("mlp")
        keys.append([t.key for t in relax.extract_tasks(from_module(model, inputs))])
    assert keys[0] == keys[1]
