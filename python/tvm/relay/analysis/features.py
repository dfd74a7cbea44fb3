"""What kinds of expressions a program has, and how many."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from tvm import error
from tvm.ir import Constructor, GlobalVar, IRModule, Op, RelayExpr

from ..adt import Match
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
from ..expr_functor import PostOrderVisitor, computed_first, post_order_visit
from .variables import free_vars

__all__ = ["Feature", "count_layers", "detect_feature", "get_total_mac_number", "list_op_freqs"]


class Feature(IntEnum):
    """Kinds of expressions, a value that several use (fGraph), and recursion by let (fLetRec)."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_KINDS = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}
_ATOMS = (Var, GlobalVar, Op, Constant, Constructor)


class _Detector(PostOrderVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[Feature] = set()
        self._used: set[RelayExpr] = set()

    def dispatch(self, expr: RelayExpr) -> None:
        self.found |= {feature for kind, feature in _KINDS.items() if isinstance(expr, kind)}
        for part in computed_first(expr):
            if part in self._used and not isinstance(part, _ATOMS):
                self.found.add(Feature.fGraph)
            self._used.add(part)
        super().dispatch(expr)

    def visit_let(self, let: Let) -> None:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.found.add(Feature.fLet)
            if isinstance(node.value, Function) and node.var in free_vars(node.value):
                self.found.add(Feature.fLetRec)
            node = node.body
        super().visit_let(let)


def detect_feature(a: RelayExpr | IRModule, b: IRModule | None = None) -> set[Feature]:
    """The features of an expression, and of a module's functions.

    Parameters
    ----------
    b : a module whose functions count too.
    """
    if isinstance(a, IRModule):
        found: set[Feature] = set()
        for func in a.functions.values():
            if isinstance(func, Function):
                found |= detect_feature(func)
        return found if b is None else found | detect_feature(b)
    detector = _Detector()
    detector.visit(a)
    return detector.found if b is None else detector.found | detect_feature(b)


def _bodies(program: RelayExpr | IRModule) -> Iterable[RelayExpr]:
    if isinstance(program, IRModule):
        return [f for f in program.functions.values() if isinstance(f, Function)]
    return [program]


def list_op_freqs(mod: RelayExpr | IRModule) -> dict[str, int]:
    """How often each operator is called."""
    counts: dict[str, int] = {}

    def look(node: RelayExpr) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op):
            counts[str(node.op.name)] = counts.get(str(node.op.name), 0) + 1

    for body in _bodies(mod):
        post_order_visit(body, look)
    return counts


def count_layers(expr: RelayExpr | IRModule, valid_ops: Iterable[str]) -> int:
    """The largest number of calls of some operators that lie one behind the other."""
    names = set(valid_ops)
    depth: dict[RelayExpr, int] = {}
    deepest = 0

    def look(node: RelayExpr) -> None:
        nonlocal deepest
        before = [depth.get(part, 0) for part in computed_first(node)]
        if isinstance(node, Function):
            before.append(depth.get(node.body, 0))
        own = isinstance(node, Call) and isinstance(node.op, Op) and str(node.op.name) in names
        depth[node] = max(before, default=0) + own
        deepest = max(deepest, depth[node])

    for body in _bodies(expr):
        post_order_visit(body, look)
    return deepest


def _extent(call: Call, place: int, axes: Iterable[int]) -> int:
    shape = call.args[place].checked_type.shape
    total = 1
    for axis in axes:
        total *= int(shape[axis])
    return total


def get_total_mac_number(expr: RelayExpr) -> int:
    """Multiplications of all convolutions and matrix products; the types are known.

    Raises
    ------
    ValueError : a type is not known.
    """
    total = 0

    def look(node: RelayExpr) -> None:
        nonlocal total
        if not (isinstance(node, Call) and isinstance(node.op, Op)):
            return
        name = str(node.op.name)
        if not name.startswith(("nn.conv", "nn.dense", "nn.batch_matmul", "nn.matmul")):
            return
        if node.checked_type_ is None:
            raise error.ValueError(f"relay: the type of a call of {name} is not known; infer types")
        made = 1
        for extent in node.checked_type_.shape:
            made *= int(extent)
        weight = node.args[1].checked_type.shape
        each = 1
        for extent in weight:
            each *= int(extent)
        if name.startswith("nn.conv"):
            # Every element of the result meets the weights of one filter.
            layout = str(node.attrs["kernel_layout"])
            plain = [c for c in layout if c.isalpha()]
            filters = 1
            for letter, extent in zip(plain, weight):
                filters *= int(extent) if letter in "Oo" else 1
            total += made * (each // filters)
        else:
            total += made * int(node.args[0].checked_type.shape[-1])

    post_order_visit(expr, look)
    return total
