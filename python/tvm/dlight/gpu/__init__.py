"""Rules for graphics processors."""

from .fallback import Fallback
from .gemv import GEMV
from .general_reduction import GeneralReduction
from .matmul import Matmul
from .reduction import Reduction
from .rule import GPUScheduleRule
from .transpose import Transpose

__all__ = [
    "GEMV",
    "Fallback",
    "GPUScheduleRule",
    "GeneralReduction",
    "Matmul",
    "Reduction",
    "Transpose",
]
