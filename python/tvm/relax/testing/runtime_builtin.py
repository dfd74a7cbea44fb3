"""Numbers that calls of the virtual machine's functions hold."""

from ..shape_codes import MakeShapeCode, MatchShapeCode

__all__ = ["MakeShapeCode", "MatchShapeCode"]
