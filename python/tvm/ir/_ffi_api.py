"""Functions of the C++ namespace `ir`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("ir", __name__)
