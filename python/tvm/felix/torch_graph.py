"""Graphs that PyTorch hands to a compiler, compiled for inputs of fixed shapes."""

from __future__ import annotations

import hashlib
import json
import logging
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.export.graph_signature import OutputKind, TensorArgument
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

import tvm
from tvm import relax
from tvm.relax.frontend.torch import (
    CallSignature,
    UnsupportedOperators,
    WritesToInputs,
    can_import,
    drawn_seed,
)
from tvm.runtime.files import read_json, write_atomically
from tvm.target import Target

from .cache import NetworkCache, compiler_version, machine_name
from .compiler import as_ndarray
from .network import Network

__all__ = ["CompiledGraph", "CompiledRun", "GraphCompiler", "Run", "bind_inputs"]

logger = logging.getLogger(__name__)

Run = Callable[..., Any]
# Modules whose functions are known by their names, in every process of the same PyTorch.
_KNOWN_MODULES = ("torch", "_operator", "math", "builtins")
_LIBRARY, _INFO = "network.so", "network.json"
# Each is said once.
_warned: set[str] = set()


@dataclass(frozen=True)
class CompiledGraph:
    """A function of tensors that returns what a graph does, in a list.

    Attributes
    ----------
    is_whole : whether all of the graph is compiled; else PyTorch runs parts of it.
    repeats : whether it is known to give the same results for the same inputs again.
    """

    run: Run
    is_whole: bool
    repeats: bool


@dataclass(frozen=True)
class _Form:
    """What a caller of a compiled graph has to know of it.

    Attributes
    ----------
    complex_results : places of the results that hold complex numbers, which come as pairs.
    takes_seed : whether it draws random numbers, and takes a seed behind its tensors.
    """

    complex_results: Sequence[int]
    takes_seed: bool


