"""Networks by name, and networks of the user's own by ``module:function``."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from tvm.auto_scheduler.cost_model.tensor_file import load_tensors
from tvm.relax.frontend.torch import in_eval_mode

from .bert import bert_base
from .convnext import convnext_tiny
from .dcgan import dcgan
from .efficientnet import efficientnet_b0
from .llama import llama_small
from .mlp import mlp
from .mobilenet import mobilenet_v2
from .resnet import resnet18, resnet50
from .unet import unet_small
from .video import r3d_18
from .vit import vit_b_32

__all__ = ["NETWORKS", "NetworkSpec", "load_network"]


# As many weights as an error names of one kind.
_REASONS = 3


@dataclass(frozen=True)
class NetworkSpec:
    """How to make a network, and example inputs for it, given the batch."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[torch.Tensor, ...]]


def _numbers(*shape: int) -> Callable[[int], tuple[torch.Tensor, ...]]:
    return lambda batch: (torch.randn(batch, *shape),)


def _tokens(vocabulary: int, length: int) -> Callable[[int], tuple[torch.Tensor, ...]]:
    return lambda batch: (torch.randint(vocabulary, (batch, length)),)


def _noisy_images(batch: int) -> tuple[torch.Tensor, ...]:
    return torch.randn(batch, 3, 32, 32), torch.rand(batch) * 1000


_IMAGES = _numbers(3, 224, 224)

NETWORKS: dict[str, NetworkSpec] = {
    "bert_base": NetworkSpec(bert_base, _tokens(30522, 128)),
    "convnext_tiny": NetworkSpec(convnext_tiny, _IMAGES),
    "dcgan": NetworkSpec(dcgan, _numbers(100, 1, 1)),
    "efficientnet_b0": NetworkSpec(efficientnet_b0, _IMAGES),
    "llama_small": NetworkSpec(llama_small, _tokens(32000, 128)),
    "mlp": NetworkSpec(mlp, _numbers(784)),
    "mobilenet_v2": NetworkSpec(mobilenet_v2, _IMAGES),
    "r3d_18": NetworkSpec(r3d_18, _numbers(3, 16, 112, 112)),
    "resnet18": NetworkSpec(resnet18, _IMAGES),
    "resnet50": NetworkSpec(resnet50, _IMAGES),
    "unet_small": NetworkSpec(unet_small, _noisy_images),
    "vit_b_32": NetworkSpec(vit_b_32, _IMAGES),
}


def load_network(
    name: str, weights: str | os.PathLike[str] | None = None, batch: int = 1
) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A network in eval mode and example inputs for it.

    Parameters
    ----------
    name : a key of ``NETWORKS``, or ``module:function`` naming a function without arguments that
        returns ``(model, example_inputs)``, where the model may be a program of ``torch.export``.
        The module is looked up like any import, with the
        working directory as a last resort.
    weights : file of a saved state dict, loaded strictly. Without it a registered network gets
        random weights; the draw follows torch's global seed.
    batch : size of the first dimension of a registered network's example input. A user's function
        chooses its own inputs, so for it the batch must be left at 1.

    Raises
    ------
    ValueError : the name is unknown (the message lists the known ones), the named module has no
        such function, the function returns something else, or the weights are damaged or another
        network's.
    FileNotFoundError : there is no file with the weights.
    """
    if batch < 1:
        raise ValueError(f"load_network: batch must be at least 1, got {batch}")
    if ":" in name:
        model, inputs = _load_user_network(name, batch)
    elif name in NETWORKS:
        spec = NETWORKS[name]
        model = spec.make()
        inputs = spec.inputs(batch)
    else:
        raise ValueError(
            f"load_network: unknown network '{name}'{_meant(name)}; known networks are "
            f"{', '.join(sorted(NETWORKS))}, or name your own as module:function"
        )
    if weights is not None:
        _load_weights(model, name, weights)
    return in_eval_mode(model), inputs


def _meant(name: str) -> str:
    """The known names that one resembles, as a question; empty for none."""
    close = [known for known in NETWORKS if known.startswith(name)]
    close = close or difflib.get_close_matches(name, NETWORKS, 2)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def _load_weights(model: nn.Module, name: str, weights: str | os.PathLike[str]) -> None:
    state = load_tensors(weights)
    if not isinstance(state, Mapping):
        raise ValueError(
            f"{weights}: expected a state dict, which maps names to tensors, got "
            f"{type(state).__name__}"
        )
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        # Torch lists what is missing, left over and of another shape, a line each.
        lines = [_shortened(line.strip()) for line in str(error).splitlines()[1:]]
        if len(lines) > _REASONS:
            lines[_REASONS:] = [f"and {len(lines) - _REASONS} more"]
        reasons = "; ".join(lines) or str(error)
        raise ValueError(f"{weights} has not the weights of {name}: {reasons}") from error


def _shortened(reason: str) -> str:
    """A list of names by its first ones."""
    names = reason.split(", ")
    if len(names) <= _REASONS:
        return reason
    return f"{', '.join(names[:_REASONS])} and {len(names) - _REASONS} more"


def _load_user_network(name: str, batch: int) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    module_name, function_name = name.split(":", 1)
    if not module_name or not function_name:
        raise ValueError(f"load_network: expected module:function, got '{name}'")
    if batch != 1:
        raise ValueError(
            f"load_network: '{name}' chooses its own example inputs, so batch must be 1, "
            f"got {batch}"
        )
    module = _import_module(module_name)
    function: Any = getattr(module, function_name, None)
    if not callable(function):
        raise ValueError(
            f"load_network: module '{module_name}' has no function '{function_name}'; "
            "name a function that returns (model, example_inputs)"
        )
    made = function()
    if isinstance(made, tuple) and made and isinstance(made[0], torch.export.ExportedProgram):
        made = (made[0].module(), *made[1:])
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module)):
        raise ValueError(
            f"load_network: '{name}' must return (model, example_inputs), got {type(made).__name__}"
        )
    model, inputs = made
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    return model, tuple(inputs)


def _import_module(module_name: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Only the module itself may be missing: a failing import inside it is the user's to see.
        if error.name != module_name.split(".")[0] and error.name != module_name:
            raise
        first_error = error
    # A console script does not have the working directory on its path.
    sys.path.append(os.getcwd())
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.split(".")[0] and error.name != module_name:
            raise
        raise ValueError(
            f"load_network: no module named '{module_name}' on the Python path or in the working "
            "directory"
        ) from first_error
    finally:
        sys.path.remove(os.getcwd())
