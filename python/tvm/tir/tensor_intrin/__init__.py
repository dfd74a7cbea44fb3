"""Tensor intrinsics of machines; importing a module of this package registers its own."""

from __future__ import annotations

from . import arm_cpu, cuda, hexagon, rocm, x86
