"""From an ONNX model to a module with one graph function, ``main``."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import torch

from tvm import tir
from tvm.ir import IRModule
from tvm.relax.expr import Function, Var
from tvm.relax.frontend.torch import export_for_inference, from_exported_program
from tvm.relax.struct_info import open_shape
from tvm.relax.transform.bind import bind_function

from .errors import OnnxError
from .module import GraphInput, OnnxModule

__all__ = ["example_inputs", "from_onnx"]


def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    shape_dict: Mapping[str, Sequence[int | str]] | None = None,
    dtype_dict: Mapping[str, str] | str | None = None,
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
) -> IRModule:
    """Import an ONNX model.

    Parameters
    ----------
    model : a file, or a model.
    shape_dict : shapes of inputs by name, in place of those that the model says; an extent that is
        a text is open, and of one size with others of that text.
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
    for its weights. Extents that the model leaves open are variables of the model's names for them;
    those without a name have ones of their own. The bounds within which the graph is right are its
    attributes "tir_var_lower_bound" and "tir_var_upper_bound".

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the model is damaged or not supported, the rank of an input is unknown, a size must
        be known that is open, or an input that has a shape or a type here is none of the model.
    """
    types = {} if dtype_dict is None or isinstance(dtype_dict, str) else dict(dtype_dict)
    module = OnnxModule(model, opset, types)
    shapes = _shapes_of(module, shape_dict)
    program = _exported(module, shapes)
    mod = from_exported_program(program, keep_params_as_input=keep_params_in_input)
    func = _with_size_names(module.name, mod["main"], shapes)
    weights = {f"b_{buffer}": name for buffer, name in module.weight_names.items()}
    names = [spec.name for spec in module.inputs]
    names += [weights[str(param.name_hint)] for param in func.params[len(names) :]]
    mod["main"] = _with_names(func, _sanitized(names) if sanitize_input_names else names)
    return mod


def _shapes_of(
    module: OnnxModule, shape_dict: Mapping[str, Sequence[int | str]] | None
) -> list[list[int | str]]:
    """The shape of each input; open extents are texts.

    Raises
    ------
    OnnxError : nothing is known of one, or there is no such input.
    """
    given = dict(shape_dict or {})
    unknown = given.keys() - {spec.name for spec in module.inputs}
    if unknown:
        raise OnnxError(f"{module.name}: there is no input {', '.join(sorted(unknown))}")
    shapes = []
    for spec in module.inputs:
        if spec.dtype is None:
            raise OnnxError(f"{module.name}: input '{spec.name}' is no tensor")
        shape: Sequence[Any] | None = given.get(spec.name, spec.shape)
        if shape is None:
            raise OnnxError(
                f"{module.name}: the rank of input '{spec.name}' is unknown; give its shape by "
                "name in shape_dict, open extents as texts"
            )
        names = (f"{spec.name}_{axis}" for axis in range(len(shape)))
        shapes.append([name if extent is None else extent for name, extent in zip(names, shape)])
    return shapes


def _exported(
    module: OnnxModule, shapes: Sequence[Sequence[int | str]]
) -> torch.export.ExportedProgram:
    """The program for all sizes that the open extents may have.

    Raises
    ------
    OnnxError : an operator must know a size that is open.
    """
    names = [extent for shape in shapes for extent in shape if isinstance(extent, str)]
    if not names:
        return export_for_inference(module, _examples(module, shapes, {}))
    dims = tuple(
        {
            axis: torch.export.Dim.AUTO
            for axis, extent in enumerate(shape)
            if isinstance(extent, str)
        }
        for shape in shapes
    )
    images = {extent for shape in shapes if len(shape) > 3 for extent in shape[2:]}
    reason: Exception | None = None
    for sizes in _example_sizes(list(dict.fromkeys(names)), images):
        try:
            inputs = _examples(module, shapes, sizes)
            program = export_for_inference(module, inputs, dynamic_shapes={"inputs": dims})
        except (OnnxError, ValueError, RuntimeError) as error:
            reason = reason or error
            continue
        fixed = _fixed_sizes(program, shapes)
        if not fixed:
            return program
        reason = reason or OnnxError(
            f"{module.name}: the graph is right only for one size of "
            f"{', '.join(sorted(fixed))}, as for loops over the steps of a sequence; give it by "
            "name of the input in shape_dict"
        )
    assert reason is not None
    raise reason


def _fixed_sizes(
    program: torch.export.ExportedProgram, shapes: Sequence[Sequence[int | str]]
) -> set[str]:
    """Names of open extents that the export took for numbers."""
    examples = [n.meta["val"] for n in program.graph.nodes if n.name in _user_inputs(program)]
    return {
        name
        for shape, example in zip(shapes, examples)
        for name, extent in zip(shape, example.shape)
        if isinstance(name, str) and not isinstance(extent, torch.SymInt)
    }


def _user_inputs(program: torch.export.ExportedProgram) -> Sequence[Any]:
    return program.graph_signature.user_inputs


# Sizes of examples that no constant of a model is likely to be; one apart from the other, so that
# sizes are not taken for equal, and those of images such that windows fit.
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43)


def _example_sizes(names: Sequence[str], images: set[Any]) -> list[dict[str, int]]:
    """Sizes to export with, one choice after the other: some models take multiples only."""
    distinct = dict(zip(names, itertools.cycle(_PRIMES)))
    for place, name in enumerate(n for n in names if n in images):
        distinct[name] = 64 + 32 * place
    even = {name: 8 * (place + 2) for place, name in enumerate(names)}
    return [distinct, even, dict.fromkeys(names, 16)]


def _examples(
    module: OnnxModule, shapes: Sequence[Sequence[int | str]], sizes: Mapping[str, int]
) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(
        _example(spec, [sizes[e] if isinstance(e, str) else int(e) for e in shape], generator)
        for spec, shape in zip(module.inputs, shapes)
    )


def _with_size_names(name: str, func: Function, shapes: Sequence[Sequence[int | str]]) -> Function:
    """The function with the model's names for open extents, and one variable for each name."""
    variables: dict[str, tir.Var] = {}
    extents: dict[tir.Var, tir.Var] = {}
    for param, shape in zip(func.params, shapes):
        for text, extent in zip(shape, open_shape(param.struct_info)):
            if not isinstance(text, str) or not isinstance(extent, tir.Var) or extent in extents:
                continue
            if text not in variables:
                variables[text] = tir.SizeVar(text, "int64")
            extents[extent] = variables[text]
    if not extents:
        return func
    bound = bind_function(func, {}, extents)
    names = {str(old.name): str(new.name) for old, new in extents.items()}
    for attr, choose in (("tir_var_lower_bound", max), ("tir_var_upper_bound", min)):
        limits: dict[str, int] = {}
        for old, limit in dict((func.attrs or {}).get(attr, {})).items():
            new = names.get(str(old), str(old))
            limits[new] = choose(limits.get(new, int(limit)), int(limit))
        if limits:
            bound = bound.with_attr(attr, limits)
    return bound


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
    OnnxError : a shape is open, or is not one that the model takes, or there is no such input.
    """
    shapes = _shapes_of(module, shape_dict)
    for spec, shape in zip(module.inputs, shapes):
        if spec.shape is not None and not (
            len(shape) == len(spec.shape)
            and all(not isinstance(e, int) or e == given for e, given in zip(spec.shape, shape))
        ):
            raise OnnxError(
                f"{module.name}: input '{spec.name}' must be of shape {spec.shape}, got "
                f"{tuple(shape)}"
            )
        if not all(isinstance(extent, int) for extent in shape):
            raise OnnxError(
                f"{module.name}: the shape {spec.shape} of input '{spec.name}' is open; give it by "
                "name in shape_dict, or give example inputs"
            )
    return _examples(module, shapes, {})


def _example(spec: GraphInput, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    assert spec.dtype is not None
    if spec.dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(spec.dtype)
    return torch.zeros(shape, dtype=spec.dtype)
