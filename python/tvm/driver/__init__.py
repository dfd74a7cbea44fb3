"""Lowering and building of programs."""

from .build import build, build_passes, device_build, prepare, split_dev_host_funcs
from .build_config import BuildConfig, build_config
from .build_module import form_irmodule, get_binds, lower, lower_passes, schedule_to_module
