"""Relay modules in the DOT language, drawn where Graphviz is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tvm.runtime.files import write_atomically

from ..dot import Digraph, draw
from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

__all__ = ["DotGraph", "DotPlotter", "DotVizParser"]

DotVizParser = DefaultVizParser

_KNOWN_OPTIONS = ("format",)


def _shape_of(node: VizNode) -> dict[str, str]:
    return {"shape": "ellipse" if "Var" in node.type_name else "box"}


class DotGraph(VizGraph):
    """One function as a cluster; see DotPlotter for the attributes."""

    def __init__(
        self,
        name: str,
        graph_attr: Mapping[str, str] | None = None,
        node_attr: Mapping[str, str] | None = None,
        edge_attr: Mapping[str, str] | None = None,
        get_node_attr: Callable[[VizNode], Mapping[str, str]] | None = None,
    ) -> None:
        self.digraph = Digraph(name, graph_attr, node_attr, edge_attr)
        self._get_node_attr = get_node_attr or _shape_of

    def node(self, viz_node: VizNode) -> None:
        label = f"{viz_node.type_name}\n{viz_node.detail}"
        self.digraph.node(viz_node.identity, label, **self._get_node_attr(viz_node))

    def edge(self, viz_edge: VizEdge) -> None:
        self.digraph.edge(viz_edge.start, viz_edge.end)


class DotPlotter(Plotter):
    """Writes the graphs as DOT, and as a picture where Graphviz is installed.

    Parameters
    ----------
    graph_attr, node_attr, edge_attr : attributes of Graphviz for all graphs, nodes and edges.
    get_node_attr : attributes of one node.
    render_kwargs : `format` of the picture, by default "pdf".

    Raises
    ------
    ValueError : another option in `render_kwargs`.
    """

    def __init__(
        self,
        graph_attr: Mapping[str, str] | None = None,
        node_attr: Mapping[str, str] | None = None,
        edge_attr: Mapping[str, str] | None = None,
        get_node_attr: Callable[[VizNode], Mapping[str, str]] | None = None,
        render_kwargs: Mapping[str, str] | None = None,
    ) -> None:
        self._attributes = (graph_attr, node_attr, edge_attr, get_node_attr)
        self._graphs: dict[str, DotGraph] = {}
        self._options = dict(render_kwargs or {})
        for name in self._options:
            if name not in _KNOWN_OPTIONS:
                raise ValueError(
                    f"DotPlotter: unknown option {name!r} of render_kwargs; known are "
                    f"{', '.join(_KNOWN_OPTIONS)}"
                )

    def create_graph(self, name: str) -> DotGraph:
        graph_attr, node_attr, edge_attr, get_node_attr = self._attributes
        self._graphs[name] = DotGraph(name, graph_attr, node_attr, edge_attr, get_node_attr)
        return self._graphs[name]

    def render(self, filename: str | None = None) -> None:
        """Write ``filename.dot`` and, where Graphviz is installed, the picture beside it.

        Raises
        ------
        RuntimeError : Graphviz refuses an attribute or the format.
        """
        base = filename or "relay"
        root = Digraph()
        for graph in self._graphs.values():
            root.cluster(graph.digraph)
        write_atomically(Path(f"{base}.dot"), str(root))
        form = self._options.get("format", "pdf")
        draw(root, Path(f"{base}.{form}"), form)
