"""Lowering: from a schedule, a function or a module to what code generators accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import te, tir
from tvm.ir import IRModule

from . import _ffi_api

__all__ = ["form_irmodule", "get_binds", "lower", "lower_passes", "schedule_to_module"]


def get_binds(
    args: Sequence[Any], compact: bool = False, binds: Mapping[te.Tensor, Any] | None = None
) -> tuple[dict[te.Tensor, Any], list[Any]]:
    """Buffers for the tensors of an argument list.

    Parameters
    ----------
    args : tensors, buffers and variables, one per parameter.
    compact : whether buffers are row-major without gaps; otherwise their strides are variables
        that take the values of the array passed.
    binds : buffers already chosen; returned as they are.

    Returns
    -------
    The complete table of buffers, and the argument list with buffers in place of tensors.
    """
    table = dict(binds or {})
    arg_list: list[Any] = []
    for arg in args:
        if isinstance(arg, te.Tensor):
            if arg not in table:
                strides = (
                    None if compact else [te.var(f"{arg.name}.stride{i}") for i in range(arg.ndim)]
                )
                table[arg] = tir.decl_buffer(arg.shape, arg.dtype, arg.name, strides=strides)
            arg_list.append(table[arg])
        elif isinstance(arg, (tir.Buffer, tir.Var)):
            arg_list.append(arg)
        else:
            raise TypeError(
                f"lower: args must be tensors, buffers and variables, got {type(arg).__name__}"
            )
    return table, arg_list


def schedule_to_module(
    sch: te.Schedule,
    args: Sequence[Any],
    name: str = "main",
    binds: Mapping[te.Tensor, Any] | None = None,
) -> IRModule:
    """Loop nest of a schedule as the function ``name``, before any pass.

    Raises
    ------
    ScheduleError : the schedule is not consistent. ValueError : a tensor that the program reads is
        missing from ``args``.
    """
    return _ffi_api.ScheduleToModule(sch, list(args), name, dict(binds or {}))


form_irmodule = schedule_to_module


def lower_passes(simple_mode: bool = False) -> list[Any]:
    """The passes :func:`lower` applies in the present pass context and target, in order."""
    return list(_ffi_api.LowerPasses(simple_mode))


def lower(
    inp: te.Schedule | tir.PrimFunc | IRModule,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: Mapping[te.Tensor, Any] | None = None,
    simple_mode: bool = False,
) -> IRModule:
    """Lowered module of a schedule, a function or a module.

    Parameters
    ----------
    inp : what to lower.
    args : for a schedule: a Tensor, Buffer or Var per parameter, in order.
    name : of the resulting function, for a schedule or a function.
    binds : buffers to use for tensors of ``args``.
    simple_mode : for reading: every loop stands once, without the segments of LoopPartition and
        without accumulators in registers. Before any pass, buffers still have their axes: see
        :func:`form_irmodule`.

    Raises
    ------
    ValueError : a schedule without args, or a tensor missing from them. ScheduleError : the
        schedule is not consistent.

    Examples
    --------
    >>> import tvm
    >>> from tvm import te
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> mod = tvm.lower(te.create_schedule(B.op), [A, B], name="double", simple_mode=True)
    >>> mod["double"].body.extent.value
    8
    """
    if isinstance(inp, te.Schedule):
        if args is None:
            raise ValueError(
                "lower: args are required for a schedule; pass its input and output tensors"
            )
        return _ffi_api.LowerSchedule(inp, list(args), name, dict(binds or {}), simple_mode)
    if isinstance(inp, tir.PrimFunc):
        return _ffi_api.LowerPrimFunc(inp, name, simple_mode)
    if isinstance(inp, IRModule):
        return _ffi_api.LowerModule(inp, simple_mode)
    raise TypeError(
        f"lower: expected a Schedule, a PrimFunc or an IRModule, got {type(inp).__name__}"
    )
