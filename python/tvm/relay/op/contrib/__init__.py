"""What other compilers say about relay's operators."""

from tvm._older_names import hints_for

from .register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]

__getattr__ = hints_for(__name__)
