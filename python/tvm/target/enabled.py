"""Which targets a run of tests is about."""

from __future__ import annotations

import os

import tvm
from tvm.runtime import Device, enabled

from .target import Target

__all__ = ["DEFAULT_TEST_TARGETS", "device_enabled", "device_of", "enabled_targets"]

DEFAULT_TEST_TARGETS = ("llvm", "cuda", "nvptx", "opencl", "metal", "rocm", "vulkan")


def device_of(target: str | Target) -> Device:
    """The first device that a target's code runs on."""
    return tvm.device(Target(target).get_target_device_type(), 0)


def _runs(target: str) -> bool:
    kind = Target(target).kind.name
    return bool(enabled(str(kind))) and bool(device_of(target).exist)


def enabled_targets() -> list[tuple[str, Device]]:
    """Targets that tests run for, each with its first device.

    They are those of the environment variable ``TVM_TEST_TARGETS``, with semicolons between, or
    `DEFAULT_TEST_TARGETS`; those without a code generator or a device here are left out. If none
    is left, it is ``llvm``.

    Raises
    ------
    ValueError : the variable names an unknown kind or option.
    """
    given = [part.strip() for part in os.environ.get("TVM_TEST_TARGETS", "").split(";")]
    wanted = [target for target in given if target] or list(DEFAULT_TEST_TARGETS)
    found = [target for target in wanted if _runs(target)] or ["llvm"]
    return [(target, device_of(target)) for target in found]


def device_enabled(target: str) -> bool:
    """Whether tests run for a target of this kind; its options do not matter."""
    if not isinstance(target, str):
        raise TypeError(f"device_enabled: expected a target's text, got {type(target).__name__}")
    return target.split()[0] in {name.split()[0] for name, _ in enabled_targets()}
