"""Where values of a dataflow block are in memory, how long they are needed, and which results may
be written over an operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tvm import arith, tir
from tvm.ir import Op, RelayExpr

from ..expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..op import OpPattern, get_op, has_op, op_spec
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .variables import all_vars, free_vars

__all__ = [
    "UNKNOWN",
    "Aliases",
    "alias_analysis",
    "inplace_opportunities",
    "liveness_ranges",
]

UNKNOWN = -1
"""The place in memory of what comes from elsewhere."""

Opportunity = tuple[int, list[int]]
"""A binding's position, and the arguments of its call that the result may be written over."""


def liveness_ranges(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """The positions of the first and the last binding between which each variable is needed.

    The first is that which binds it, -1 for variables from outside; the last is the number of
    bindings for what is needed after the block. Taking a field is no use of its tuple: the field
    is the same memory.
    """
    count = len(block.bindings)
    first: dict[Var, int] = {}
    last: dict[Var, int] = {}
    for position, binding in enumerate(block.bindings):
        value = binding.value
        if isinstance(value, TupleGetItem):
            read: Sequence[Var] = ()
        else:
            read = free_vars(value) if isinstance(value, Function) else all_vars(value)
        for var in read:
            first.setdefault(var, -1)
            last[var] = position if isinstance(var, DataflowVar) else count
        first[binding.var] = position
        last[binding.var] = position if isinstance(binding.var, DataflowVar) else count
    return {var: (start, last[var]) for var, start in first.items()}


@dataclass
class Aliases:
    """The places in memory at which variables may be.

    Attributes
    ----------
    places : of each variable, numbers of places; `UNKNOWN` for what comes from elsewhere.
    fields : of each place that holds a tuple, the places of its fields.
    constants : places that hold constants, which nobody may write.
    """

    places: dict[Var, set[int]] = field(default_factory=dict)
    fields: dict[int, list[set[int]]] = field(default_factory=dict)
    constants: set[int] = field(default_factory=set)

    def reached(self, places: set[int]) -> set[int]:
        """The places, and those of the fields of tuples there."""
        found: set[int] = set()
        todo = list(places)
        while todo:
            place = todo.pop()
            if place not in found:
                found.add(place)
                todo += [p for part in self.fields.get(place, ()) for p in part]
        return found


class _Places:
    """Finds the places of values, one binding after the other."""

    def __init__(self) -> None:
        self.aliases = Aliases()
        self._count = 0

    def fresh(self, info: StructInfo | None = None) -> int:
        """A place of its own, with places for each field."""
        place = self._count
        self._count += 1
        if isinstance(info, TupleStructInfo):
            # The numbers of a tuple's fields follow its own.
            self.aliases.fields[place] = [{self.fresh(part)} for part in info.fields]
        return place

    def of(self, value: RelayExpr, info: StructInfo | None) -> set[int]:
        """Places of a value that a variable of this struct info is bound to."""
        aliases = self.aliases
        if isinstance(value, Var):
            return set(aliases.places.get(value, {UNKNOWN}))
        if isinstance(value, Tuple):
            place = self.fresh()
            aliases.fields[place] = [self.of(part, part.struct_info) for part in value.fields]
            return {place}
        if isinstance(value, TupleGetItem):
            return self._of_field(value)
        if isinstance(value, Call):
            return self._of_call(value, info)
        place = self.fresh()
        if isinstance(value, Constant):
            aliases.constants.add(place)
        return {place}

    def _of_field(self, value: TupleGetItem) -> set[int]:
        owners = self.of(value.tuple_value, value.tuple_value.struct_info)
        index = int(value.index)
        found: set[int] = {UNKNOWN} if UNKNOWN in owners else set()
        if not found:
            for owner in owners:
                parts = self.aliases.fields.get(owner, [])
                found |= parts[index] if index < len(parts) else set()
        return found

    def _of_call(self, call: Call, info: StructInfo | None) -> set[int]:
        callee = call.op
        if isinstance(callee, Op):
            if callee.same_as(get_op("call_pure_packed")):
                return self._may_be_any(call.args[1:], info)
            if has_op(callee) and op_spec(callee).is_view:
                return self.of(call.args[0], call.args[0].struct_info)
            if callee.same_as(get_op("call_tir_inplace")):
                return self._written(call)
            return {self.fresh(info)}
        return self._may_be_any(call.args, info)

    def _written(self, call: Call) -> set[int]:
        operands = call.args[1].fields if isinstance(call.args[1], Tuple) else [call.args[1]]
        parts = []
        infos = call.struct_info
        each = list(infos.fields) if isinstance(infos, TupleStructInfo) else [infos]
        for index, part in zip(call.attrs["inplace_indices"], each):
            at = int(index)
            parts.append({self.fresh(part)} if at < 0 else self.of(operands[at], part))
        if not isinstance(infos, TupleStructInfo):
            return parts[0]
        place = self.fresh()
        self.aliases.fields[place] = parts
        return {place}

    def _may_be_any(self, args: Sequence[RelayExpr], info: StructInfo | None) -> set[int]:
        """What a function gives that may be one of its arguments, or a part of one."""
        place = self.fresh(info)
        found = self.aliases.reached({place})
        for arg in args:
            found |= self.aliases.reached(self.of(arg, arg.struct_info))
        for own in self.aliases.reached({place}):
            for part in self.aliases.fields.get(own, ()):
                part |= found
        return found


def alias_analysis(block: DataflowBlock, inputs: Sequence[Var] = ()) -> Aliases:
    """Where the values of a block may be in memory.

    Operators and kernels give memory of their own, views that of their operand; other functions
    may give any of their arguments.

    Parameters
    ----------
    inputs : variables from outside whose memory nobody else has.
    """
    finder = _Places()
    for var in inputs:
        finder.aliases.places[var] = {finder.fresh(var.struct_info)}
    for binding in block.bindings:
        finder.aliases.places[binding.var] = finder.of(binding.value, binding.var.struct_info)
    return finder.aliases


def _element_count(shape: ShapeExpr) -> tir.PrimExpr:
    count: tir.PrimExpr = tir.const(1, "int64")
    for extent in shape.values:
        count = count * tir.Cast("int64", extent) if extent.dtype != "int64" else count * extent
    return count


def _fits(result: StructInfo, given: StructInfo, analyzer: arith.Analyzer) -> tuple[bool, bool]:
    """Whether a result fits into the memory of an argument, and whether their shapes are equal."""
    if not isinstance(result, TensorStructInfo) or not isinstance(given, TensorStructInfo):
        return False, False
    new, old = result.shape, given.shape
    if not isinstance(new, ShapeExpr) or not isinstance(old, ShapeExpr):
        return False, False
    if str(result.dtype) != str(given.dtype) or str(result.dtype) == "void":
        return False, False
    if not analyzer.can_prove(_element_count(old) >= _element_count(new)):
        return False, False
    equal = len(new.values) == len(old.values) and all(
        analyzer.can_prove_equal(a, b) for a, b in zip(new.values, old.values)
    )
    return True, equal


def _may_overwrite(call: Call) -> bool:
    """Whether each element of a result is made of those of operands at the same place alone."""
    if not isinstance(call.op, Op) or not has_op(call.op):
        return False
    spec = op_spec(call.op)
    return not spec.is_view and spec.pattern <= OpPattern.BROADCAST


class _Conditions:
    """Whether an argument is needed by nobody but the call that is given it."""

    def __init__(self, block: DataflowBlock, inputs: Sequence[Var]) -> None:
        self._aliases = alias_analysis(block, inputs)
        self._ranges = liveness_ranges(block)

    def hold(self, call: Call, index: int, position: int) -> bool:
        """For an argument of the call at a position."""
        target = call.args[index]
        if not isinstance(target, Var):
            return False
        if target in self._ranges and self._ranges[target][1] > position:
            return False
        places = self._places(target)
        if UNKNOWN in places or places & self._aliases.constants:
            return False
        others = [arg for arg in call.args if isinstance(arg, Var) and not arg.same_as(target)]
        others += [v for v in self._needed_after(position) if not v.same_as(target)]
        return not any(places & self._places(other) for other in others)

    def _places(self, var: Var) -> set[int]:
        return self._aliases.reached(self._aliases.places.get(var, {UNKNOWN}))

    def _needed_after(self, position: int) -> Iterator[Var]:
        for var, (start, end) in self._ranges.items():
            if start <= position < end and var in self._aliases.places:
                yield var


def inplace_opportunities(
    block: DataflowBlock, inputs: Sequence[Var] = ()
) -> tuple[list[Opportunity], list[Opportunity]]:
    """Calls of element by element operators whose result may be written over an argument.

    An argument must be a variable that is read for the last time, whose memory nobody else reads
    later and no other argument shares, and that is neither a constant nor from outside.

    Parameters
    ----------
    inputs : variables from outside whose memory may be written over.

    Returns
    -------
    The calls with arguments into whose memory the result fits, and those with arguments of the
    result's own shape.
    """
    analyzer = arith.Analyzer()
    conditions = _Conditions(block, inputs)
    large: list[Opportunity] = []
    equal: list[Opportunity] = []
    for position, binding in enumerate(block.bindings):
        call = binding.value
        if not isinstance(call, Call) or not _may_overwrite(call):
            continue
        fits = [
            _fits(binding.var.struct_info, arg.struct_info, analyzer)
            if arg.struct_info is not None
            else (False, False)
            for arg in call.args
        ]
        chosen = [
            i for i, (fit, _) in enumerate(fits) if fit and conditions.hold(call, i, position)
        ]
        if chosen:
            large.append((position, chosen))
        exact = [i for i in chosen if fits[i][1]]
        if exact:
            equal.append((position, exact))
    return large, equal
