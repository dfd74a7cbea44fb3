"""Relay modules as indented text."""

from __future__ import annotations

from pathlib import Path

from tvm.runtime.files import write_atomically

from .interface import DefaultVizParser, Plotter, VizEdge, VizGraph, VizNode

__all__ = ["TermGraph", "TermPlotter", "TermVizParser"]

TermVizParser = DefaultVizParser


class TermGraph(VizGraph):
    """One function: each node below the one that uses it, and once only."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._nodes: dict[str, VizNode] = {}
        self._inputs: dict[str, list[str]] = {}

    def node(self, viz_node: VizNode) -> None:
        self._nodes[viz_node.identity] = viz_node

    def edge(self, viz_edge: VizEdge) -> None:
        self._inputs.setdefault(viz_edge.end, []).append(viz_edge.start)

    def render(self) -> str:
        """The text; a node that is used again is named by its number."""
        used = {start for starts in self._inputs.values() for start in starts}
        lines = [f"@{self.name}"]
        seen: set[str] = set()
        # Innermost work first on the stack, so that what is used first is printed first.
        open_ = [(0, name) for name in reversed(self._nodes) if name not in used]
        while open_:
            depth, name = open_.pop()
            node = self._nodes.get(name)
            if node is None:
                continue
            detail = ", ".join(node.detail.splitlines())
            again = name in seen
            text = f"{name}: {node.type_name}" + (f" ({detail})" if detail else "")
            lines.append("  " * depth + "`--" + (f"{name} above" if again else text))
            if not again:
                seen.add(name)
                inputs = self._inputs.get(name, [])
                open_ += [(depth + 1, used_here) for used_here in reversed(inputs)]
        return "\n".join(lines) + "\n"


class TermPlotter(Plotter):
    """Prints the graphs, or writes them to a file."""

    def __init__(self) -> None:
        self._name_to_graph: dict[str, TermGraph] = {}

    def create_graph(self, name: str) -> TermGraph:
        self._name_to_graph[name] = TermGraph(name)
        return self._name_to_graph[name]

    def render(self, filename: str | None) -> None:
        text = "\n".join(graph.render() for graph in self._name_to_graph.values())
        if filename is None:
            print(text)
        else:
            write_atomically(Path(filename), text)
