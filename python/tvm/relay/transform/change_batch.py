"""Programs for another number of inputs at once."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import error
from tvm.ir import IRModule, RelayExpr, TensorType
from tvm.ir.transform import Pass

from ..binding import substituted
from ..expr import Function, Var
from .base import expression_pass

__all__ = ["ChangeBatch"]


def ChangeBatch(data: Mapping[Var, int], batch_size: int = 16) -> Pass:
    """Give inputs another number of elements along an axis; the rest follows by inference.

    Shapes that the program writes down, as ``reshape`` does, stay what they are.

    Parameters
    ----------
    data : inputs of functions, each with the axis of the batch.

    Raises
    ------
    ValueError : an input is no tensor with such an axis.
    """

    def changed(func: Function, mod: IRModule) -> Function:
        new: dict[Var, RelayExpr] = {}
        params = []
        for param in func.params:
            axis = next((axis for var, axis in data.items() if var.same_as(param)), None)
            if axis is None:
                params.append(param)
                continue
            type_ = param.type_annotation
            if not isinstance(type_, TensorType) or not 0 <= axis < len(type_.shape):
                raise error.ValueError(
                    f"ChangeBatch: the input {param.name_hint} has no axis {axis}; its type is "
                    f"{type_}"
                )
            shape = list(type_.shape)
            shape[axis] = batch_size
            new[param] = Var(str(param.name_hint), TensorType(shape, str(type_.dtype)))
            params.append(new[param])
        if not new:
            return func
        body = substituted(func.body, new)
        return Function(params, body, None, func.type_params, func.attrs)

    # Variables are told apart by what they are, so nothing may replace them before.
    return expression_pass(changed, 1, "ChangeBatch", required=())
