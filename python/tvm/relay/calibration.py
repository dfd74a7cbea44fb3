"""What parts for other compilers read and give, found by running the program here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tvm._ffi
from tvm import error
from tvm.ir import GlobalVar, IRModule, RelayExpr, TupleType
from tvm.runtime import NDArray

from .analysis.infer import infer_module
from .build_module import create_executor
from .expr import Call, Function, Tuple, TupleGetItem
from .expr_functor import post_order_visit

__all__: list[str] = []


def _compiler(func: Any) -> bool:
    return isinstance(func, Function) and bool(func.attrs) and "Compiler" in func.attrs


def _here(func: Function) -> Function:
    """The function as one that is compiled here."""
    return Function(func.params, func.body, func.ret_type, func.type_params)


def _leaves(value: RelayExpr) -> list[RelayExpr]:
    """A value, or the fields of a tuple."""
    type_ = value.checked_type
    if not isinstance(type_, TupleType):
        return [value]
    fields = (
        value.fields
        if isinstance(value, Tuple)
        else [TupleGetItem(value, k) for k in range(len(type_.fields))]
    )
    if any(isinstance(field, TupleType) for field in type_.fields):
        raise error.ValueError("relay.get_calibration_data: a part has a tuple within a tuple")
    return list(fields)


@tvm._ffi.register_func("relay.analysis.GetCalibrationData")
def _calibration_data(
    mod: IRModule, data: Mapping[str, Any]
) -> dict[str, tuple[list[NDArray], list[NDArray]]]:
    typed = infer_module(mod)
    names = [str(gvar.name_hint) for gvar, func in typed.functions.items() if _compiler(func)]
    calls: dict[str, list[Call]] = {name: [] for name in names}

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, GlobalVar):
            calls.setdefault(str(expr.op.name_hint), []).append(expr)

    main = typed["main"]
    post_order_visit(main, look)
    for name in names:
        if len(calls[name]) != 1:
            raise error.ValueError(
                f"relay.get_calibration_data: main calls part '{name}' {len(calls[name])} times; "
                "it has to be called once"
            )
    ways = {
        name: ([v for a in calls[name][0].args for v in _leaves(a)], _leaves(calls[name][0]))
        for name in names
    }
    watched = Tuple([value for pair in ways.values() for side in pair for value in side])
    probe = typed.clone()
    for name in names:
        probe[name] = _here(typed[name])
    probe["main"] = Function(main.params, watched)
    missing = {str(p.name_hint) for p in main.params} - {str(name) for name in data}
    if missing:
        raise error.ValueError(f"relay.get_calibration_data: no data for {sorted(missing)}")
    given = [data[str(p.name_hint)] for p in main.params]
    found = iter(create_executor("vm", mod=probe).evaluate()(*given))
    return {
        name: ([next(found) for _ in inputs], [next(found) for _ in outputs])
        for name, (inputs, outputs) in ways.items()
    }
