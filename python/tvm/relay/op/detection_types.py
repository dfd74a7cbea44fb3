"""Types of the operators of object detection, whose numbers of boxes may be known only at run time.

Operands of fixed shape are looked at by the computations themselves, which also refuse what they
cannot take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.ir import TensorType, TupleType, Type

from ..ty import is_dynamic
from .shapes import computed_type, product, tensor

__all__ = ["DETECTION_RULES", "with_open_sizes"]

Settings = Mapping[str, Any]
OpenRule = Callable[[Sequence[TensorType], Settings], Type]
Rule = Callable[[Sequence[Type], Settings, Any], Type]


def _valid_counts(types: Sequence[TensorType], s: Settings) -> Type:
    batch, boxes, _ = types[0].shape
    places = TensorType([batch, boxes], "int32")
    return TupleType([TensorType([batch], "int32"), types[0], places])


def _suppressed(types: Sequence[TensorType], s: Settings) -> Type:
    if not s["return_indices"]:
        return types[0]
    batch, boxes, _ = types[0].shape
    return TupleType([TensorType([batch, boxes], "int32"), TensorType([batch, 1], "int32")])


def _suppressed_by_class(types: Sequence[TensorType], s: Settings) -> Type:
    batch, classes, boxes = types[1].shape
    if s["output_format"] == "onnx":
        rows = product([batch, classes, boxes])
        return TupleType([TensorType([rows, 3], "int64"), TensorType([1], "int64")])
    rows = product([classes, boxes])
    scores = TensorType([batch, rows], str(types[1].dtype))
    places = TensorType([batch, rows, 2], "int64")
    return TupleType([places, scores, TensorType([batch], "int64")])


def _regions(types: Sequence[TensorType], s: Settings) -> Type:
    data, rois = types
    channels = data.shape[str(s["layout"]).index("C")]
    size = list(s["pooled_size"])
    last = s["layout"] == "NHWC"
    inner = [*size, channels] if last else [channels, *size]
    return TensorType([rois.shape[0], *inner], str(data.dtype))


DETECTION_RULES: dict[str, OpenRule] = {
    "vision.get_valid_counts": _valid_counts,
    "vision.non_max_suppression": _suppressed,
    "vision.all_class_non_max_suppression": _suppressed_by_class,
    "vision.roi_align": _regions,
    "vision.roi_pool": _regions,
}


def with_open_sizes(name: str, compute: Callable[..., Any]) -> Rule:
    """The type rule of an operator: by its computation where all is known, else by the rule."""
    where = f"relay.{name}"

    def rule(types: Sequence[Type], s: Settings, args: Any) -> Type:
        if not any(map(is_dynamic, types)):
            return computed_type(where, compute, types, s)
        return DETECTION_RULES[name]([tensor(where, type_) for type_ in types], s)

    return rule
