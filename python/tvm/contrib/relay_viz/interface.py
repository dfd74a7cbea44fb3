"""What a picture of a relay module is made of: nodes, edges, who finds them, who draws them."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm import ir, relay
from tvm.runtime import NDArray

__all__ = ["DefaultVizParser", "Plotter", "VizEdge", "VizGraph", "VizNode", "VizParser"]


@dataclass(frozen=True)
class VizNode:
    """A node of a picture.

    Attributes
    ----------
    identity : unlike that of any other node of the graph.
    type_name : what it is, such as ``Call nn.dense``.
    detail : lines about it, such as attributes.
    """

    identity: str
    type_name: str
    detail: str


@dataclass(frozen=True)
class VizEdge:
    """An edge of a picture, by the identities of its ends."""

    start: str
    end: str


class VizParser(abc.ABC):
    """Finds the node and the edges of an expression."""

    @abc.abstractmethod
    def get_node_edges(
        self,
        node: relay.Expr,
        relay_param: Mapping[str, NDArray],
        node_to_id: Mapping[relay.Expr, str],
    ) -> tuple[VizNode | None, list[VizEdge]]:
        """What an expression adds to the picture: a node, or None, and edges.

        Parameters
        ----------
        relay_param : the values of parameters by name.
        node_to_id : identities of all expressions of the function.
        """


class VizGraph(abc.ABC):
    """The picture of one function."""

    @abc.abstractmethod
    def node(self, viz_node: VizNode) -> None:
        """Add a node; nodes come after those that they use."""

    @abc.abstractmethod
    def edge(self, viz_edge: VizEdge) -> None:
        """Add an edge."""


class Plotter(abc.ABC):
    """Makes the graphs of a module's functions and writes them."""

    @abc.abstractmethod
    def create_graph(self, name: str) -> VizGraph:
        """An empty graph for the function of this name."""

    @abc.abstractmethod
    def render(self, filename: str | None) -> None:
        """Write all graphs; None leaves the place to the plotter."""


class DefaultVizParser(VizParser):
    """A node for every expression but operators and names of functions."""

    def get_node_edges(
        self,
        node: relay.Expr,
        relay_param: Mapping[str, NDArray],
        node_to_id: Mapping[relay.Expr, str],
    ) -> tuple[VizNode | None, list[VizEdge]]:
        if isinstance(node, ir.Op | relay.GlobalVar):
            return None, []
        kind, detail = self._describe(node, relay_param)
        identity = node_to_id[node]
        edges = [VizEdge(node_to_id[used], identity) for used in _used(node) if used in node_to_id]
        return VizNode(identity, kind, "\n".join(detail)), edges

    def _describe(
        self, node: relay.Expr, relay_param: Mapping[str, NDArray]
    ) -> tuple[str, list[str]]:
        """What an expression is called, and lines about it."""
        if isinstance(node, relay.Var):
            what = "Var(Param)" if node.name_hint in relay_param else "Var(Input)"
            return what, [f"name_hint: {node.name_hint}", *_type_lines(node.type_annotation)]
        if isinstance(node, relay.Constant):
            return "Const", [f"shape: {tuple(node.data.shape)}", f"dtype: {node.data.dtype}"]
        if isinstance(node, relay.Function):
            return f"Func {_composite(node)}".strip(), _attrs(node.attrs)
        if isinstance(node, relay.Call):
            if isinstance(node.op, ir.Op):
                return f"Call {node.op.name}", _attrs(node.attrs)
            if isinstance(node.op, relay.Function):
                name = _composite(node.op) or "Anonymous Func"
                return f"Call {name}", _attrs(node.op.attrs)
            if isinstance(node.op, relay.GlobalVar):
                return f"Call {node.op.name_hint}", []
            return f"Call {type(node.op).__name__}", []
        if isinstance(node, relay.TupleGetItem):
            return "TupleGetItem", [f"idx: {node.index}"]
        return type(node).__name__, []


def _used(node: relay.Expr) -> list[relay.Expr]:
    """The expressions that one takes its value from."""
    if isinstance(node, relay.Call):
        called = [] if isinstance(node.op, ir.Op | relay.GlobalVar) else [node.op]
        return [*called, *node.args]
    if isinstance(node, relay.Tuple):
        return list(node.fields)
    if isinstance(node, relay.TupleGetItem):
        return [node.tuple_value]
    if isinstance(node, relay.Function):
        return [node.body]
    if isinstance(node, relay.Let):
        return [node.var, node.value, node.body]
    if isinstance(node, relay.If):
        return [node.cond, node.true_branch, node.false_branch]
    return []


def _composite(function: relay.Function) -> str:
    return str(function.attrs["Composite"]) if "Composite" in _names(function.attrs) else ""


def _names(attrs: Any) -> list[str]:
    return [] if attrs is None else list(map(str, attrs.keys()))


def _attrs(attrs: Any) -> list[str]:
    return [f"{name}: {attrs[name]}" for name in _names(attrs)]


def _type_lines(annotation: Any) -> list[str]:
    if annotation is None:
        return []
    if hasattr(annotation, "shape"):
        shape = ", ".join(map(str, annotation.shape))
        return [f"shape: ({shape})", f"dtype: {annotation.dtype}"]
    return [f"type: {annotation}"]
