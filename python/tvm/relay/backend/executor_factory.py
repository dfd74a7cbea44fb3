"""What `relay.build` gives: a library, its graph and its parameters."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tvm.ir import IRModule
from tvm.relax import Executable
from tvm.runtime import Module, NDArray
from tvm.target import Target

from .executor import Executor

__all__ = ["AOTExecutorFactoryModule", "ExecutorFactoryModule", "GraphExecutorFactoryModule"]


class ExecutorFactoryModule:
    """Makes executors: ``factory["default"](device)``.

    Attributes
    ----------
    ir_mod : what was built. target : what for. executor : of which kind. libmod_name : "default" or
    as given.
    """

    def __init__(
        self,
        ir_mod: IRModule,
        target: Target,
        executor: Executor,
        executable: Executable,
        libmod_name: str = "default",
    ) -> None:
        self.ir_mod = ir_mod
        self.target = target
        self.executor = executor
        self.executable = executable
        self.libmod_name = libmod_name

    @property
    def module(self) -> Module:
        """The runtime module, which is exported with everything in it."""
        return self.executable.mod

    @property
    def lib(self) -> Module:
        """The library; the runtime module that has the graph too."""
        return self.module

    @property
    def params(self) -> dict[str, NDArray]:
        """Parameters under the executors' names, laid out as kernels want them."""
        return {str(k): v for k, v in self.module["get_graph_params"]().items()}

    def get_params(self) -> dict[str, NDArray]:
        """The parameters; see `params`."""
        return self.params

    def get_lib(self) -> Module:
        """The library."""
        return self.module

    def __getitem__(self, name: str) -> Any:
        """A function of the library; that of its name makes an executor for a device."""
        return self.module["default" if name == self.libmod_name else name]

    def export_library(
        self, file_name: str | os.PathLike[str], fcompile: Callable[..., None] | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        """Write one shared library with everything in it; ``runtime.load_module`` reads it back."""
        self.executable.export_library(file_name, fcompile, **options)


class GraphExecutorFactoryModule(ExecutorFactoryModule):
    """Makes executors: ``graph_executor.GraphModule(factory["default"](device))``.

    Unpacks into graph, library and parameters, as older programs do.
    """

    @property
    def graph_json(self) -> str:
        """Inputs, parameters and calls as JSON."""
        return str(self.module["get_graph_json"]())

    def get_executor_config(self) -> str:
        """The graph as JSON."""
        return self.graph_json

    def get_graph_json(self) -> str:
        """The graph as JSON."""
        return self.graph_json

    def __iter__(self) -> Iterator[Any]:
        warnings.warn(
            "relay.build gives one factory; unpacking it into graph, library and parameters is of "
            "older versions",
            DeprecationWarning,
            stacklevel=2,
        )
        return iter((self.graph_json, self.module, self.params))


class AOTExecutorFactoryModule(ExecutorFactoryModule):
    """Makes executors: ``tvm.runtime.executor.AotModule(factory["default"](device))``."""

    def get_executor_config(self) -> Executor:
        """The executor that the library was built for."""
        return self.executor
