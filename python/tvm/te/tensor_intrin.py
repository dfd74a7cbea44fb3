"""Instructions that compute blocks of tensors: their meaning in te, their code in tir."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm import tir
from tvm.ir import Range
from tvm.runtime import Object
from tvm.tir import IterVar, PrimExpr, Stmt, Var

from . import _ffi_api
from .tensor import Operation, PlaceholderOp, Tensor, TensorSlice

__all__ = ["TensorIntrin", "TensorIntrinCall", "decl_tensor_intrin"]


def _as_region(tensor: Tensor, index: Any) -> list[Range]:
    """Ranges for the leading axes that ``index`` names, and whole axes for the others."""
    items = list(index) + [slice(None)] * (tensor.ndim - len(index))
    region = []
    for item, extent in zip(items, tensor.shape):
        if isinstance(item, slice):
            if item.step not in (None, 1):
                raise ValueError(f"{tensor.name}: a region has no step, got {item.step}")
            begin = tir.convert(0 if item.start is None else item.start)
            end = tir.convert(extent if item.stop is None else item.stop)
            region.append(Range.from_min_extent(begin, end - begin))
        else:
            region.append(Range.from_min_extent(tir.convert(item), 1))
    return region


@tvm._ffi.register_object("te.TensorIntrin")
class TensorIntrin(Object):
    """An instruction on blocks of tensors; made by :func:`decl_tensor_intrin`.

    Calling it with slices of tensors, as in ``gemv(A[i * 16 : i * 16 + 16, 0:64], x)``, gives the
    body of a compute whose last axes are those of the instruction.
    """

    def __call__(
        self,
        *tensors: Tensor | TensorSlice,
        reduce_axis: IterVar | Sequence[IterVar] = (),
        scalar_inputs: Any = (),
    ) -> TensorIntrinCall:
        whole, regions = [], []
        for item in tensors:
            if not isinstance(item, Tensor | TensorSlice):
                raise TypeError(
                    f"{self.name}: expected tensors or slices of them, got {type(item).__name__}"
                )
            tensor = item if isinstance(item, Tensor) else item.tensor
            whole.append(tensor)
            regions.append(_as_region(tensor, () if isinstance(item, Tensor) else item.indices))
        axes = [reduce_axis] if isinstance(reduce_axis, IterVar) else list(reduce_axis)
        scalars = (
            list(scalar_inputs) if isinstance(scalar_inputs, list | tuple) else [scalar_inputs]
        )
        return _ffi_api.TensorIntrinCall(
            self, whole, regions, axes, [tir.convert(value) for value in scalars]
        )


@tvm._ffi.register_object("te.TensorIntrinCall")
class TensorIntrinCall(Object):
    """A tensor intrinsic applied to regions of tensors."""


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[..., Any],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, Any] | None = None,
    scalar_params: Var | Sequence[Var] | None = None,
    default_buffer_params: Mapping[str, Any] | None = None,
) -> TensorIntrin:
    """An instruction for :meth:`Stage.tensorize`.

    Parameters
    ----------
    op : what one call computes, from placeholders of the size of one block.
    fcompute : takes the input buffers, the output buffers and, if there are any, the scalar
        parameters. Returns the statement of one call, or (body, reduce_init, reduce_update): what
        computes the outputs from nothing, what writes the start values of a reduction, and what
        combines with the values that are there. Any of the three may be None; a reduction whose
        loops are outside of the block needs the update, and the body or the initialisation.
    binds : buffers to use for some of the tensors.
    scalar_params : variables that a call gives values to.
    default_buffer_params : further arguments of ``tir.decl_buffer`` for tensors without a bind.
        Blocks start anywhere, so ``offset_factor`` defaults to 1.

    Returns
    -------
    TensorIntrin

    Raises
    ------
    ValueError : an input of ``op`` is not a placeholder, or ``fcompute`` returns no code.

    Examples
    --------
    >>> import tvm
    >>> from tvm import te
    >>> a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    >>> c = te.compute((4,), lambda i: a[i] + b[i], name="c")
    >>> def emit(ins, outs):
    ...     sum4 = ins[0].vload([0], "float32x4") + ins[1].vload([0], "float32x4")
    ...     return outs[0].vstore([0], sum4)
    >>> add4 = te.decl_tensor_intrin(c.op, emit, name="add4")
    """
    if not isinstance(op, Operation):
        hint = "; pass its .op" if isinstance(op, Tensor) else ""
        raise TypeError(f"decl_tensor_intrin: expected an operation, got {type(op).__name__}{hint}")
    inputs = list(op.input_tensors)
    outputs = [op.output(i) for i in range(op.num_outputs)]
    for tensor in inputs:
        if not isinstance(tensor.op, PlaceholderOp):
            raise ValueError(
                f"{name}: input {tensor.name} is computed; describe the instruction by one "
                "operation on placeholders"
            )
    bound = dict(binds or {})
    for tensor in bound:
        if tensor not in inputs + outputs:
            raise ValueError(f"{name}: binds has {tensor.name}, which the operation does not use")
    params: dict[str, Any] = {"offset_factor": 1, **(default_buffer_params or {})}
    buffers = [
        bound[t] if t in bound else tir.decl_buffer(t.shape, t.dtype, t.name, **params)
        for t in inputs + outputs
    ]
    scalars = [scalar_params] if isinstance(scalar_params, Var) else list(scalar_params or [])
    arguments = [buffers[: len(inputs)], buffers[len(inputs) :]]
    code = fcompute(*arguments, *([scalars] if scalars else []))
    parts = list(code) if isinstance(code, list | tuple) else [code]
    if len(parts) > 3:
        raise ValueError(f"{name}: expected (body, reduce_init, reduce_update), got {len(parts)}")
    parts += [None] * (3 - len(parts))
    for i, part in enumerate(parts):
        if isinstance(part, PrimExpr):
            parts[i] = tir.Evaluate(part)
        elif part is not None and not isinstance(part, Stmt):
            raise TypeError(f"{name}: expected statements or calls, got {type(part).__name__}")
    return _ffi_api.TensorIntrin(name, op, inputs, buffers, scalars, *parts)
