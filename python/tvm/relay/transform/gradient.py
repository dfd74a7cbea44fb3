"""Reverse mode differentiation of straight-line programs, by te's of each operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, te
from tvm.ir import IRModule, Op, RelayExpr, TensorType, TupleType, Type

from ..analysis.infer import infer_function
from ..binding import bind
from ..expr import Call, Function, Let, Tuple, TupleGetItem, Var
from ..expr_functor import ExprMutator, post_order_visit
from ..op import elementwise as ew
from ..op import zeros
from ..op.registry import OpPattern, define, find_row, make, row_of, settings_of

__all__ = ["gradient"]


def _partial(name: str, place: int, count: int) -> str:
    """The operator that gives a derivative: operands, then the result's; of one operand."""
    full = f"gradient.{name}.by_operand{place}"
    if Op.exists(full):
        return full
    row = row_of(name)

    def compute(*tensors: te.Tensor, **settings: Any) -> te.Tensor:
        *operands, head = tensors
        assert row.compute is not None
        result = row.compute(*operands, **settings)
        return te.gradient(result, [operands[place]], head)[0]

    def rule(types: Sequence[Type], settings: Any, args: Any) -> Type:
        return types[place]

    define(full, compute, OpPattern.OPAQUE, settings=row.settings, rule=rule,
           num_inputs=count + 1)  # fmt: skip
    return full


class _Inlined(ExprMutator):
    """Lets written out where their variables are used."""

    def visit_let(self, let: Let) -> RelayExpr:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.memo_map[node.var] = self.visit(node.value)
            node = node.body
        return self.visit(node)


def gradient(expr: Function, mod: IRModule | None = None, mode: str = "first_order") -> Function:
    """The function that gives a function's result, and its derivatives by every parameter.

    Its result is ``(result, (derivative, ...))``. The result of `expr` is a tensor, or a tuple of
    them, whose elements are summed: heads are ones.

    Parameters
    ----------
    expr : without branches, cells and calls of other functions; its types are known.
    mode : "first_order" and "higher_order" are the same, since results are programs again.

    Raises
    ------
    TypeError, ValueError : a part has no derivative; the message names it.
    """
    if mode not in ("first_order", "higher_order"):
        raise error.ValueError(f"relay.gradient: there is no mode '{mode}'")
    func = infer_function(expr, mod, {})
    body = infer_function(Function(func.params, _Inlined().visit(func.body)), mod, {}).body
    order: list[RelayExpr] = []
    post_order_visit(body, order.append)
    heads: dict[RelayExpr, Any] = {}

    def give(node: RelayExpr, head: RelayExpr) -> None:
        if isinstance(node.checked_type, TensorType) and "float" in str(node.checked_type.dtype):
            heads[node] = head if node not in heads else ew.add(heads[node], head)

    def ones_for(node: RelayExpr) -> None:
        type_ = node.checked_type
        if isinstance(type_, TupleType) and isinstance(node, Tuple):
            for field in node.fields:
                ones_for(field)
        elif isinstance(type_, TensorType):
            give(node, make("ones", [], shape=list(type_.shape), dtype=str(type_.dtype)))
        else:
            raise error.TypeError(f"relay.gradient: a result of type {type_}")

    ones_for(body)
    for node in reversed(order):
        if node not in heads or isinstance(node, Var):
            continue
        if isinstance(node, Call):
            _pull_back(node, heads[node], give)
        elif isinstance(node, TupleGetItem):
            value = node.tuple_value
            if not isinstance(value, Tuple):
                raise error.ValueError(
                    f"relay.gradient: results of {getattr(value, 'op', value)} have no derivative"
                )
            give(value.fields[node.index], heads[node])
    derivatives = [
        heads.get(p) or zeros(list(p.checked_type.shape), str(p.checked_type.dtype))
        for p in func.params
    ]
    fresh = {p: Var(str(p.name_hint), p.checked_type) for p in func.params}
    result = bind(Tuple([body, Tuple(derivatives)]), fresh)
    return infer_function(Function(list(fresh.values()), result), mod, {})


def _pull_back(call: Call, head: RelayExpr, give: Any) -> None:
    row = find_row(call.op)
    if row is None or row.compute is None:
        raise error.ValueError(f"relay.gradient: {call.op} has no derivative")
    if row.name == "concatenate" or any(isinstance(a.checked_type, TupleType) for a in call.args):
        raise error.ValueError(f"relay.gradient: {row.name} of a tuple has no derivative")
    for place, arg in enumerate(call.args):
        type_ = arg.checked_type
        if isinstance(type_, TensorType) and "float" in str(type_.dtype):
            name = _partial(row.name, place, len(call.args))
            give(arg, make(name, [*call.args, head], **settings_of(call)))
