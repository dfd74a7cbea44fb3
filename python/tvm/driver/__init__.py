"""Lowering and building of programs."""

from .build import build, build_passes, prepare
from .build_module import form_irmodule, get_binds, lower, lower_passes, schedule_to_module
