"""Importers: one package for each framework, imported when asked for."""

from .common import detach_params

__all__ = ["detach_params"]
