"""Commutative reductions: sum, prod, max, min, and reductions the user defines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tir
from tvm.tir import IterVar, PrimExpr, Var

__all__ = ["comm_reducer", "max", "min", "prod", "sum"]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _operand(value: Any, like: PrimExpr | None = None) -> PrimExpr:
    if isinstance(value, IterVar):
        return value.var
    if isinstance(value, (int, float)):
        dtype = str(like.dtype) if like is not None else None
        return tir.const(value, dtype or ("int32" if isinstance(value, int) else "float32"))
    return value


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Make a reduction from a commutative, associative operator.

    Parameters
    ----------
    fcombine : combines two values; for a reduction of tuples, two tuples into a tuple.
    fidentity : gets the dtype of each value, returns the value(s) that change nothing.

    Returns
    -------
    A function ``reducer(expr, axis, where=None, init=None)``. ``expr`` is an expression or a
    tuple of them, ``axis`` one or more axes made by :func:`tvm.te.reduce_axis`. Elements where
    ``where`` is false are left out; ``init`` is the start value in place of the identity. With
    an expression in place of ``axis`` the function combines its arguments directly.

    Examples
    --------
    >>> from tvm import te, tir
    >>> argmax = te.comm_reducer(
    ...     lambda x, y: (
    ...         tir.Select(x[1] >= y[1], x[0], y[0]),
    ...         tir.Select(x[1] >= y[1], x[1], y[1]),
    ...     ),
    ...     lambda index, value: (tir.const(-1, index), tir.min_value(value)),
    ... )
    """

    def reduce_over(expr: Any, axis: Any, where: Any, init: Any) -> Any:
        is_joint = isinstance(expr, (tuple, list))
        source = [_operand(value) for value in _as_list(expr)]
        axes = _as_list(axis)
        dtypes = [str(value.dtype) for value in source]
        lhs = [Var(f"x{i}" if is_joint else "x", dtype) for i, dtype in enumerate(dtypes)]
        rhs = [Var(f"y{i}" if is_joint else "y", dtype) for i, dtype in enumerate(dtypes)]
        combined = fcombine(tuple(lhs), tuple(rhs)) if is_joint else fcombine(lhs[0], rhs[0])
        result = _as_list(combined)
        identity = _as_list(fidentity(*dtypes))
        if not len(result) == len(identity) == len(source):
            raise ValueError(
                f"{name}: {len(source)} values are reduced, but the operator gives {len(result)} "
                f"and the identity has {len(identity)}"
            )
        identity = [_operand(value, like) for value, like in zip(identity, source)]
        combiner = tir.CommReducer(lhs, rhs, result, identity)
        condition = tir.const(True, "bool") if where is None else where
        start: list[PrimExpr] = []
        if init is not None:
            start = [_operand(value, like) for value, like in zip(_as_list(init), source)]
        outputs = tuple(
            tir.Reduce(combiner, source, axes, condition, i, start) for i in range(len(source))
        )
        return outputs if is_joint else outputs[0]

    def reducer(
        expr: Any, axis: Any, where: Any = None, init: Any = None, *args: Any
    ) -> Any:
        axes = _as_list(axis)
        if axes and all(isinstance(item, IterVar) for item in axes):
            for item in axes:
                if item.iter_type != IterVar.CommReduce:
                    raise ValueError(
                        f"{name}: {item.var.name_hint} is not a reduction axis; make it with "
                        "te.reduce_axis"
                    )
            return reduce_over(expr, axis, where, init)
        result = fcombine(expr, axis)
        for more in (where, init, *args):
            if more is not None:
                result = fcombine(result, more)
        return result

    reducer.__name__ = name
    reducer.__doc__ = f"""{name} over reduction axes; see :func:`tvm.te.comm_reducer`."""
    return reducer


sum = comm_reducer(lambda x, y: x + y, lambda dtype: tir.const(0, dtype), "sum")
prod = comm_reducer(lambda x, y: x * y, lambda dtype: tir.const(1, dtype), "prod")
max = comm_reducer(tir.max, tir.min_value, "max")
min = comm_reducer(tir.min, tir.max_value, "min")
