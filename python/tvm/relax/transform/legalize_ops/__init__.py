"""Graph operators become calls of kernels."""

from .common import default_legalization, register_legalize
from .legalize import LegalizeOps, LegalizeUnfusableOps
