"""Which memory the arguments and results of a function are in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm import error
from tvm.ir import PointerType

from ..buffer import Buffer
from ..buffer_mutator import BufferMutator
from ..expr import Var
from ..function import PrimFunc

__all__ = [
    "apply_prim_func_arg_and_result_memory_constraints",
    "get_prim_func_arg_and_result_memory_constraints",
]


def get_prim_func_arg_and_result_memory_constraints(
    func: PrimFunc, relay_func_type: Any
) -> list[str]:
    """The memory scopes that a function asks for, one for each argument and then each result.

    Parameters
    ----------
    func : takes the fields of tuples as parameters of their own, results after the arguments.
    relay_func_type : the type of the graph function that it computes. The scope of a tuple is that
        of its first field.

    Returns
    -------
    Names of scopes; "" for "global", which every memory of the device satisfies.

    Raises
    ------
    ValueError : the function has not one buffer for each tensor of the type.
    """
    scopes = (str(buffers[0].scope) for buffers in _buffers_by_value(func, relay_func_type))
    return ["" if scope == "global" else scope for scope in scopes]


def apply_prim_func_arg_and_result_memory_constraints(
    func: PrimFunc, relay_func_type: Any, arg_and_result_memory_scopes: Sequence[str]
) -> PrimFunc:
    """The function with its arguments and results in the given memory scopes.

    Parameters
    ----------
    arg_and_result_memory_scopes : one for each argument and then each result; "" for no change.

    Raises
    ------
    ValueError : as for :func:`get_prim_func_arg_and_result_memory_constraints`, or another number
        of scopes.
    """
    values = list(_buffers_by_value(func, relay_func_type))
    if len(values) != len(arg_and_result_memory_scopes):
        raise error.ValueError(
            f"{len(arg_and_result_memory_scopes)} memory scopes are given for {len(values)} "
            "arguments and results; give one for each"
        )
    scopes: dict[Var, str] = {}
    for buffers, scope in zip(values, arg_and_result_memory_scopes):
        if scope:
            scopes |= {buffer.data: str(scope) for buffer in buffers}
    return _Mover(scopes).function(func)


def _buffers_by_value(func: PrimFunc, type_: Any) -> Iterator[list[Buffer]]:
    """The buffers of each argument and result: several ones of a tuple."""
    given = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    counts = [_tensors(value) for value in [*type_.arg_types, type_.ret_type]]
    if sum(counts) != len(given):
        raise error.ValueError(
            f"the function has {len(given)} buffers, but its type has {sum(counts)} tensors"
        )
    begin = 0
    for count in counts:
        if count:
            yield given[begin : begin + count]
        begin += count


def _tensors(type_: Any) -> int:
    return sum(map(_tensors, type_.fields)) if hasattr(type_, "fields") else 1


class _Mover(BufferMutator):
    """Gives data pointers other memory scopes."""

    def __init__(self, scopes: dict[Var, str]) -> None:
        super().__init__()
        for var, scope in scopes.items():
            element = var.type_annotation.element_type
            self._vars[var] = Var(str(var.name), PointerType(element, scope))
