"""Names of operator families, stored as the tag of each te stage."""

from __future__ import annotations

__all__ = [
    "ADAPTIVE_POOL",
    "ATTENTION",
    "BATCH_MATMUL",
    "BROADCAST",
    "COMM_REDUCE",
    "COMM_REDUCE_IDX",
    "DENSE",
    "ELEMWISE",
    "INJECTIVE",
    "MATMUL",
    "PAD",
    "POOL_MAX",
    "POOL_SUM",
    "RECURRENT_PANELS",
    "SOFTMAX",
    "is_broadcast",
    "is_injective",
]

ATTENTION = "attention"
ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"
DENSE = "dense"
MATMUL = "matmul"
BATCH_MATMUL = "batch_matmul"
PAD = "injective,pad"
POOL_MAX = "pool_max"
POOL_SUM = "pool_sum"
ADAPTIVE_POOL = "adaptive_pool_sum"
RECURRENT_PANELS = "recurrent_panels"
SOFTMAX = "softmax_output"


def is_broadcast(tag: str) -> bool:
    """Whether each output element reads each operand at one place, with the same axis order."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag: str) -> bool:
    """Whether each output element reads each operand at one place."""
    return is_broadcast(tag) or tag.split(",")[0] == INJECTIVE
