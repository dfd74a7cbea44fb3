"""Functions of the C++ namespace `transform`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("transform", __name__)
