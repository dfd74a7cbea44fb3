"""Pass instruments, under the name people look for them (`tvm.ir.instrument`)."""

from __future__ import annotations

from tvm.ir.instrument import (
    PassInstrument,
    PassTimingInstrument,
    PrintAfter,
    PrintBefore,
    pass_instrument,
)

__all__ = [
    "PassInstrument",
    "PassTimingInstrument",
    "PrintAfter",
    "PrintBefore",
    "pass_instrument",
]
