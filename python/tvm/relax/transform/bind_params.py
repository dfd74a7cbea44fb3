"""Named parameters as constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm.ir import IRModule, RelayExpr
from tvm.runtime import NDArray

from ..expr import Function, Var, const
from .rewriter import FunctionRewriter

__all__ = ["bind_params"]


class _ParamBinder(FunctionRewriter):
    def __init__(self, func: Function, constants: Mapping[Var, RelayExpr]) -> None:
        super().__init__(func)
        self._replaced.update(constants)


def bind_params(
    mod: IRModule, func_name: str, params: Mapping[str, NDArray | np.ndarray]
) -> IRModule:
    """The module with parameters of one function replaced by constants.

    Parameters
    ----------
    params : values by parameter name; the rest stay parameters.

    Raises
    ------
    ValueError : the function has no such parameter, or it has another shape.
    """
    func = mod[func_name]
    by_name = {str(param.name_hint): param for param in func.params}
    unknown = sorted(set(params) - set(by_name))
    if unknown:
        raise ValueError(
            f"BindParams: '{func_name}' has no parameter {', '.join(unknown)}; it has "
            f"{', '.join(by_name)}"
        )
    constants = {
        by_name[name]: const(value, by_name[name].struct_info) for name, value in params.items()
    }
    bound = _ParamBinder(func, constants).run()
    kept = [param for param in func.params if param not in constants]
    result = Function(kept, bound.body, is_pure=bound.is_pure, attrs=bound.attrs)
    functions = dict(mod.functions.items())
    functions[mod.get_global_var(func_name)] = result
    return IRModule(functions)
