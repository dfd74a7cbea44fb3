"""Checks shared by tests."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

import numpy as np

import tvm._ffi

__all__ = ["assert_allclose", "main"]

# Read when they are asked for: they need pytest or the compiler. Modules are relative to this one.
_ELSEWHERE = {
    "compare": ("CompareBeforeAfter",),
    "numeric": (
        "assert_prim_expr_equal",
        "check_bool_expr_is_true",
        "check_int_constraints_trans_consistency",
        "check_numerical_grads",
    ),
    "parametrization": (
        "exclude_targets",
        "fixture",
        "known_failing_targets",
        "parameter",
        "parameters",
        "parametrize_targets",
        "skip_parameterizations",
        "xfail_parameterizations",
    ),
    "requirements": (
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
    ),
    ".target.enabled": ("DEFAULT_TEST_TARGETS", "device_enabled", "enabled_targets"),
}
# Functions of the runtime with which values, errors and time are sent across the border.
_FOREIGN = ("echo", "nop", "sleep_in_ffi", "test_raise_error_callback", "test_wrap_callback")
_MODULE_OF = {name: module for module, names in _ELSEWHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _FOREIGN:
        return tvm._ffi.get_global_func(f"testing.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'tvm.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE_OF[name]}", __name__), name)


def main() -> None:
    """Run the tests of the calling file, with the options of the command line, and leave."""
    pytest = importlib.import_module("pytest")
    caller = inspect.stack()[1].filename
    sys.exit(pytest.main([os.path.abspath(caller), *sys.argv[1:]]))


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True
) -> None:
    """Check that two arrays agree in shape and, element by element, in value.

    Parameters
    ----------
    verbose : whether the message has the values that differ.

    Raises
    ------
    AssertionError : they do not; the message has the largest differences.
    """
    actual, desired = (
        value.numpy() if hasattr(value, "numpy") else value for value in (actual, desired)
    )
    actual, desired = np.asarray(actual), np.asarray(desired)
    np.testing.assert_equal(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)
