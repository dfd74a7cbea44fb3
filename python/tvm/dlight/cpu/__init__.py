"""Rules for processors."""

from .gemv import GEMV
from .rule import CPUScheduleRule

__all__ = ["GEMV", "CPUScheduleRule"]
