"""Schedules for callers in other languages, which hold modules and texts but no Python objects."""

from __future__ import annotations

import json

import tvm._ffi
from tvm.ir import IRModule

from .schedule import Schedule
from .trace import Trace


@tvm._ffi.register_func("tir.schedule.ApplyJSON")
def _apply_json(mod: IRModule, trace: str) -> IRModule:
    """`mod` after the trace that the text, written by ``Trace.as_json``, holds."""
    sch = Schedule(mod)
    Trace.apply_json_to_schedule(trace, sch)
    return sch.mod


@tvm._ffi.register_func("tir.schedule.AsPython")
def _as_python(trace: str) -> str:
    """A trace, given as JSON text, as a Python function."""
    return str(Trace.from_json(trace))


@tvm._ffi.register_func("tir.schedule.Simplified")
def _simplified(trace: str) -> str:
    """A trace, given as JSON text, without what nothing needs; as JSON text."""
    return json.dumps(Trace.from_json(trace).simplified(remove_postproc=False).as_json())


tvm._ffi._init_api("tir.schedule", __name__)
