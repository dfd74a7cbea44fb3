"""Kinds of values that cross the border, by the numbers of tvm/runtime/c_runtime_api.h."""

from __future__ import annotations

from enum import IntEnum

from tvm.runtime.data_type import DataType
from tvm.runtime.device import RPC_SESS_MASK, Device

__all__ = ["RPC_SESS_MASK", "ArgTypeCode", "DataType", "Device", "TVMContext"]

# The name of TVM 0.6.
TVMContext = Device


class ArgTypeCode(IntEnum):
    """What a TVMAny holds. Functions, modules, arrays and bytes are objects."""

    NULL = 0
    BOOL = 1
    INT = 2
    FLOAT = 3
    DLDATATYPE = 4
    DLDEVICE = 5
    TVM_CONTEXT = 5  # the name of TVM 0.7
    HANDLE = 6
    OBJECT_HANDLE = 7
    DLTENSOR_HANDLE = 8
    STR = 9
