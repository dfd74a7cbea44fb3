"""Functions of the C++ room `te`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("te", __name__)
