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
    """A call of a primitive, which prints as a line of Python with `_` for random variables.

    The decision of a sampling instruction belongs to the trace.

    Parameters
    ----------
    inputs : what the call works on: blocks, loops, sizes and the value of an annotation, in the
        order of the method's arguments, with lists of them spelled out.
    attrs : the other arguments in their order. A buffer of a block is two: its position, and 0 for
        the buffers that are read or 1 for those that are written. Left out at the end, they have
        the method's defaults.
    outputs : the random variables that it returns.

    Raises
    ------
    ValueError : the kind has more or fewer inputs or attributes.

    Examples
    --------
    >>> from tvm.tir.schedule import BlockRV
    >>> Instruction(InstructionKind.get("GetBlock"), [], ["B", "main"], [BlockRV()])
    _ = sch.get_block(name="B", func_name="main")
    """

    def __init__(
        self,
        kind: InstructionKind,
        inputs: Sequence[Any] = (),
        attrs: Sequence[Any] = (),
        outputs: Sequence[RV] = (),
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.InstructionFromParts, kind, list(inputs), list(attrs), list(outputs)
        )

    @staticmethod
    def of(
        kind: InstructionKind, arguments: Mapping[str, Any], outputs: Sequence[RV] = ()
    ) -> Instruction:
        """The call with these arguments by name, which may hold random variables inside of lists.

        Raises
        ------
        ValueError : a value is of the wrong kind.
        """
        values = [arguments.get(str(name)) for name in kind.arguments]
        return _ffi_api.Instruction(kind, values, list(outputs))

    @property
    def arguments(self) -> dict[str, Any]:
        """Values of the arguments by name."""
        return {str(name): value for name, value in zip(self.kind.arguments, self.values)}

    @property
    def inputs(self) -> list[Any]:
        """What the call works on, see the constructor."""
        return list(_ffi_api.InstructionInputs(self))

    @property
    def attrs(self) -> list[Any]:
        """The other arguments, see the constructor."""
        return list(_ffi_api.InstructionAttrs(self))
