"""Graphs in the DOT language of Graphviz, as text."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Digraph", "draw"]

_SECONDS = 300.0


def _quoted(text: object) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _attributes(given: Mapping[str, object]) -> str:
    return "[" + ", ".join(f"{name}={_quoted(value)}" for name, value in given.items()) + "]"


class Digraph:
    """A directed graph, or a cluster inside one.

    Parameters
    ----------
    name : of the graph.
    graph, node, edge : attributes of the graph, and of all its nodes and edges.
    """

    def __init__(
        self,
        name: str = "",
        graph: Mapping[str, object] | None = None,
        node: Mapping[str, object] | None = None,
        edge: Mapping[str, object] | None = None,
    ) -> None:
        self.name = name
        self._lines: list[str] = []
        self._clusters: list[Digraph] = []
        for kind, attributes in (("graph", graph), ("node", node), ("edge", edge)):
            if attributes:
                self._lines.append(f"{kind} {_attributes(attributes)};")

    def node(self, name: str, label: str, **attributes: object) -> None:
        """Add a node."""
        self._lines.append(f"{_quoted(name)} {_attributes({'label': label, **attributes})};")

    def edge(self, start: str, end: str, **attributes: object) -> None:
        """Add an edge between two nodes."""
        what = f" {_attributes(attributes)}" if attributes else ""
        self._lines.append(f"{_quoted(start)} -> {_quoted(end)}{what};")

    def cluster(self, part: Digraph) -> None:
        """Add a part that is drawn in a frame of its own, with its name above."""
        self._clusters.append(part)

    def __str__(self) -> str:
        return "\n".join([f"digraph {_quoted(self.name)} {{", *self._body("  "), "}", ""])

    def _body(self, indent: str) -> list[str]:
        lines = [indent + line for line in self._lines]
        for part in self._clusters:
            lines.append(f"{indent}subgraph {_quoted('cluster_' + part.name)} {{")
            lines.append(f"{indent}  label={_quoted(part.name)};")
            lines += part._body(indent + "  ")
            lines.append(indent + "}")
        return lines


def draw(graph: Digraph, path: Path, form: str) -> bool:
    """Have Graphviz draw a graph into a file of a form such as "svg"; False where it is missing.

    Raises
    ------
    RuntimeError : it refuses the graph or the form; the message is its own.
    """
    program = shutil.which("dot")
    if program is None:
        return False
    done = subprocess.run(
        [program, f"-T{form}", "-o", str(path)],
        input=str(graph),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"dot: {done.stderr.strip()}")
    return True
