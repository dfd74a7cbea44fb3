"""Reverse mode differentiation: straight-line programs written out, by te's of each operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tvm import error, te, tir, topi
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr, TensorType, TupleType, Type
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_function, infer_module
from ..analysis.variables import free_vars
from ..binding import bind
from ..expr import Call, Function, If, Let, Tuple, TupleGetItem, Var, const
from ..expr_functor import PostOrderMutator, computed_first
from ..op import cumsum, ones, reshape, reverse, zeros
from ..op import elementwise as ew
from ..op import sum as sum_of
from ..op.registry import OpPattern, define, find_row, make, row_of, settings_of
from .backward import differentiated, is_straight
from .base import relay_functions

__all__ = ["FirstOrderGradient", "gradient"]


Path = tuple[int, ...]
"""Which tensor of a value, by index of each tuple on the way; () for a tensor."""
_Give = Callable[[RelayExpr, Path, RelayExpr], None]


def _leaves(type_: Type, path: Path = ()) -> Iterator[tuple[Path, TensorType]]:
    """The tensors of a value of a type."""
    if isinstance(type_, TupleType):
        for k, field in enumerate(type_.fields):
            yield from _leaves(field, (*path, k))
    elif isinstance(type_, TensorType):
        yield path, type_
    else:
        raise error.TypeError(f"relay.gradient: values of type {type_} have no derivative")


def _at(value: Any, path: Path) -> Any:
    for k in path:
        value = value.fields[k] if isinstance(value, TupleType) else value[k]
    return value


def _partial(name: str, result: Path, operand: Path, count: int) -> str:
    """The operator that gives a derivative of one result by one operand.

    It takes the operands and the derivative by that result.
    """
    parts = ["gradient", name]
    if result:
        parts.append("of_result" + "_".join(map(str, result)))
    parts.append("by_operand" + "_".join(map(str, operand)))
    full = ".".join(parts)
    if Op.exists(full):
        return full
    row = row_of(name)

    def compute(*tensors: Any, **settings: Any) -> te.Tensor:
        operands = [list(v) if isinstance(v, (list, tuple)) else v for v in tensors[:-1]]
        assert row.compute is not None
        # Where two operands are the same tensor, the derivative is by one of them alone.
        *way, last = operand
        holder, by = _at(operands, tuple(way)), topi.identity(_at(operands, operand))
        holder[last] = by
        value = _at(row.compute(*operands, **settings), result)
        head = tensors[-1]
        if not isinstance(head, te.Tensor):
            # What is constant and has no axes comes as a number.
            number = tir.const(head, value.dtype)
            head = te.compute((), lambda: number, name="head")
        return te.gradient(value, [by], head)[0]

    def rule(types: Sequence[Type], settings: Any, args: Any) -> Type:
        return _at(types, operand)

    define(full, compute, OpPattern.OPAQUE, settings=row.settings, rule=rule,
           num_inputs=count + 1)  # fmt: skip
    return full


class _Inlined(PostOrderMutator):
    """Lets and calls of functions written out where their values are used."""

    def __init__(self, mod: IRModule | None) -> None:
        super().__init__()
        self._mod = mod
        self._active: list[str] = []

    def visit_let(self, let: Let) -> RelayExpr:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.memo_map[node.var] = self.visit(node.value)
            node = node.body
        return self.visit(node)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, (Function, GlobalVar)):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        func, name = call.op, ""
        if isinstance(func, Var):
            func = self.visit(func)
        if isinstance(func, GlobalVar) and self._mod is not None and func in self._mod:
            name = str(func.name_hint)
            if name in self._active:
                raise error.ValueError(f"relay.gradient: function '{name}' calls itself")
            func = self._mod[name]
        if not isinstance(func, Function):
            return super().visit_call(call)
        # A function may be called more than once, so what is written out is its own each time.
        bound = bind(func.body, dict(zip(func.params, [self.visit(arg) for arg in call.args])))
        self._active.append(name)
        result = self.visit(bound)
        self._active.pop()
        return result


def gradient(expr: Function, mod: IRModule | None = None, mode: str = "first_order") -> Function:
    """The function that gives a function's result, and its derivatives by every parameter.

    Its result is ``(result, (derivative, ...))``, the derivative by a tuple being a tuple. The
    result of `expr` is a tensor, or a tuple of them, whose elements are summed: heads are ones.

    Parameters
    ----------
    expr : a function of tensors and tuples of them. With matches, cells, recursion or functions as
        values inside, the result keeps them and adds cells for derivatives.
    mod : has the functions that it calls by name; for such a program it gets those that the result
        calls.
    mode : "first_order" and "higher_order" are the same, since results are programs again.

    Raises
    ------
    TypeError, ValueError : a part has no derivative; the message names it.
    """
    if mode not in ("first_order", "higher_order"):
        raise error.ValueError(f"relay.gradient: there is no mode '{mode}'")
    if not is_straight(expr, mod):
        return differentiated(expr, mod, _pull_back_all)
    func = infer_function(expr, mod, {})
    body = infer_function(Function(func.params, _Inlined(mod).visit(func.body)), mod, {}).body
    heads = {
        path: ones(list(type_.shape), str(type_.dtype))
        for path, type_ in _leaves(body.checked_type)
        if "float" in str(type_.dtype)
    }
    found = _derivatives(body, heads)

    fresh = {p: Var(str(p.name_hint), p.checked_type) for p in func.params}
    derivatives = Tuple([_whole(p.checked_type, found.get(p, {})) for p in func.params])
    result = bind(Tuple([body, derivatives]), fresh)
    return infer_function(Function(list(fresh.values()), result), mod, {})


def _computed(body: RelayExpr) -> list[RelayExpr]:
    """What is computed for an expression in any case, operands before what uses them."""
    order: dict[RelayExpr, None] = {}
    pending = [body]
    while pending:
        node = pending[-1]
        waiting = [part for part in computed_first(node) if part not in order]
        if node in order or not waiting:
            order.setdefault(node)
            pending.pop()
        else:
            pending.extend(reversed(waiting))
    return list(order)


def _derivatives(
    body: RelayExpr, of_result: Mapping[Path, RelayExpr]
) -> dict[RelayExpr, dict[Path, RelayExpr]]:
    """The derivatives by the variables of an expression, given those by tensors of its value.

    Variables, and tensors of theirs, on which nothing depends are left out.
    """
    order = _computed(body)
    heads: dict[RelayExpr, dict[Path, RelayExpr]] = {}
    varying: set[RelayExpr] = set()
    for node in order:
        # Branches are made of variables alone, since what they share with others is written out.
        parts = free_vars(node) if isinstance(node, If) else computed_first(node)
        if any(isinstance(part, Var) or part in varying for part in parts):
            varying.add(node)

    def give(node: RelayExpr, path: Path, head: RelayExpr) -> None:
        """Add to the derivative by a tensor of a value; tuples hand it to their fields."""
        while isinstance(node, (Tuple, TupleGetItem)):
            if isinstance(node, TupleGetItem):
                node, path = node.tuple_value, (node.index, *path)
            else:
                node, path = node.fields[path[0]], path[1:]
        if not isinstance(node, Var) and node not in varying:
            return
        known = heads.setdefault(node, {})
        known[path] = ew.add(known[path], head) if path in known else head

    for path, head in of_result.items():
        give(body, path, head)
    for node in reversed(order):
        if isinstance(node, Call) and node in heads:
            _pull_back_all(node, heads[node], give)
        elif isinstance(node, If) and node in heads:
            for var, path, head in _of_branches(node, heads[node]):
                give(var, path, head)
        elif node in heads and not isinstance(node, Var):
            raise error.ValueError(f"relay.gradient: a {type(node).__name__} has no derivative")
    return {node: known for node, known in heads.items() if isinstance(node, Var)}


def _of_branches(
    choice: If, heads: Mapping[Path, RelayExpr]
) -> Iterator[tuple[Var, Path, RelayExpr]]:
    """Derivatives by variables of a conditional: conditionals too, of those of its branches."""
    taken, other = (_derivatives(b, heads) for b in (choice.true_branch, choice.false_branch))
    for var in dict.fromkeys([*taken, *other]):
        for path, type_ in _leaves(var.checked_type):
            found = [branch.get(var, {}).get(path) for branch in (taken, other)]
            if found == [None, None]:
                continue
            nothing = zeros(list(type_.shape), str(type_.dtype))
            yield var, path, If(choice.cond, *(nothing if d is None else d for d in found))


def FirstOrderGradient() -> Pass:
    """Make each function of a module what :func:`gradient` makes of it."""

    @module_pass(opt_level=0, name="FirstOrderGradient")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        typed = infer_module(mod)
        result = typed.clone()
        for gvar, func in relay_functions(typed):
            result[str(gvar.name_hint)] = gradient(func, typed)
        return infer_module(result)

    return run


def _registered(call: Call) -> Any:
    """What :func:`relay.op.register_gradient` was told for the operator of a call, or None."""
    op = call.op
    return op.get_attr("FPrimalGradient") if isinstance(op, Op) else None


def _pull_back_as_registered(
    call: Call, registered: Any, heads: dict[Path, RelayExpr], give: _Give
) -> None:
    found = list(registered(call, _whole(call.checked_type, heads)))
    if len(found) != len(call.args):
        raise error.ValueError(
            f"relay.gradient: what is registered for {call.op} gives {len(found)} derivatives, and "
            f"the call has {len(call.args)} operands"
        )
    for arg, derivative in zip(call.args, found):
        for path, type_ in _leaves(arg.checked_type):
            if "float" in str(type_.dtype):
                part = derivative
                for k in path:
                    part = TupleGetItem(part, k)
                give(arg, path, part)


def _whole(type_: Type, known: Mapping[Path, RelayExpr], path: Path = ()) -> RelayExpr:
    """Derivatives by the tensors of a value as one value; those that are not known are zero."""
    if isinstance(type_, TupleType):
        return Tuple([_whole(f, known, (*path, k)) for k, f in enumerate(type_.fields)])
    return known[path] if path in known else zeros(list(type_.shape), str(type_.dtype))


def _pull_back_all(call: Call, heads: dict[Path, RelayExpr], give: _Give) -> None:
    """Give the operands of a call what the derivatives by its results are by each of them."""
    registered = _registered(call)
    if registered is not None:
        _pull_back_as_registered(call, registered, heads, give)
        return
    for path, head in heads.items():
        _pull_back(call, path, head, give)


def _pull_back(call: Call, path: Path, head: RelayExpr, give: _Give) -> None:
    """Give the operands what the derivative by a tensor of a call's result is by each of them."""
    row = find_row(call.op)
    if row is not None and row.name == "one_hot":
        hot = make("one_hot", [call.args[0], const(1.0), const(0.0)], **settings_of(call))
        for arg, share in zip(call.args[1:], (hot, ew.subtract(ew.ones_like(hot), hot))):
            found = sum_of(ew.multiply(head, share))
            give(arg, (), ew.cast(found, str(arg.checked_type.dtype)))
        return
    if row is None or row.compute is None:
        raise error.ValueError(f"relay.gradient: {call.op} has no derivative")
    if row.name == "cumsum":
        give(call.args[0], (), _summed_from_behind(call, head))
        return
    for place, arg in enumerate(call.args):
        for inner, type_ in _leaves(arg.checked_type):
            if "float" in str(type_.dtype):
                name = _partial(row.name, path, (place, *inner), len(call.args))
                give(arg, inner, make(name, [*call.args, head], **settings_of(call)))


def _summed_from_behind(call: Call, head: RelayExpr) -> RelayExpr:
    """The derivative of a running sum: each element is in the sums behind it."""
    how = settings_of(call)
    axis, data = how.get("axis"), call.args[0].checked_type
    along = 0 if axis is None else axis
    sums = cumsum(reverse(head, along), along, exclusive=bool(how.get("exclusive")))
    found = reverse(sums, along)
    found = reshape(found, list(data.shape)) if axis is None else found
    same = str(data.dtype) == str(call.checked_type.dtype)
    return found if same else ew.cast(found, str(data.dtype))
