"""Networks by name, and networks of the user's own by ``module:function``."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .mlp import mlp
from .mobilenet import mobilenet_v2
from .resnet import resnet18

__all__ = ["NETWORKS", "NetworkSpec", "load_network"]


@dataclass(frozen=True)
class NetworkSpec:
    """How to make a network, and the shape of one input example without the batch dimension."""

    make: Callable[[], nn.Module]
    input_shape: tuple[int, ...]


NETWORKS: dict[str, NetworkSpec] = {
    "mlp": NetworkSpec(mlp, (784,)),
    "resnet18": NetworkSpec(resnet18, (3, 224, 224)),
    "mobilenet_v2": NetworkSpec(mobilenet_v2, (3, 224, 224)),
}


def load_network(
    name: str, weights: str | os.PathLike[str] | None = None, batch: int = 1
) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A network in eval mode and example inputs for it.

    Parameters
    ----------
    name : a key of ``NETWORKS``, or ``module:function`` naming a function without arguments that
        returns ``(model, example_inputs)``. The module is looked up like any import, with the
        working directory as a last resort.
    weights : file of a saved state dict, loaded strictly. Without it a registered network gets
        random weights; the draw follows torch's global seed.
    batch : size of the first dimension of a registered network's example input. A user's function
        chooses its own inputs, so for it the batch must be left at 1.

    Raises
    ------
    ValueError : the name is unknown (the message lists the known ones), the named module has no
        such function, or the function returns something else.
    """
    if batch < 1:
        raise ValueError(f"load_network: batch must be at least 1, got {batch}")
    if ":" in name:
        model, inputs = _load_user_network(name, batch)
    elif name in NETWORKS:
        spec = NETWORKS[name]
        model = spec.make()
        inputs = (torch.randn(batch, *spec.input_shape),)
    else:
        raise ValueError(
            f"load_network: unknown network '{name}'; known networks are "
            f"{', '.join(sorted(NETWORKS))}, or name your own as module:function"
        )
    if weights is not None:
        model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return model.eval(), inputs


def _load_user_network(name: str, batch: int) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    module_name, function_name = name.split(":", 1)
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
