"""The graph executor's parts of a program: its graph, its kernels, its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import relax
from tvm.ir import GlobalVar, IRModule
from tvm.runtime import NDArray
from tvm.target import Target

from ..build_module import build, optimize
from ..expr import Function
from .interpreter import relax_graph, schedules_for
from .places import target_of
from .templates import apply_records

__all__ = ["GraphExecutorCodegen"]


class GraphExecutorCodegen:
    """Compiles a function as `relay.build` does, and gives what that is made of.

    Parameters
    ----------
    mod : not looked at; the program is an argument of :meth:`codegen`.
    target : what is compiled for: a target, its name, a list of one or a table of devices.
    """

    def __init__(self, mod: Any, target: Target | str | Mapping[Any, Any]) -> None:
        self._target = target_of(target)

    def codegen(
        self, ir_module: IRModule | None, func: Function
    ) -> tuple[str, dict[Target, IRModule], dict[str, NDArray]]:
        """The graph as JSON, the kernels as tensor programs for the target, and the parameters
        under the graph's names.

        Parameters
        ----------
        ir_module : functions that `func` may call.

        Raises
        ------
        ValueError : it is no graph of tensors of fixed shape.
        """
        mod = IRModule() if ir_module is None else ir_module.clone()
        mod["main"] = func
        factory = build(mod, self._target)
        tuned = apply_records(optimize(mod, self._target)[0], self._target)
        graph = relax_graph(tuned.mod["main"], tuned.mod, "main", self._target, tuned.keeps)
        kernels = relax.lower_kernels(graph, self._target, schedules_for(tuned.schedule))
        lowered = IRModule({GlobalVar(name): kernel for name, kernel in kernels.items()})
        return factory.get_executor_config(), {self._target: lowered}, factory.params
