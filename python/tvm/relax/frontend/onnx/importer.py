"""From an ONNX model to a module with one graph function, ``main``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch

from tvm.ir import IRModule
from tvm.relax.expr import Function, Var
from tvm.relax.frontend.torch import from_module
from tvm.relax.transform.bind import bind_function

from .errors import OnnxError
from .module import GraphInput, OnnxModule

__all__ = ["example_inputs", "from_onnx"]


def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    shape_dict: Mapping[str, Sequence[int]] | None = None,
    dtype_dict: Mapping[str, str] | str | None = None,
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
) -> IRModule:
    """Import an ONNX model.

    Parameters
    ----------
    model : a file, or a model.
    shape_dict : shapes of inputs by name; needed for those whose shape the model leaves open.
    dtype_dict : types of inputs by name, in place of those that the model says. A text is the type
        of inputs without one; models have none, so it says nothing.
    opset : version of the operators, in place of the one that the model says.
    keep_params_in_input : make weights inputs of ``main``, after the model's inputs, instead of
        constants.
    sanitize_input_names : make the model's names names of a program: other characters than letters,
        digits and "_" become "_", and "input_" stands before a digit.

    Returns
    -------
    A module whose ``main`` takes the model's inputs in their order, and has its names for them and
    for its weights.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the model is damaged or not supported, a shape is open, or an input that has a shape
        or a type here is none of the model.
    """
    types = {} if dtype_dict is None or isinstance(dtype_dict, str) else dict(dtype_dict)
    module = OnnxModule(model, opset, types)
    inputs = example_inputs(module, shape_dict)
    mod = from_module(module, inputs, keep_params_as_input=keep_params_in_input)
    func = mod["main"]
    weights = {f"b_{buffer}": name for buffer, name in module.weight_names.items()}
    names = [spec.name for spec in module.inputs]
    names += [weights[str(param.name_hint)] for param in func.params[len(names) :]]
    mod["main"] = _with_names(func, _sanitized(names) if sanitize_input_names else names)
    return mod


def _sanitized(names: Sequence[str]) -> list[str]:
    taken: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        if not plain or plain[0].isdigit():
            plain = f"input_{plain}"
        ends = ("", *(f"_{k}" for k in range(1, len(names))))
        taken.append(next(plain + end for end in ends if plain + end not in taken))
    return taken


def _with_names(func: Function, names: Sequence[str]) -> Function:
    """The function with other names for its parameters."""
    renamed = {old: Var(name, old.struct_info) for old, name in zip(func.params, names)}
    bound = bind_function(func, renamed, {})
    params = list(renamed.values())
    return Function(params, bound.body, bound.ret_struct_info, bound.is_pure, bound.attrs)


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
