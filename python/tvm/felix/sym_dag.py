"""Computations whose sizes have names: what tasks of equal structure have in common.

A symbolic DAG is found in any te computation, without a list of operators. Extents are the same
size where a loop indexes one by the loop of the other, found by union and find; those that follow
from others by a linear equation, such as the rows of a convolution, are solved for in the order of
the operations. Bounds and divisors in the bodies are expressed by the sizes they belong to. (Felix,
ASPLOS 2024, section 4, groups tasks so; it recognises operators by matchers of their own;
`felix.operators` has such ones, by which people read what a computation consists of.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tvm import auto_scheduler, te, tir
from tvm._older_names import hints_for
from tvm.arith import Analyzer, detect_linear_equation

from .operators import RELAY_BUILDERS
from .rebuild import Body, Rebuilder, loops_of

__all__ = ["RELAY_BUILDERS", "SymbolicDAG"]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)

# Factors and divisors up to this are steps and windows, which belong to the structure.
_SMALL = 8
# The extent of a place: number of the operation, "space" or "reduce", number of the loop.
_Place = tuple[int, str, int]
# An extent over the sizes, and its value here.
_Size = tuple[Any, int]


class _Relation(NamedTuple):
    """An index into a dimension: how far it moves with each loop, and its first value."""

    moves: dict[_Place, int]
    start: int
    read: _Place


class SymbolicDAG:
    """A compute DAG over named sizes. Equal ones are those of equal structure.

    Parameters
    ----------
    tensors : inputs and outputs, inputs first, with shapes over size variables.
    sizes : the names of these, in order.
    """

    def __init__(self, tensors: Sequence[te.Tensor], sizes: Sequence[str]) -> None:
        self.tensors = list(tensors)
        self.sizes = tuple(sizes)

    @classmethod
    def from_ansor(
        cls, concrete_dag: auto_scheduler.ComputeDAG, hash_match: bool = True
    ) -> tuple[SymbolicDAG, dict[str, int]]:
        """The structure of a concrete DAG, and the size of each name in it.

        Parameters
        ----------
        hash_match : whether it is checked that structure and sizes give the DAG again.

        Raises
        ------
        ValueError : an operation is neither a placeholder nor a ``te.compute`` over numbers; or
            the check fails.
        """
        operations = list(concrete_dag.ops)
        sizes = _Sizes(operations)
        found = cls(_ToSizes(sizes).run(concrete_dag), list(sizes.values)), dict(sizes.values)
        if hash_match:
            again = found[0].make_ansor_compute_dag(found[1])
            if again.workload_key() != concrete_dag.workload_key():
                raise ValueError(
                    "SymbolicDAG.from_ansor: the structure with its sizes is another computation: "
                    f"{again} in place of {concrete_dag}"
                )
        return found

    def make_ansor_compute_dag(
        self, sizes: Mapping[str, int] | None = None
    ) -> auto_scheduler.ComputeDAG:
        """The compute DAG for sizes, or over the size variables.

        Raises
        ------
        ValueError : a size is missing, unknown, or less than one, or an extent that follows from
            the sizes would be.
        """
        symbolic = auto_scheduler.ComputeDAG(self.tensors)
        if sizes is None:
            return symbolic
        if set(sizes) != set(self.sizes):
            raise ValueError(
                f"SymbolicDAG: the sizes are {', '.join(self.sizes) or 'none'}; "
                f"got {', '.join(sizes) or 'none'}"
            )
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"SymbolicDAG: size {name} must be at least 1, got {size}")
        return auto_scheduler.ComputeDAG(_ToNumbers(sizes).run(symbolic))

    def flops(self, sizes: Mapping[str, int]) -> float:
        """Floating-point operations of one execution; -1 where they cannot be counted."""
        return float(self.make_ansor_compute_dag(sizes).flop_ct)

    @cached_property
    def _key(self) -> str:
        return self.make_ansor_compute_dag().hash_key()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SymbolicDAG) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"SymbolicDAG({', '.join(self.sizes)})\n{self.make_ansor_compute_dag()}"


class _Sizes:
    """The extents of operations as expressions over few sizes.

    Extents are one where a loop indexes the other. The extents of inputs, and those of loops that
    are only added up over, are sizes; what follows from them by a linear equation, as the rows of a
    convolution do, is no size but an expression.

    Attributes
    ----------
    values : the sizes by name, in order of first use.
    """

    def __init__(self, operations: Sequence[te.Operation]) -> None:
        self._numbers = {operation: k for k, operation in enumerate(operations)}
        self._same: dict[_Place, _Place] = {}
        self._extents: dict[_Place, int] = {}
        self._simplify = Analyzer().simplify
        for number, operation in enumerate(operations):
            self._add(number, operation)
        for number, operation in enumerate(operations):
            if isinstance(operation, te.ComputeOp):
                self._unify(number, operation)
        self._size_of: dict[_Place, _Size] = {}
        self.values: dict[str, int] = {}
        # Where the pieces begin that an operation puts after each other along a loop.
        self.starts: dict[_Place, dict[int, Any]] = {}
        for number, operation in enumerate(operations):
            if isinstance(operation, te.ComputeOp):
                self._solve(number, operation)
            else:
                for k in range(len(operation.output(0).shape)):
                    self._name((number, "space", k))

    def _add(self, number: int, operation: te.Operation) -> None:
        if isinstance(operation, te.PlaceholderOp):
            kinds = {"space": operation.output(0).shape}
        elif isinstance(operation, te.ComputeOp):
            kinds = {
                "space": [axis.dom.extent for axis in operation.axis],
                "reduce": [axis.dom.extent for axis in operation.reduce_axis],
            }
        else:
            raise ValueError(
                f"SymbolicDAG.from_ansor: operation {operation.name} is no te.compute, so its "
                "sizes cannot be told from the rest of it"
            )
        for kind, extents in kinds.items():
            for k, extent in enumerate(extents):
                if not isinstance(extent, tir.IntImm):
                    raise ValueError(
                        f"SymbolicDAG.from_ansor: an extent of {operation.name} is {extent}, no "
                        "number"
                    )
                place = (number, kind, k)
                self._same[place] = place
                self._extents[place] = int(extent)

    def _unify(self, number: int, operation: te.ComputeOp) -> None:
        loops = {axis.var: (number, kind, k) for kind, k, axis in loops_of(operation)}
        for load in _loads(operation):
            source = self._numbers[load.producer.op]
            for k, index in enumerate(load.indices):
                place = loops.get(index) if isinstance(index, tir.Var) else None
                read = (source, "space", k)
                if place is not None and self._extents[place] == self._extents[read]:
                    first, second = sorted((self._root(place), self._root(read)))
                    self._same[second] = first

    def _root(self, place: _Place) -> _Place:
        while self._same[place] != place:
            self._same[place] = place = self._same[self._same[place]]
        return place

    def _name(self, place: _Place) -> None:
        """Make the extent of a place a size, unless it is one or follows from others."""
        root, extent = self._root(place), self._extents[place]
        # What is one is repeated for others, which is structure.
        if extent > 1 and root not in self._size_of:
            name = f"s{len(self.values)}"
            self.values[name] = extent
            self._size_of[root] = tir.SizeVar(name, "int32"), extent

    def _solve(self, number: int, operation: te.ComputeOp) -> None:
        """Sizes of the loops of an operation; those of what it reads are known."""
        for k in range(len(operation.reduce_axis)):
            self._name((number, "reduce", k))
        relations = self._relations(number, operation)
        for k in range(len(operation.axis)):
            place = (number, "space", k)
            extent, root = self._extents[place], self._root(place)
            follows = self._end_of_pieces(place, relations)
            if follows is None:
                follows = self._following(place, relations)
            if follows is not None and extent > 1 and root not in self._size_of:
                self._size_of[root] = self._simplify(follows), extent
            self._name(place)

    def _relations(self, number: int, operation: te.ComputeOp) -> list[_Relation]:
        """The linear indices of an operation by which it reads along something."""
        loops = {axis.var: (number, kind, k) for kind, k, axis in loops_of(operation)}
        found = []
        for load in _loads(operation):
            for k, index in enumerate(load.indices):
                *factors, start = detect_linear_equation(index, list(loops)) or [None]
                if not all(isinstance(part, tir.IntImm) for part in (*factors, start)):
                    continue
                moves = {p: int(f) for p, f in zip(loops.values(), factors) if int(f) != 0}
                read = (self._numbers[load.producer.op], "space", k)
                if moves and min(moves.values()) > 0:
                    found.append(_Relation(moves, int(start), read))
        return found

    def _end_of_pieces(self, place: _Place, relations: Sequence[_Relation]) -> Any:
        """The extent of a loop along which tensors are put after each other."""
        pieces = sorted(
            {(-r.start, r.read) for r in relations if r.moves == {place: 1} and r.start <= 0}
        )
        end, expr = 0, tir.IntImm("int32", 0)
        starts: dict[int, Any] = {}
        for start, read in pieces:
            if start != end:
                return None
            starts[start] = expr
            end, expr = end + self._extents[read], self._simplify(expr + self.size(read)[0])
        if len(pieces) < 2 or end != self._extents[place]:
            return None
        self.starts[place] = starts
        return expr

    def _following(self, place: _Place, relations: Sequence[_Relation]) -> Any:
        """The extent of a loop that reads as much of something as there is, but for a border."""
        for relation in relations:
            step = relation.moves.get(place)
            others = {p: f for p, f in relation.moves.items() if p != place}
            places = (relation.read, *others)
            if step is None or not all(self._is_known(p) for p in places):
                continue
            reach, value = self.size(relation.read)
            for other, factor in others.items():
                expr, extent = self.size(other)
                reach, value = reach - (expr - 1) * factor, value - (extent - 1) * factor
            reach, value = reach - relation.start - 1, value - relation.start - 1
            border = self._extents[place] - (value // step + 1)
            if abs(border) <= _SMALL:
                return tir.floordiv(reach, step) + (1 + border)
        return None

    def _is_known(self, place: _Place) -> bool:
        return self._extents[place] == 1 or self._root(place) in self._size_of

    def number(self, operation: te.Operation) -> int:
        """The position of an operation in the DAG."""
        return self._numbers[operation]

    def size(self, place: _Place) -> _Size:
        """The extent at a place: over the sizes, and here."""
        extent = self._extents[place]
        return (tir.IntImm("int32", 1), 1) if extent == 1 else self._size_of[self._root(place)]

    def ends_of(self, number: int, operation: te.Operation) -> list[_Size]:
        """Products of the extents from each dimension to the last, the last one's first."""
        expr, value = tir.IntImm("int32", 1), 1
        found = []
        for k in reversed(range(len(operation.output(0).shape))):
            one, here = self.size((number, "space", k))
            if here > 1:
                expr, value = (one if value == 1 else one * expr), here * value
                found.append((expr, value))
        return found

    def around(self, number: int, operation: te.ComputeOp) -> list[_Size]:
        """The sizes of an operation and of what it reads: its own loops first."""
        places = [(number, kind, k) for kind, k, _ in loops_of(operation)]
        for tensor in operation.input_tensors:
            source = self._numbers[tensor.op]
            places += [(source, "space", k) for k in range(len(tensor.shape))]
        roots = dict.fromkeys(self._root(p) for p in places if self._extents[p] > 1)
        return [self._size_of[root] for root in roots]


