"""The tasks of networks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tvm
from tvm.ir import Op
from tvm.runtime.params import named_arrays
from tvm.target import Target

from .task import Task, create
from .topi_integration import deep_tuple

__all__ = ["extract_from_multiple_program", "extract_from_program"]


def extract_from_program(
    mod: Any,
    params: Any,
    target: Target | str,
    target_host: Target | str | None = None,
    ops: Sequence[Any] | None = None,
) -> list[Task]:
    """The tasks of a relay program, each once.

    Parameters
    ----------
    mod : a module with "main", or that function.
    params : values of its parameters by name, also as NumPy arrays; None for none.
    target, target_host : what it is compiled for.
    ops : relay operators whose tasks are wanted; by default all that have templates.

    Raises
    ------
    RuntimeError : `tvm.relay` is not there.
    TypeError : `ops` holds something else than operators, such as the functions that call them.
    """
    return extract_from_multiple_program([mod], [params], target, target_host, ops)


def _operator_name(op: Any) -> str:
    if not isinstance(op, Op):
        shown = getattr(op, "__name__", repr(op))
        raise TypeError(
            f'autotvm: ops are operators, such as relay.op.get("nn.dense"), got {shown}'
        )
    return str(op.name)


def extract_from_multiple_program(
    mods: Sequence[Any],
    params: Sequence[Any],
    target: Target | str,
    target_host: Target | str | None = None,
    ops: Sequence[Any] | None = None,
) -> list[Task]:
    """:func:`extract_from_program` of several programs, whose common tasks come once.

    Raises
    ------
    ValueError : there are not as many `params` as `mods`.
    """
    if len(mods) != len(params):
        raise ValueError(
            f"autotvm: {len(mods)} programs need as many tables of parameters, got {len(params)}"
        )
    # Relay stands on top of templates, so what it knows of a program is asked by name.
    workloads = tvm.get_global_func("relay.AutoTVMWorkloads", allow_missing=True)
    if workloads is None:
        raise RuntimeError("autotvm: programs are relay's; import tvm.relay first")
    target = target if isinstance(target, Target) else Target(target)
    names = None if ops is None else [_operator_name(op) for op in ops]
    found: dict[tuple[Any, ...], None] = {}
    for mod, values in zip(mods, params):
        for workload in json.loads(str(workloads(mod, named_arrays(values), target, names))):
            found[deep_tuple(workload)] = None
    return [create(name, args, target, target_host) for name, *args in found]
