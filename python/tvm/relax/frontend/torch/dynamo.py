"""Graphs of TorchDynamo: as a backend of ``torch.compile``, and as functions of a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import fx

import tvm
from tvm import error
from tvm.ir import IRModule
from tvm.relax.vm_build import build
from tvm.runtime import NDArray
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target
from tvm.transform import Pass

from .fx_graph import from_fx

__all__ = ["dynamo_capture_subgraphs", "relax_dynamo"]

Compiled = Callable[..., Any]


def _is_weight(node: fx.Node, value: Any) -> bool:
    # Dynamo gives what a module holds as inputs; buffers are told by the name of where they are.
    return isinstance(value, torch.nn.Parameter) or "_buffers_" in str(node.name).lower()


def _with_weights(
    graph_module: fx.GraphModule, example_inputs: Sequence[Any]
) -> tuple[fx.GraphModule, list[int]]:
    """The graph with parameters and buffers as its own, and which of the inputs are left."""
    made = fx.GraphModule(graph_module, deepcopy(graph_module.graph))
    left = []
    nodes = [node for node in made.graph.nodes if node.op == "placeholder"]
    for place, (node, value) in enumerate(zip(nodes, example_inputs, strict=True)):
        if not isinstance(value, torch.Tensor):
            raise error.ValueError(
                f"relax_dynamo: the input '{node.name}' is a number that changes; compile with "
                "torch.compile(..., dynamic=False)"
            )
        if not _is_weight(node, value):
            left.append(place)
            continue
        if isinstance(value, torch.nn.Parameter):
            made.register_parameter(str(node.name), value)
        else:
            made.register_buffer(str(node.name), value)
        with made.graph.inserting_before(node):
            weight = made.graph.get_attr(str(node.name))
        node.replace_all_uses_with(weight)
        made.graph.erase_node(node)
    made.recompile()
    return made, left


def _info(value: torch.Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(int(e) for e in value.shape), str(value.dtype).removeprefix("torch.")


def _array(value: torch.Tensor, device: tvm.runtime.Device) -> NDArray:
    return tvm.nd.array(tvm.nd.from_dlpack(value.detach().contiguous()), device)


def relax_dynamo(
    pipeline: Pass | None = None, target: Target | str = "llvm"
) -> Callable[[fx.GraphModule, Sequence[Any]], Compiled]:
    """A backend of ``torch.compile`` that runs each graph of tensors by relax, for inference.

    Parameters
    ----------
    pipeline : what the module of a graph goes through before it is compiled; that of
        ``relax.build`` by default.
    target : what to compile for.

    Examples
    --------
    >>> compiled = torch.compile(model, backend=relax_dynamo())
    """
    resolved = target if isinstance(target, Target) else Target(target)

    def backend(graph_module: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        graph, left = _with_weights(graph_module, example_inputs)
        mod = from_fx(graph, [_info(example_inputs[k]) for k in left])
        device = tvm.device(resolved.kind.name, 0)
        chosen = {} if pipeline is None else {"pipeline": pipeline}
        machine = VirtualMachine(build(mod, resolved, **chosen), device)

        def run(*args: torch.Tensor) -> Any:
            result = machine["main"](*[_array(args[k], device) for k in left])
            parts = [result] if isinstance(result, NDArray) else list(result)
            return tuple(torch.from_dlpack(part) for part in parts)

        return run

    return backend


def dynamo_capture_subgraphs(model: Any, *params: Any, **kwargs: Any) -> IRModule:
    """A module with a function for each graph that TorchDynamo finds while the model runs once.

    Where Python does something that no graph can do, a graph ends and another one begins; they are
    called ``subgraph_0``, ``subgraph_1`` and so on.

    Parameters
    ----------
    params, kwargs : what the model is called with. ``keep_params_as_input`` among the latter is
        taken out: whether parameters are inputs, behind the others, instead of constants; their
        values are the attribute "params" then.
    """
    keep = bool(kwargs.pop("keep_params_as_input", False))
    mod = IRModule()

    def capture(graph_module: fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        graph, left = _with_weights(graph_module, example_inputs)
        info = [_info(example_inputs[k]) for k in left]
        found = from_fx(graph, info, keep_params_as_input=keep, unwrap_unit_return_tuple=True)
        name = f"subgraph_{len(mod.functions)}"
        mod[name] = found["main"].with_attr("global_symbol", name)
        return graph_module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=capture, dynamic=False)(*params, **kwargs)
    return mod
