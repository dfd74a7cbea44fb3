"""Functions of the C++ room `auto_scheduler`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("auto_scheduler", __name__)
