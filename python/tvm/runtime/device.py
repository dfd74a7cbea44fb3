"""Devices, by kind and number."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tvm._ffi.base import core

from . import _ffi_api
from .data_type import DataType

__all__ = [
    "RPC_SESS_MASK",
    "Device",
    "cpu",
    "cuda",
    "device",
    "ext_dev",
    "metal",
    "opencl",
    "rocm",
    "vulkan",
]

# Devices behind a session of `tvm.rpc` have the number of their kind plus a multiple of this.
RPC_SESS_MASK = 128


class Device:
    """A device: its kind (`device_type`, as DLPack numbers them) and its number.

    Examples
    --------
    >>> tvm.cpu()
    cpu(0)
    >>> tvm.device("llvm") == tvm.cpu(0)
    True
    """

    __slots__ = ("device_id", "device_type")

    # DLPack's numbers by its names.
    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12

    MASK2STR: ClassVar[dict[int, str]] = {
        1: "cpu",
        2: "cuda",
        3: "cuda_host",
        4: "opencl",
        7: "vulkan",
        8: "metal",
        9: "vpi",
        10: "rocm",
        11: "rocm_host",
        12: "ext_dev",
    }
    # Kinds of targets name the device they run on.
    STR2MASK: ClassVar[dict[str, int]] = {
        **{name: code for code, name in MASK2STR.items()},
        "llvm": 1,
        "c": 1,
        "stackvm": 1,
        "micro_dev": 1,
        "test": 1,
        "gpu": 2,
        "nvptx": 2,
        "cl": 4,
        "mtl": 8,
    }

    def __init__(self, device_type: int | str, device_id: int = 0) -> None:
        if isinstance(device_type, str):
            kind = device_type.split()[0] if device_type.strip() else device_type
            if kind not in self.STR2MASK:
                known = ", ".join(sorted(self.STR2MASK))
                raise ValueError(
                    f'device: unknown kind "{device_type}"; known kinds: {known}. '
                    "tvm.runtime.register_device adds one of your own"
                )
            device_type = self.STR2MASK[kind]
        elif not isinstance(device_type, (int, np.integer)):
            raise TypeError(
                "device: expected the name or the number of a kind, got "
                f"{type(device_type).__name__}; for a target write tvm.device(str(target))"
            )
        object.__setattr__(self, "device_type", int(device_type))
        object.__setattr__(self, "device_id", int(device_id))

    device_type: int
    device_id: int

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Device.{name} is read-only")

    @property
    def exist(self) -> bool:
        """Whether the device is there and usable."""
        return bool(_ffi_api.GetDeviceAttr(self, 0))

    @property
    def max_threads_per_block(self) -> int:
        """Threads one block may have."""
        return _ffi_api.GetDeviceAttr(self, 1)

    @property
    def warp_size(self) -> int:
        """Threads that run in lockstep."""
        return _ffi_api.GetDeviceAttr(self, 2)

    @property
    def max_shared_memory_per_block(self) -> int:
        """Bytes of shared memory a block has without asking for more."""
        return _ffi_api.GetDeviceAttr(self, 3)

    @property
    def compute_version(self) -> str:
        """Version of the instruction set, such as "8.0" for CUDA's compute capability."""
        return _ffi_api.GetDeviceAttr(self, 4)

    @property
    def device_name(self) -> str:
        """The vendor's name of the device."""
        return _ffi_api.GetDeviceAttr(self, 5)

    @property
    def max_clock_rate(self) -> int:
        """Highest clock in kHz."""
        return _ffi_api.GetDeviceAttr(self, 6)

    @property
    def multi_processor_count(self) -> int:
        """Multiprocessors of the device."""
        return _ffi_api.GetDeviceAttr(self, 7)

    @property
    def total_global_memory(self) -> int:
        """Bytes of memory."""
        return _ffi_api.GetDeviceAttr(self, 8)

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """Threads that one block may have along x, y and z; None for devices without blocks."""
        extents = _ffi_api.GetDeviceAttr(self, 9)
        return None if extents is None else [int(extent) for extent in extents]

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """Bytes of the second-level cache that all multiprocessors share."""
        return _ffi_api.GetDeviceAttr(self, 10)

    @property
    def api_version(self) -> int | None:
        """Version of the interface to the device, such as 12040 for CUDA 12.4."""
        return _ffi_api.GetDeviceAttr(self, 11)

    @property
    def driver_version(self) -> int | None:
        """Version of the interface that the installed driver has, which is the one spoken."""
        return self.api_version

    def sync(self, stream: int = 0) -> None:
        """Wait until all work queued on a stream (the thread's own if 0) is done."""
        _ffi_api.StreamSync(self, stream)

    def create_raw_stream(self) -> int:
        """A new queue of the device, to be given back with `free_raw_stream`.

        0 on a device that has one queue only, such as the cpu.
        """
        return _ffi_api.StreamCreate(self)

    def free_raw_stream(self, stream: int) -> None:
        """Give a stream back; what is queued on it still runs."""
        if stream:
            _ffi_api.StreamFree(self, stream)

    def set_raw_stream(self, stream: int) -> None:
        """Send what this thread launches and copies to a stream; 0 is the default one."""
        _ffi_api.SetStream(self, stream)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Device)
            and self.device_type == other.device_type
            and self.device_id == other.device_id
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __repr__(self) -> str:
        if self.device_type >= RPC_SESS_MASK:
            session, kind = divmod(self.device_type, RPC_SESS_MASK)
            return f"remote[{session - 1}]:{Device(kind, self.device_id)!r}"
        return f"{self.MASK2STR.get(self.device_type, self.device_type)}({self.device_id})"

    def __reduce__(self) -> tuple[type[Device], tuple[int, int]]:
        return Device, (self.device_type, self.device_id)


def device(dev_type: str | int, dev_id: int | None = None) -> Device:
    """The device a kind of target or device names, such as ``"llvm"``, ``"cuda"`` or ``"cuda:1"``.

    Parameters
    ----------
    dev_id : its number, 0 unless the text has one.

    Raises
    ------
    ValueError : unknown kind, with a list of the known ones; or a number that is none.
    """
    if isinstance(dev_type, str) and ":" in dev_type:
        kind, _, number = dev_type.partition(":")
        if dev_id is not None or not number.isdecimal():
            raise ValueError(
                f'device: cannot read "{dev_type}"; a kind may be followed by one number, "cuda:1"'
            )
        return Device(kind, int(number))
    if dev_id is not None and not hasattr(dev_id, "__index__"):
        raise ValueError(f"device: the number of a device is an integer, not {dev_id!r}")
    return Device(dev_type, 0 if dev_id is None else dev_id)


def cpu(dev_id: int = 0) -> Device:
    """The processor this program runs on."""
    return Device(1, dev_id)


def cuda(dev_id: int = 0) -> Device:
    """A GPU programmed through CUDA."""
    return Device(2, dev_id)


def opencl(dev_id: int = 0) -> Device:
    """A device programmed through OpenCL."""
    return Device(4, dev_id)


def vulkan(dev_id: int = 0) -> Device:
    """A device programmed through Vulkan."""
    return Device(7, dev_id)


def metal(dev_id: int = 0) -> Device:
    """A GPU programmed through Metal."""
    return Device(8, dev_id)


def rocm(dev_id: int = 0) -> Device:
    """A GPU programmed through ROCm."""
    return Device(10, dev_id)


def ext_dev(dev_id: int = 0) -> Device:
    """A device of one's own that registers under this kind; see `tvm.runtime.register_device`."""
    return Device(12, dev_id)


core.set_classes(Device, DataType, np.generic, np.dtype)
