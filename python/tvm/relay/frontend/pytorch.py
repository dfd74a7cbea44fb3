"""Programs of PyTorch as relay functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.relax.frontend.torch import ProgramImporter
from tvm.relax.frontend.torch.export import export_for_inference
from tvm.runtime import NDArray

from ..analysis.infer import infer_module
from ..analysis.variables import free_vars
from ..expr import Function
from .from_relax import from_relax

__all__ = ["from_pytorch"]

# What an input is: its name with the shape, or with the shape and the type of its elements.
InputInfo = tuple[str, Any]


def _example(info: InputInfo, default_dtype: str) -> torch.Tensor:
    if not isinstance(info, Sequence) or len(info) != 2 or not isinstance(info[0], str):
        raise error.TypeError(
            "relay.frontend.from_pytorch: input_infos has pairs (name, shape) or (name, (shape, "
            f"dtype)), got {info!r}"
        )
    name, shape = info
    dtype = default_dtype
    if len(shape) == 2 and isinstance(shape[1], str):
        shape, dtype = shape
    if not all(isinstance(extent, int) and extent >= 0 for extent in shape):
        raise error.ValueError(
            f"relay.frontend.from_pytorch: the shape {tuple(shape)} of '{name}' has to be of "
            "numbers; programs of open sizes are compiled by felix.compile with dynamic_shapes"
        )
    kind = {"float": "float32", "double": "float64", "int": "int32", "long": "int64"}
    wanted = getattr(torch, kind.get(dtype, dtype), None)
    if not isinstance(wanted, torch.dtype):
        raise error.ValueError(f"relay.frontend.from_pytorch: there is no element type '{dtype}'")
    return torch.zeros(tuple(shape), dtype=wanted)


def from_pytorch(
    script_module: torch.nn.Module | torch.jit.ScriptModule | torch.export.ExportedProgram,
    input_infos: Sequence[InputInfo],
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    default_dtype: str = "float32",
    use_parser_friendly_name: bool = False,
    keep_quantized_weight: bool = True,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module whose "main" computes what a PyTorch module does in inference, and its weights.

    Parameters
    ----------
    script_module : traced or scripted, exported, or the module itself.
    input_infos : of each input (name, shape) or (name, (shape, dtype)).
    custom_convert_map : must be empty; operators are added to `relax.frontend.torch` instead.
    default_dtype : of inputs of which only the shape is given.
    use_parser_friendly_name : write "_" for the dots in the names of weights.
    keep_quantized_weight : weights of networks that were quantised in eager mode are integers among
        the parameters; False is refused, which in TVM makes real numbers of them that the program
        quantises again.

    A program that writes to its inputs, as by ``x -= 1``, computes what it does in PyTorch, but
    leaves the arrays of the caller alone.

    Returns
    -------
    The module, whose parameters are the inputs under the names given and then the weights under
    PyTorch's names; and the weights by name.

    Raises
    ------
    TypeError, ValueError : inputs that do not fit, and operators that cannot be imported, all of
        them in one message.
    """
    if custom_convert_map:
        raise error.ValueError(
            "relay.frontend.from_pytorch: operators are translated by the importer of exported "
            "programs, which takes no custom_convert_map; write the operator as a module of others"
        )
    if not keep_quantized_weight:
        raise error.ValueError(
            "relay.frontend.from_pytorch: weights of quantised networks stay integers; leave "
            "keep_quantized_weight out"
        )
    examples = [_example(info, default_dtype) for info in input_infos]
    is_exported = isinstance(script_module, torch.export.ExportedProgram)
    program = export_for_inference(script_module, () if is_exported else tuple(examples))
    importer = ProgramImporter(program, keep_params_as_input=True, may_write_inputs=True)
    func = importer.at({})["main"]
    names, params = [str(name) for name, _ in input_infos], {}
    is_scripted = isinstance(script_module, torch.jit.ScriptModule)
    for spec in program.graph_signature.input_specs:
        if spec.kind not in (InputKind.PARAMETER, InputKind.BUFFER):
            continue
        target = str(spec.target)
        tensors = program.state_dict if target in program.state_dict else program.constants
        name = target.removeprefix("scripted.") if is_scripted else target
        if use_parser_friendly_name:
            name = name.replace(".", "_")
        names.append(name)
        params[name] = tvm.nd.array(tvm.nd.from_dlpack(tensors[target].detach().contiguous()))
    if len(names) != len(func.params):
        raise error.ValueError(
            f"relay.frontend.from_pytorch: the program takes {len(func.params) - len(params)} "
            f"inputs, input_infos has {len(input_infos)}"
        )
    written = from_relax(func, names)
    # Counters of training and the like are nobody's operands.
    used = set(free_vars(written.body))
    kept = [p for p in written.params if p in used or str(p.name_hint) not in params]
    mod = IRModule.from_expr(Function(kept, written.body))
    known = {str(param.name_hint) for param in kept}
    return infer_module(mod), {name: value for name, value in params.items() if name in known}
