"""The history of a schedule, which prints as Python and can be replayed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import tvm._ffi
from tvm.ir.script_text import show_text
from tvm.runtime import Object

from . import _ffi_api
from .instruction import Instruction

__all__ = ["Trace"]


@tvm._ffi.register_object("tir.Trace")
class Trace(Object):
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
        chosen = dict(decisions.items()) if decisions else {}
        self.__init_handle_by_constructor__(_ffi_api.Trace, list(insts), chosen)

    def append(self, inst: Instruction, decision: Any = None) -> None:
        """Add an instruction, with its decision if it samples."""
        _ffi_api.TraceAppend(self, inst, decision)

    def pop(self) -> Instruction | None:
        """Remove the last instruction and return it; None if there is none."""
        return _ffi_api.TracePop(self)

    def get_decision(self, inst: Instruction) -> Any:
        """What was sampled; None if the instruction does not sample."""
        return self.decisions.get(inst)

    def with_decision(self, inst: Instruction, decision: Any, remove_postproc: bool) -> Trace:
        """The same trace with another decision at `inst`, with or without postprocessing.

        Raises
        ------
        ValueError : `inst` is not in the trace or does not sample.
        """
        return _ffi_api.TraceWithDecision(self, inst, decision, remove_postproc)

    def simplified(self, remove_postproc: bool) -> Trace:
        """Without instructions that only look and whose results nothing needs."""
        return _ffi_api.TraceSimplified(self, remove_postproc)

    def apply_to_schedule(
        self,
        sch: Object,
        remove_postproc: bool,
        decision_provider: Callable[[Instruction, list[Any], list[Any], Any], Any] | None = None,
    ) -> None:
        """Carry out the instructions on another schedule.

        Parameters
        ----------
        sch : the :class:`Schedule`.
        remove_postproc : stop where postprocessing begins.
        decision_provider : called with a sampling instruction, its inputs, its attributes and its
            decision, returns the decision to take; None samples anew.

        Raises
        ------
        ScheduleError : an instruction is not legal for the module of `sch`.
        """
        _ffi_api.TraceApply(self, sch, remove_postproc, decision_provider)

    def as_json(self, remove_postproc: bool = False) -> list[Any]:
        """Lists, numbers and texts for a JSON file: ``[instructions, decisions]``.

        An instruction is ``[kind, inputs, attributes, outputs]``, as TVM writes it, and one with an
        argument that has no such form (an index map, a size computed of others) is
        ``[kind, {argument: text}, outputs]``. A decision is
        ``[index of its instruction, decision]``.
        """
        return json.loads(_ffi_api.TraceAsJSON(self, remove_postproc))

    @staticmethod
    def from_json(obj: Any) -> Trace:
        """The trace that :meth:`as_json` wrote, here or in TVM, as an object or as text.

        Raises
        ------
        ValueError : it is none; the message says where.
        """
        return _ffi_api.TraceFromJSON(obj if isinstance(obj, str) else json.dumps(obj))

    @staticmethod
    def apply_json_to_schedule(json_obj: Any, sch: Object) -> None:
        """Carry out what :meth:`as_json` wrote on a schedule."""
        Trace.from_json(json_obj).apply_to_schedule(sch, remove_postproc=False)

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """The instructions as lines of Python, or those in front of the postprocessing."""
        trace = self
        if remove_postproc:
            before = takewhile(lambda inst: not inst.kind.is_postproc, self.insts)
            trace = Trace(list(before), self.decisions)
        return [str(line) for line in _ffi_api.TraceAsPython(trace)]

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the trace, with colours where the terminal has them.

        Parameters
        ----------
        style, black_format : as for `IRModule.show`.
        """
        show_text(str(self), style, black_format)

    def __str__(self) -> str:
        return _ffi_api.TraceAsFunction(self)

    __repr__ = __str__

    def __len__(self) -> int:
        return len(self.insts)
