"""Syntax trees of programs, which are Python's own (:mod:`ast`)."""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["AST", "NodeVisitor", "from_doc", "parse", "to_doc"]

AST = ast.AST
NodeVisitor = ast.NodeVisitor


def parse(source: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """The syntax tree of a text."""
    return ast.parse(source, filename, mode)


def to_doc(node: ast.AST) -> ast.AST:
    """The tree itself."""
    return node


def from_doc(node: ast.AST) -> ast.AST:
    """The tree itself."""
    return node


def __getattr__(name: str) -> Any:
    if name.startswith("__") or not hasattr(ast, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(ast, name)
