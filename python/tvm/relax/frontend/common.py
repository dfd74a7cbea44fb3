"""What importers of all frameworks share."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.runtime import NDArray

__all__ = ["detach_params"]


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """Take the values of parameters, which importers leave in the attribute "params", off a module.

    Returns
    -------
    The module without them, and the values by the name of their function.
    """
    functions = dict(mod.functions.items())
    found: dict[str, list[NDArray]] = {}
    for gvar, func in mod.functions.items():
        if func.attrs is not None and "params" in func.attrs:
            found[str(gvar.name_hint)] = list(func.attrs["params"])
            functions[gvar] = func.without_attr("params")
    return mod.with_functions(functions), found
