"""Helpers for tests of graph programs: modules that emit into a builder, functions to be called."""

from . import nn, vm

__all__ = ["nn", "vm"]
