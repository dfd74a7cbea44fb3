"""Functions registered as ``tir.analysis.*``."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("tir.analysis", __name__)
