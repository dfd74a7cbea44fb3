"""What runs compiled programs: arrays, modules, functions, devices."""

from __future__ import annotations

from . import _ffi_api, _ffi_node_api, ndarray
from .container import String
from .data_type import DataType
from .device import Device, cpu, cuda, device, metal, opencl, rocm, vulkan
from .device_api import DeviceAPI, register_device
from .function_module import module_from_functions
from .module import BenchmarkResult, Module, enabled, load_module, system_lib_path
from .ndarray import NDArray
from .object import Object
from .object_generic import ObjectGeneric, convert, convert_to_object
from .packed_func import PackedFunc
from .params import load_param_dict, save_param_dict
from .threading import config_threadpool, num_threads

__all__ = [
    "BenchmarkResult",
    "DataType",
    "Device",
    "DeviceAPI",
    "Module",
    "NDArray",
    "Object",
    "ObjectGeneric",
    "PackedFunc",
    "String",
    "config_threadpool",
    "convert",
    "convert_to_object",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "load_module",
    "load_param_dict",
    "metal",
    "module_from_functions",
    "ndarray",
    "num_threads",
    "opencl",
    "register_device",
    "rocm",
    "save_param_dict",
    "system_lib_path",
    "vulkan",
]
