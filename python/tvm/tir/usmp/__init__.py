"""Where TVM has a planner for the memory of whole models; here two others do its work.

Buffers inside of a function share memory after :func:`tvm.tir.transform.StorageRewrite`; tensors
between the functions of a network share memory after the planning of :func:`tvm.relax.build`.
"""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tvm.tir.usmp has no {name}: memory inside of functions is planned by "
        "tvm.tir.transform.StorageRewrite, memory between them by tvm.relax.build"
    )
