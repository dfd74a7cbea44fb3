"""Passes over tensor programs."""

from __future__ import annotations

from tvm._older_names import hints_for

from . import transform
from .function_pass import prim_func_pass
from .transform import *

__all__ = [*transform.__all__, "prim_func_pass"]

__getattr__ = hints_for(__name__)
