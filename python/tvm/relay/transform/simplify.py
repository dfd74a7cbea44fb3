"""Operators written in simpler ones, and constant parts computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm.ir import IRModule, Op, RelayExpr
from tvm.ir.transform import Pass
from tvm.target import Target

from .. import op
from ..analysis.infer import infer_function
from ..backend.interpreter import Interpreter, compiled
from ..backend.to_relax import is_graph
from ..expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    Tuple,
    TupleGetItem,
    const,
)
from ..expr_functor import PostOrderMutator
from ..op import elementwise as ew
from ..op.registry import find_row, settings_of
from ..ty import is_dynamic
from .base import expression_pass

__all__ = ["CanonicalizeOps", "FastMath", "FoldConstant", "SimplifyInference"]


def _along(vector: RelayExpr, axis: int, rank: int) -> RelayExpr:
    """A vector with axes of one element behind it, so that it lies along an axis."""
    behind = rank - 1 - axis % rank
    return op.expand_dims(vector, axis=1, num_newaxis=behind) if behind else vector


def _scaled(data: RelayExpr, gamma: RelayExpr, beta: RelayExpr, s: Mapping[str, Any],
            rank: int) -> RelayExpr:  # fmt: skip
    if s["scale"]:
        data = data * _along(gamma, s["axis"], rank)
    return data + _along(beta, s["axis"], rank) if s["center"] else data


def _float(value: float, like: Any) -> Constant:
    return const(value, str(like.dtype))


def _batch_norm(call: Call, args: Sequence[RelayExpr]) -> RelayExpr:
    s, type_ = settings_of(call), call.args[0].checked_type
    data, gamma, beta, mean, var = args
    rank = len(type_.shape)
    factor = _float(1.0, type_) / ew.sqrt(var + _float(s["epsilon"], type_))
    factor = factor * gamma if s["scale"] else factor
    shift = ew.negative(mean) * factor
    shift = shift + beta if s["center"] else shift
    return data * _along(factor, s["axis"], rank) + _along(shift, s["axis"], rank)


def _normalised(axes: Callable[[int, int], list[int]]) -> Any:
    def rewrite(call: Call, args: Sequence[RelayExpr]) -> RelayExpr:
        s, type_ = settings_of(call), call.args[0].checked_type
        data, gamma, beta = args
        over = axes(len(type_.shape), s["axis"] % len(type_.shape))
        mean = op.mean(data, over, True)
        var = op.variance(data, over, True, False, False, mean)
        base = (data - mean) / ew.sqrt(var + _float(s["epsilon"], type_))
        return _scaled(base, gamma, beta, s, len(type_.shape))

    return rewrite


def _group_norm(call: Call, args: Sequence[RelayExpr]) -> RelayExpr:
    s, type_ = settings_of(call), call.args[0].checked_type
    data, gamma, beta = args
    shape = [int(e) for e in type_.shape]
    axis, groups = s["axis"] % len(shape), s["num_groups"]
    split = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    blocks = op.reshape(data, split)
    over = [k for k in range(1, len(split)) if k != axis]
    mean = op.mean(blocks, over, True)
    var = op.variance(blocks, over, True, False, False, mean)
    base = (blocks - mean) / ew.sqrt(var + _float(s["epsilon"], type_))
    return _scaled(op.reshape(base, shape), gamma, beta, s, len(shape))


def _l2_normalize(call: Call, args: Sequence[RelayExpr]) -> RelayExpr:
    s, type_ = settings_of(call), call.args[0].checked_type
    squares = op.sum(args[0] * args[0], None if s["axis"] is None else list(s["axis"]), True)
    return args[0] / ew.sqrt(ew.maximum(squares, _float(s["eps"], type_)))


_INFERENCE: Mapping[str, Any] = {
    "nn.layer_norm": _normalised(lambda rank, axis: [axis]),
    "nn.instance_norm": _normalised(lambda rank, axis: [k for k in range(1, rank) if k != axis]),
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
}


class _Inference(PostOrderMutator):
    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        call = item.tuple_value
        if isinstance(call, Call) and isinstance(call.op, Op) and item.index == 0:
            name = str(call.op.name)
            if name == "nn.batch_norm":
                return _batch_norm(call, [self.visit(a) for a in call.args])
            if name == "nn.dropout":
                return self.visit(call.args[0])
        return super().visit_tuple_getitem(item)

    def visit_call(self, call: Call) -> RelayExpr:
        rewrite = _INFERENCE.get(str(call.op.name)) if isinstance(call.op, Op) else None
        if rewrite is None:
            return super().visit_call(call)
        return rewrite(call, [self.visit(a) for a in call.args])


def SimplifyInference() -> Pass:
    """Write batch, layer, instance and group normalisation and the like in arithmetic, and drop
    dropout, as inference has them."""
    return expression_pass(lambda f, mod: _Inference().visit(f), 0, "SimplifyInference")


class _Canonical(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        if isinstance(call.op, Op) and str(call.op.name) == "nn.bias_add":
            data, bias = (self.visit(a) for a in call.args)
            rank = len(call.args[0].checked_type.shape)
            return data + _along(bias, settings_of(call)["axis"], rank)
        return super().visit_call(call)


def CanonicalizeOps() -> Pass:
    """Write bias_add as expand_dims and add."""
    return expression_pass(lambda f, mod: _Canonical().visit(f), 3, "CanonicalizeOps")


class _Fast(PostOrderMutator):
    _NAMES: Mapping[str, Any] = {
        "exp": ew.fast_exp, "tanh": ew.fast_tanh, "erf": ew.fast_erf,
    }  # fmt: skip

    def visit_call(self, call: Call) -> RelayExpr:
        name = str(call.op.name) if isinstance(call.op, Op) else ""
        if name in self._NAMES:
            return self._NAMES[name](self.visit(call.args[0]))
        if name == "nn.softmax":
            return op.nn.fast_softmax(self.visit(call.args[0]), settings_of(call)["axis"])
        return super().visit_call(call)


def FastMath() -> Pass:
    """Compute exp, tanh, erf and softmax by polynomials that are close."""
    return expression_pass(lambda f, mod: _Fast().visit(f), 4, "FastMath")


# Kept as they are: what they mean is not their value, or their value is larger than they.
_NOT_FOLDED = (
    "annotation.", "device_copy", "on_device", "random.", "dyn.", "qnn.", "nn.dropout",
)  # fmt: skip
_LARGE = ("zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "shape_of")


def _unmarked(expr: RelayExpr) -> RelayExpr:
    """What is marked to be on a device."""
    while isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == "on_device":
        expr = expr.args[0]
    return expr


class _Fold(PostOrderMutator):
    """Values of calls whose operands are constants."""

    def __init__(self, fold_qnn: bool) -> None:
        super().__init__()
        # The values count, not the machine that the network is for.
        self._machine = Interpreter(IRModule(), Target("llvm"), tvm.cpu())
        self._skipped = tuple(n for n in _NOT_FOLDED if not (fold_qnn and n == "qnn."))

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            value = self.visit(node.value)
            if isinstance(_unmarked(value), Constant):
                # Uses get the constant itself, so the binding is not needed.
                self.memo_map[node.var] = value
            else:
                bindings.append((node, value))
            node = node.body
        body = self.visit(node)
        for old, value in reversed(bindings):
            same = value.same_as(old.value) and body.same_as(old.body)
            body = old if same else Let(old.var, value, body)
        return body

    def visit_if(self, iff: If) -> RelayExpr:
        cond = self.visit(iff.cond)
        if isinstance(cond, Constant):
            return self.visit(iff.true_branch if cond.data.numpy().item() else iff.false_branch)
        return super().visit_if(iff)

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        value = self.visit(item.tuple_value)
        if isinstance(value, Tuple):
            return value.fields[item.index]
        return item if value.same_as(item.tuple_value) else TupleGetItem(value, item.index)

    def visit_function(self, func: Function) -> RelayExpr:
        attrs = func.attrs
        if attrs is not None and "Compiler" in attrs:
            return func
        return super().visit_function(func)

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        assert isinstance(new, Call)
        if isinstance(new.op, Function):
            return self._called(new)
        if not isinstance(new.op, Op):
            return new
        name = str(new.op.name)
        if name == "shape_of" or name == "ndarray_size":
            return self._known_shape(call, new)
        if name.startswith(self._skipped) or name in _LARGE or find_row(new.op) is None:
            return new
        operands = [_unmarked(a) for a in new.args]
        if not operands or not all(_is_constant(a) for a in operands):
            return new
        if any(not a.same_as(b) for a, b in zip(operands, new.args)):
            new = Call(new.op, operands, new.attrs)
        if not is_graph(infer_function(Function([], new), None, {})):
            return new
        # One kernel serves all calls of an operator on operands of the same types.
        return _as_expr(self._machine.operator(new, [_array_of(a) for a in operands]))

    def _called(self, call: Call) -> RelayExpr:
        """A function of constants, as fusion makes them."""
        if not call.args or not all(_is_constant(a) for a in call.args):
            return call
        return _value_of(call)

    @staticmethod
    def _known_shape(call: Call, new: Call) -> RelayExpr:
        type_ = call.args[0].checked_type_
        if type_ is None or is_dynamic(type_):
            return new
        shape = [int(e) for e in type_.shape]
        dtype = settings_of(call)["dtype"]
        whole = str(call.op.name) == "ndarray_size"
        return const(np.array(int(np.prod(shape)) if whole else shape), dtype)


def _is_constant(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) or (
        isinstance(expr, Tuple) and all(_is_constant(f) for f in expr.fields)
    )


def _value_of(call: Call) -> RelayExpr:
    func = infer_function(Function([], call), None, {})
    if not is_graph(func):
        return call
    # The values count, not the machine that the network is for.
    result = compiled(func, Target("llvm"), tvm.cpu())()
    return _as_expr(result)


def _array_of(expr: RelayExpr) -> Any:
    """The value of a constant, or a tuple of those of its fields."""
    return expr.data if isinstance(expr, Constant) else tuple(_array_of(f) for f in expr.fields)


def _as_expr(value: Any) -> RelayExpr:
    if isinstance(value, tuple):
        return Tuple([_as_expr(v) for v in value])
    return Constant(value)


def FoldConstant(fold_qnn: bool = False) -> Pass:
    """Compute what depends on constants alone.

    Parameters
    ----------
    fold_qnn : compute quantised operators too, whose patterns other passes look for.
    """
    return expression_pass(lambda f, mod: _Fold(fold_qnn).visit(f), 2, "FoldConstant")


def fold_constant_expr(
    expr: RelayExpr, mod: IRModule | None = None, fold_qnn: bool = False
) -> RelayExpr:
    """An expression with what depends on constants alone computed."""
    return _Fold(fold_qnn).visit(expr)
