"""Marks of tests that need something of the machine: a device, instructions, a package."""

from __future__ import annotations

import functools
import importlib.util
import platform
import sys
from collections.abc import Callable
from typing import Any

import pytest

import tvm
from tvm.contrib import nvcc
from tvm.runtime import enabled
from tvm.target.codegen import target_has_features

__all__ = [
    "Requirement",
    "requires_aarch64_sve",
    "requires_arm_dot",
    "requires_cublas",
    "requires_cuda",
    "requires_cuda_compute_version",
    "requires_cudagraph",
    "requires_cudnn",
    "requires_gpu",
    "requires_llvm",
    "requires_matrixcore",
    "requires_metal",
    "requires_multi_gpu",
    "requires_nvcc_version",
    "requires_nvptx",
    "requires_opencl",
    "requires_package",
    "requires_rocm",
    "requires_rpc",
    "requires_tensorcore",
    "requires_vulkan",
    "requires_x86",
    "requires_x86_amx",
    "requires_x86_avx512",
    "requires_x86_vnni",
    "skip_if_32bit",
    "uses_gpu",
]

Check = Callable[[], bool]
_SUPPORT = ("compile-and-run", "compile-only", "optional")


class Requirement:
    """What a test needs, as a decorator: ``@requires_cuda`` skips the test where it is missing.

    Parameters
    ----------
    name : of the pytest mark that the test gets, and that ``-m`` selects by.
    what : a phrase for the reason of a skipped test.
    compiles : whether code for it can be made here; true by default.
    runs : whether such code can run here; true by default.
    parents : what it needs besides; a test gets their marks as well.
    """

    def __init__(
        self,
        name: str,
        what: str,
        *,
        compiles: Check = lambda: True,
        runs: Check = lambda: True,
        parents: tuple[Requirement, ...] = (),
    ) -> None:
        self.name = name
        self.what = what
        self.parents = parents
        # Devices are asked once, and not before a test needs them.
        self._compiles = functools.cache(compiles)
        self._runs = functools.cache(runs)

    def is_met(self, support_required: str = "compile-and-run") -> bool:
        """Whether this machine has it; "compile-only" asks for what the compiler needs alone."""
        self._check(support_required)
        if support_required == "optional":
            return True
        if not all(parent.is_met(support_required) for parent in self.parents):
            return False
        return self._compiles() and (support_required == "compile-only" or self._runs())

    def _check(self, support_required: str) -> None:
        if support_required not in _SUPPORT:
            raise ValueError(
                f"{self.name}: support_required must be one of {', '.join(_SUPPORT)}, got "
                f"{support_required!r}"
            )

    def marks(self, support_required: str = "compile-and-run") -> list[pytest.MarkDecorator]:
        """The marks that a test gets, for ``pytest.param(..., marks=...)``."""
        skip = pytest.mark.skipif(not self.is_met(support_required), reason=f"needs {self.what}")
        return [*(getattr(pytest.mark, name) for name in self._names()), skip]

    def _names(self) -> list[str]:
        return [self.name, *(name for parent in self.parents for name in parent._names())]

    def __call__(self, function: Any = None, *, support_required: str = "compile-and-run") -> Any:
        """Mark a test; without one, a decorator that does."""
        self._check(support_required)
        if function is None:
            return functools.partial(self.__call__, support_required=support_required)
        for mark in self.marks(support_required):
            function = mark(function)
        return function


def _device(kind: str) -> Check:
    return lambda: bool(tvm.device(kind, 0).exist)


def _generator(kind: str) -> Check:
    return lambda: bool(enabled(kind))


_GPUS = ("cuda", "rocm", "opencl", "metal", "vulkan")


def _of_kind(kind: str, what: str, *parents: Requirement) -> Requirement:
    return Requirement(kind, what, compiles=_generator(kind), runs=_device(kind), parents=parents)


requires_llvm = Requirement("llvm", "LLVM", compiles=_generator("llvm"))
requires_rpc = Requirement("rpc", "RPC")
requires_x86 = Requirement("x86", "an x86", runs=lambda: platform.machine() == "x86_64")

