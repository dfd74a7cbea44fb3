"""Calls of functions for debugging, in the order in which they are written."""

from __future__ import annotations

import inspect
from typing import Any

from tvm import error

from ...block_builder import BlockBuilder
from ...expr import StringImm
from ...op import call_pure_packed
from ...struct_info import ObjectStructInfo
from .exporter import Exporter
from .kernel_ops import runtime_operand
from .tensor import Tensor

__all__ = ["debug_func", "print_"]


def debug_func(name: str, *args: Any, _line_info: str | None = None) -> None:
    """Call a registered function with the place of this line and values.

    Parameters
    ----------
    name : of a function ``(place: str, *values)``, see ``tvm.register_func``.
    args : tensors, numbers, expressions and texts.

    Raises
    ------
    RuntimeError : the network is not exported with ``debug=True``.
    """
    effect = Exporter.current().io_effect
    builder = BlockBuilder.current()
    if effect is None or builder is None or effect.effect is None:
        raise error.RuntimeError(
            "Debugging is only supported when debug mode is on: export_tvm(..., debug=True)"
        )
    if _line_info is None:
        frame = inspect.currentframe()
        assert frame is not None and frame.f_back is not None
        _line_info = f"{frame.f_back.f_code.co_filename}:{frame.f_back.f_lineno}"
    call = call_pure_packed(
        "vm.builtin.invoke_debug_func",
        effect.effect,
        StringImm(name),
        StringImm(_line_info),
        *(runtime_operand(arg, "float32") for arg in args),
        sinfo_args=[ObjectStructInfo()],
    )
    effect.effect = builder.emit(call, str(effect.effect.name_hint))


def print_(tensor: Tensor) -> None:
    """Print a tensor and the place of this line when the network runs."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    place = f"{frame.f_back.f_code.co_filename}:{frame.f_back.f_lineno}"
    debug_func("vm.builtin.debug_print", tensor, _line_info=place)