class _NamedSizes(Body):
    """The numbers of a body that follow from sizes, expressed by them.

    What a number stands for is told by where it is: a divisor inside of an index by the extents of
    what is read, a bound by the extent of the loop that it bounds. Only where that says nothing is
    it an extent of the same value, which may be so by chance.
    """

    def __init__(
        self,
        rebuilt: Callable[[te.Tensor], te.Tensor],
        operation: te.ComputeOp,
        number: int,
        sizes: _Sizes,
    ) -> None:
        super().__init__(rebuilt)
        self._sizes = sizes
        self._around = sizes.around(number, operation)
        self._loops = {axis.var: (number, kind, k) for kind, k, axis in loops_of(operation)}
        self._own_ends = sizes.ends_of(number, operation)
        self._ends: list[_Size] = []

    def visit_producer_load_(self, op: tir.ProducerLoad) -> Any:
        before = self._ends
        source = op.producer.op
        self._ends = self._sizes.ends_of(self._sizes.number(source), source)
        found = super().visit_producer_load_(op)
        self._ends = before
        return found

    def visit_lt_(self, op: tir.LT) -> Any:
        return tir.LT(self.visit_expr(op.a), self._limit(op.b, op.a))

    def visit_le_(self, op: tir.LE) -> Any:
        return tir.LE(self.visit_expr(op.a), self._limit(op.b, op.a))

    def visit_gt_(self, op: tir.GT) -> Any:
        return tir.GT(self._limit(op.a, op.b), self.visit_expr(op.b))

    def visit_ge_(self, op: tir.GE) -> Any:
        return tir.GE(self._limit(op.a, op.b), self.visit_expr(op.b))

    def visit_sub_(self, op: tir.Sub) -> Any:
        start = self._start(op.b, op.a)
        return tir.Sub(self.visit_expr(op.a), self.visit_expr(op.b) if start is None else start)

    def visit_mul_(self, op: tir.Mul) -> Any:
        return tir.Mul(self._factor(op.a), self._factor(op.b))

    def visit_floor_div_(self, op: tir.FloorDiv) -> Any:
        return tir.FloorDiv(self.visit_expr(op.a), self._factor(op.b))

    def visit_floor_mod_(self, op: tir.FloorMod) -> Any:
        return tir.FloorMod(self.visit_expr(op.a), self._factor(op.b))

    def _start(self, value: Any, loop: Any) -> Any:
        """Where a piece begins that the loop reads, if the value is such a place."""
        place = self._loops.get(loop) if isinstance(loop, tir.Var) else None
        if place is None or not isinstance(value, tir.IntImm) or int(value) == 0:
            return None
        return self._sizes.starts.get(place, {}).get(int(value))

    def _limit(self, limit: Any, bounded: Any) -> Any:
        """An upper bound: where a piece begins, or as far from the loop's extent as it is here."""
        if not isinstance(limit, tir.IntImm):
            return self.visit_expr(limit)
        start = self._start(limit, bounded)
        if start is not None:
            return start
        value = int(limit)
        loops = dict.fromkeys(var for var in _variables(bounded) if var in self._loops)
        sizes = [self._sizes.size(self._loops[var]) for var in loops]
        near = [(expr, extent) for expr, extent in sizes if extent > 1]
        if len(near) != 1:
            exact = self._exactly(value)
            return limit if exact is None else exact
        ((expr, extent),) = near
        if abs(value - extent) > _SMALL:
            exact = self._exactly(value)
            if exact is not None:
                return exact
        return Analyzer().simplify(expr + (value - extent))

    def _factor(self, factor: Any) -> Any:
        if not isinstance(factor, tir.IntImm) or int(factor) <= _SMALL:
            return self.visit_expr(factor)
        for expr, value in (*self._ends, *self._own_ends):
            if value == int(factor):
                return expr
        exact = self._exactly(int(factor))
        return factor if exact is None else exact

    def _exactly(self, value: int) -> Any:
        """The size of the operation, or the product of two, that is the value."""
        for expr, size in self._around:
            if size == value and value > 1:
                return expr
        for k, (first, a) in enumerate(self._around):
            for second, b in self._around[k:]:
                if a * b == value:
                    return first * second
        return None


def _loads(operation: te.ComputeOp) -> list[tir.ProducerLoad]:
    found: list[tir.ProducerLoad] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad):
            found.append(node)

    for body in operation.body:
        tir.stmt_functor.post_order_visit(body, visit)
    return found


def _variables(expr: Any) -> list[tir.Var]:
    found: list[tir.Var] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.Var):
            found.append(node)

    tir.stmt_functor.post_order_visit(expr, visit)
    return found


class _Numbers(Body):
    """Size variables replaced by numbers, and what is made of them computed."""

    def __init__(self, rebuilt: Callable[[te.Tensor], te.Tensor], sizes: Mapping[str, int]) -> None:
        super().__init__(rebuilt)
        self._sizes = sizes

    def visit_size_var_(self, op: tir.SizeVar) -> Any:
        name = str(op.name)
        return tir.IntImm("int32", int(self._sizes[name])) if name in self._sizes else op

    def visit_add_(self, op: tir.Add) -> Any:
        return self._folded(op, lambda a, b: a + b)

    def visit_sub_(self, op: tir.Sub) -> Any:
        return self._folded(op, lambda a, b: a - b)

    def visit_mul_(self, op: tir.Mul) -> Any:
        return self._folded(op, lambda a, b: a * b)

    def visit_floor_div_(self, op: tir.FloorDiv) -> Any:
        return self._folded(op, lambda a, b: a // b)

    def _folded(self, op: Any, combine: Any) -> Any:
        a, b = self.visit_expr(op.a), self.visit_expr(op.b)
        if isinstance(a, tir.IntImm) and isinstance(b, tir.IntImm):
            return tir.IntImm(a.dtype, combine(int(a), int(b)))
        return type(op)(a, b)


class _ToSizes(Rebuilder):
    """A concrete computation over size variables."""

    def __init__(self, sizes: _Sizes) -> None:
        super().__init__()
        self._sizes = sizes

    def extent(self, operation: te.Operation, kind: str, k: int, extent: Any) -> Any:
        return self._sizes.size((self._sizes.number(operation), kind, k))[0]

    def body(self, operation: te.ComputeOp) -> Body:
        return _NamedSizes(self.tensor, operation, self._sizes.number(operation), self._sizes)


class _ToNumbers(Rebuilder):
    """A symbolic computation at some sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self._numbers = _Numbers(self.tensor, sizes)

    def extent(self, operation: te.Operation, kind: str, k: int, extent: Any) -> Any:
        found = self._numbers.visit_expr(extent)
        if isinstance(found, tir.IntImm) and int(found) < 1:
            raise ValueError(
                f"SymbolicDAG: the sizes do not fit together: an extent of {operation.name}, "
                f"{extent}, would be {int(found)}"
            )
        return found

    def body(self, operation: te.ComputeOp) -> Body:
        return self._numbers
