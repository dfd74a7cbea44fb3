"""Programs with names for all values, for those that several blocks use, or for none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tvm._ffi
from tvm.ir import GlobalVar, RelayExpr
from tvm.ir.transform import Pass

from ..adt import Clause, Match
from ..expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PostOrderMutator, computed_first
from .base import expression_pass

__all__ = ["ToANormalForm", "ToBasicBlockNormalForm", "ToGraphNormalForm"]


class _Straight(PostOrderMutator):
    """Lets written out where their variables are used."""

    def visit_let(self, let: Let) -> RelayExpr:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.memo_map[node.var] = self.visit(node.value)
            node = node.body
        return self.visit(node)


def ToGraphNormalForm() -> Pass:
    """Write values where the variables that let binds are used, so that a graph is left."""
    return expression_pass(lambda f, mod: _Straight().visit(f), 1, "ToGraphNormalForm")


class _Block:
    """What runs together: the body of a function, a branch, or a clause of a match."""

    def __init__(self, parent: _Block | None = None) -> None:
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.bindings: list[tuple[Var, RelayExpr]] = []

    def common(self, other: _Block) -> _Block:
        """The innermost block that both are in."""
        one, two = self, other
        while one is not two:
            if one.depth < two.depth:
                one, two = two, one
            assert one.parent is not None
            one = one.parent
        return one


def _is_primitive(func: Function) -> bool:
    return func.attrs is not None and "Primitive" in func.attrs


def _parts(expr: RelayExpr) -> list[RelayExpr]:
    """What is computed before an expression, in its block."""
    if isinstance(expr, Let):
        return [expr.value, expr.body]
    return [] if isinstance(expr, Function) else computed_first(expr)


def _inner(expr: RelayExpr) -> list[RelayExpr]:
    """The results of the blocks that an expression has."""
    if isinstance(expr, If):
        return [expr.true_branch, expr.false_branch]
    if isinstance(expr, Match):
        return [clause.rhs for clause in expr.clauses]
    if isinstance(expr, Function) and not _is_primitive(expr):
        return [expr.body]
    return []


class _Blocks:
    """Where each expression of a program is computed: in the innermost block around all its uses.

    Attributes
    ----------
    block_of : that block.
    inner : by expression, its blocks in the order of `_inner`.
    shared : expressions that several blocks use.
    """

    def __init__(self, root: RelayExpr) -> None:
        self.block_of: dict[RelayExpr, _Block] = {root: _Block()}
        self.inner: dict[RelayExpr, list[_Block]] = {}
        self.shared: set[RelayExpr] = set()
        for expr in _users_first(root):
            around = self.block_of[expr]
            self.inner[expr] = [_Block(around) for _ in _inner(expr)]
            for part in _parts(expr):
                self._use(part, around)
            for part, block in zip(_inner(expr), self.inner[expr]):
                self._use(part, block)

    def _use(self, expr: RelayExpr, block: _Block) -> None:
        known = self.block_of.setdefault(expr, block)
        if known is not block:
            self.shared.add(expr)
            self.block_of[expr] = known.common(block)


def _users_first(root: RelayExpr) -> Iterator[RelayExpr]:
    order: list[RelayExpr] = []
    seen: set[RelayExpr] = set()
    pending = [(root, False)]
    while pending:
        expr, done = pending.pop()
        if done:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            pending.append((expr, True))
            pending.extend((part, False) for part in [*_parts(expr), *_inner(expr)])
    return reversed(order)


class _Binder(PostOrderMutator):
    """Gives names to the expressions that `is_named` says, where they are computed."""

    def __init__(self, root: RelayExpr, is_named: Callable[[RelayExpr, _Blocks], bool]) -> None:
        super().__init__()
        self._blocks = _Blocks(root)
        self._is_named = is_named
        self._root = root

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        # Blocks are entered by the methods below, lets as a chain.
        return [] if isinstance(expr, (Let, Function)) else computed_first(expr)

    def dispatch(self, expr: RelayExpr) -> RelayExpr:
        result: RelayExpr = super().dispatch(expr)
        if isinstance(expr, Let) or expr.same_as(self._root):
            return result
        if expr not in self._blocks.block_of or not self._is_named(expr, self._blocks):
            return result
        var = Var("x", expr.checked_type_)
        self._blocks.block_of[expr].bindings.append((var, result))
        return var

    def _block(self, expr: RelayExpr, block: _Block) -> RelayExpr:
        """The result of a block, behind what the block binds."""
        result: RelayExpr = self.visit(expr)
        for var, value in reversed(block.bindings):
            result = Let(var, value, result)
        return result

    def visit_if(self, iff: If) -> RelayExpr:
        cond = self.visit(iff.cond)
        yes, no = self._blocks.inner[iff]
        return If(cond, self._block(iff.true_branch, yes), self._block(iff.false_branch, no))

    def visit_match(self, match: Match) -> RelayExpr:
        data = self.visit(match.data)
        clauses = [
            Clause(clause.lhs, self._block(clause.rhs, block))
            for clause, block in zip(match.clauses, self._blocks.inner[match])
        ]
        return Match(data, clauses, match.complete)

    def visit_function(self, func: Function) -> RelayExpr:
        if _is_primitive(func):
            return func
        [block] = self._blocks.inner[func]
        body = self._block(func.body, block)
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs)

    def visit_let(self, let: Let) -> RelayExpr:
        node: RelayExpr = let
        while isinstance(node, Let):
            bindings = self._blocks.block_of[node].bindings
            count = len(bindings)
            value = self.visit(node.value)
            # The name that the program gives takes the place of a new one.
            if len(bindings) > count and bindings[-1][0].same_as(value):
                bindings[-1] = (node.var, bindings[-1][1])
                self.memo_map[node.value] = node.var
            else:
                bindings.append((node.var, value))
            node = node.body
        return self.visit(node)


_VALUES = (Call, Tuple, TupleGetItem, If, Match, Function, RefCreate, RefRead, RefWrite)


def _every_value(expr: RelayExpr, blocks: _Blocks) -> bool:
    return isinstance(expr, (*_VALUES, Constant, GlobalVar))


def _shared_value(expr: RelayExpr, blocks: _Blocks) -> bool:
    return isinstance(expr, _VALUES) and expr in blocks.shared


def ToANormalForm() -> Pass:
    """Give every value a name by let, in the order of evaluation.

    What several branches use is computed before them.
    """
    return expression_pass(lambda f, mod: _Binder(f, _every_value).visit(f), 1, "ToANormalForm")


def ToBasicBlockNormalForm() -> Pass:
    """Give names to what several blocks use, in the innermost block around these.

    Blocks are bodies of functions, branches, and clauses of matches. Afterwards nothing is
    computed twice when each block is computed as the graph that it is.
    """
    return expression_pass(
        lambda f, mod: _Binder(f, _shared_value).visit(f), 1, "ToBasicBlockNormalForm"
    )


@tvm._ffi.register_func("relay.analysis.check_basic_block_normal_form")
def _check_basic_block_normal_form(expr: RelayExpr) -> bool:
    return not any(isinstance(shared, _VALUES) for shared in _Blocks(expr).shared)
