"""From a group of graph operators to the te tensors that compute it."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import error, te, tir, topi
from tvm.ir import PrimExpr, RelayExpr

from .expr import Call, Function, PrimValue, ShapeExpr, Tuple, Var
from .op import attrs_of, number_operands, op_spec
from .struct_info import StructInfo, TensorStructInfo, open_shape, tensor_fields

__all__ = ["TEFunction", "call_flop", "function_to_te", "tensors_flop"]


@dataclass(frozen=True)
class TEFunction:
    """A computation as te tensors.

    Attributes
    ----------
    inputs : placeholders, one for each parameter of the graph function.
    outputs : results, in order.
    calls : each operator by name, with its result.
    extents : for each symbolic extent of the graph function, which has 64 bits, the variable of 32
        bits that stands for it, as indices of kernels have.
    """

    inputs: tuple[te.Tensor, ...]
    outputs: tuple[te.Tensor, ...]
    calls: tuple[tuple[str, Any], ...]
    extents: Mapping[tir.Var, tir.Var] = field(default_factory=dict)

    @property
    def args(self) -> list[te.Tensor]:
        """Inputs, then outputs: the arguments of the kernel."""
        return [*self.inputs, *self.outputs]


_BINARY = (
    *(tir.Add, tir.Sub, tir.Mul, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max),
    *(tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE),
)


class _Narrow:
    """Sizes as numbers, and as expressions of 32 bits."""

    def __init__(self) -> None:
        self.extents: dict[tir.Var, tir.Var] = {}

    def __call__(self, value: Any) -> Any:
        """A setting or extent; what is no size stays.

        Raises
        ------
        ValueError : an extent is computed in a way that kernels do not know.
        """
        if isinstance(value, tuple):
            return tuple(map(self, value))
        if not isinstance(value, PrimExpr) or str(value.dtype) != "int64":
            return value
        return int(value.value) if isinstance(value, tir.IntImm) else self._expression(value)

    def _expression(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, tir.Var):
            if expr not in self.extents:
                make = tir.SizeVar if isinstance(expr, tir.SizeVar) else tir.Var
                self.extents[expr] = make(str(expr.name), "int32")
            return self.extents[expr]
        if isinstance(expr, tir.IntImm):
            return tir.const(expr.value, "int32")
        if isinstance(expr, _BINARY):
            return type(expr)(self._expression(expr.a), self._expression(expr.b))
        if isinstance(expr, tir.Select):
            parts = (expr.condition, expr.true_value, expr.false_value)
            return tir.Select(*map(self._expression, parts))
        raise error.ValueError(f"relax: the extent {expr} is not made of sums and quotients")


def _placeholder(info: StructInfo, name: str, narrow: _Narrow) -> te.Tensor:
    return te.placeholder(narrow(open_shape(info)), dtype=str(info.dtype), name=name)


def _compute(call: Call, env: dict[Var, Any], narrow: _Narrow) -> te.Tensor | list[te.Tensor]:
    def operand(expr: RelayExpr) -> Any:
        if isinstance(expr, ShapeExpr):
            return tuple(map(narrow, expr.values))
        if isinstance(expr, PrimValue):
            return narrow(expr.value)
        if isinstance(expr, Tuple):
            return [operand(item) for item in expr.fields]
        return env[expr]

    operands = (
        operand(arg) if number is None else number
        for arg, number in zip(call.args, number_operands(call.args))
    )
    settings = {name: narrow(value) for name, value in attrs_of(call).items()}
    result = op_spec(call.op).compute(*operands, **settings)
    return result if isinstance(result, te.Tensor) else list(result)


def function_to_te(func: Function) -> TEFunction:
    """The te tensors of a function made of operators only, as fusion forms them.

    Raises
    ------
    ValueError : the shape of a parameter is unknown, or an operator has no te computation.
    """
    narrow = _Narrow()
    # A shape among the parameters says extents, and no data.
    params = [p for p in func.params if isinstance(p.struct_info, TensorStructInfo)]
    inputs = tuple(_placeholder(p.struct_info, str(p.name_hint), narrow) for p in params)
    env: dict[Var, Any] = dict(zip(params, inputs))
    calls = []
    for block in func.body.blocks:
        for binding in block.bindings:
            env[binding.var] = _compute(binding.value, env, narrow)
            calls.append((str(binding.value.op.name), env[binding.var]))
    result = func.body.body
    outputs = env[result] if isinstance(result, Var) else [env[item] for item in result.fields]
    results = (outputs,) if isinstance(outputs, te.Tensor) else tuple(outputs)
    return TEFunction(inputs, results, tuple(calls), narrow.extents)


_FLOP_NODES = (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Min, tir.Max)


def _expression_flop(expr: tir.PrimExpr) -> int:
    """Floating-point operations to evaluate an expression once; a call counts as one."""
    count = 0

    def visit(node: Any) -> None:
        nonlocal count
        if isinstance(node, _FLOP_NODES):
            count += str(node.dtype).startswith(("float", "bfloat"))
        elif isinstance(node, tir.Call):
            name = str(getattr(node.op, "name", ""))
            is_branch = name in ("tir.if_then_else", "tir.likely")
            count += not is_branch and str(node.dtype).startswith(("float", "bfloat"))

    tir.stmt_functor.post_order_visit(expr, visit)
    return count


def _op_flop(operation: te.Operation) -> int:
    points = math.prod(int(axis.dom.extent) for axis in operation.axis)
    body = operation.body[0]
    if isinstance(body, tir.Reduce):
        points *= math.prod(int(axis.dom.extent) for axis in body.axis)
        # Each point computes its term and combines it.
        return points * sum(_expression_flop(source) + 1 for source in body.source)
    return points * sum(_expression_flop(expr) for expr in operation.body)


def tensors_flop(outputs: tuple[te.Tensor, ...] | list[te.Tensor]) -> int:
    """Floating-point operations of one run of everything the outputs depend on."""
    total = 0
    pending = [tensor.op for tensor in outputs]
    seen: set[te.Operation] = set()
    while pending:
        operation = pending.pop()
        if operation in seen:
            continue
        seen.add(operation)
        pending.extend(tensor.op for tensor in operation.input_tensors)
        if isinstance(operation, te.ComputeOp):
            total += _op_flop(operation)
    return total


@functools.lru_cache(maxsize=1024)
def _signature_flop(name: str, shapes: tuple[Any, ...], attrs: tuple[Any, ...]) -> int:
    tensors = [te.placeholder(shape, dtype=dtype, name="x") for shape, dtype in shapes]
    result = op_spec(name).compute(*tensors, **dict(attrs))
    return tensors_flop([result] if isinstance(result, te.Tensor) else list(result))


def call_flop(call: Call) -> int:
    """Floating-point operations of one operator call whose operands are all tensors.

    Extents that are open count as typical ones.
    """
    shapes = tuple(
        (topi.utils.typical_shape(open_shape(info)), str(info.dtype))
        for arg in call.args
        for info in tensor_fields(arg.struct_info)
    )
    settings = tuple(
        (name, topi.utils.typical_shape(value) if isinstance(value, tuple) else value)
        for name, value in sorted(attrs_of(call).items())
    )
    return _signature_flop(str(call.op.name), shapes, settings)
