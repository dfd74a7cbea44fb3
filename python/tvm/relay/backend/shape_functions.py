"""Shapes of results that operators of programs compute when they run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error, te
from tvm.ir import Op, TensorType, TupleType, Type
from tvm.runtime import NDArray

from ..expr import Call
from ..ty import is_dynamic

__all__ = ["shaped_type"]


def shaped_type(call: Call, type_: Type, args: Sequence[NDArray]) -> Type:
    """The type of a call's result with the shape that the operator's shape function gives it.

    Parameters
    ----------
    type_ : what is known of it; it comes back where the operator has no such function, or nothing
        is left to find.
    args : values of the operands.

    Raises
    ------
    ValueError : the function does not give a shape for each result.
    """
    if not isinstance(call.op, Op) or not is_dynamic(type_):
        return type_
    function = call.op.get_attr("FShapeFunc")
    if function is None:
        return type_
    fields = list(type_.fields) if isinstance(type_, TupleType) else [type_]
    depends = [bool(value) for value in call.op.get_attr("TShapeDataDependent")]
    depends = depends * len(args) if len(depends) == 1 else depends
    given = [_asked(arg, values) for arg, values in zip(args, depends)]
    inputs = [te.placeholder(array.shape, str(array.dtype), f"in{k}")
              for k, array in enumerate(given)]  # fmt: skip
    ranks = [len(field.shape) for field in fields]
    outputs = list(function(call.attrs, inputs, ranks))
    if len(outputs) != len(fields):
        raise error.ValueError(
            f"relay: the shape function of '{call.op.name}' gives {len(outputs)} shapes for "
            f"{len(fields)} results"
        )
    schedule = te.create_schedule([output.op for output in outputs])
    run = tvm.build(schedule, [*inputs, *outputs], "llvm", name="shape_func")
    shapes = [tvm.nd.empty((rank,), str(o.dtype)) for rank, o in zip(ranks, outputs)]
    run(*[tvm.nd.array(array) for array in given], *shapes)
    found = [
        TensorType([int(extent) for extent in shape.numpy()], str(field.dtype))
        for shape, field in zip(shapes, fields)
    ]
    return TupleType(found) if isinstance(type_, TupleType) else found[0]


def _asked(arg: NDArray, values: bool) -> Any:
    """What a shape function gets of an operand; a number has the shape ()."""
    if values:
        return arg.numpy()
    return np.array(arg.shape, "int64") if arg.shape else np.array(0, "int64")
