"""Building: from a schedule, a function or a module to a runtime module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir import IRModule
from tvm.runtime import Module
from tvm.target import Target

from . import _ffi_api
from .build_module import lower

__all__ = ["build", "build_passes", "prepare"]

Source = te.Schedule | tir.PrimFunc | IRModule | Sequence[tir.PrimFunc | IRModule]


def build_passes(target: Any) -> list[Any]:
    """The passes :func:`build` applies after lowering, in the present pass context, in order."""
    return list(_ffi_api.BuildPasses(_as_target(target)))


def _as_target(target: Any, host: Any = None) -> Target:
    if target is None:
        target = Target.current(allow_none=True) or "llvm"
    return Target(target, host) if host is not None or not isinstance(target, Target) else target


def _merged(inputs: Sequence[tir.PrimFunc | IRModule]) -> IRModule:
    merged = IRModule()
    for i, part in enumerate(inputs):
        module = part
        if not isinstance(part, IRModule):
            module = IRModule.from_expr(part, f"default_function_{i}")
        for var, func in module.functions.items():
            if str(var.name_hint) in {str(known.name_hint) for known in merged.get_global_vars()}:
                raise ValueError(
                    f"build: two functions are called {var.name_hint}; give each its own name"
                )
            merged[var] = func
    return merged


def prepare(
    inputs: Source,
    args: Sequence[Any] | None = None,
    target: Any = None,
    name: str = "default_function",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> IRModule:
    """The module that :func:`build` hands to the code generator; takes the same arguments."""
    chosen = _as_target(target)
    with chosen:
        if not isinstance(inputs, (te.Schedule, tir.PrimFunc, IRModule)):
            inputs = _merged(inputs)
        return _ffi_api.PrepareModule(lower(inputs, args, name, binds), chosen)


def build(
    inputs: Source | Mapping[Any, Source],
    args: Sequence[Any] | None = None,
    target: Any = None,
    target_host: Any = None,
    name: str = "default_function",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> Module:
    """Compile a program.

    Parameters
    ----------
    inputs : a schedule, a PrimFunc, an IRModule, a list of functions and modules, or a dict from
        target to any of these; the modules of further targets become imports of the first.
    args : for a schedule: a Tensor, Buffer or Var per parameter, in order.
    target : Target or anything it accepts; by default the current target, else "llvm".
    target_host : target of the code that launches kernels.
    name : of the resulting function, for a schedule or a function.
    binds : buffers to use for tensors of `args`.

    Returns
    -------
    Module whose functions take arrays and scalars in the order of `args`.

    Raises
    ------
    ValueError : a schedule without `args`, two functions of one name, or a target kind without a
        code generator. ScheduleError : the schedule is not consistent.

    Examples
    --------
    >>> import numpy as np
    >>> import tvm
    >>> from tvm import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> double = tvm.build(te.create_schedule(B.op), [A, B], target="llvm", name="double")
    >>> a, b = tvm.nd.array(np.ones(8, "float32")), tvm.nd.empty((8,), "float32")
    >>> double(a, b)
    >>> float(b.numpy().sum())
    16.0
    """
    if isinstance(inputs, Mapping):
        if not inputs:
            raise ValueError("build: the dict of targets is empty; give at least one target")
        modules = [
            build(part, args, kind, target_host, name, binds) for kind, part in inputs.items()
        ]
        for imported in modules[1:]:
            modules[0].import_module(imported)
        return modules[0]
    chosen = _as_target(target, target_host)
    with chosen:
        if not isinstance(inputs, (te.Schedule, tir.PrimFunc, IRModule)):
            inputs = _merged(inputs)
        return _ffi_api.BuildModule(lower(inputs, args, name, binds), chosen)
