"""Ways to compute and schedule an operator, among which a build chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import arith, error, te, topi
from tvm.ir import DictAttrs, Op, Type
from tvm.target import GenericFunc, Target

from .registry import find_row, settings_of_attrs

__all__ = [
    "LibraryStrategy",
    "OpImplementation",
    "OpSpecialization",
    "OpStrategy",
    "Strategy",
    "own_strategy",
    "strategy_of",
]

Compute = Callable[[DictAttrs | None, Sequence[te.Tensor], Type], Sequence[te.Tensor]]
MakeSchedule = Callable[[DictAttrs | None, Sequence[te.Tensor], Target], te.Schedule]


@dataclass(frozen=True)
class OpImplementation:
    """One way to compute an operator.

    Attributes
    ----------
    name : by which it is told from others.
    plevel : of several, the one of the highest level is taken.
    """

    name: str
    plevel: int
    fcompute: Compute
    fschedule: MakeSchedule

    def compute(
        self, attrs: DictAttrs | None, inputs: Sequence[te.Tensor], out_type: Type
    ) -> list[te.Tensor]:
        """The results of the operator for operands; those of tuples come one after the other."""
        outputs = self.fcompute(attrs, list(inputs), out_type)
        return [outputs] if isinstance(outputs, te.Tensor) else list(outputs)

    def schedule(
        self, attrs: DictAttrs | None, outs: Sequence[te.Tensor], target: Target | str
    ) -> te.Schedule:
        """The schedule of the results that `compute` gave."""
        target = target if isinstance(target, Target) else Target(target)
        with target:
            return self.fschedule(attrs, list(outs), target)


@dataclass
class OpSpecialization:
    """Implementations under one condition.

    Attributes
    ----------
    condition : None for what counts always.
    """

    condition: te.SpecializedCondition | None
    implementations: list[OpImplementation] = field(default_factory=list)

    def holds(self) -> bool:
        """Whether the condition is known to hold."""
        if self.condition is None:
            return True
        analyzer = arith.Analyzer()
        return all(
            clause if isinstance(clause, bool) else analyzer.can_prove(clause)
            for clause in self.condition.clauses
        )


class OpStrategy:
    """The implementations of an operator for a target.

    Attributes
    ----------
    specializations : by condition, in the order in which they were added.
    """

    def __init__(self) -> None:
        self.specializations: list[OpSpecialization] = []

    def add_implementation(
        self, compute: Compute, schedule: MakeSchedule, name: str = "default", plevel: int = 10
    ) -> None:
        """Add one, under the `te.SpecializedCondition` around.

        Parameters
        ----------
        compute : attributes, operands and the type of the result to the list of results.
        schedule : attributes, results and the target to a schedule.
        plevel : of several, the one of the highest level is taken, of those the one added last.

        Raises
        ------
        TypeError : either is no function.
        """
        for role, function in (("compute", compute), ("schedule", schedule)):
            if not callable(function):
                raise error.TypeError(
                    f"OpStrategy.add_implementation('{name}'): {role} is a function, got "
                    f"{function!r}; relay.op.strategy.naive_schedule schedules anything"
                )
        condition = te.SpecializedCondition.current()
        place = next((s for s in self.specializations if s.condition is condition), None)
        if place is None:
            place = OpSpecialization(condition)
            self.specializations.append(place)
        place.implementations.append(OpImplementation(name, int(plevel), compute, schedule))

    def valid_implementations(self) -> list[OpImplementation]:
        """Those whose condition holds, in the order in which they were added."""
        return [i for s in self.specializations if s.holds() for i in s.implementations]


Strategy = Callable[[DictAttrs | None, Sequence[te.Tensor], Type, Target], OpStrategy]


class LibraryStrategy:
    """How the operator library computes an operator, and schedules it for a target."""

    def __init__(self, op_name: str) -> None:
        self.op_name = op_name

    def __call__(
        self,
        attrs: DictAttrs | None,
        inputs: Sequence[te.Tensor],
        out_type: Type,
        target: Target,
    ) -> OpStrategy:
        strategy = OpStrategy()
        key = next((str(key) for key in target.keys), target.kind.name)
        strategy.add_implementation(self._compute, _library_schedule, f"{self.op_name}.{key}")
        return strategy

    def _compute(
        self, attrs: DictAttrs | None, inputs: Sequence[te.Tensor], out_type: Type
    ) -> Sequence[te.Tensor]:
        op = Op.get(self.op_name)
        row = find_row(op)
        if row is None or row.compute is None:
            own = op.get_attr("FTVMCompute")
            if own is None:
                reason = "no computation" if row is None else "no te computation of the library's"
                raise error.ValueError(
                    f"relay: operator '{self.op_name}' has {reason}; give one with "
                    "relay.op.register_compute or relay.op.register_strategy"
                )
            return own(attrs, list(inputs), out_type)
        settings = {**row.settings, **settings_of_attrs(attrs)}
        takes_tuple = op.get_attr("num_inputs") == 1 and len(inputs) > 1
        operands = [list(inputs)] if takes_tuple else list(inputs)
        results = row.compute(*operands, **settings)
        return [results] if isinstance(results, te.Tensor) else results


def _library_schedule(
    attrs: DictAttrs | None, outs: Sequence[te.Tensor], target: Target
) -> te.Schedule:
    return topi.schedule_for(list(outs), target)


def _for_target(strategy: Any, target: Target) -> Any:
    """A strategy, of one with versions by target the one that counts."""
    generic = getattr(strategy, "generic_func_node", strategy)
    if not isinstance(generic, GenericFunc):
        return strategy
    with target:
        return generic.chosen()


def own_strategy(op: Op, target: Target) -> Strategy | None:
    """What a program registered for an operator on a target, None where it is the library's."""
    found = op.get_attr("FTVMStrategy")
    chosen = None if found is None else _for_target(found, target)
    return None if isinstance(chosen, LibraryStrategy) else chosen


def strategy_of(op: Op, target: Target) -> Strategy:
    """The strategy of an operator for a target: what was registered, else the library's."""
    return own_strategy(op, target) or LibraryStrategy(str(op.name))
