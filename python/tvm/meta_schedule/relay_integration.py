"""Searching for the tensor programs of a relay network.

Relay is translated to relax, whose operators are then fused kernels written as tensor programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import relax
from tvm.ir import IRModule, RelayExpr
from tvm.runtime import NDArray
from tvm.target import Target
from tvm.transform import PassContext

from . import relax_integration
from .database import Database
from .extracted_task import ExtractedTask
from .relax_integration import extracted_tasks_to_tune_contexts

__all__ = [
    "compile_graph",
    "compile_relay",
    "extract_tasks",
    "extracted_tasks_to_tune_contexts",
    "is_meta_schedule_enabled",
    "tune_relay",
]

Params = Mapping[str, NDArray | np.ndarray]


def _programs(mod: IRModule | RelayExpr, params: Params | None) -> IRModule:
    """The network as calls of fused tensor programs."""
    arrays = {name: tvm.nd.array(value) if isinstance(value, np.ndarray) else value
              for name, value in (params or {}).items()}  # fmt: skip
    return _fused(tvm.get_global_func("relay.ToRelaxModule")(mod, arrays))


def _fused(graph: IRModule) -> IRModule:
    passes = (
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
    )
    return tvm.transform.Sequential(passes)(graph)


def extract_tasks(
    mod: IRModule | RelayExpr,
    target: str | Target,
    params: Params | None = None,
    *,
    module_equality: str = "structural",
) -> list[ExtractedTask]:
    """The fused kernels of a network, each with how often it is called.

    Parameters
    ----------
    mod : a relay module whose "main" is a graph of tensors of fixed shape, or that function.
    params : values of parameters of "main".
    module_equality : as of `relax_integration.extract_tasks`.

    Raises
    ------
    ValueError : "main" is no such graph.
    """
    programs = _programs(mod, params)
    return relax_integration.extract_tasks(programs, target, module_equality=module_equality)


def tune_relay(
    mod: IRModule | RelayExpr,
    params: Params | None,
    target: str | Target,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
    **options: Any,
) -> Database:
    """Search schedules of a network's kernels.

    Parameters
    ----------
    mod, params : see `extract_tasks`. options : as of `relax_integration.tune_relax`, whose other
        parameters these are.

    Returns
    -------
    The database, for `compile_relay`.
    """
    return relax_integration.tune_relax(
        _programs(mod, params),
        None,
        target,
        work_dir,
        max_trials_global,
        max_trials_per_task=max_trials_per_task,
        op_names=op_names,
        **options,
    )


def is_meta_schedule_enabled() -> bool:
    """Whether builds here take schedules of the database in scope: the option
    "relay.backend.use_meta_schedule" of the `PassContext`."""
    return bool(PassContext.current().config.get("relay.backend.use_meta_schedule", False))


def compile_graph(database: Database, graph: IRModule, target: str | Target) -> relax.Executable:
    """A graph module that relay was translated to, with the fastest schedules on record."""
    return relax_integration.compile_relax(database, _fused(graph), target)


def compile_relay(
    database: Database,
    mod: IRModule | RelayExpr,
    target: str | Target,
    params: Params | None = None,
    *,
    backend: str = "graph",
    enable_warning: bool = False,
) -> relax.Executable:
    """Compile a network with the fastest schedules on record.

    Parameters
    ----------
    mod, params : as `tune_relay` got them.
    backend : how it is to be run; "graph", "vm".
    enable_warning : name the kernels without a record.

    Returns
    -------
    A library that serves both: ``graph_executor.GraphModule(library["default"](device))``, or
    ``relax.VirtualMachine(library, device)["main"]``; ``library.export_library(path)`` writes it.

    Raises
    ------
    ValueError : there is no such backend.
    """
    if backend not in ("graph", "vm"):
        raise ValueError(f'compile_relay: backend is "graph" or "vm", got {backend!r}')
    return relax_integration.compile_relax(
        database, _programs(mod, params), target, enable_warning=enable_warning
    )
