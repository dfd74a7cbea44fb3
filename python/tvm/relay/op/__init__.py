"""Relay's operators; each function makes a call whose type inference finds."""

from typing import TYPE_CHECKING, Any

from tvm._older_names import hints_for

from . import annotation, contrib, image, memory, nn, op, random, vision
from . import operators as operators
from . import type_relations as type_relations
from .debugging import debug
from .elementwise import *
from .op import (
    OpImplementation,
    OpPattern,
    OpSpecialization,
    OpStrategy,
    get,
    register,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_convert_op_layout,
    register_fake_quantization_to_integer,
    register_gradient,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_pattern,
    register_reduce_schedule,
    register_schedule,
    register_shape_func,
    register_stateful,
    register_strategy,
)
from .reduce import *
from .reshaping import *
from .selection import *
from .signal import *

from . import strategy  # isort: skip - strategies are of operators that are there

__all__ = [
    name
    for name in dir()
    if not name.startswith("_")
    and name not in ("TYPE_CHECKING", "Any", "hints_for")
    and name
    not in (
        "op",
        "operators",
        "registry",
        "shapes",
        "debugging",
        "elementwise",
        "implementation",
        "reduce",
        "reshaping",
        "selection",
        "signal",
        "support_levels",
        "type_relations",
    )
]

if TYPE_CHECKING:
    # The operators are entered by name.
    def __getattr__(name: str) -> Any: ...
else:
    __getattr__ = hints_for(__name__)
