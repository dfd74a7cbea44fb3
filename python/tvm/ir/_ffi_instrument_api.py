"""Functions of the C++ namespace `instrument`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("instrument", __name__)
