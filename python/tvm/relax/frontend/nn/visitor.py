"""Walks over the tree of a network that replace its parts."""

from __future__ import annotations

from typing import Any

from .core import Effect
from .module import Module, ModuleList
from .tensor import Parameter

__all__ = ["Mutator"]


class Mutator:
    """Replaces modules, parameters and effects; subclasses override what they replace.

    Each method gets the path to a node and the node, and returns what takes its place. As they are,
    they go on to what is below.
    """

    def visit_module(self, name: str, node: Module) -> Any:
        """What takes the place of a module."""
        return self.visit(name, node)

    def visit_modulelist(self, name: str, node: ModuleList) -> Any:
        """What takes the place of a list of modules."""
        return self.visit(name, node)

    def visit_param(self, name: str, node: Parameter) -> Any:
        """What takes the place of a parameter."""
        return node

    def visit_effect(self, name: str, node: Effect) -> Any:
        """What takes the place of an effect."""
        return node

    def visit(self, name: str, node: Any) -> Any:
        """Replace what is below a module, which is returned."""
        for key, child in list(node.children()):
            path = f"{name}.{key}" if name else key
            if isinstance(child, ModuleList):
                new = self.visit_modulelist(path, child)
            elif isinstance(child, Module):
                new = self.visit_module(path, child)
            elif isinstance(child, Effect):
                new = self.visit_effect(path, child)
            elif isinstance(child, Parameter):
                new = self.visit_param(path, child)
            else:
                continue
            if isinstance(node, ModuleList):
                node[int(key)] = new
            else:
                setattr(node, key, new)
        return node
