"""Looking operators up, and what users register for theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import error
from tvm.ir import Op, RelayExpr, register_op_attr

from ..expr import Call
from .implementation import OpImplementation, OpSpecialization, OpStrategy, Strategy
from .registry import OpPattern

__all__ = [
    "IntegerForm",
    "integer_forms",
    "OpImplementation",
    "OpPattern",
    "OpSpecialization",
    "OpStrategy",
    "get",
    "register",
    "register_alter_op_layout",
    "register_broadcast_schedule",
    "register_compute",
    "register_convert_op_layout",
    "register_fake_quantization_to_integer",
    "register_gradient",
    "register_injective_schedule",
    "register_legalize",
    "register_mixed_precision_conversion",
    "register_pattern",
    "register_qnn_legalize",
    "register_reduce_schedule",
    "register_schedule",
    "register_shape_func",
    "register_stateful",
    "register_strategy",
]


def get(op_name: str) -> Op:
    """The operator of a name.

    Raises
    ------
    ValueError : there is none; the message suggests similar names.
    """
    return Op.get(op_name)


def register(op_name: str, describe: str = "") -> Op:
    """A new operator; say its type with ``add_type_rel`` and its computation with
    ``register_compute``.

    Raises
    ------
    ValueError : the name is taken.
    """
    return tvm.ir.register_op(op_name, describe)


def _attr(key: str) -> Callable[..., Any]:
    def register_attr(op_name: str, value: Any = None, level: int = 10) -> Any:
        return register_op_attr(op_name, key, value, level)

    return register_attr


register_legalize = _attr("FTVMLegalize")
register_legalize.__doc__ = """How `Legalize` rewrites calls; also a decorator.

The function gets the attributes, operands and types, and returns a new expression or None.
"""


register_qnn_legalize = _attr("FTVMQnnLegalize")
register_qnn_legalize.__doc__ = """How `relay.qnn.transform.Legalize` rewrites calls; also a
decorator.

The function gets the attributes, operands and types, and returns a new expression or None.
"""

register_alter_op_layout = _attr("FTVMAlterOpLayout")
register_alter_op_layout.__doc__ = """How `AlterOpLayout` rewrites calls; also a decorator.

The function gets the attributes, operands, their types and that of the result, and returns a call
whose settings name other layouts, or None.
"""
register_convert_op_layout = _attr("FTVMConvertOpLayout")
register_convert_op_layout.__doc__ = """How `ConvertLayout` rewrites calls; also a decorator.

The function gets the attributes, operands, their types and the layouts that are wished for, and
returns a call, or None.
"""

register_gradient = _attr("FPrimalGradient")
register_gradient.__doc__ = """How `gradient` differentiates calls; also a decorator.

The function gets a call and the derivative by its result, of the type of the result, and returns a
list: the derivative by each operand. It comes before what `gradient` knows itself.
"""

register_mixed_precision_conversion = _attr("FTVMMixedPrecisionConversionType")
register_mixed_precision_conversion.__doc__ = """In which precision `ToMixedPrecision` computes an
operator; also a decorator.

