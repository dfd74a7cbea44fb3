"""Lowering and building of programs."""

from .build_config import BuildConfig, build_config
from .build_module import (
    build,
    build_passes,
    device_build,
    form_irmodule,
    get_binds,
    lower,
    lower_passes,
    prepare,
    prepare_parts,
    schedule_to_module,
    split_dev_host_funcs,
)
