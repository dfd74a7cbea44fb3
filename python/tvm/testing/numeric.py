"""Comparison of formulas by their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import te, tir

__all__ = [
    "assert_prim_expr_equal",
    "check_bool_expr_is_true",
    "check_int_constraints_trans_consistency",
    "check_numerical_grads",
]


def assert_prim_expr_equal(lhs: Any, rhs: Any) -> None:
    """Check that two integer expressions have the same value, by proof.

    Raises
    ------
    ValueError : there is no proof.
    """
    if not tvm.arith.Analyzer().can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not known to be equal")


def _all_of(conditions: Sequence[Any]) -> Any:
    return tir.all(tir.const(True, "bool"), *conditions)


def _box_of(vranges: Mapping[Any, Any]) -> tuple[dict[Any, range], list[Any]]:
    """Constant ranges around ranges that may depend on other variables, and what that adds.

    Raises
    ------
    ValueError : ranges depend on each other in a circle, or on a variable without a range.
    """
    analyzer = tvm.arith.Analyzer()
    box: dict[Any, range] = {}
    inside: list[Any] = []
    waiting = dict(vranges)
    while waiting:
        for var, given in waiting.items():  # noqa: B007 - used behind the loop
            needs = {
                *tir.analysis.undefined_vars(tir.convert(given.min)),
                *tir.analysis.undefined_vars(tir.convert(given.extent)),
            }
            if needs <= box.keys():
                break
        else:
            raise ValueError(f"no order in which these ranges are known: {waiting}")
        del waiting[var]
        if needs:
            inside.append(tir.all(var >= given.min, var < given.min + given.extent))
        low = int(analyzer.const_int_bound(given.min).min_value)
        high = int(analyzer.const_int_bound(given.min + given.extent).max_value)
        box[var] = range(low, max(low, high))
        if high > low:
            analyzer.bind(var, tvm.ir.Range(low, high))
    return {var: box[var] for var in vranges}, inside


def check_bool_expr_is_true(
    bool_expr: Any, vranges: Mapping[Any, Any], cond: Any | None = None
) -> None:
    """Check a condition by running it for all values of its variables.

    Parameters
    ----------
    vranges : the range of each variable, constant or in terms of other variables.
    cond : what must hold as well for the condition to matter.

    Raises
    ------
    AssertionError : it does not hold; the message has values for which it does not.
    ValueError : ranges depend on each other in a circle.
    """
    box, inside = _box_of(vranges)
    if inside or cond is not None:
        matters = _all_of([*inside, *([] if cond is None else [cond])])
        bool_expr = tir.any(tir.Not(matters), bool_expr)
    variables = list(box)
    starts = [values.start for values in box.values()]
    extents = [len(values) for values in box.values()]
    if 0 in extents:
        return

    def holds(*places: Any) -> Any:
        values = {
            var: place + tir.const(start, var.dtype)
            for var, place, start in zip(variables, places, starts, strict=True)
        }
        return tir.stmt_functor.substitute(bool_expr, values).astype("int8")

    # Where there is no variable, one place stands for no loops.
    table = te.compute(extents or [1], holds if extents else lambda _: holds())
    run = tvm.build(te.create_schedule(table.op), [table], "llvm")
    result = tvm.nd.array(np.zeros(extents or [1], "int8"))
    run(result)
    wrong = np.argwhere(result.numpy() == 0)
    if len(wrong):
        first = {
            str(var): int(place) + start
            for var, place, start in zip(variables, wrong[0], starts, strict=False)
        }
        raise AssertionError(f"{bool_expr} does not hold for {first}")


def check_int_constraints_trans_consistency(
    constraints_trans: Any, vranges: Mapping[Any, Any] | None = None
) -> None:
    """Check a transform of constraints by value: every solution goes there and back.

    Parameters
    ----------
    constraints_trans : an IntConstraintsTransform.
    vranges : ranges of the parameters.

    Raises
    ------
    AssertionError : a solution of one side is none of the other, or comes back as another one.
    """
    given = dict(vranges or {})

    def check(one: Any, other: Any, to_other: Mapping[Any, Any], back: Mapping[Any, Any]) -> None:
        ranges = {**dict(one.ranges.items()), **given}
        unbounded = [var for var in one.variables if var not in ranges]
        assert not unbounded, f"variables without ranges cannot be checked: {unbounded}"
        in_one = _all_of(
            [
                *one.relations,
                *[tir.all(v >= r.min, v < r.min + r.extent) for v, r in one.ranges.items()],
            ]
        )
        in_other = _all_of(
            [
                *other.relations,
                *[tir.all(v >= r.min, v < r.min + r.extent) for v, r in other.ranges.items()],
            ]
        )
        if any(var not in to_other for var in other.variables):
            # Without a way there is no solution either.
            check_bool_expr_is_true(tir.Not(in_one), ranges)
            return
        # `to_other` has the variables of the other side in terms of this one's.
        there = tir.stmt_functor.substitute(in_other, to_other)
        same = [
            tir.EQ(var, tir.stmt_functor.substitute(value, to_other)) for var, value in back.items()
        ]
        check_bool_expr_is_true(_all_of([there, *same]), ranges, cond=in_one)

    to_src = dict(constraints_trans.src_to_dst.items())
    to_dst = dict(constraints_trans.dst_to_src.items())
    check(constraints_trans.dst, constraints_trans.src, to_src, to_dst)
    check(constraints_trans.src, constraints_trans.dst, to_dst, to_src)


def _by_name(values: Any) -> Any:
    return values if isinstance(values, Mapping) else enumerate(values)


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Sequence[np.ndarray] | Mapping[str, np.ndarray],
    grad_values: Sequence[np.ndarray] | Mapping[str, np.ndarray],
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Check gradients against differences of the function's values.

    Parameters
    ----------
    function : takes the inputs, as positional or as named arguments, and returns a number.
    input_values : where the gradients were taken.
    grad_values : the gradient of each input, of its shape.
    function_value : the value there, if it is known; the function is called otherwise.
    delta : length of a step; one tenth of it as well where the two sides of a point differ.
    atol, rtol : tolerances of the mean error, absolute and in parts of the gradient's norm.

    Raises
    ------
    AssertionError : shapes differ, or a gradient differs by more; the message names the input.
    """
    named = isinstance(input_values, Mapping)
    inputs: dict[Any, np.ndarray] = dict(_by_name(input_values))
    grads: dict[Any, np.ndarray] = dict(_by_name(grad_values))

    def value_at(name: Any, place: tuple[int, ...], step: float) -> float:
        moved = {key: np.array(value, copy=True) for key, value in inputs.items()}
        moved[name][place] += step
        got = function(**moved) if named else function(*moved.values())
        return float(np.asarray(got).reshape(()))

    if function_value is None:
        function_value = float(
            np.asarray(function(**inputs) if named else function(*inputs.values())).reshape(())
        )
    for name, grad in grads.items():
        if grad.shape != inputs[name].shape:
            raise AssertionError(
                f"the gradient of {name} has shape {grad.shape}, the input {inputs[name].shape}"
            )
        found = np.zeros(grad.shape, "float64")
        for place in np.ndindex(grad.shape):
            right = (value_at(name, place, delta) - function_value) / delta
            left = (function_value - value_at(name, place, -delta)) / delta
            middle = (left + right) / 2
            if abs(left - right) > rtol * abs(middle) + atol:
                # Near a kink; a shorter step may stay on one side of it.
                short = delta / 10
                right = (value_at(name, place, short) - function_value) / short
                left = (function_value - value_at(name, place, -short)) / short
                middle = min((left, right, (left + right) / 2), key=lambda d: abs(d - grad[place]))
            found[place] = middle
        size = np.sqrt(found.size) or 1.0
        error = np.linalg.norm(found - grad) / size
        allowed = atol + rtol * np.linalg.norm(found) / size
        if not error <= allowed:
            raise AssertionError(
                f"the gradient of {name} differs from that of differences by {error} on average, "
                f"{allowed} is allowed:\ngiven {grad}\ndifferences {found}"
            )
