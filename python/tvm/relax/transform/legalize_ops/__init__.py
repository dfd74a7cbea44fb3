"""Graph operators become calls of kernels."""

from . import collectives, data_dependent, layout_transform
from .common import default_legalization, register_legalize
from .legalize import LegalizeOps, LegalizeUnfusableOps
