"""From an ONNX model to a module with one graph function, ``main``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch

from tvm.ir import IRModule
from tvm.relax.frontend.torch import from_module

from .errors import OnnxError
from .module import GraphInput, OnnxModule

__all__ = ["example_inputs", "from_onnx"]


def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    keep_params_in_input: bool = False,
) -> IRModule:
    """Import an ONNX model.

    Parameters
    ----------
    model : a file, or a model.
    shape_dict : shapes of inputs by name; needed for those whose shape the model leaves open.
    keep_params_in_input : make weights inputs of ``main``, after the model's inputs, instead of
        constants.

    Returns
    -------
    A module whose ``main`` takes the model's inputs in their order.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the model is damaged or not supported, or a shape is open.
    """
    module = OnnxModule(model)
    inputs = example_inputs(module, shape_dict)
    return from_module(module, inputs, keep_params_as_input=keep_params_in_input)


def example_inputs(
    module: OnnxModule, shape_dict: Mapping[str, Sequence[int]] | None = None
) -> tuple[torch.Tensor, ...]:
    """Random inputs for a model, normally distributed or zero for integers.

    Raises
    ------
    OnnxError : a shape is open, or there is no such input.
    """
    shapes = dict(shape_dict or {})
    unknown = shapes.keys() - {spec.name for spec in module.inputs}
    if unknown:
        raise OnnxError(f"{module.name}: there is no input {', '.join(sorted(unknown))}")
    generator = torch.Generator().manual_seed(0)
    return tuple(
        _example(module.name, spec, shapes.get(spec.name), generator) for spec in module.inputs
    )


def _example(
    name: str, spec: GraphInput, given: Sequence[int] | None, generator: torch.Generator
) -> torch.Tensor:
    if spec.dtype is None:
        raise OnnxError(f"{name}: input '{spec.name}' is no tensor")
    shape: Sequence[Any] | None = spec.shape if given is None else given
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        raise OnnxError(
            f"{name}: the shape {shape} of input '{spec.name}' is open; give it by name in "
            "shape_dict, or give example inputs"
        )
    if spec.dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(spec.dtype)
    return torch.zeros(shape, dtype=spec.dtype)
