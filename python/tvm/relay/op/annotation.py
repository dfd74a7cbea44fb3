"""Marks in programs: borders of parts for other compilers, devices, limits of fusion."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir import RelayExpr
from tvm.target import VirtualDevice

from ..expr import Call
from .registry import REQUIRED, OpPattern, define, make

__all__ = [
    "cast_hint",
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "on_device",
    "stop_fusion",
]


def _same_type(types: Any, settings: Any, args: Any) -> Any:
    return types[0]


def _unchanged(args: Any, settings: Any) -> Any:
    return args[0]


for _name in ("compiler_begin", "compiler_end"):
    define(
        f"annotation.{_name}",
        topi.identity,
        OpPattern.OPAQUE,
        settings={"compiler": REQUIRED},
        rule=_same_type,
        lower=_unchanged,
        num_inputs=1,
    )
for _name in ("annotation.stop_fusion", "annotation.checkpoint"):
    define(_name, topi.identity, OpPattern.OPAQUE, rule=_same_type, lower=_unchanged, num_inputs=1)
define(
    "annotation.cast_hint",
    topi.identity,
    OpPattern.OPAQUE,
    settings={"dtype": REQUIRED},
    rule=_same_type,
    lower=_unchanged,
    num_inputs=1,
)

define(
    "on_device",
    topi.identity,
    OpPattern.OPAQUE,
    settings={
        "virtual_device": REQUIRED,
        "constrain_result": False,
        "constrain_body": True,
    },
    rule=_same_type,
    lower=_unchanged,
    num_inputs=1,
)


def on_device(
    body: RelayExpr,
    device: Any,
    constrain_result: bool = False,
    constrain_body: bool = True,
) -> Call:
    """The value, of which a program says where it is computed.

    A program runs on one device, that of its target, and a build refuses marks for others.

    Parameters
    ----------
    device : a `tvm.target.VirtualDevice`, a device, or its name.
    constrain_result, constrain_body : whether the device is that of the result, and of what the
        value is computed from.

    Raises
    ------
    TypeError : `device` is no device.
    """
    return make(
        "on_device",
        [body],
        virtual_device=VirtualDevice.of(device),
        constrain_result=bool(constrain_result),
        constrain_body=bool(constrain_body),
    )


def compiler_begin(data: RelayExpr, compiler: str) -> Call:
    """An input of a part that another compiler takes."""
    return make("annotation.compiler_begin", [data], compiler=compiler)


def compiler_end(data: RelayExpr, compiler: str) -> Call:
    """An output of a part that another compiler takes."""
    return make("annotation.compiler_end", [data], compiler=compiler)


def stop_fusion(data: RelayExpr) -> Call:
    """The value, never computed together with what uses it."""
    return make("annotation.stop_fusion", [data])


def checkpoint(data: RelayExpr) -> Call:
    """The value, kept for the gradient."""
    return make("annotation.checkpoint", [data])


def cast_hint(data: RelayExpr, dtype: str) -> Call:
    """The value, which quantisation may keep in another type."""
    return make("annotation.cast_hint", [data], dtype=dtype)
