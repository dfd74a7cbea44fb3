"""Python code as a tree, and its text: for printers of one's own dialects."""

from __future__ import annotations

from .doc_printer import to_python_script

__all__ = ["to_python_script"]
