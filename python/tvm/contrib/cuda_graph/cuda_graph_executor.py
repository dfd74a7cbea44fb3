"""Running a compiled graph whose launches are recorded once as a CUDA graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.contrib import graph_executor
from tvm.runtime import Device, Module

__all__ = ["GraphModuleCudaGraph", "create"]


def create(
    graph_json_str: str, libmod: Module, device: Device | Sequence[Device]
) -> GraphModuleCudaGraph:
    """An executor of a graph; the parameters are those of `graph_executor.create`.

    Raises
    ------
    ValueError : the device is no CUDA device, and as `graph_executor.create`.
    """
    name = "tvm.graph_executor_cuda_graph.create"
    return GraphModuleCudaGraph(graph_executor.make_executor(name, graph_json_str, libmod, device))


class GraphModuleCudaGraph(graph_executor.GraphModule):
    """An executor that records its launches when it first runs and then launches them together.

    Parameters
    ----------
    module : of `create`, or of ``lib["cuda_graph_create"](device)``.
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self._captured = False

    def capture_cuda_graph(self) -> None:
        """Run once, then record a run.

        What kernels prepare when they are first called is not recorded. After
        `set_input_zero_copy` record again.
        """
        self._run()
        self.module["start_capture"]()
        try:
            self._run()
        finally:
            self.module["end_capture"]()
        self._captured = True

    def run_cuda_graph(self) -> None:
        """Launch what was recorded; ValueError if nothing was, or if inputs have moved since."""
        self.module["run_cuda_graph"]()

    def run(self, **input_dict: Any) -> None:
        """Compute the outputs; records at the first call.

        Parameters
        ----------
        input_dict : inputs by name, set before.
        """
        if input_dict:
            self.set_input(**input_dict)
        if not self._captured:
            self.capture_cuda_graph()
        self.run_cuda_graph()
