"""CUDA C to machine code with NVIDIA's run-time compiler; needs neither a GPU nor a toolkit."""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm import error

__all__ = [
    "KernelResources",
    "compile_cuda",
    "compiler_version",
    "default_arch",
    "header_paths",
    "kernel_resources",
    "recorded_resources",
    "require_arch",
    "supported_archs",
]

# For code that is compiled where no GPU says what it is for. The oldest architecture with
# asynchronous copies and bfloat16 arithmetic.
_FALLBACK_ARCH = "sm_80"


@dataclass(frozen=True)
class KernelResources:
    """What a compiled kernel takes of a multiprocessor.

    Attributes
    ----------
    registers : of one thread.
    shared_bytes : static shared memory of a block, without what the system keeps for itself.
    stack_bytes : local memory of a thread, which lies in device memory: arrays that are indexed by
        variables, and spilled registers.
    spill_bytes : stores and loads of registers that did not fit, in bytes of one pass of the code.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int

    def to_json(self) -> dict[str, int]:
        """The attributes by name."""
        return asdict(self)


# Where the resources of kernels go that are compiled; None where nobody asks.
_resources: ContextVar[dict[str, KernelResources] | None] = ContextVar("_resources", default=None)


@contextmanager
def recorded_resources() -> Iterator[dict[str, KernelResources]]:
    """Resources of all kernels that are compiled to machine code inside of the block, by name."""
    found: dict[str, KernelResources] = {}
    token = _resources.set(found)
    try:
        yield found
    finally:
        _resources.reset(token)


# Attributes of a cubin's sections .nv.info: a number for each symbol.
_FRAME_SIZE, _REGISTER_COUNT = 0x11, 0x2F
# Where a cubin names memory that the system keeps (from sm_90 on), kernels with shared memory of
# their own have it behind this many bytes, which do not count against the limit of a block.
_RESERVED_SHARED = 1024
# A row of such a section: format, attribute, size or value.
_ROW = struct.Struct("<BBH")
_SIZED = 4


def kernel_resources(cubin: bytes, log: str = "") -> dict[str, KernelResources]:
    """What the kernels of a cubin take, by name.

    Parameters
    ----------
    cubin : machine code as `compile_cuda` gives it.
    log : what the assembler said with ``--ptxas-options=-v``; the only place that counts spills.

    Raises
    ------
    ValueError : these bytes are no cubin.
    """
    if len(cubin) < 64 or cubin[:5] != b"\x7fELF\x02":
        raise ValueError("kernel_resources: these bytes are no cubin (a 64-bit ELF file)")
    sections, symbols = _elf_tables(cubin)
    registers: dict[str, int] = {}
    frames: dict[str, int] = {}
    for offset, size in (place for name, place in sections if name == ".nv.info"):
        position = offset
        while position < offset + size:
            form, attribute, value = _ROW.unpack_from(cubin, position)
            position += _ROW.size
            if form != _SIZED:
                continue
            if attribute in (_FRAME_SIZE, _REGISTER_COUNT):
                symbol, number = struct.unpack_from("<II", cubin, position)
                (registers if attribute == _REGISTER_COUNT else frames)[symbols[symbol]] = number
            position += value
    reserves = any(name.startswith(".nv.shared.reserved.") for name, _ in sections)
    shared = {
        name.removeprefix(".nv.shared."): size - (_RESERVED_SHARED if reserves else 0)
        for name, (_, size) in sections
        if name.startswith(".nv.shared.")
    }
    spills = {
        name: int(stores) + int(loads)
        for name, stores, loads in re.findall(
            r"Function properties for (\S+)\s+.*?(\d+) bytes spill stores, (\d+) bytes spill loads",
            log,
            re.DOTALL,
        )
    }
    return {
        name: KernelResources(count, shared.get(name, 0), frames.get(name, 0), spills.get(name, 0))
        for name, count in registers.items()
    }


def _elf_tables(data: bytes) -> tuple[list[tuple[str, tuple[int, int]]], list[str]]:
    """Names with offset and size of the sections of an ELF file, and the names of its symbols."""
    try:
        (table,) = struct.unpack_from("<Q", data, 0x28)
        entry_size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        rows = [
            struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry_size) for i in range(count)
        ]

        def text(string_table: int, offset: int) -> str:
            start = rows[string_table][4] + offset
            return data[start : data.index(b"\0", start)].decode()

        sections = [(text(names, row[0]), (row[4], row[5])) for row in rows]
        symbols: list[str] = []
        for _, kind, _, _, offset, size, link, *_ in rows:
            if kind == 2:
                symbols = [
                    text(link, struct.unpack_from("<I", data, offset + i)[0])
                    for i in range(0, size, 24)
                ]
        return sections, symbols
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(f"kernel_resources: the cubin is damaged: {error}") from error


@functools.cache
def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        # The library is loaded by the first call.
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as failure:
        raise error.RuntimeError(
            'target "cuda": compiling kernels needs the package cuda-bindings with NVRTC; install '
            f"it with `pip install tvm[cuda]` ({failure})"
        ) from failure
    return nvrtc


def _check(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    """The value of a call of NVRTC, which returns its status first."""
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        text = nvrtc.nvrtcGetErrorString(status)[1].decode()
        raise error.RuntimeError(f"NVRTC: {text}")
    return values[0] if values else None


def compiler_version() -> tuple[int, int]:
    """Version of NVRTC."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return int(major), int(minor)


