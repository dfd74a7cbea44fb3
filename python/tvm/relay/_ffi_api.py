"""Functions registered under "relay." by the native library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm._ffi

tvm._ffi._init_api("relay", __name__)

if TYPE_CHECKING:
    # The names come from the registry when the module is loaded.
    def __getattr__(name: str) -> Any: ...
