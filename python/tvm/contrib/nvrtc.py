"""CUDA C to machine code with NVIDIA's run-time compiler; needs neither a GPU nor a toolkit."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tvm._ffi
from tvm import error

__all__ = ["compile_cuda", "default_arch", "header_paths", "supported_archs"]

# For code that is compiled where no GPU says what it is for. The oldest architecture with
# asynchronous copies and bfloat16 arithmetic.
_FALLBACK_ARCH = "sm_80"


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc
    except ImportError as failure:
        raise error.RuntimeError(
            'target "cuda": compiling kernels needs the package cuda-bindings with NVRTC; install '
            "it with `pip install tvm[cuda]`"
        ) from failure
    return nvrtc


def _check(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    """The value of a call of NVRTC, which returns its status first."""
    status, *values = result
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        text = nvrtc.nvrtcGetErrorString(status)[1].decode()
        raise error.RuntimeError(f"NVRTC: {text}")
    return values[0] if values else None


@functools.cache
def supported_archs() -> tuple[str, ...]:
    """Architectures the installed compiler makes code for, oldest first: ``("sm_75", ...)``."""
    nvrtc = _nvrtc()
    return tuple(f"sm_{number}" for number in sorted(_check(nvrtc, nvrtc.nvrtcGetSupportedArchs())))


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
    # Names such as sm_90a are variants of a number that the list has.
    known = supported_archs()
    if arch.rstrip("af") not in known:
        raise ValueError(f"compile_cuda: this NVRTC does not know {arch}; it knows {known}")
    flags = [
        f"--gpu-architecture={arch}",
        "--std=c++17",
        "--device-as-default-execution-space",
        *(f"--include-path={path}" for path in header_paths()),
        *options,
    ]
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(code.encode(), b"kernels.cu", 0, [], []))
    try:
        encoded = [flag.encode() for flag in flags]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            size = _check(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
            log = b" " * size
            _check(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
            raise error.RuntimeError(
                f"NVRTC cannot compile this text for {arch}:\n{log.decode().rstrip(chr(0))}\n{code}"
            )
        is_cubin = target_format == "cubin"
        get_size = nvrtc.nvrtcGetCUBINSize if is_cubin else nvrtc.nvrtcGetPTXSize
        get_data = nvrtc.nvrtcGetCUBIN if is_cubin else nvrtc.nvrtcGetPTX
        data = b" " * _check(nvrtc, get_size(program))
        _check(nvrtc, get_data(program, data))
        return data
    finally:
        nvrtc.nvrtcDestroyProgram(program)


@tvm._ffi.register_func("tvm_callback_cuda_compile")
def _compile_callback(code: str, target: Any) -> bytes:
    return compile_cuda(code, arch=default_arch(target))
