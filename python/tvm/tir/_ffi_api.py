"""Functions registered as ``tir.*``."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("tir", __name__)
