"""Functions registered as ``tir.transform.*``."""

from __future__ import annotations

import tvm._ffi

tvm._ffi._init_api("tir.transform", __name__)
