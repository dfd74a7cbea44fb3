"""Helpers for tests of graph programs: modules that emit into a builder, functions to be called."""

from . import ast_printer, nn, transform, vm
from .ast_printer import dump_ast

__all__ = ["ast_printer", "dump_ast", "nn", "transform", "vm"]
