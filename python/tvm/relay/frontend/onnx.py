"""ONNX models as relay functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.relax.frontend import onnx as importer
from tvm.relax.frontend.torch import from_module
from tvm.runtime import NDArray

from ..analysis.infer import infer_module
from .from_relax import from_relax

__all__ = ["from_onnx"]


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module whose "main" computes an ONNX model, and its weights.

    Parameters
    ----------
    model : an `onnx.ModelProto`, or a file.
    shape : of inputs by name; needed for those whose shape the model leaves open.
    dtype : of inputs by name, which must be what the model says; it says the types of all.
    opset : must be the model's own; None takes that.
    freeze_params : make weights constants, so that none are returned. Otherwise they are parameters
        behind the inputs, under the model's names.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the model is damaged or not supported, or a shape is open.
    ValueError : another type or opset than the model's, or an operator that relay cannot have.
    """
    module = importer.OnnxModule(model)
    if opset is not None and opset != module.opset:
        raise error.ValueError(
            f"relay.frontend.from_onnx: the model is of opset {module.opset}, not {opset}; "
            "onnx.version_converter makes it one of another"
        )
    for name, wanted in dtype.items() if isinstance(dtype, Mapping) else ():
        found = {str(spec.dtype).removeprefix("torch.") for spec in module.inputs
                 if spec.name == name}  # fmt: skip
        if found != {str(wanted)}:
            raise error.ValueError(
                f"relay.frontend.from_onnx: input '{name}' is of type "
                f"{', '.join(found) or 'nothing, since there is none of this name'}, not {wanted}"
            )
    inputs = importer.example_inputs(module, shape)
    func = from_module(module, inputs, keep_params_as_input=not freeze_params)["main"]
    names = [spec.name for spec in module.inputs]
    params = {}
    if not freeze_params:
        for name, weight in module.weights.items():
            names.append(name)
            params[name] = tvm.nd.array(tvm.nd.from_dlpack(weight.contiguous()))
    return infer_module(IRModule.from_expr(from_relax(func, names))), params
