"""The ONNX operators."""

from . import (
    control,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    quantization,
    quantized_contrib,
    random,
    recurrent,
    reduction,
    resize,
    shapes,
    signal,
    vision,
)
from .registry import Node, find_operator, has_operator

__all__ = ["Node", "find_operator", "has_operator"]
