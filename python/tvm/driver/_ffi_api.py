"""Functions of the C++ room `driver`."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("driver", __name__)
