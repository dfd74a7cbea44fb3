"""Names of older TVM versions work, or say what to use."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import tvm
from tvm._ffi import runtime_ctypes
from tvm._older_names import MOVED


@pytest.mark.parametrize("name", sorted(MOVED))
def test_an_older_name_says_what_to_use(name):
    parent, _, last = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"use {MOVED[name].split()[0]}"):
        getattr(importlib.import_module(parent), last)
    with pytest.raises(ModuleNotFoundError, match=f"use {MOVED[name].split()[0]}"):
        importlib.import_module(name)


@pytest.mark.parametrize("target", sorted({text.split()[0].strip(",;") for text in MOVED.values()}))
def test_what_an_older_name_points_to_exists(target):
    parent, _, last = target.rpartition(".")
    if parent:
        assert hasattr(importlib.import_module(parent), last)


def test_older_names_are_shown_by_from_imports_too():
    with pytest.raises(ImportError, match=r"use tvm\.te\.placeholder"):
        from tvm import placeholder  # noqa: F401
    with pytest.raises(ImportError, match=r"use tvm\._ffi, which has _init_api"):
        from tvm._ffi.function import _init_api  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from tvm import nonsense  # noqa: F401


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("codegen.build_llvm", "target.build."), ("codegen._Build", "target."), ("schedule.X", "te.")],
)
def test_older_global_functions_say_their_prefix_of_today(name, prefix):
    with pytest.raises(ValueError, match=f'"{name}".* have the prefix "{prefix}"'):
        tvm.get_global_func(name)
    assert tvm.get_global_func(name, allow_missing=True) is None


def test_older_names_that_stay():
    assert runtime_ctypes.TVMContext is tvm.Device
    assert runtime_ctypes.ArgTypeCode.TVM_CONTEXT is runtime_ctypes.ArgTypeCode.DLDEVICE
    assert tvm.BuildConfig is tvm.transform.PassContext
    assert tvm.nd.array(np.arange(3)).asnumpy().tolist() == [0, 1, 2]
    assert tvm.device("gpu") == tvm.device("nvptx") == tvm.cuda()


def test_an_unknown_name_is_refused_without_a_hint():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        _ = tvm.nonsense
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        _ = tvm._ffi.nonsense
