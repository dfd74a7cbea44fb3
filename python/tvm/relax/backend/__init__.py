"""What libraries and other compilers compute, as patterns that parts of networks are found by."""

from . import pattern_registry, patterns
from .dispatch_sort_scan import DispatchSortScan
from .pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns
