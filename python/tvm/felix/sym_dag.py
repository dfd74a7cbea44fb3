"""Computations whose sizes have names: what tasks of equal structure have in common.

A symbolic DAG is found in any te computation, without a list of operators. Extents are the same
size where a loop indexes one by the loop of the other; bounds and divisors in the bodies are
expressed by the sizes they belong to. (Felix, ASPLOS 2024, section 4, groups tasks so; it
recognises operators by matchers of their own; `felix.operators` has such ones, by which people
read what a computation consists of.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tvm import auto_scheduler, te, tir
from tvm._older_names import hints_for

from .operators import RELAY_BUILDERS
from .rebuild import Body, Rebuilder, loops_of

__all__ = ["RELAY_BUILDERS", "SymbolicDAG"]

if not TYPE_CHECKING:
    __getattr__ = hints_for(__name__)

# Factors and divisors up to this are steps and windows, which belong to the structure.
_SMALL = 8
# The extent of a place: number of the operation, "space" or "reduce", number of the loop.
_Place = tuple[int, str, int]


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
        ValueError : a size is missing, unknown, or less than one.
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
    """Which extents of operations are the same size.

    Attributes
    ----------
    values : the sizes by name, in order of first use.
    """

    def __init__(self, operations: Sequence[te.Operation]) -> None:
        self._numbers = {operation: k for k, operation in enumerate(operations)}
        self._same: dict[_Place, _Place] = {}
        self._extents: dict[_Place, int] = {}
        for number, operation in enumerate(operations):
            self._add(number, operation)
        for number, operation in enumerate(operations):
            if isinstance(operation, te.ComputeOp):
                self._unify(number, operation)
        self._names: dict[_Place, str] = {}
        self.values: dict[str, int] = {}
        for place, extent in self._extents.items():
            root = self._root(place)
            # What is one is repeated for others, which is structure.
            if extent > 1 and root not in self._names:
                self._names[root] = name = f"s{len(self._names)}"
                self.values[name] = extent
        self.variables = {name: tir.SizeVar(name, "int32") for name in self.values}

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

        def visit(node: object) -> None:
            if not isinstance(node, tir.ProducerLoad):
                return
            source = self._numbers[node.producer.op]
            for k, index in enumerate(node.indices):
                place = loops.get(index) if isinstance(index, tir.Var) else None
                read = (source, "space", k)
                if place is not None and self._extents[place] == self._extents[read]:
                    first, second = sorted((self._root(place), self._root(read)))
                    self._same[second] = first

        for body in operation.body:
            tir.stmt_functor.post_order_visit(body, visit)

    def _root(self, place: _Place) -> _Place:
        while self._same[place] != place:
            place = self._same[place]
        return place

    def number(self, operation: te.Operation) -> int:
        """The position of an operation in the DAG."""
        return self._numbers[operation]

    def named(self, place: _Place) -> tuple[str, int] | None:
        """Name and value of the size at a place; None for extents of one."""
        name = self._names.get(self._root(place))
        return None if name is None else (name, self.values[name])

    def around(self, number: int, operation: te.ComputeOp) -> list[tuple[str, int]]:
        """The sizes of an operation and of what it reads: its own loops first."""
        places = [(number, kind, k) for kind, k, _ in loops_of(operation)]
        for tensor in operation.input_tensors:
            source = self._numbers[tensor.op]
            places += [(source, "space", k) for k in range(len(tensor.shape))]
        found = [named for place in places if (named := self.named(place)) is not None]
        return list(dict.fromkeys(found))


class _NamedSizes(Body):
    """The numbers of a body that follow from sizes, expressed by them."""

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

    def visit_lt_(self, op: tir.LT) -> Any:
        return tir.LT(self.visit_expr(op.a), self._limit(op.b, op.a))

    def visit_le_(self, op: tir.LE) -> Any:
        return tir.LE(self.visit_expr(op.a), self._limit(op.b, op.a))

    def visit_gt_(self, op: tir.GT) -> Any:
        return tir.GT(self._limit(op.a, op.b), self.visit_expr(op.b))

    def visit_ge_(self, op: tir.GE) -> Any:
        return tir.GE(self._limit(op.a, op.b), self.visit_expr(op.b))

    def visit_mul_(self, op: tir.Mul) -> Any:
        return tir.Mul(self._factor(op.a), self._factor(op.b))

    def visit_floor_div_(self, op: tir.FloorDiv) -> Any:
        return tir.FloorDiv(self.visit_expr(op.a), self._factor(op.b))

    def visit_floor_mod_(self, op: tir.FloorMod) -> Any:
        return tir.FloorMod(self.visit_expr(op.a), self._factor(op.b))

    def _limit(self, limit: Any, bounded: Any) -> Any:
        """An upper bound: a size, or as far from the loop's extent as it is here."""
        if not isinstance(limit, tir.IntImm):
            return self.visit_expr(limit)
        value = int(limit)
        exact = self._exactly(value)
        if exact is not None:
            return exact
        places = [self._loops[var] for var in _variables(bounded) if var in self._loops]
        named = [found for place in places if (found := self._sizes.named(place)) is not None]
        if len(named) != 1:
            return limit
        ((name, extent),) = named
        variable = self._sizes.variables[name]
        return variable + (value - extent) if value > extent else variable - (extent - value)

    def _factor(self, factor: Any) -> Any:
        if not isinstance(factor, tir.IntImm) or int(factor) <= _SMALL:
            return self.visit_expr(factor)
        exact = self._exactly(int(factor))
        return factor if exact is None else exact

    def _exactly(self, value: int) -> Any:
        """The size of the operation, or the product of two, that is the value."""
        variables = self._sizes.variables
        for name, size in self._around:
            if size == value and value > 1:
                return variables[name]
        for k, (first, a) in enumerate(self._around):
            for second, b in self._around[k:]:
                if a * b == value:
                    return variables[first] * variables[second]
        return None


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
        named = self._sizes.named((self._sizes.number(operation), kind, k))
        return extent if named is None else self._sizes.variables[named[0]]

    def body(self, operation: te.ComputeOp) -> Body:
        return _NamedSizes(self.tensor, operation, self._sizes.number(operation), self._sizes)


class _ToNumbers(Rebuilder):
    """A symbolic computation at some sizes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__()
        self._numbers = _Numbers(self.tensor, sizes)

    def extent(self, operation: te.Operation, kind: str, k: int, extent: Any) -> Any:
        return self._numbers.visit_expr(extent)

    def body(self, operation: te.ComputeOp) -> Body:
        return self._numbers
