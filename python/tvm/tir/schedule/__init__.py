"""Schedules of modules of blocks, with traces that can be replayed."""

from __future__ import annotations

from tvm.error import ScheduleError

from . import _ffi_api, analysis
from .instruction import Instruction, InstructionKind
from .random_variables import BlockRV, ExprRV, LoopRV
from .schedule import Schedule
from .state import (
    BlockScope,
    Dependency,
    DepKind,
    ScheduleDebugMask,
    ScheduleState,
    StmtSRef,
)
from .trace import Trace
