"""A small accelerator defined outside the compiler: own memory, own language, own code generator.

The chip is played by the system's C compiler: kernels are compiled as C and run once for every
thread of the grid. Its memory is a block of bytes of its own that only `copy` reaches.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path

import tvm
from tvm.runtime import DeviceAPI, module_from_functions, register_device
from tvm.target import CDialect, Target, register_target_kind

NUMBER = 40

DPU_C = CDialect(
    "dpu",
    prelude="""#ifndef __dpu__
#include <stdint.h>
#include <math.h>
#define __dpu_kernel
#define __scratch
#endif
extern int dpu_group(int axis), dpu_lane(int axis);
""",
    function_prefix="__dpu_kernel ",
    scopes={"shared": "__scratch "},
    thread_index={
        "blockIdx.x": "dpu_group(0)",
        "blockIdx.y": "dpu_group(1)",
        "threadIdx.x": "dpu_lane(0)",
        "threadIdx.y": "dpu_lane(1)",
    },
)

# The chip's index registers, in the simulator that runs a kernel for each thread.
SIMULATOR = """
static int index_[4];
int dpu_group(int axis) { return index_[axis]; }
int dpu_lane(int axis) { return index_[2 + axis]; }
void dpu_set(int which, int value) { index_[which] = value; }
"""
AXES = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")


class DpuMemory(DeviceAPI):
    """64 KiB at the addresses of one C array."""

    def __init__(self) -> None:
        self.size = 1 << 16
        self.memory = ctypes.create_string_buffer(self.size + 64)
        self.base = (ctypes.addressof(self.memory) + 63) // 64 * 64
        self.free_blocks = [(self.base, self.size)]
        self.used: dict[int, int] = {}

    def alloc(self, device, nbytes, alignment):
        nbytes = max(64, -(-nbytes // 64) * 64)
        for position, (address, size) in enumerate(self.free_blocks):
            if size >= nbytes:
                self.free_blocks[position] = (address + nbytes, size - nbytes)
                self.used[address] = nbytes
                return address
        return 0

    def free(self, device, address):
        self.free_blocks.append((address, self.used.pop(address)))

    def copy(self, source, source_device, target, target_device, nbytes):
        ctypes.memmove(target, source, nbytes)


def load_dpu_source(source: str, launches: dict[str, list[str]]) -> dict:
    """Callable kernels of a source text; `launches` names the thread axes of each."""
    folder = tempfile.TemporaryDirectory()
    library = Path(folder.name, "kernels.so")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-lm"],
        input=(source + SIMULATOR).encode(),
        check=True,
    )
    chip = ctypes.CDLL(str(library))

    def kernel(name, axes):
        def launch(*args, _folder=folder):
            values, extents = args[: len(args) - len(axes)], args[len(args) - len(axes) :]
            native = [
                ctypes.c_float(value) if isinstance(value, float) else value for value in values
            ]
            total = 1
            for extent in extents:
                total *= extent
            for thread in range(total):
                for axis, extent in zip(axes, extents, strict=True):
                    chip.dpu_set(AXES.index(axis), thread % extent)
                    thread //= extent
                getattr(chip, name)(*native)

        return launch

    return {name: kernel(name, axes) for name, axes in launches.items()}


def build_dpu(mod, target):
    """target.build.dpu: print every kernel, let the user's hook see the text, compile it."""
    source = DPU_C.print(mod, target)
    hook = tvm.get_global_func("tvm_callback_dpu_postproc", allow_missing=True)
    if hook is not None:
        source = hook(source)
    launches = {
        str(func.attrs["global_symbol"]): [str(a) for a in func.attrs["tir.kernel_launch_params"]]
        for func in mod.functions.values()
    }
    return module_from_functions("dpu", load_dpu_source(source, launches), source)


def register_dpu() -> DpuMemory:
    """Everything a process needs to know of the device, once."""
    memory = DpuMemory()
    register_device("dpu", NUMBER, memory)
    register_target_kind("dpu", NUMBER, keys=["dpu"], options={"scratch-bytes": "int"})
    tvm.register_func("target.build.dpu", build_dpu)
    return memory


def dpu(model: str = "unknown", options: str = "") -> Target:
    """The constructor users of the device call."""
    return Target(f"dpu -model={model} {options}".strip(), host="llvm")