requires_gpu = Requirement(
    "gpu", "a GPU", runs=lambda: any(tvm.device(kind, 0).exist for kind in _GPUS)
)
uses_gpu = requires_gpu(support_required="optional")
requires_multi_gpu = Requirement(
    "multi_gpu", "two GPUs", runs=lambda: any(tvm.device(kind, 1).exist for kind in _GPUS)
)
requires_cuda = _of_kind("cuda", "a GPU of NVIDIA", requires_gpu)
requires_nvptx = Requirement(
    "nvptx",
    "code for NVIDIA by LLVM",
    compiles=_generator("nvptx"),
    parents=(requires_llvm, requires_cuda),
)
requires_opencl = _of_kind("opencl", "a device of OpenCL", requires_gpu)
requires_rocm = _of_kind("rocm", "a GPU of AMD", requires_gpu)
requires_metal = _of_kind("metal", "a GPU of Apple", requires_gpu)
requires_vulkan = _of_kind("vulkan", "a device of Vulkan", requires_gpu)
requires_tensorcore = Requirement(
    "tensorcore",
    "tensor cores",
    runs=lambda: nvcc.have_tensorcore(tvm.cuda().compute_version),
    parents=(requires_cuda,),
)


def _registered(name: str) -> Check:
    return lambda: tvm.get_global_func(name, allow_missing=True) is not None


requires_cublas = Requirement(
    "cublas",
    "cuBLAS",
    compiles=_registered("tvm.contrib.cublas.matmul"),
    parents=(requires_cuda,),
)
requires_cudnn = Requirement(
    "cudnn",
    "cuDNN",
    compiles=_registered("tvm.contrib.cudnn.conv2d.forward"),
    parents=(requires_cuda,),
)
requires_cudagraph = Requirement(
    "cudagraph",
    "graphs of CUDA",
    compiles=_registered("vm.builtin.cuda_graph.run_or_capture"),
    parents=(requires_cuda,),
)
# Kernels for the matrix units of AMD are not generated.
requires_matrixcore = Requirement(
    "matrixcore", "matrix cores", compiles=lambda: False, parents=(requires_rocm,)
)


def _instructions(name: str, what: str, *alternatives: str) -> Requirement:
    return Requirement(
        name,
        what,
        runs=lambda: any(
            target_has_features(features, tvm.target.Target("llvm")) for features in alternatives
        ),
    )


requires_arm_dot = _instructions("arm_dot", "ARM's dot products", "dotprod")
requires_aarch64_sve = _instructions("arm_sve", "ARM's scalable vectors", "sve")
requires_x86_vnni = _instructions("x86_vnni", "x86's VNNI", "avx512vnni", "avxvnni")
requires_x86_avx512 = _instructions(
    "x86_avx512", "AVX-512", "avx512bw,avx512cd,avx512dq,avx512vl,avx512f"
)
requires_x86_amx = _instructions("x86_amx", "x86's AMX", "amx-int8")


def requires_package(*packages: str) -> Callable[[Any], Any]:
    """Skip the test unless all of these packages can be imported."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing or packages)}")


def requires_nvcc_version(
    major_version: int, minor_version: int = 0, release_version: int = 0
) -> Callable[[Any], Any]:
    """Mark the test as one of CUDA; skip it unless NVIDIA's compiler is at least this version."""
    wanted = (major_version, minor_version, release_version)

    def mark(function: Any) -> Any:
        is_there = requires_cuda.is_met("compile-only")
        version = nvcc.get_cuda_version() if is_there else (0, 0, 0)
        reason = f"needs nvcc {'.'.join(map(str, wanted))}, found {'.'.join(map(str, version))}"
        return requires_cuda(pytest.mark.skipif(version < wanted, reason=reason)(function))

    return mark


def requires_cuda_compute_version(
    major_version: int, minor_version: int = 0
) -> Callable[[Any], Any]:
    """Mark the test as one of CUDA; skip it unless the GPU is at least of this generation."""
    wanted = (major_version, minor_version)

    def mark(function: Any) -> Any:
        found = str(tvm.cuda().compute_version) if requires_cuda.is_met() else "0.0"
        version = tuple(int(part) for part in found.split("."))
        reason = f"needs compute capability {major_version}.{minor_version}, found {found}"
        return requires_cuda(pytest.mark.skipif(version < wanted, reason=reason)(function))

    return mark


def skip_if_32bit(function: Any = None, *, reason: str = "needs addresses of 64 bits") -> Any:
    """Skip the test in processes of 32 bits."""
    mark = pytest.mark.skipif(sys.maxsize < 1 << 32, reason=reason)
    return mark if function is None else mark(function)
