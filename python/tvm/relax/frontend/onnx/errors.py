"""What is wrong with an ONNX model."""

from __future__ import annotations

__all__ = ["OnnxError"]


class OnnxError(ValueError):
    """A model cannot be used: it is damaged, or has what is not supported."""
