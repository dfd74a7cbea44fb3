"""Running a compiled graph: set inputs, run, get outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm._ffi import get_global_func
from tvm.runtime import BenchmarkResult, Device, Module, NDArray, load_param_dict
from tvm.runtime.executor import GraphFunctions

__all__ = ["GraphModule", "create", "first_device", "make_executor"]


def create(graph_json_str: str, libmod: Module, device: Device | Sequence[Device]) -> GraphModule:
    """An executor of a graph.

    Parameters
    ----------
    graph_json_str : the graph of ``relay.build``, or one written by hand in the same form: "nodes",
        of which those of op "null" are inputs and parameters and those of op "tvm_op" calls of the
        kernel "func_name"; "arg_nodes", "heads", and "attrs" with "shape" and "dltype".
    libmod : module with the kernels, local or of an RPC session. That of ``relay.build`` brings its
        parameters along with its graph.
    device : where the graph runs.

    Raises
    ------
    ValueError : the text is no graph, its values lie on several devices, or the library lacks a
        kernel of it.
    """
    return GraphModule(make_executor("tvm.graph_executor.create", graph_json_str, libmod, device))


def make_executor(
    name: str, graph_json_str: str, libmod: Module, device: Device | Sequence[Device]
) -> Module:
    """What the global function `name` makes of a graph and a library, in the process of both.

    Raises
    ------
    TypeError : the graph is no text.
    """
    if not isinstance(graph_json_str, str):
        raise TypeError(f"{name}: the graph is a JSON text, got {type(graph_json_str).__name__}")
    first = first_device(device)
    session = getattr(first, "_rpc_sess", None)
    make = get_global_func(name) if session is None else session.get_function(name)
    return make(graph_json_str, libmod, first.device_type % _SESSION_MASK, first.device_id)


# Kinds of devices of a session are numbered from multiples of it.
_SESSION_MASK = 128


def first_device(device: Device | Sequence[Device]) -> Device:
    """The device, or the first of several."""
    return device if isinstance(device, Device) else device[0]


class GraphModule(GraphFunctions):
    """A face on the functions of an executor, which ``lib["default"](device)`` gives.

    Its inputs are the graph's, then its parameters as "p0", "p1", ...
    """

    def set_input_zero_copy(self, key: Any = None, value: Any = None, **params: Any) -> None:
        """Read inputs from arrays of the caller, whose later contents count."""
        if key is not None:
            self.module["set_input_zero_copy"](key, value)
        for name, given in params.items():
            self.module["set_input_zero_copy"](name, given)

    def set_output_zero_copy(self, key: int | str, value: NDArray) -> None:
        """Write an output, given by number or as "output<number>", into the caller's array too."""
        number = int(key.removeprefix("output")) if isinstance(key, str) else key
        self.module["set_output_zero_copy"](number, value)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set parameters, and inputs, from bytes that ``save_param_dict`` made."""
        self.module["load_params"](bytes(params_bytes))

    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray) -> None:
        """Use the parameters of another executor of the same library, in its memory.

        Parameters
        ----------
        params_bytes : of parameters that the other does not have yet; may be empty. Inputs that it
            names are shared as well: a library that was built without parameters has them there.
        """
        if params_bytes:
            other.load_params(params_bytes)
        self.module["share_params"](other.module)
        for name in load_param_dict(bytes(params_bytes)) if params_bytes else ():
            if name in self.get_input_info()[0]:
                self.set_input_zero_copy(name, other.get_input(name))

    def benchmark(
        self,
        device: Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: int | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """Seconds of a run.

        Parameters
        ----------
        repeat, number : measurements, and runs that each is the mean of.
        end_to_end : whether copying the inputs and outputs counts.
        kwargs : inputs by name.
        """
        if end_to_end:
            return self._end_to_end(device, repeat, number, kwargs)
        if kwargs:
            self.set_input(**kwargs)
        return self.module.time_evaluator(
            func_name, device, number, repeat, min_repeat_ms=min_repeat_ms or 0,
            limit_zero_time_iterations=limit_zero_time_iterations,
            cooldown_interval_ms=cooldown_interval_ms, repeats_to_cooldown=repeats_to_cooldown,
        )()  # fmt: skip

    def _end_to_end(
        self, device: Device, repeat: int, number: int, inputs: dict[str, Any]
    ) -> BenchmarkResult:
        arrays = {name: np.asarray(value.numpy() if isinstance(value, NDArray) else value)
                  for name, value in inputs.items()}  # fmt: skip
        results = []
        for _ in range(repeat):
            begin = time.perf_counter()
            for _ in range(number):
                self.run(**arrays)
                for k in range(self.get_num_outputs()):
                    self.get_output(k).numpy()
            results.append((time.perf_counter() - begin) / number)
        return BenchmarkResult(tuple(results))
