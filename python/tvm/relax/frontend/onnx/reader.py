"""Reading ONNX models from files that may be damaged or hostile."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
import onnx.shape_inference
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from .errors import OnnxError
from .operators import has_operator

__all__ = ["MAX_ELEMENTS", "OPSETS", "array_of", "element_type_name", "read_model"]

# Opsets of the standard operators that are known, first and last.
OPSETS = (13, onnx.defs.onnx_opset_version())
_DOMAINS = ("", "ai.onnx")
# No tensor of a network that fits a machine has more; hostile files ask for 2^60.
MAX_ELEMENTS = 1 << 36
_PASSES_OF_INLINING = 8


def read_model(
    source: str | os.PathLike[str] | bytes | onnx.ModelProto, opset: int | None = None
) -> tuple[onnx.ModelProto, str]:
    """A model that is whole, and its name for messages.

    Operators without a translation are replaced by the functions that define them, where the
    standard has such. `opset` is the version of these operators, if not the one the model says.

    Raises
    ------
    FileNotFoundError : there is no such file.
    OnnxError : the file is damaged, or the model is not one that can be imported; one message.
    """
    if isinstance(source, onnx.ModelProto):
        model, name, folder = source, source.graph.name or "model", None
    elif isinstance(source, bytes):
        model, name, folder = _parse(source, "model"), "model", None
    else:
        path = Path(source)
        model, name, folder = _parse(path.read_bytes(), str(path)), str(path), path.parent
    if opset is not None:
        model = _with_opset(model, opset)
    try:
        _check_opsets(model)
        _check_functions(model)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        model = _inline_unknown(model)
        _check_operators(model)
        _load_external(model, folder)
        _check_graph(model.graph, set(), 0)
    except OnnxError as error:
        raise OnnxError(f"{name}: {error}") from error.__cause__
    return model, name


def _parse(data: bytes, name: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError) as error:
        raise OnnxError(f"{name}: damaged, or not an ONNX model: {error}") from error
    if not model.HasField("graph") or not model.graph.node and not model.graph.output:
        raise OnnxError(f"{name}: not an ONNX model: it has no graph")
    return model


def _with_opset(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    kept = [entry for entry in model.opset_import if entry.domain not in _DOMAINS]
    del changed.opset_import[:]
    changed.opset_import.extend([*kept, onnx.helper.make_opsetid("", opset)])
    return changed


def _check_opsets(model: onnx.ModelProto) -> None:
    versions = {entry.domain: entry.version for entry in model.opset_import}
    standard = next((versions[domain] for domain in _DOMAINS if domain in versions), None)
    if standard is not None and not 1 <= standard <= OPSETS[1]:
        raise OnnxError(
            f"opset {standard} is not known; the onnx package that is installed knows opsets up "
            f"to {OPSETS[1]}, so upgrade it or export again"
        )


def _check_functions(model: onnx.ModelProto) -> None:
    """Functions of the model must not call themselves, or inlining them would not end."""
    functions = {(f.domain, f.name): f for f in model.functions}
    done: set[tuple[str, str]] = set()

    def visit(key: tuple[str, str], above: tuple[tuple[str, str], ...]) -> None:
        if key in above or len(above) > 64:
            raise OnnxError(f"function {key[1]} calls itself")
        if key not in done:
            for node in _nodes(functions[key].node):
                if (node.domain, node.op_type) in functions:
                    visit((node.domain, node.op_type), (*above, key))
            done.add(key)

    for key in functions:
        visit(key, ())


def _nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes with those of their bodies."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g.node)
            for graph in attribute.graphs:
                yield from _nodes(graph.node)


def _is_known(node: onnx.NodeProto) -> bool:
    return has_operator(node.op_type, node.domain)


def _inline_unknown(model: onnx.ModelProto) -> onnx.ModelProto:
    for _ in range(_PASSES_OF_INLINING):
        unknown = {
            (node.domain, node.op_type) for node in _nodes(model.graph.node) if not _is_known(node)
        }
        defined = [key for key in unknown if _is_defined_by_function(*key)]
        if not defined:
            break
        try:
            model = onnx.inliner.inline_selected_functions(
                onnx.shape_inference.infer_shapes(model), defined, inline_schema_functions=True
            )
        except (RuntimeError, ValueError, onnx.shape_inference.InferenceError):
            # What is left is named by the check of operators.
            break
    return model


def _is_defined_by_function(domain: str, name: str) -> bool:
    try:
        schema = onnx.defs.get_schema(name, domain="" if domain in _DOMAINS else domain)
    except onnx.defs.SchemaError:
        return False
    found: Any = schema
    return bool(found.has_function or found.has_context_dependent_function)


def _check_operators(model: onnx.ModelProto) -> None:
    unknown: Counter[str] = Counter()
    first: dict[str, str] = {}
    for node in _nodes(model.graph.node):
        if not _is_known(node):
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            unknown[name] += 1
            first.setdefault(name, node.name or (node.output[0] if node.output else "?"))
    if unknown:
        listed = "; ".join(
            f"{name} ({count} times, first in node '{first[name]}')"
            for name, count in sorted(unknown.items())
        )
        raise OnnxError(f"operators that cannot be imported: {listed}")


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from _tensors(attribute.g)
            for inner in attribute.graphs:
                yield from _tensors(inner)


def _load_external(model: onnx.ModelProto, folder: Path | None) -> None:
    """Read data beside the model's file; only files inside of its folder are opened."""
    for tensor in _tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if folder is None:
            raise OnnxError(
                f"tensor '{tensor.name}' is in another file; give the path of the model"
            )
        location = entries.get("location", "")
        path = (folder / location).resolve()
        if not location or not path.is_relative_to(folder.resolve()):
            raise OnnxError(
                f"tensor '{tensor.name}' is in '{location}', outside of the model's folder"
            )
        try:
            offset, size = int(entries.get("offset", "0")), path.stat().st_size
            length = int(entries["length"]) if "length" in entries else size - offset
        except (ValueError, OSError) as error:
            raise OnnxError(f"tensor '{tensor.name}': external data: {error}") from error
        if not (0 <= offset <= size and 0 <= length <= size - offset):
            raise OnnxError(
                f"tensor '{tensor.name}' is {length} bytes at {offset} of '{location}', which has "
                f"{size} bytes"
            )
        with open(path, "rb") as file:
            file.seek(offset)
            tensor.raw_data = file.read(length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _check_graph(graph: onnx.GraphProto, outer: set[str], depth: int) -> None:
    """Every value is made once, before it is read."""
    if depth > 32:
        raise OnnxError("graphs are nested more than 32 deep")
    for tensor in graph.initializer:
        _check_tensor(tensor)
    known = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    known |= {value.name for value in graph.input} | outer
    made: set[str] = set()
    for node in graph.node:
        what = f"node '{node.name or node.op_type}' ({node.op_type})"
        for name in node.input:
            if name and name not in known:
                raise OnnxError(
                    f"{what} reads '{name}', which no node before it makes: the graph has a cycle, "
                    "or is out of order"
                )
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _check_tensor(attribute.t)
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                _check_graph(inner, known, depth + 1)
        for name in filter(None, node.output):
            if name in made:
                raise OnnxError(f"{what} makes '{name}', which another node makes too")
            made.add(name)
            known.add(name)
    for value in graph.output:
        if value.name not in known:
            raise OnnxError(f"the graph returns '{value.name}', which no node makes")


def _check_tensor(tensor: onnx.TensorProto) -> None:
    """Sizes are those of the data, before anything is allocated by them."""
    what = f"tensor '{tensor.name}'"
    if any(extent < 0 for extent in tensor.dims) or math.prod(tensor.dims) > MAX_ELEMENTS:
        raise OnnxError(f"{what} has the impossible shape {list(tensor.dims)}")
    if tensor.data_type == onnx.TensorProto.STRING:
        return
    try:
        bits = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
    except (KeyError, TypeError) as error:
        raise OnnxError(f"{what} has the unknown type {tensor.data_type}") from error
    if tensor.data_type in _BITS:
        bits = _BITS[tensor.data_type]
    expected = (math.prod(tensor.dims) * bits + 7) // 8
    if tensor.HasField("raw_data") and len(tensor.raw_data) != expected:
        raise OnnxError(
            f"{what} of shape {list(tensor.dims)} has {len(tensor.raw_data)} bytes, not {expected}"
        )


_BITS = {
    getattr(onnx.TensorProto, name): bits
    for name, bits in (("INT4", 4), ("UINT4", 4), ("FLOAT4E2M1", 4), ("INT2", 2), ("UINT2", 2))
    if hasattr(onnx.TensorProto, name)
}


def array_of(tensor: onnx.TensorProto) -> np.ndarray[Any, Any]:
    """The data of a tensor that was checked.

    Raises
    ------
    OnnxError : it cannot be read.
    """
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError) as error:
        raise OnnxError(f"tensor '{tensor.name}' cannot be read: {error}") from error


def element_type_name(element_type: int) -> str:
    """ONNX' name of an element type, such as "FLOAT16"."""
    try:
        return onnx.TensorProto.DataType.Name(element_type)
    except ValueError:
        return str(element_type)
