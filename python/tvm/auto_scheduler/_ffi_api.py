"""Functions of the room `auto_scheduler`, of both languages."""

from __future__ import annotations

from typing import Any

import tvm._ffi

tvm._ffi._init_api("auto_scheduler", __name__)


def __getattr__(name: str) -> Any:
    # Modules of this package register functions of their own when they are imported later.
    function = tvm._ffi.get_global_func(f"auto_scheduler.{name}", allow_missing=True)
    if function is None:
        raise AttributeError(f"there is no global function auto_scheduler.{name}")
    return function
