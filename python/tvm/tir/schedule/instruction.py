"""One step of a schedule: which primitive was called with what, and what it returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .random_variables import RV

__all__ = ["Instruction", "InstructionKind"]


@tvm._ffi.register_object("tir.InstructionKind")
class InstructionKind(Object):
    """A primitive as traces know it.

    `name` is that of the kind ("SamplePerfectTile"), `method` that of the method of a schedule.
    Kinds that only look are `is_pure`; the argument `variadic` is written without a name.
    """

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of that name.

        Raises
        ------
        KeyError : there is none; the message lists those there are.
        """
        return _ffi_api.InstructionKindGet(name)


@tvm._ffi.register_object("tir.Instruction")
class Instruction(Object):
    """A call of a primitive; `arguments` by name may hold random variables, also inside of lists.

    The decision of a sampling instruction belongs to the trace.
    """

    def __init__(
        self, kind: InstructionKind, arguments: Mapping[str, Any], outputs: Sequence[RV] = ()
    ) -> None:
        values = [arguments.get(str(name)) for name in kind.arguments]
        self.__init_handle_by_constructor__(_ffi_api.Instruction, kind, values, list(outputs))

    @property
    def arguments(self) -> dict[str, Any]:
        """Values of the arguments by name."""
        return {str(name): value for name, value in zip(self.kind.arguments, self.values)}

    @property
    def inputs(self) -> list[RV]:
        """Random variables the call takes, in order."""
        return list(_ffi_api.InstructionInputs(self))

    @property
    def attrs(self) -> list[Any]:
        """The other arguments, in order."""
        return list(_ffi_api.InstructionAttrs(self))
