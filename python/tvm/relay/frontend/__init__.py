"""Importers: networks of other frameworks as relay modules."""

from __future__ import annotations

import importlib
from typing import Any

from tvm._older_names import hints_for

__all__ = ["from_onnx", "from_pytorch"]

# What importers need is looked for when they are first asked for.
_IMPORTERS = {"from_onnx": "onnx", "from_pytorch": "pytorch"}
_BY_ONNX = {
    f"from_{name}"
    for name in (
        "caffe", "caffe2", "coreml", "darknet", "keras", "mxnet", "oneflow", "paddle",
        "tensorflow", "tflite",
    )
}  # fmt: skip
_hint = hints_for(__name__)


def __getattr__(name: str) -> Any:
    if name in _IMPORTERS:
        return getattr(importlib.import_module(f".{_IMPORTERS[name]}", __name__), name)
    if name in _BY_ONNX:
        raise AttributeError(
            f"tvm.relay.frontend has no '{name}': export the network to ONNX (tf2onnx, "
            "paddle2onnx and the like) and take from_onnx, or take from_pytorch"
        )
    return _hint(name)
