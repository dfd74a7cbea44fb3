"""Functions of blocks from tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.tir import PrimFunc, Var

from . import _ffi_api
from .tensor import Tensor
from .widen_indices import with_index_dtype

__all__ = ["create_prim_func"]


def create_prim_func(
    ops: Sequence[Tensor | Var], index_dtype_override: str | None = None
) -> PrimFunc:
    """A function with one block per operation, named after it.

    Parameters
    ----------
    ops : the tensors that become buffer parameters, in order: all inputs, and those results the
        caller wants. Every other tensor is allocated inside of the function. Variables become
        scalar parameters.
    index_dtype_override : "int64" or "int32": the type of loops, extents and indices, whatever the
        shapes of the tensors have.

    Returns
    -------
    PrimFunc ``main`` with attributes ``tir.noalias`` and, when an operation names inputs in its
    attribute ``layout_free_placeholders``, ``layout_free_buffers`` with their positions.

    Raises
    ------
    ValueError : an input is missing, a tensor is given twice, or an operation is neither a compute
        nor an extern one, or indices cannot have the type.
    TypeError : an element is neither a tensor nor a variable.

    Examples
    --------
    >>> from tvm import te
    >>> A = te.placeholder((128,), name="A")
    >>> B = te.compute((128,), lambda i: A[i] + 1.0, name="B")
    >>> print(te.create_prim_func([A, B]).body.block.body)
    for i in range(128):
        with T.block("B"):
            v_i = T.axis.spatial(128, i)
            T.reads(A[v_i])
            T.writes(B[v_i])
            B[v_i] = A[v_i] + 1.0
    """
    arguments: list[Any] = list(ops)
    for argument in arguments:
        if not isinstance(argument, (Tensor, Var)):
            raise TypeError(f"create_prim_func: expected tensors, got {type(argument).__name__}")
    func = _ffi_api.CreatePrimFunc([each for each in arguments if isinstance(each, Tensor)])
    if not all(isinstance(argument, Tensor) for argument in arguments):
        handles = iter(func.params)
        params = [next(handles) if isinstance(each, Tensor) else each for each in arguments]
        func = PrimFunc(params, func.body, func.ret_type, dict(func.buffer_map), func.attrs)
    return func if index_dtype_override is None else with_index_dtype(func, index_dtype_override)
