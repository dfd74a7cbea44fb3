"""Errors of reading."""

from tvm.error import DiagnosticError

__all__ = ["ParserError"]

ParserError = DiagnosticError
