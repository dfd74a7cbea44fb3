"""What runs compiled programs: arrays, modules, functions, devices."""

from __future__ import annotations

import importlib
from typing import Any

from . import (
    _ffi_api,
    _ffi_node_api,
    container,
    executor,
    ndarray,
    ndarray_cache,
    profiling,
)
from .container import ADT, ShapeTuple, String, tuple_object
from .data_type import DataType, DataTypeCode
from .device import Device, cpu, cuda, device, ext_dev, metal, opencl, rocm, vulkan
from .device_api import DeviceAPI, register_device
from .function_module import module_from_functions
from .module import (
    BenchmarkResult,
    Module,
    ModulePropertyMask,
    enabled,
    load_module,
    load_static_library,
    system_lib,
    system_lib_path,
)
from .ndarray import NDArray
from .object import Object
from .object_generic import ObjectGeneric, const, convert, convert_to_object
from .object_path import ObjectPath
from .packed_func import PackedFunc
from .params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from .profiling import Report
from .threading import config_threadpool, num_threads

__all__ = [
    "ADT",
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "DeviceAPI",
    "Module",
    "ModulePropertyMask",
    "NDArray",
    "Object",
    "ObjectGeneric",
    "ObjectPath",
    "PackedFunc",
    "Report",
    "ShapeTuple",
    "String",
    "config_threadpool",
    "const",
    "container",
    "executor",
    "convert",
    "convert_to_object",
    "cpu",
    "cuda",
    "device",
    "disco",
    "enabled",
    "load_module",
    "load_static_library",
    "load_param_dict",
    "load_param_dict_from_file",
    "metal",
    "module_from_functions",
    "ndarray",
    "ndarray_cache",
    "num_threads",
    "opencl",
    "profiling",
    "register_device",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "system_lib",
    "system_lib_path",
    "tuple_object",
    "ext_dev",
    "vm",
    "vulkan",
]


def __getattr__(name: str) -> Any:
    # Loaded when first named: few programs need them, and all import this package.
    if name in ("disco", "vm"):
        return importlib.import_module(f"tvm.runtime.{name}")
    raise AttributeError(f"module 'tvm.runtime' has no attribute {name!r}")
