"""Patterns of graphs: what programs match, rewrite, and cut parts out by."""

from .language import *
from .partitioning import partition
from .rewriting import DFPatternCallback, rewrite
