"""What GPUs can do, and CUDA C to machine code under TVM's name; NVRTC compiles."""

from __future__ import annotations

from tvm import error
from tvm._ffi import get_global_func

from .nvrtc import compile_cuda, compiler_version, default_arch

__all__ = [
    "compile_cuda",
    "get_cuda_version",
    "get_target_compute_version",
    "have_bf16",
    "have_cudagraph",
    "have_fp16",
    "have_fp8",
    "have_int8",
    "have_tensorcore",
    "parse_compute_version",
    "require_loadable_code",
    "why_no_gpu",
]


def get_cuda_version(cuda_path: str | None = None) -> tuple[int, int, int]:
    """Version of the compiler for CUDA C as three numbers.

    Parameters
    ----------
    cuda_path : must be None: the compiler is NVRTC, a library that no folder of CUDA stands for.

    Raises
    ------
    ValueError : a folder is given.
    """
    if cuda_path is not None:
        raise ValueError(
            f"get_cuda_version: the compiler is the library NVRTC; {cuda_path!r} is not asked"
        )
    major, minor = compiler_version()
    return major, minor, 0


def parse_compute_version(compute_version: str) -> tuple[int, int]:
    """(8, 6) for "8.6".

    Raises
    ------
    ValueError : the text is no such version.
    """
    major, dot, minor = compute_version.partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise ValueError(f'compute version: expected text such as "8.6", got "{compute_version}"')
    return int(major), int(minor)


def get_target_compute_version(target: object = None) -> str:
    """Compute version that code for a target is compiled for: "8.0" for ``-arch=sm_80``."""
    number = default_arch(target).removeprefix("sm_").rstrip("af")
    return f"{number[:-1]}.{number[-1]}"


def have_fp16(compute_version: str) -> bool:
    """Whether there is arithmetic in half precision."""
    return parse_compute_version(compute_version) >= (5, 3)


def have_int8(compute_version: str) -> bool:
    """Whether there are dot products of four int8."""
    return parse_compute_version(compute_version) >= (6, 1)


def have_tensorcore(compute_version: str) -> bool:
    """Whether there are tensor cores."""
    return parse_compute_version(compute_version) >= (7, 0)


def have_bf16(compute_version: str) -> bool:
    """Whether there is arithmetic in bfloat16."""
    return parse_compute_version(compute_version) >= (8, 0)


def have_fp8(compute_version: str) -> bool:
    """Whether there are conversions of 8-bit floating point."""
    return parse_compute_version(compute_version) >= (8, 9)


def have_cudagraph() -> bool:
    """Whether kernels can be recorded as graphs, which CUDA does since version 10."""
    return get_cuda_version() >= (10, 0, 0)


def why_no_gpu() -> str:
    """Why no GPU of this machine can be used, in one line; empty where one can."""
    return str(get_global_func("runtime.cuda.WhyUnusable")())


def require_loadable_code() -> None:
    """Look whether the driver of this machine loads what the compiler makes.

    A driver loads code of compilers of its own major version and of older ones.

    Raises
    ------
    RuntimeError : it is too old, or there is no compiler.
    """
    version = int(get_global_func("runtime.cuda.DriverVersion")())
    major, minor = compiler_version()
    if version // 1000 < major:
        raise error.RuntimeError(
            f"cuda: the driver is of CUDA {version // 1000}.{version % 1000 // 10}, which does not "
            f"load what NVRTC {major}.{minor} compiles; update the NVIDIA driver to one of CUDA "
            f"{major}.0 or later, or install NVRTC of CUDA {version // 1000}"
        )
