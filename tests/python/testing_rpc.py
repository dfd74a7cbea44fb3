"""Functions that a server of the tests registers."""

from __future__ import annotations

import ctypes
import os
import time

import tvm


def register() -> None:
    """Called by the server before it serves."""

    @tvm.register_func("testing_rpc.crash", override=True)
    def crash() -> None:
        ctypes.string_at(0)

    @tvm.register_func("testing_rpc.hang", override=True)
    def hang() -> None:
        time.sleep(3600)

    @tvm.register_func("testing_rpc.process", override=True)
    def process() -> int:
        return os.getpid()
