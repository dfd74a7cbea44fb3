"""Passes over tensor programs."""

from __future__ import annotations

from tvm._older_names import hints_for

from . import transform
from .common_subexpr import CommonSubexprElimTIR
from .default_gpu_schedule import DefaultGPUSchedule
from .force_narrow_index import ForceNarrowIndexToInt32
from .function_pass import prim_func_pass
from .hoist_expression import HoistedConditionals, HoistedLetBindings, HoistExpression
from .inline_private_functions import InlinePrivateFunctions
from .make_unpacked_api import MakeUnpackedAPI
from .profile_intrinsics import InstrumentProfileIntrinsics
from .remove_store_undef import RemoveStoreUndef
from .transform import *

__all__ = [
    *transform.__all__,
    "CommonSubexprElimTIR",
    "DefaultGPUSchedule",
    "ForceNarrowIndexToInt32",
    "HoistExpression",
    "HoistedConditionals",
    "HoistedLetBindings",
    "InlinePrivateFunctions",
    "InstrumentProfileIntrinsics",
    "MakeUnpackedAPI",
    "RemoveStoreUndef",
    "prim_func_pass",
]

__getattr__ = hints_for(__name__)
