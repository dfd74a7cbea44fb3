"""Helpers for tests of graph programs: modules that emit into a builder, functions to be called."""

from . import ast_printer, nn, transform, vm
from .ast_printer import dump_ast
from .nn import (
    Linear,
    LogSoftmax,
    Module,
    Parameter,
    Placeholder,
    ReLU,
    Sequential,
    emit,
)

__all__ = [
    "Linear",
    "LogSoftmax",
    "Module",
    "Parameter",
    "Placeholder",
    "ReLU",
    "Sequential",
    "ast_printer",
    "dump_ast",
    "emit",
    "nn",
    "transform",
    "vm",
]
