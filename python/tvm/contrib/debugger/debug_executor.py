"""Running a compiled graph node by node: what each computes, and how long it takes."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm.contrib import graph_executor
from tvm.runtime import BenchmarkResult, Device, Module, NDArray
from tvm.runtime.profiling import MetricCollector, Report

from .debug_result import DebugResult

__all__ = ["GraphModuleDebug", "create"]


def create(
    graph_json_str: str,
    libmod: Module,
    device: Device | Sequence[Device],
    dump_root: str | Path | None = None,
) -> GraphModuleDebug:
    """A debugging executor of a graph.

    Parameters
    ----------
    graph_json_str : the graph, as `graph_executor.create` takes it.
    libmod : module with its kernels, local or of an RPC session.
    dump_root : see :class:`GraphModuleDebug`.

    Raises
    ------
    ValueError : the text is no graph, or the library lacks a kernel of it.
    """
    name = "tvm.graph_executor_debug.create"
    module = graph_executor.make_executor(name, graph_json_str, libmod, device)
    return GraphModuleDebug(module, device, graph_json_str, dump_root)


class GraphModuleDebug(graph_executor.GraphModule):
    """An executor that keeps the value of every node.

    Parameters
    ----------
    module : of `create`, or of ``lib["debug_create"]("default", device)``.
    device : where the graph runs.
    graph_json_str : the graph.
    dump_root : folder below which a folder for the device gets the graph and, with every `run`,
        values and times. A temporary folder by default. `exit` removes it.

    Attributes
    ----------
    debug_datum : what the last run found.
    """

    def __init__(
        self,
        module: Module,
        device: Device | Sequence[Device],
        graph_json_str: str,
        dump_root: str | Path | None = None,
    ) -> None:
        super().__init__(module)
        self._execute_node = module["execute_node"]
        self._get_node_output = module["get_node_output"]
        self._dump_root = Path(dump_root or tempfile.mkdtemp(prefix="tvmdbg_"))
        self._dump_path = self._dump_root / _folder_name(device)
        self._dump_path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.debug_datum = DebugResult(graph_json_str, self._dump_path)

    def run(  # type: ignore[override]
        self,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        sort_by_time: bool = True,
        **input_dict: Any,
    ) -> None:
        """Time every node, compute the outputs, write values and times to the folder and print a
        table.

        Parameters
        ----------
        number, ..., repeats_to_cooldown : see `run_individual`.
        sort_by_time : the table begins with the slowest node.
        input_dict : inputs by name, set before.
        """
        if input_dict:
            self.set_input(**input_dict)
        self.debug_datum.set_times(
            self.run_individual(
                number,
                repeat,
                min_repeat_ms,
                limit_zero_time_iterations,
                cooldown_interval_ms,
                repeats_to_cooldown,
            )
        )
        self._run_per_layer()
        self._run()
        self.debug_datum.dump_output_tensor()
        self.debug_datum.dump_chrome_trace()
        self.debug_datum.display_debug_result(sort_by_time)

    def _run_per_layer(self) -> None:
        values = []
        for number, node in enumerate(self.debug_datum.get_graph_nodes()):
            self._execute_node(number)
            outputs = self.debug_datum.get_graph_node_output_num(node)
            values += [self._get_node_output(number, output) for output in range(outputs)]
        self.debug_datum.update_output_tensors(values)

    def execute_node(self, node: int | str) -> list[NDArray]:
        """Run one node, whose inputs are what was computed before; its results.

        Node 0 begins a new run. Raises IndexError if there is no such node, KeyError for an unknown
        name.
        """
        number = self._number(node)
        self._execute_node(number)
        described = self.debug_datum.get_graph_nodes()[number]
        outputs = self.debug_datum.get_graph_node_output_num(described)
        return [self._get_node_output(number, output) for output in range(outputs)]

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[list[float]]:
        """Seconds of each node by itself, one number for each repeat; 0 for inputs.

        The parameters are those of :meth:`tvm.runtime.Module.time_evaluator`.
        """
        measured = self.module["run_individual"](
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
            repeats_to_cooldown,
        )  # fmt: skip
        return [[float(seconds) for seconds in of_node] for of_node in measured]

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Seconds of one node; see `run_individual`. IndexError if there is no such node."""
        measured = self.module["run_individual_node"](
            index, number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms,
            repeats_to_cooldown,
        )  # fmt: skip
        return BenchmarkResult(tuple(float(seconds) for seconds in measured))

    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """Run the graph up to a node, given by number or name, and give its first result.

        Parameters
        ----------
        out : filled with the result if given.

        Raises
        ------
        IndexError : there is no such node. KeyError : none has that name.
        """
        number = self._number(node)
        if out is None:
            return self.module["debug_get_output"](number)
        self.module["debug_get_output"](number, out)
        return out

    def _number(self, node: int | str) -> int:
        if isinstance(node, int):
            return node
        if not isinstance(node, str):
            raise TypeError(f"a node is given by number or name, got {type(node).__name__}")
        names = [known["name"] for known in self.debug_datum.get_graph_nodes()]
        if node not in names:
            raise KeyError(f"the graph has no node '{node}'; it has {', '.join(names)}")
        return names.index(node)

    def profile(
        self, collectors: Sequence[MetricCollector] | None = None, **input_dict: Any
    ) -> Report:
        """Run the graph once, after runs to warm up, and report the time of every call.

        Parameters
        ----------
        collectors : measure more than time, see `tvm.runtime.profiling`.
        input_dict : inputs by name, set before.
        """
        if input_dict:
            self.set_input(**input_dict)
        return self.module["profile"](list(collectors or ()))

    def exit(self) -> None:
        """Remove the folder and all that is in it."""
        shutil.rmtree(self._dump_root, ignore_errors=True)


def _folder_name(device: Device | Sequence[Device]) -> str:
    text = str(graph_executor.first_device(device)).upper()
    return "_tvmdbg_device_" + "_".join(re.findall(r"\w+", text))
