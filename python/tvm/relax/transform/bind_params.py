"""Named parameters as constants."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm import error, tir
from tvm.ir import IRModule
from tvm.runtime import NDArray

from ..expr import Function, Var, const
from ..struct_info_relations import substitute_struct_info
from .bind import bind_function, extents_of
from .graph_pass import graph_pass

__all__ = ["BindParams"]


def _name_of(key: str | Var, func: Function) -> str:
    """The name of the parameter that a key is, or names."""
    if not isinstance(key, Var):
        return str(key)
    if not any(param.same_as(key) for param in func.params):
        raise error.ValueError(
            f"BindParams: the variable '{key.name_hint}' is no parameter of the function; name the "
            "parameter by a text to mean the one of that name"
        )
    return str(key.name_hint)


@graph_pass("BindParams")
def BindParams(
    mod: IRModule, func_name: str, params: Mapping[str | Var, NDArray | np.ndarray]
) -> IRModule:
    """The module with parameters of one function replaced by constants.

    Parameters
    ----------
    params : values by parameter, or by its name; the rest stay parameters. Symbolic extents of the
        parameters that get a value become numbers in the whole function.

    Raises
    ------
    ValueError : the function has no such parameter, it has another shape, or one symbolic extent
        would get two values.
    """
    func = mod[func_name]
    by_name = {str(param.name_hint): param for param in func.params}
    params = {_name_of(key, func): value for key, value in params.items()}
    unknown = sorted(set(params) - set(by_name))
    if unknown:
        raise error.ValueError(
            f"BindParams: '{func_name}' has no parameter {', '.join(unknown)}; it has "
            f"{', '.join(by_name)}"
        )
    extents: dict[tir.Var, int] = {}
    for name, value in params.items():
        found = extents_of(name, by_name[name].struct_info, value.shape)
        for var, extent in found.items():
            if extents.setdefault(var, extent) != extent:
                raise error.ValueError(
                    f"BindParams: '{name}' makes the extent {var} {extent}, another parameter "
                    f"makes it {extents[var]}"
                )
    numbers = {var: tir.const(value, str(var.dtype)) for var, value in extents.items()}
    constants = {
        by_name[name]: const(value, substitute_struct_info(by_name[name].struct_info, numbers))
        for name, value in params.items()
    }
    functions = dict(mod.functions.items())
    functions[mod.get_global_var(func_name)] = bind_function(func, constants, numbers)
    return mod.with_functions(functions)
