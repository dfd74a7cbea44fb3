"""Functions of the C++ room `runtime`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("runtime", __name__)