@functools.cache
def supported_archs() -> tuple[str, ...]:
    """Architectures the installed compiler makes code for, oldest first: ``("sm_75", ...)``."""
    nvrtc = _nvrtc()
    return tuple(f"sm_{number}" for number in sorted(_check(nvrtc, nvrtc.nvrtcGetSupportedArchs())))


def require_arch(arch: str) -> None:
    """Look whether the installed compiler makes code for an architecture.

    Raises
    ------
    ValueError : it does not; the message has those that it knows.
    RuntimeError : there is no compiler.
    """
    # Names such as sm_90a are variants of a number that the list has.
    known = supported_archs()
    if arch.rstrip("af") not in known:
        version = ".".join(map(str, compiler_version()))
        raise ValueError(
            f"target cuda: NVRTC {version} makes no code for -arch={arch}; it does for "
            f"{', '.join(known)}"
        )


@functools.cache
def header_paths() -> tuple[Path, ...]:
    """Folders with the headers of half precision and tensor cores, found where pip, conda or a
    toolkit put them."""
    _nvrtc()
    from cuda import pathfinder

    found = []
    for library in ("cudart", "cccl"):
        folder = pathfinder.find_nvidia_header_directory(library)
        if folder is not None:
            found += [Path(folder), Path(folder) / "cccl"]
    return tuple(dict.fromkeys(path for path in found if path.is_dir()))


def default_arch(target: Any = None) -> str:
    """Architecture to compile for: the target's, else this machine's GPU, else "sm_80"."""
    named = None if target is None else target.get_attr("arch")
    if named:
        return named
    device = tvm.runtime.cuda(0)
    return f"sm_{device.compute_version.replace('.', '')}" if device.exist else _FALLBACK_ARCH


def compile_cuda(
    code: str,
    target_format: str = "cubin",
    arch: str | None = None,
    options: Sequence[str] = (),
) -> bytes:
    """Compile CUDA C.

    Parameters
    ----------
    code : text whose kernels are ``extern "C"``.
    target_format : "cubin" for machine code of one architecture, "ptx" for portable assembly.
    arch : such as "sm_80"; see `default_arch`.
    options : more options of NVRTC, such as ``--use_fast_math``.

    Returns
    -------
    Bytes that the driver loads.

    Raises
    ------
    RuntimeError : the compiler is not installed, or does not accept the text; the message has its
        log.
    ValueError : unknown format or architecture.

    Examples
    --------
    >>> text = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2.0f; }'
    >>> compile_cuda(text, arch="sm_80")[:4]
    b'\\x7fELF'
    """
    if target_format not in ("cubin", "ptx"):
        raise ValueError(
            f'compile_cuda: target_format must be "cubin" or "ptx", got {target_format!r}'
        )
    nvrtc = _nvrtc()
    arch = arch or default_arch()
    require_arch(arch)
    flags = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--device-as-default-execution-space",
        *(f"--include-path={path}" for path in header_paths()),
        *options,
    ]
    resources = _resources.get() if target_format == "cubin" else None
    if resources is not None:
        flags.append("--ptxas-options=-v")
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(code.encode(), b"kernels.cu", 0, [], []))
    try:
        encoded = [flag.encode() for flag in flags]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise error.RuntimeError(
                f"NVRTC cannot compile this text for {arch}:\n{_log(nvrtc, program)}\n{code}"
            )
        is_cubin = target_format == "cubin"
        get_size = nvrtc.nvrtcGetCUBINSize if is_cubin else nvrtc.nvrtcGetPTXSize
        get_data = nvrtc.nvrtcGetCUBIN if is_cubin else nvrtc.nvrtcGetPTX
        data = b" " * _check(nvrtc, get_size(program))
        _check(nvrtc, get_data(program, data))
        if resources is not None:
            resources.update(kernel_resources(data, _log(nvrtc, program)))
        return data
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _log(nvrtc: Any, program: Any) -> str:
    log = b" " * _check(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
    _check(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    return log.decode().rstrip("\0")


@tvm._ffi.register_func("tvm_callback_cuda_compile")
def _compile_callback(code: str, target: Any) -> bytes:
    """Machine code of generated kernels.

    The assembler spills a few values where that lets one block more be resident. A kernel of which
    it did so is compiled again with leave to take all registers that one block can have.
    """
    arch = default_arch(target)
    recorded = _resources.get()
    with recorded_resources() as taken:
        binary = compile_cuda(code, arch=arch)
        spilled = [name for name, resources in taken.items() if resources.spill_bytes]
        if spilled:
            kernels = "|".join(map(re.escape, spilled))
            bounds = rf"__launch_bounds__\((\d+)\) (?=(?:{kernels})\()"
            binary = compile_cuda(re.sub(bounds, r"__launch_bounds__(\1, 1) ", code), arch=arch)
    if recorded is not None:
        recorded.update(taken)
    return binary
