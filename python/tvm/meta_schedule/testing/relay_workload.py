"""Networks for tests and benchmarks of a search, as relay programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tvm import error, relay
from tvm.driver.tvmc.compiler import with_layout
from tvm.felix.nn import NETWORKS, load_network
from tvm.ir import IRModule
from tvm.runtime import NDArray

__all__ = ["get_network", "list_networks"]

InputInfo = tuple[str, list[int], str]
"""Name, shape and element type of a network's input."""

# Networks in PyTorch, by TVM's names.
_PYTORCH = {
    "bert_base": "bert_base",
    "convnext_tiny": "convnext_tiny",
    "dcgan": "dcgan",
    "efficientnet_b0": "efficientnet_b0",
    "llama_small": "llama_small",
    "mlp": "mlp",
    "mobilenet_v2": "mobilenet_v2",
    "resnet3d_18": "r3d_18",
    "resnet_18": "resnet18",
    "resnet_50": "resnet50",
    "vit": "vit_b_32",
}


def _images(get_workload: Callable[..., Any], **more: Any) -> Callable[[list[int]], Any]:
    return lambda shape: get_workload(batch_size=shape[0], image_shape=tuple(shape[1:]), **more)


# Networks written in relay.
_RELAY: dict[str, Callable[[list[int]], Any]] = {
    "densenet_121": _images(relay.testing.densenet.get_workload),
    "inception_v3": _images(relay.testing.inception_v3.get_workload),
    "mobilenet": _images(relay.testing.mobilenet.get_workload),
    "squeezenet_1.0": _images(relay.testing.squeezenet.get_workload),
    "squeezenet_1.1": _images(relay.testing.squeezenet.get_workload, version="1.1"),
    "vgg_16": _images(relay.testing.vgg.get_workload, num_layers=16),
}


def list_networks() -> list[str]:
    """Names that `get_network` knows."""
    return sorted([*_PYTORCH, *_RELAY])


def get_network(
    name: str, input_shape: Sequence[int], *, layout: str | None = None
) -> tuple[IRModule, dict[str, NDArray], InputInfo]:
    """A network with random weights, its parameters, and what its input is.

    Parameters
    ----------
    name : see `list_networks`.
    input_shape : of images (batch, 3, height, width), of clips (batch, 3, frames, height, width),
        of tokens (batch, length), or else as the network takes.
    layout : of convolutions, such as "NHWC"; by default as the network has it.

    Raises
    ------
    ValueError : there is no such network. Or its input is of another shape.
    """
    shape = [int(extent) for extent in input_shape]
    if name in _PYTORCH:
        spec = NETWORKS[_PYTORCH[name]]
        model, _ = load_network(_PYTORCH[name], batch=shape[0])
        dtype = spec.inputs(1)[0].dtype
        example = torch.rand(shape) if dtype.is_floating_point else torch.randint(1000, shape)
        info = ("input0", shape, str(dtype).removeprefix("torch."))
        program = torch.export.export(model, (example,))
        mod, params = relay.frontend.from_pytorch(program, [(info[0], (shape, info[2]))])
    elif name in _RELAY:
        mod, params = _RELAY[name](shape)
        info = ("data", shape, "float32")
    else:
        raise error.ValueError(
            f"get_network: there is no network '{name}'; known are {', '.join(list_networks())}"
        )
    return with_layout(mod, layout), params, info
