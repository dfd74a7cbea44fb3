"""An ONNX graph as a PyTorch module, and so as anything that PyTorch programs can become."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import torch
from torch.utils._python_dispatch import _disable_current_modes

from .errors import OnnxError
from .operators import find_operator
from .operators.sizes import (
    TAKES_SIZES,
    compute_sizes,
    computes_sizes,
    has_open_sizes,
    size_array,
    size_tensor,
)
from .reader import array_of, read_model
from .types import DTYPES, dtype_of, tensor_of, type_text

__all__ = ["GraphInput", "OnnxModule"]

# Operators that run, whatever is known of their inputs: random ones, and quantised weights, which
# stay what they are for the products that take them so.
_NOT_FOLDED = ("DequantizeLinear", "Dropout", "Bernoulli", "Multinomial", "RandomNormal",
               "RandomNormalLike", "RandomUniform", "RandomUniformLike")  # fmt: skip
# Weights of more elements are part of the traced program; smaller arrays may be shapes and axes.
_MAX_KNOWN_ELEMENTS = 1024


@dataclass(frozen=True)
class GraphInput:
    """An input of a graph, or a result.

    Attributes
    ----------
    shape : extents; the name, or None, of those that are not fixed. None for what is no tensor.
    dtype : of the elements; None for what is no tensor.
    """

    name: str
    shape: tuple[int | str | None, ...] | None
    dtype: torch.dtype | None

    @property
    def type(self) -> str | None:
        """The type as ONNX Runtime says it, ``tensor(float)``; None for what is no tensor."""
        return None if self.dtype is None else type_text(self.dtype)


class OnnxModule(torch.nn.Module):
    """Computes an ONNX graph with PyTorch's operators.

    Whatever does not depend on the values of the inputs is computed while the module is traced:
    shapes, constants, the number of turns of loops.

    Parameters
    ----------
    source : a file, its content, or a model.
    opset : version of the operators, in place of the one that the model says.
    dtypes : types of inputs by name, in place of those that the model says.

    Attributes
    ----------
    inputs : in the order of the graph, without those that have initial values.
    outputs : in the order of the graph.
    name : of the file or graph, for messages.
    digest : names all that is computed, weights included.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the file is damaged, or has operators, types or opsets that are not supported, or
        there is no such input or type.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | onnx.ModelProto,
        opset: int | None = None,
        dtypes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        model, self.name = read_model(source, opset)
        self._graph = model.graph
        self.digest = _digest(model)
        versions = {entry.domain: entry.version for entry in model.opset_import}
        self._opset = versions.get("", versions.get("ai.onnx", 1))
        self._asked: set[str] | None = None
        self._known: dict[str, np.ndarray[Any, Any] | torch.Tensor] = {}
        self._buffer_of: dict[str, str] = {}
        for initializer in model.graph.initializer:
            self._add_initial(initializer)
        initial = {*self._known, *self._buffer_of}
        declared = [_graph_input(v, self.name) for v in model.graph.input if v.name not in initial]
        self.inputs = self._typed(declared, dict(dtypes or {}))
        self.outputs = [_graph_output(value) for value in model.graph.output]

    @property
    def output_names(self) -> list[str]:
        """Names of the results, in the order of the graph."""
        return [value.name for value in self.outputs]

    @property
    def weight_names(self) -> dict[str, str]:
        """What the model calls each buffer."""
        return {buffer: name for name, buffer in self._buffer_of.items()}

    def _typed(self, inputs: list[GraphInput], dtypes: dict[str, str]) -> list[GraphInput]:
        unknown = dtypes.keys() - {spec.name for spec in inputs}
        if unknown:
            raise OnnxError(f"{self.name}: there is no input {', '.join(sorted(unknown))}")
        types = {str(dtype).removeprefix("torch."): dtype for dtype in DTYPES.values()}
        for name, dtype in dtypes.items():
            if dtype not in types:
                raise OnnxError(
                    f"{self.name}: input '{name}' cannot be of type {dtype!r}; there are "
                    f"{', '.join(sorted(types))}"
                )
        return [
            replace(spec, dtype=types[dtypes[spec.name]]) if spec.name in dtypes else spec
            for spec in inputs
        ]

    def _add_initial(self, initializer: onnx.TensorProto) -> None:
        array = array_of(initializer)
        if array.size <= _MAX_KNOWN_ELEMENTS and not _is_extension(array):
            self._known[initializer.name] = array
            return
        name = f"weight_{len(self._buffer_of)}"
        self.register_buffer(name, tensor_of(array))
        self._buffer_of[initializer.name] = name

    def forward(self, *inputs: Any) -> Any:
        """Results of the graph: one, or a tuple of several."""
        if len(inputs) != len(self.inputs):
            names = ", ".join(i.name for i in self.inputs)
            raise OnnxError(
                f"{self.name}: expected {len(self.inputs)} inputs ({names}), got {len(inputs)}"
            )
        values: dict[str, Any] = {**self._known}
        for name, buffer in self._buffer_of.items():
            values[name] = getattr(self, buffer)
        values |= {spec.name: value for spec, value in zip(self.inputs, inputs)}
        self._run(self._graph, values)
        results = [_as_result(values[name]) for name in self.output_names]
        return results[0] if len(results) == 1 else tuple(results)

    def inputs_to_know(self, inputs: Sequence[Any]) -> set[int]:
        """Positions of the inputs whose values, not only whose shapes, decide what is computed.

        The graph is computed once to see this: inputs that are axes, sizes or numbers of turns.

        Raises
        ------
        OnnxError : an operator refuses the inputs.
        """
        self._asked = set()
        try:
            with torch.no_grad():
                self(*inputs)
            asked = self._asked
        finally:
            self._asked = None
        for node in reversed(self._graph.node):
            bodies = any(a.type == onnx.AttributeProto.GRAPH for a in node.attribute)
            # What is asked for inside a body is made of what goes into its node.
            if asked.intersection(node.output) or (bodies and asked):
                asked.update(node.input)
        return {i for i, spec in enumerate(self.inputs) if spec.name in asked}

    def note_asked(self, name: str) -> None:
        """An operator asks for a value that is computed from the inputs."""
        if self._asked is not None:
            self._asked.add(name)

    def _run(self, graph: onnx.GraphProto, values: dict[str, Any]) -> None:
        """Compute every node, in the order of the graph, and enter its results."""
        for node in graph.node:
            context = _NodeContext(self, node, values)
            try:
                results = context.compute()
            except OnnxError as error:
                raise OnnxError(_located(self.name, node, str(error))) from error
            except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
                raise OnnxError(
                    _located(self.name, node, f"{type(error).__name__}: {error}")
                ) from error
            except (RuntimeError, MemoryError) as error:
                # The exporter is told by errors of its own what a program depends on.
                if torch.compiler.is_exporting():
                    raise
                reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                raise OnnxError(_located(self.name, node, reason)) from error
            for name, value in zip(node.output, results):
                if name:
                    values[name] = value

    def run_body(
        self, graph: onnx.GraphProto, inputs: Sequence[Any], outer: Mapping[str, Any]
    ) -> list[Any]:
        """Results of a graph inside a node, which reads the values around it."""
        values = {**outer, **{t.name: array_of(t) for t in graph.initializer}}
        values |= {value.name: given for value, given in zip(graph.input, inputs)}
        self._run(graph, values)
        return [values[value.name] for value in graph.output]

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The weights that are buffers of the module, by their names in the graph, in order."""
        return {name: getattr(self, buffer) for name, buffer in self._buffer_of.items()}

    @property
    def opset(self) -> int:
        """Version of the standard operators that the model is written in."""
        return self._opset


def _digest(model: onnx.ModelProto) -> str:
    """Part by part, because no message of protobuf is larger than 2 GB."""
    graph = model.graph
    found = hashlib.sha256()
    for parts in (model.opset_import, graph.input, graph.initializer, graph.node, graph.output):
        for part in parts:
            data = part.SerializeToString(deterministic=True)
            found.update(len(data).to_bytes(8, "little"))
            found.update(data)
    return found.hexdigest()


def _located(name: str, node: onnx.NodeProto, what: str) -> str:
    if what.startswith(f"{name}: "):
        return what
    return f"{name}: node '{node.name or next(iter(node.output), '')}' ({node.op_type}): {what}"


class _NodeContext:
    """A node with the values it reads; see `operators.Node`."""

    def __init__(self, module: OnnxModule, node: onnx.NodeProto, values: dict[str, Any]) -> None:
        self._module = module
        self._node = node
        self._values = values
        self.opset = module.opset
        self.op_type = node.op_type
        self.n_outputs = max((i + 1 for i, name in enumerate(node.output) if name), default=0)
        self._attributes = {a.name: a for a in node.attribute}
        self._inputs = [values[name] if name else None for name in node.input]

    def attr(self, name: str, default: Any = None) -> Any:
        attribute = self._attributes.get(name)
        if attribute is None:
            return default
        if attribute.type == onnx.AttributeProto.TENSOR:
            return tensor_of(array_of(attribute.t))
        if attribute.type == onnx.AttributeProto.GRAPH:
            return attribute.g
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            return value.decode()
        if isinstance(value, str):
            return value
        if isinstance(value, Sequence):
            return [item.decode() if isinstance(item, bytes) else item for item in value]
        return value

    def has_output(self, index: int) -> bool:
        return index < len(self._node.output) and bool(self._node.output[index])

    def array(self, index: int) -> np.ndarray[Any, Any] | None:
        value = self._inputs[index] if index < len(self._inputs) else None
        if value is None or isinstance(value, np.ndarray):
            return value
        if torch.compiler.is_compiling() or not isinstance(value, torch.Tensor):
            raise OnnxError(
                f"its input '{self._node.input[index]}' depends on the values of the network's "
                "inputs, and must be known to compile"
            )
        self._module.note_asked(self._node.input[index])
        whole = value.detach().cpu()
        return whole.float().numpy() if _is_extension_type(whole.dtype) else whole.numpy()

    def ints(self, index: int) -> list[Any] | None:
        array = self.array(index)
        if array is None:
            return None
        return [v if isinstance(v, torch.SymInt) else int(v) for v in array.reshape(-1)]

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        return self._module.run_body(graph, inputs, self._values)

    def compute(self) -> Sequence[Any]:
        """The results: arrays where all that is read is known, else tensors."""
        function = find_operator(self._node.op_type, self._node.domain)
        bodies = any(a.type == onnx.AttributeProto.GRAPH for a in self._node.attribute)
        known = all(_is_known(value) for value in self._inputs) and not bodies
        kept = self._node.op_type in _NOT_FOLDED
        if self._node.op_type == "Shape" and isinstance(self._inputs[0], torch.Tensor):
            begin, end = self.attr("start", 0), self.attr("end")
            return [size_array(list(self._inputs[0].shape)[begin:end])]
        if self._node.op_type == "Size" and isinstance(self._inputs[0], torch.Tensor):
            return [size_array([self._inputs[0].numel()]).reshape(())]
        if any(map(has_open_sizes, self._inputs)):
            if known and computes_sizes(self._node.op_type):
                return compute_sizes(self, self._inputs)
            as_numbers = self._node.op_type in TAKES_SIZES
            made = [
                size_tensor(x) if has_open_sizes(x) and not as_numbers else x for x in self._inputs
            ]
            return _listed(
                function(self, *(x if has_open_sizes(x) else _as_operand(x) for x in made))
            )
        if known and not kept:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                results = _listed(function(self, *map(_real, self._inputs)))
                return [_as_known(value) for value in results]
        return _listed(function(self, *map(_as_operand, self._inputs)))


def _listed(results: Any) -> Sequence[Any]:
    """A list is several results; a tuple has each result as it is, be it a list itself."""
    return results if isinstance(results, (list, tuple)) else [results]


def _is_extension(array: np.ndarray[Any, Any]) -> bool:
    """Whether numpy has the element type by an extension only."""
    return array.dtype.kind == "V" or array.dtype.name not in np.sctypeDict


def _is_extension_type(dtype: torch.dtype) -> bool:
    return str(dtype).removeprefix("torch.") not in np.sctypeDict


def _is_known(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_known(item) for item in value)
    return value is None or isinstance(value, np.ndarray)


def _real(value: Any) -> Any:
    if isinstance(value, list):
        return [_real(item) for item in value]
    return tensor_of(value) if isinstance(value, np.ndarray) else value


def _as_known(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_known(item) for item in value]
    if isinstance(value, torch.Tensor) and not _is_extension_type(value.dtype):
        return value.detach().cpu().numpy()
    return value


def _as_operand(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_operand(item) for item in value]
    if has_open_sizes(value):
        return size_tensor(value)
    if isinstance(value, np.ndarray):
        with _disable_current_modes(), torch._C.DisableTorchFunction():
            return tensor_of(value)
    return value


_as_result = _as_operand


def _graph_input(value: onnx.ValueInfoProto, model: str) -> GraphInput:
    if value.type.WhichOneof("value") != "tensor_type":
        return GraphInput(value.name, None, None)
    tensor = value.type.tensor_type
    if tensor.elem_type == onnx.TensorProto.STRING:
        raise OnnxError(f"{model}: input '{value.name}' is text, which is not supported")
    return GraphInput(value.name, _declared_shape(tensor), dtype_of(tensor.elem_type))


def _graph_output(value: onnx.ValueInfoProto) -> GraphInput:
    """A result; models need not say its type and shape."""
    tensor = value.type.tensor_type
    return GraphInput(value.name, _declared_shape(tensor), DTYPES.get(tensor.elem_type))


def _declared_shape(tensor: onnx.TypeProto.Tensor) -> tuple[int | str | None, ...] | None:
    if not tensor.HasField("shape"):
        return None
    return tuple(
        d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in tensor.shape.dim
    )