class GraphCompiler:
    """Compiles graphs; those that were compiled before, in whatever process, are loaded.

    Parameters
    ----------
    target : what to compile for; it must be able to run in this process.
    build : makes the executable of a network.
    cache : where compiled graphs are kept, if anywhere.
    state : differs when `build` would make another executable.
    who : begins the warnings.
    """

    def __init__(
        self,
        target: Target,
        build: Callable[[Network], relax.Executable],
        cache: NetworkCache | None,
        state: str = "",
        who: str = 'torch.compile(backend="felix")',
    ) -> None:
        self._target = target
        self._build = build
        self._cache = cache
        self._state = state
        self._who = who

    def compile(
        self,
        module: torch.nn.Module,
        inputs: Sequence[torch.Tensor],
        identity: str | None = None,
        in_parts: bool = True,
    ) -> CompiledGraph | None:
        """The module, whose results are tensors, compiled for inputs of these shapes.

        Parts that cannot be compiled are run by PyTorch, with one warning that names their
        operators; None where that is all of it.

        Parameters
        ----------
        identity : names all that the module computes, its weights included; of a graph this is
            seen from it.
        in_parts : whether a graph is compiled of which PyTorch has to run some of it.
        """
        try:
            run, form = self._whole(module, inputs, identity)
            return CompiledGraph(run, True, not form.takes_seed)
        except WritesToInputs as error:
            if error.positions is None or not isinstance(module, torch.fx.GraphModule):
                self._left_to_torch(error)
                return None
            return self._writing(module, inputs, error.positions) if in_parts else None
        except UnsupportedOperators as error:
            operators = sorted({f"{p.operator} {p.reason}".strip() for p in error.problems})
            self._warn(f"PyTorch runs what cannot be compiled: {', '.join(operators)}")
            parts = self._in_parts(error) if in_parts else None
            return None if parts is None else CompiledGraph(parts, False, False)
        except (ValueError, TypeError, RuntimeError) as error:
            # Whatever the exporter or the importer cannot express, PyTorch still can.
            self._left_to_torch(error)
            return None

    def _left_to_torch(self, error: Exception) -> None:
        reason = str(error).partition("\n")[0]
        self._warn(f"PyTorch runs a graph that cannot be compiled: {reason}")
        logger.debug("not compiled", exc_info=error)

    def _writing(
        self, module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], positions: list[int]
    ) -> CompiledGraph | None:
        """A graph that writes to inputs, by one that gives what is to be written."""
        compiled = self.compile(_without_writes(module, positions), inputs)
        if compiled is None:
            return None

        def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
            results = list(compiled.run(*tensors))
            kept = len(results) - len(positions)
            for position, value in zip(positions, results[kept:]):
                tensors[position].copy_(value)
            return results[:kept]

        return CompiledGraph(run, compiled.is_whole, False)

    def _whole(
        self, module: torch.nn.Module, inputs: Sequence[torch.Tensor], identity: str | None = None
    ) -> tuple[Run, _Form]:
        key = None if self._cache is None else self._key(module, inputs, identity)
        if key is not None and self._cache is not None:
            stored = self._load(self._cache, key)
            if stored is not None:
                return stored
        program = _export(module, inputs)
        network = Network.of_program(program, "graph")
        executable = self._build(network)
        signature = CallSignature(program)
        form = _Form(signature.complex_results, signature.takes_seed)
        if key is not None and self._cache is not None:
            self._cache.store(key, lambda folder: _write(executable, form, folder))
        return CompiledRun(executable, form), form

    def _load(self, cache: NetworkCache, key: str) -> tuple[Run, _Form] | None:
        folder = cache.find(key)
        if folder is None:
            return None
        try:
            executable, form = _read(folder)
            return CompiledRun(executable, form), form
        except (ValueError, OSError, RuntimeError) as error:
            logger.warning("%s is damaged and compiled again: %s", folder, error)
            cache.remove(key)
            return None

    def _key(
        self, module: torch.nn.Module, inputs: Sequence[torch.Tensor], identity: str | None
    ) -> str | None:
        """Names the compiled graph among all; None where the graph has functions of the user's."""
        digest = hashlib.sha256()
        if identity is None:
            if not isinstance(module, torch.fx.GraphModule):
                return None
            identity = _graph_text(module)
            if identity is None:
                return None
            for name, tensor in sorted(_tensors_of(module).items()):
                digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(_bytes_of(tensor))
        shapes = [f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in inputs]
        if torch.is_autocast_enabled("cpu"):
            shapes.append(f"autocast {torch.get_autocast_dtype('cpu')}")
        facts = [compiler_version(), torch.__version__, machine_name(self._target), self._state]
        digest.update("\n".join([*facts, *shapes, identity]).encode())
        return digest.hexdigest()[:40]

    def _warn(self, text: str) -> None:
        text = f"{self._who}: {text}"
        if text not in _warned:
            _warned.add(text)
            warnings.warn(text, stacklevel=2)

    def _in_parts(self, refused: UnsupportedOperators) -> Run | None:
        """Compiled where possible; between, PyTorch runs one operator after the other."""
        parent = refused.program.module(check_guards=False)
        names = {node.name for problem in refused.problems for node in _with_views(problem.node)}
        partitioner = CapabilityBasedPartitioner(parent, _Importable(names))
        parent = partitioner.fuse_partitions(partitioner.propose_partitions())
        compiled = 0
        for node in list(parent.graph.nodes):
            if node.op != "call_module":
                continue
            part = getattr(parent, node.target)
            fixed = {
                position: _attribute(parent, arg.target)
                for position, arg in enumerate(node.args)
                if arg.op == "get_attr"
            }
            free = [arg for position, arg in enumerate(node.args) if position not in fixed]
            examples = [_example_of(arg.meta["val"]) for arg in free]
            try:
                part_run, _ = self._whole(bind_inputs(part, fixed), examples)
            except (ValueError, TypeError, RuntimeError) as error:
                reason = str(error).partition("\n")[0]
                self._warn(f"PyTorch runs a part of a graph that cannot be compiled: {reason}")
                continue
            delattr(parent, node.target)
            parent.add_submodule(node.target, _CompiledPart(part_run, part))
            node.args = tuple(free)
            compiled += 1
        if compiled == 0:
            return None
        parent.recompile()
        return lambda *tensors: list(parent(*tensors))


def _with_views(node: torch.fx.Node) -> list[torch.fx.Node]:
    """A node; of one that reads memory by strides also the views that lead to that memory."""
    found = [node]
    if node.target is torch.ops.aten.as_strided.default:
        source = node.args[0]
        while isinstance(source, torch.fx.Node) and _is_view(source):
            found.append(source)
            source = source.args[0]
    return found


