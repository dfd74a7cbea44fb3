"""Functions of the C++ room `target`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("target", __name__)
