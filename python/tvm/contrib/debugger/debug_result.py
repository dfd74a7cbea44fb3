"""What a debugged run found, as a table and as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm.runtime import NDArray, save_param_dict_to_file

__all__ = ["DebugResult"]

_GRAPH_FILE = "_tvmdbg_graph_dump.json"
_TRACE_FILE = "_tvmdbg_execution_trace.json"
_TENSOR_FILE = "output_tensors.params"

_COLUMNS = (
    "Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)",
)  # fmt: skip


@dataclass
class _Times:
    """Seconds of each node, one number for each repeat."""

    of_nodes: list[list[float]] = field(default_factory=list)

    def mean(self, node: int) -> float:
        seconds = self.of_nodes[node]
        return sum(seconds) / len(seconds)


class DebugResult:
    """Collects times and values of a graph's nodes.

    The folder gets the graph as soon as there is a result to collect, and the values and the times
    of a run when `dump_output_tensor` and `dump_chrome_trace` are called.

    Parameters
    ----------
    graph_json : the graph.
    dump_path : an existing folder.
    """

    def __init__(self, graph_json: str, dump_path: str | Path) -> None:
        self._folder = Path(dump_path)
        self._graph: dict[str, Any] = json.loads(graph_json)
        self._values: list[NDArray] = []
        self._times = _Times()
        self._nodes = self._described_nodes()
        (self._folder / _GRAPH_FILE).write_text(json.dumps(self._graph, indent=4))

    def _described_nodes(self) -> list[dict[str, Any]]:
        nodes = [dict(node) for node in self._graph["nodes"]]
        shapes, dtypes = self.get_graph_node_shapes()[1], self.get_graph_node_dtypes()[1]
        entry = 0
        for node in nodes:
            attrs = dict(node.get("attrs", {}))
            node["op"] = attrs.get("func_name", "param")
            node["inputs"] = [nodes[used]["name"] for used, *_ in node["inputs"]]
            node["attrs"] = {**attrs, "T": f"type: {dtypes[entry]}"}
            node["shape"] = shapes[entry]
            # Shapes and types are listed for each result of each node.
            entry += self.get_graph_node_output_num(node)
        return nodes

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        """The nodes: name, "op" (function or "param"), names of "inputs", "attrs" with the type
        under "T", and the "shape" of the first result."""
        return self._nodes

    def get_graph_node_shapes(self) -> list[Any]:
        """Attribute "shape" of the graph: a kind and a shape for each value."""
        return self._graph["attrs"]["shape"]

    def get_graph_node_dtypes(self) -> list[Any]:
        """Attribute "dltype" of the graph: a kind and an element type for each value."""
        return self._graph["attrs"]["dltype"]

    def get_graph_node_output_num(self, node: dict[str, Any]) -> int:
        """Number of results of a node."""
        return 1 if node["op"] == "param" else int(node["attrs"]["num_outputs"])

    def update_output_tensors(self, tensors: Sequence[NDArray]) -> None:
        """Take the values of all results of all nodes, in order."""
        self._values = list(tensors)

    def set_times(self, seconds: Sequence[Sequence[float]]) -> None:
        """Take the seconds of each node, one for each repeat."""
        self._times = _Times([list(map(float, of_node)) for of_node in seconds])

    def get_output_tensors(self) -> dict[str, NDArray]:
        """Values by node and number of the result: "<name>____topo-index:0____output-num:0"."""
        names = [
            f"{node['name']}____topo-index:{number}____output-num:{output}"
            for number, node in enumerate(self._nodes)
            for output in range(self.get_graph_node_output_num(node))
        ]
        return dict(zip(names, self._values))

    def dump_output_tensor(self) -> None:
        """Write the values to "output_tensors.params", which `load_param_dict` reads."""
        save_param_dict_to_file(self.get_output_tensors(), self._folder / _TENSOR_FILE)

    def dump_chrome_trace(self) -> None:
        """Write the times as a trace that chrome://tracing shows: nodes one after the other."""
        events, now = [], 0.0
        for number, node in enumerate(self._nodes[: len(self._times.of_nodes)]):
            mean = self._times.mean(number) * 1e6
            for phase, at in (("B", now), ("E", now + mean)):
                events.append({"ts": at, "ph": phase, "pid": 1, "tid": 1, "name": node["name"],
                               "cat": "", "args": {}})  # fmt: skip
            now += mean
        trace = {"displayTimeUnit": "ns", "traceEvents": events}
        (self._folder / _TRACE_FILE).write_text(json.dumps(trace))

    def _rows(self, sort_by_time: bool) -> list[tuple[float, list[str]]]:
        total = sum(self._times.mean(k) for k in range(len(self._times.of_nodes)))
        rows, entry = [], 0
        for number, node in enumerate(self._nodes[: len(self._times.of_nodes)]):
            outputs = self.get_graph_node_output_num(node)
            if node["op"] != "param":
                mean = self._times.mean(number)
                repeats = [round(seconds * 1e6, 3) for seconds in self._times.of_nodes[number]]
                for value in self._values[entry : entry + outputs]:
                    percent = round(100 * mean / total, 3) if total > 0 else 0.0
                    cells = [node["name"], node["op"], round(mean * 1e6, 3), percent, value.shape,
                             node["attrs"]["num_inputs"], outputs, repeats]  # fmt: skip
                    rows.append((mean, [str(cell) for cell in cells]))
            entry += outputs
        return sorted(rows, key=lambda row: -row[0]) if sort_by_time else rows

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """A table with a line for each result of each call, and one of the total.

        Parameters
        ----------
        sort_by_time : longest first, instead of the order of the graph.
        """
        total = sum(self._times.mean(k) for k in range(len(self._times.of_nodes)))
        table = [
            list(_COLUMNS),
            ["-" * len(name) for name in _COLUMNS],
            *(cells for _, cells in self._rows(sort_by_time)),
            ["Total_time", "-", str(round(total * 1e6, 3)), *["-"] * (len(_COLUMNS) - 3)],
        ]
        widths = [max(map(len, column)) + 2 for column in zip(*table)]
        return "\n".join(
            "".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in table
        )

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print `get_debug_result`."""
        print(self.get_debug_result(sort_by_time))