def _is_view(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and any(
        result.alias_info is not None for result in node.target._schema.returns
    )


class _Importable(OperatorSupportBase):
    """Which nodes of an exported graph can be compiled."""

    def __init__(self, refused: set[str]) -> None:
        self._refused = refused

    def is_node_supported(
        self, submodules: Mapping[str, torch.nn.Module], node: torch.fx.Node
    ) -> bool:
        return (
            node.op == "call_function"
            and node.name not in self._refused
            and all(map(_is_fixed, [node, *node.all_input_nodes]))
            and (node.target is operator.getitem or can_import(node.target))
        )


def _is_fixed(node: torch.fx.Node) -> bool:
    """Whether a node gives tensors on the processor, whose sizes do not depend on the data."""
    value = node.meta.get("val")
    if node.op == "get_attr" and value is None:
        return True
    values = value if isinstance(value, (list, tuple)) else [value]
    return all(
        isinstance(v, torch.Tensor)
        and v.device.type == "cpu"
        and all(isinstance(extent, int) for extent in v.shape)
        for v in values
    )


class _CompiledPart(torch.nn.Module):
    """A compiled part in the place of the nodes it was made of.

    Its results have the strides that the program says: operators that PyTorch runs on them, such
    as ``as_strided``, may ask for these.
    """

    def __init__(self, run: Run, part: torch.fx.GraphModule) -> None:
        super().__init__()
        self._run = run
        self._returns_one = _returns_one(part)
        (output,) = (node for node in part.graph.nodes if node.op == "output")
        self._strides = [
            None if value is None or value.is_contiguous() else value.stride()
            for value in (node.meta.get("val") for node in output.all_input_nodes)
        ]

    def forward(self, *tensors: torch.Tensor) -> Any:
        results = [
            result if strides is None else _laid_out(result, strides)
            for result, strides in zip(self._run(*tensors), self._strides, strict=True)
        ]
        return results[0] if self._returns_one else results


def _laid_out(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    # Elements of an expanded tensor share memory, which PyTorch writes to no more than once.
    distinct = tensor[tuple(slice(1) if stride == 0 else slice(None) for stride in strides)]
    empty = torch.empty_strided(distinct.shape, strides, dtype=tensor.dtype)
    return empty.copy_(distinct).expand(tensor.shape)


def bind_inputs(module: torch.fx.GraphModule, values: Mapping[int, Any]) -> torch.fx.GraphModule:
    """The graph with some of its inputs, by position, fixed.

    Tensors become buffers. A number takes the place of the input wherever it is read, also where
    the input was a tensor of no dimensions from which the graph takes its number.
    """
    graph = torch.fx.Graph()
    attributes: dict[str, Any] = {}
    env: dict[torch.fx.Node, Any] = {}
    position = 0
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = values.get(position, node)
            if value is node:
                env[node] = graph.node_copy(node)
            elif isinstance(value, torch.Tensor):
                name = f"bound_{position}"
                attributes[name] = value.detach()
                env[node] = graph.get_attr(name)
            else:
                env[node] = value
            position += 1
            continue
        if node.op in ("get_attr", "call_module"):
            attributes[node.target] = _attribute(module, node.target)
        args = torch.fx.node.map_arg(node.args, env.__getitem__)
        is_number = (
            len(args) > 0 and not node.kwargs and all(isinstance(a, (int, float)) for a in args)
        )
        if is_number and node.target == "item":
            env[node] = args[0]
        elif is_number and getattr(node.target, "__module__", "") in ("_operator", "math"):
            env[node] = node.target(*args)
        else:
            env[node] = graph.node_copy(node, env.__getitem__)
    return torch.fx.GraphModule(attributes, graph)


def _without_writes(module: torch.fx.GraphModule, positions: Sequence[int]) -> torch.fx.GraphModule:
    """The graph with copies of some inputs in their places, which become results behind others."""
    graph = torch.fx.Graph()
    env: dict[torch.fx.Node, torch.fx.Node] = {}
    graph.graph_copy(module.graph, env)
    nodes = [env[node] for node in module.graph.nodes if node.op == "placeholder"]
    copies = []
    with graph.inserting_after(nodes[-1]):
        for position in positions:
            copied = graph.call_function(torch.clone, (nodes[position],))
            nodes[position].replace_all_uses_with(copied)
            copied.args = (nodes[position],)
            copies.append(copied)
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    results = torch.fx.node.map_arg(output.args[0], env.__getitem__)
    graph.output((*results, *copies))
    return torch.fx.GraphModule(module, graph)


def _export(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor]
) -> torch.export.ExportedProgram:
    """ATen operators of a graph, which must not write to its inputs or buffers."""
    with torch.no_grad():
        program = torch.export.export(module, tuple(t.detach() for t in inputs), strict=False)
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise WritesToInputs(program.graph_signature)
        if not isinstance(spec.arg, TensorArgument):
            raise ValueError(f"its result {spec.arg} is no tensor")
    return program


class CompiledRun:
    """A graph that is compiled as a whole: calling it with tensors gives a list of tensors.

    Attributes
    ----------
    takes_arrays : whether `of_arrays` may be called.
    """

    def __init__(self, executable: relax.Executable, form: _Form) -> None:
        self._main = relax.VirtualMachine(executable, tvm.cpu())["main"]
        self._form = form
        self.takes_arrays = not form.takes_seed and not form.complex_results

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        seeds = (drawn_seed(),) if self._form.takes_seed else ()
        results = self._results(self._main(*map(as_ndarray, (*tensors, *seeds))))
        for k in self._form.complex_results:
            results[k] = torch.view_as_complex(results[k])
        return results

    def of_arrays(self, arrays: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
        """Results as arrays, of arrays whose elements lie one after the other."""
        result = self._main(*[tvm.nd.from_dlpack(array.__dlpack__()) for array in arrays])
        return [tensor.numpy() for tensor in self._results(result)]

    @staticmethod
    def _results(result: Any) -> list[torch.Tensor]:
        arrays = (result,) if isinstance(result, tvm.nd.NDArray) else result
        return [torch.from_dlpack(array.to_dlpack()) for array in arrays]


def _write(executable: relax.Executable, form: _Form, folder: Path) -> None:
    executable.export_library(folder / _LIBRARY)
    # Written last, so that a folder without it is known to be cut short.
    info = {
        "library_bytes": (folder / _LIBRARY).stat().st_size,
        "complex_results": list(form.complex_results),
        "takes_seed": form.takes_seed,
    }
    write_atomically(folder / _INFO, json.dumps(info) + "\n")


def _read(folder: Path) -> tuple[relax.Executable, _Form]:
    info = read_json(folder / _INFO)
    size = (folder / _LIBRARY).stat().st_size
    if not isinstance(info, dict) or info.get("library_bytes") != size:
        raise ValueError(f"{folder / _LIBRARY} has {size} bytes, not what {_INFO} says")
    form = _Form(info.get("complex_results", []), info.get("takes_seed", False))
    return relax.load_executable(folder / _LIBRARY), form


def _graph_text(module: torch.fx.GraphModule) -> str | None:
    """All that a graph computes but its tensors; None where functions are not known by name."""
    numbers = {node: f"%{i}" for i, node in enumerate(module.graph.nodes)}
    lines = []
    for node in module.graph.nodes:
        target = node.target
        if node.op == "call_module" or isinstance(target, torch._ops.HigherOrderOperator):
            return None
        if node.op == "call_function" and not isinstance(target, torch._ops.OpOverload):
            home = getattr(target, "__module__", None) or "torch"
            if home.partition(".")[0] not in _KNOWN_MODULES:
                return None
            target = f"{home}.{getattr(target, '__qualname__', target.__name__)}"
        if node.op == "placeholder":
            target = ""
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: _Name(numbers[n]))
        lines.append(f"{numbers[node]} {node.op} {target} {args!r} {kwargs!r}")
    return "\n".join(lines)


class _Name(str):
    """The name of a node, which no text of the graph can be taken for."""

    def __repr__(self) -> str:
        return str(self)


def _tensors_of(module: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    return {
        node.target: _attribute(module, node.target)
        for node in module.graph.nodes
        if node.op == "get_attr"
    }


def _attribute(module: torch.nn.Module, path: str) -> Any:
    return operator.attrgetter(path)(module)


def _bytes_of(tensor: torch.Tensor) -> Any:
    """The elements of a tensor as a buffer, without a copy where they lie together."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else b""


def _example_of(value: torch.Tensor) -> torch.Tensor:
    return torch.zeros(tuple(value.shape), dtype=value.dtype)


def _returns_one(module: torch.fx.GraphModule) -> bool:
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    return isinstance(output.args[0], torch.fx.Node)
