"""Functions of the compiler's arithmetic, bound from the registry."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("arith", __name__)
