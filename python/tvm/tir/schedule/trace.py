"""The history of a schedule, which prints as Python and can be replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tvm.error

from .instruction import Instruction, InstructionKind, from_text, map_rvs, to_text
from .random_variables import RV, BlockRV, LoopRV, prefix_of

if TYPE_CHECKING:
    from .schedule import Schedule

__all__ = ["Trace"]


class Trace:
    """Instructions in the order they were carried out, and the decisions of those that sample.

    ``print(trace)`` shows a Python function; running it on a fresh schedule of the same module
    gives the same program.

    Examples
    --------
    >>> from tvm import te, tir
    >>> A = te.placeholder((128,), name="A")
    >>> B = te.compute((128,), lambda i: A[i] + 1.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> _ = sch.split(sch.get_loops(sch.get_block("B"))[0], factors=[None, 4])
    >>> print(sch.trace)
    # from tvm import tir
    def apply_trace(sch: tir.Schedule) -> None:
        b0 = sch.get_block(name="B", func_name="main")
        l1, = sch.get_loops(block=b0)
        l2, l3 = sch.split(loop=l1, factors=[None, 4], preserve_unit_iters=True, disable_predication=False)
    """  # noqa: E501

    def __init__(
        self,
        insts: Sequence[Instruction] = (),
        decisions: Mapping[Instruction, Any] | None = None,
    ) -> None:
        self.insts = list(insts)
        self.decisions = dict(decisions or {})

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add an instruction, with its decision if it samples."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Remove the last instruction and return it; None if there is none."""
        if not self.insts:
            return None
        self.decisions.pop(self.insts[-1], None)
        return self.insts.pop()

    def get_decision(self, inst: Instruction) -> Any:
        """What was sampled; None if the instruction does not sample."""
        return self.decisions.get(inst)

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """The same trace with another decision at `inst`, with or without postprocessing.

        Raises
        ------
        ValueError : `inst` is not in the trace or does not sample.
        """
        if inst not in self.insts or not inst.kind.is_sampling:
            raise tvm.error.ValueError(
                f"with_decision: {inst.kind.name} is no sampling instruction of this trace"
            )
        insts = self._without_postproc() if remove_postproc else self.insts
        decisions = {i: d for i, d in self.decisions.items() if i in insts}
        return Trace(insts, {**decisions, inst: decision})

    def simplified(self, remove_postproc: bool) -> Trace:
        """Without instructions that only look and whose results nothing needs."""
        insts = self._without_postproc() if remove_postproc else self.insts
        needed: set[RV] = set()
        kept = []
        for inst in reversed(insts):
            if inst.kind.is_pure and not needed.intersection(inst.outputs):
                continue
            needed.update(inst.inputs)
            kept.append(inst)
        kept.reverse()
        return Trace(kept, {i: d for i, d in self.decisions.items() if i in kept})

    def apply_to_schedule(
        self,
        sch: Schedule,
        remove_postproc: bool,
        decision_provider: Callable[[Instruction, list[Any], list[Any], Any], Any] | None = None,
    ) -> None:
        """Carry out the instructions on another schedule.

        Parameters
        ----------
        remove_postproc : stop where postprocessing begins.
        decision_provider : called with a sampling instruction, its inputs, its attributes and its
            decision, returns the decision to take; None samples anew.

        Raises
        ------
        ScheduleError : an instruction is not legal for the module of `sch`.
        """
        twins: dict[Any, Any] = {}
        for inst in self._without_postproc() if remove_postproc else self.insts:
            arguments = map_rvs(inst.arguments, lambda rv: twins[rv])
            if inst.kind.is_sampling:
                decision = self.decisions.get(inst)
                if decision_provider is not None:
                    decision = decision_provider(inst, inst.inputs, inst.attrs, decision)
                arguments["decision"] = decision
            results = call(sch, inst.kind, arguments)
            if len(results) != len(inst.outputs):
                raise tvm.error.ScheduleError(
                    f"trace: {inst.kind.name} returned {len(results)} results where the trace has "
                    f"{len(inst.outputs)}; it was recorded for another module"
                )
            twins.update(zip(inst.outputs, results))

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """Lists, numbers and texts for a JSON file: ``[instructions, decisions]``.

        An instruction is ``[kind, {argument: text}, [output, ...]]``, a decision
        ``[index of its instruction, decision]``.
        """
        names = self._names()
        insts = self._without_postproc() if remove_postproc else self.insts
        rows = [
            [
                inst.kind.name,
                {key: to_text(value, names) for key, value in inst.arguments.items()},
                [names[rv] for rv in inst.outputs],
            ]
            for inst in insts
        ]
        decisions = [[i, self.decisions[n]] for i, n in enumerate(insts) if n in self.decisions]
        return json.loads(json.dumps([rows, decisions], default=int))

    @staticmethod
    def from_json(obj: Any) -> Trace:
        """The trace that :meth:`as_json` wrote, as an object or as text.

        Raises
        ------
        ValueError : it is none; the message says where.
        """
        if isinstance(obj, str):
            try:
                obj = json.loads(obj)
            except (json.JSONDecodeError, RecursionError) as error:
                raise tvm.error.ValueError(f"Trace.from_json: {error}") from None
        try:
            rows, decisions = obj
            parsed = [(str(kind), dict(arguments), list(out)) for kind, arguments, out in rows]
            chosen = [(int(index), decision) for index, decision in decisions]
        except (TypeError, ValueError) as error:
            raise tvm.error.ValueError(
                f"Trace.from_json: expected [instructions, decisions]: {error}"
            ) from None
        trace = Trace()
        known: dict[str, RV] = {}
        for kind, arguments, outputs in parsed:
            if not all(isinstance(a, str) for a in arguments.values()):
                raise tvm.error.ValueError(f"Trace.from_json: arguments of {kind} are no texts")
            values = {str(key): from_text(value, known) for key, value in arguments.items()}
            rvs = [_rv_named(name) for name in outputs]
            known.update(zip(outputs, rvs))
            trace.append(Instruction(InstructionKind.get(kind), values, rvs))
        for index, decision in chosen:
            if not 0 <= index < len(trace.insts):
                raise tvm.error.ValueError(
                    f"Trace.from_json: a decision for instruction {index} of {len(trace.insts)}"
                )
            trace.decisions[trace.insts[index]] = decision
        return trace

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Schedule) -> None:
        """Carry out what :meth:`as_json` wrote on a schedule."""
        Trace.from_json(json_obj).apply_to_schedule(sch, remove_postproc=False)

    def as_python(self) -> list[str]:
        """The instructions as lines of Python."""
        names = self._names()
        return [inst.as_python(names, self.decisions.get(inst)) for inst in self.insts]

    def show(self) -> None:
        """Print the trace."""
        print(self)

    def __str__(self) -> str:
        lines = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        return "\n".join(lines + ["    " + line for line in self.as_python() or ["pass"]])

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.insts)

    def _without_postproc(self) -> list[Instruction]:
        for index, inst in enumerate(self.insts):
            if inst.kind.is_postproc:
                return self.insts[:index]
        return self.insts

    def _names(self) -> dict[Any, str]:
        outputs = [rv for inst in self.insts for rv in inst.outputs]
        return {rv: f"{prefix_of(rv)}{index}" for index, rv in enumerate(outputs)}


def call(sch: Schedule, kind: InstructionKind, arguments: Mapping[str, Any]) -> list[Any]:
    """Results of a primitive as a list."""
    named = dict(arguments)
    loops = named.pop(kind.variadic, None) if kind.variadic else []
    if not isinstance(loops, list):
        raise tvm.error.ValueError(f"{kind.name} of a trace: {kind.variadic} is a list of loops")
    try:
        result = getattr(sch, kind.method)(*loops, **named)
    except (TypeError, ValueError) as error:
        if isinstance(error, tvm.error.TVMError):
            raise
        raise tvm.error.ValueError(f"{kind.name} of a trace: {error}") from None
    if result is None:
        return []
    return list(result) if isinstance(result, list | tuple) else [result]


def _rv_named(name: Any) -> RV:
    from ..expr import Var

    if isinstance(name, str) and name[1:].isdigit():
        if name[0] == "b":
            return BlockRV()
        if name[0] == "l":
            return LoopRV()
        if name[0] == "v":
            return Var(name)
    raise tvm.error.ValueError(
        f"Trace.from_json: outputs are called b0 (a block), l0 (a loop) or v0, got {name!r}"
    )
