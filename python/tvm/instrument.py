"""Pass instruments, under the name people look for them (`tvm.ir.instrument`)."""

from __future__ import annotations

from tvm.ir.instrument import (
    DumpIR,
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    PrintAfter,
    PrintAfterAll,
    PrintBefore,
    PrintBeforeAll,
    pass_instrument,
)

__all__ = [
    "DumpIR",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintAfterAll",
    "PrintBefore",
    "PrintBeforeAll",
    "pass_instrument",
]