The function gets a call and the lower type, and returns a list: 0 for always in it, 1 where the
operands are in it, or 2 for never; the type that is accumulated in; and that of the result.
"""


def register_pattern(op_name: str, pattern: OpPattern, level: int = 10) -> Any:
    """How an operator fuses."""
    return register_op_attr(op_name, "TOpPattern", int(pattern), level)


def _fuses_by_default(op_name: str, pattern: OpPattern) -> None:
    if get(op_name).get_attr("TOpPattern") is None:
        register_pattern(op_name, pattern)


def register_injective_schedule(op_name: str, level: int = 10) -> None:
    """Say that each element of the result is computed by itself, from elements at any places.

    The operator's kernels get the library's schedule for that, and it fuses as `INJECTIVE` unless
    :func:`register_pattern` has said otherwise.
    """
    _fuses_by_default(op_name, OpPattern.INJECTIVE)


def register_broadcast_schedule(op_name: str, level: int = 10) -> None:
    """Say that each element of the result is computed from those at its place, as in broadcasts.

    As :func:`register_injective_schedule`, with the pattern `BROADCAST`.
    """
    _fuses_by_default(op_name, OpPattern.BROADCAST)


def register_reduce_schedule(op_name: str, level: int = 10) -> None:
    """Say that the result is made of reductions along axes.

    As :func:`register_injective_schedule`, with the pattern `COMM_REDUCE`.
    """
    _fuses_by_default(op_name, OpPattern.COMM_REDUCE)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """The te computation of an operator; also a decorator.

    The function gets the attributes, the operands as tensors and the type of the result, and
    returns a list of tensors.
    """

    def enter(function: Any) -> Any:
        register_op_attr(op_name, "FTVMCompute", function, level)
        return function

    return enter if compute is None else enter(compute)


def register_strategy(op_name: str, fstrategy: Strategy | None = None, level: int = 10) -> Any:
    """How an operator is computed and scheduled, for programs built from now on; also a decorator.

    Parameters
    ----------
    fstrategy : gets the attributes, the operands as tensors (those of tuples one after the other),
        the type of the result and the target, and returns an :class:`OpStrategy`. One made by
        `tvm.target.generic_func` has versions by target.

    An operator of the library is then computed by the implementation of the highest level, in a
    kernel of its own; for targets where the version that counts is the library's, nothing changes.

    Raises
    ------
    TypeError : `fstrategy` is no function.
    """

    def enter(function: Strategy) -> Strategy:
        if not callable(function):
            raise error.TypeError(
                f"register_strategy('{op_name}'): a strategy is a function, got {function!r}"
            )
        register_op_attr(op_name, "FTVMStrategy", function, level)
        return function

    return enter if fstrategy is None else enter(fstrategy)


def register_schedule(op_name: str, schedule: Any = None, level: int = 10) -> Any:
    """How an operator with a computation of its own is scheduled; also a decorator.

    Parameters
    ----------
    schedule : gets the attributes, the results as tensors and the target, and returns a
        `te.Schedule`; see :func:`register_compute`.
    """

    def enter(function: Any) -> Any:
        def strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> OpStrategy:
            made = OpStrategy()
            made.add_implementation(_registered_compute(op_name), function, f"{op_name}.schedule")
            return made

        register_strategy(op_name, strategy, level)
        return function

    return enter if schedule is None else enter(schedule)


def _registered_compute(op_name: str) -> Any:
    compute = get(op_name).get_attr("FTVMCompute")
    if compute is None:
        raise error.ValueError(
            f"relay: operator '{op_name}' has a schedule, but no computation; give one with "
            "relay.op.register_compute"
        )
    return compute


def register_shape_func(
    op_name: str,
    data_dependent: bool | Sequence[bool],
    shape_func: Any = None,
    level: int = 10,
) -> Any:
    """How the shape of an operator's result is computed when the program runs; also a decorator.

    It is asked where the type of the result has `relay.Any` although the operands' shapes are
    known; see :func:`register_compute`, which then gets the type with that shape.

    Parameters
    ----------
    data_dependent : whether the function gets the values of operands, or of each whether it does.
        Of the others it gets shapes, as tensors of int64.
    shape_func : gets the attributes, these tensors, and for each result how many axes it has, and
        returns the shape of each result as a tensor of int64.
    """
    depends = [data_dependent] if isinstance(data_dependent, bool) else list(data_dependent)

    def enter(function: Any) -> Any:
        register_op_attr(op_name, "TShapeDataDependent", [bool(value) for value in depends], level)
        register_op_attr(op_name, "FShapeFunc", function, level)
        return function

    return enter if shape_func is None else enter(shape_func)


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> Any:
    """Whether calls of an operator change more than their results, so that none is left out."""
    return register_op_attr(op_name, "TOpIsStateful", bool(stateful), level)


IntegerForm = Callable[[Call, dict[RelayExpr, Any]], Sequence[Any]]
_INTEGER_FORMS: dict[str, IntegerForm] = {}


def register_fake_quantization_to_integer(op_name: str, func: IntegerForm | None = None) -> Any:
    """Say how `FakeQuantizationToInteger` writes an operator with integers; also a decorator.

    Parameters
    ----------
    func : gets the call with integers as operands, and a mapping that has the
        :class:`tvm.ir.TensorAffineType` of each operand that is not constant and, under the call
        itself, the one that is wanted in the end. Returns the new expression and its type.
    """

    def enter(function: IntegerForm) -> IntegerForm:
        _INTEGER_FORMS[op_name] = function
        return function

    return enter if func is None else enter(func)


def integer_forms() -> dict[str, IntegerForm]:
    """What :func:`register_fake_quantization_to_integer` was told, by operator."""
    return dict(_INTEGER_FORMS)
