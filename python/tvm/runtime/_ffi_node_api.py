"""Functions of the C++ room `node`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("node", __name__)
