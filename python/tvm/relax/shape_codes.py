"""How the virtual machine's functions for shapes are told what to do with each extent.

The numbers are those of ``MatchCode`` and ``MakeCode`` in ``src/runtime/relax_vm/builtin.cc``; the
names are TVM's.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MakeShapeCode", "MatchShapeCode"]


class MatchShapeCode(IntEnum):
    """What ``vm.builtin.match_shape`` does with an extent."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(IntEnum):
    """Where ``vm.builtin.make_shape`` takes an extent from."""

    USE_IMM = 0
    LOAD_SHAPE = 1
