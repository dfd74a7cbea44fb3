"""Names of older TVM versions work, or say what to use."""

from __future__ import annotations

import importlib
import importlib.abc
import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

import tvm
from tvm import felix
from tvm._ffi import runtime_ctypes
from tvm._older_names import MOVED, WITHIN


@pytest.mark.parametrize("name", sorted(MOVED))
def test_an_older_name_says_what_to_use(name):
    parent, _, last = name.rpartition(".")
    hint = f"use {MOVED[name].split()[0]}"
    with pytest.raises(AttributeError, match=hint):
        getattr(importlib.import_module(parent), last)
    with pytest.raises(ModuleNotFoundError, match=hint):
        importlib.import_module(name)
    with pytest.raises(ImportError, match=hint):
        exec(f"from {parent} import {last}", {})


@pytest.mark.parametrize("target", sorted({text.split()[0].strip(",;") for text in MOVED.values()}))
def test_what_an_older_name_points_to_exists(target):
    parent, _, last = target.rpartition(".")
    if parent:
        assert hasattr(importlib.import_module(parent), last)


@pytest.mark.parametrize("name", sorted(WITHIN))
def test_a_module_of_tvm_has_the_names_of_the_one_that_it_lies_in(name):
    parent, _, last = name.rpartition(".")
    # Importing it must not hide what is there under that name, such as a function.
    there = vars(importlib.import_module(parent)).get(last)
    assert there is None or isinstance(there, ModuleType)
    module, target = importlib.import_module(name), importlib.import_module(WITHIN[name])
    for public in module.__all__:
        assert getattr(module, public) is getattr(target, public)


def test_felix_has_its_cost_models_as_an_attribute_before_they_are_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "tvm.felix.cost_model", raising=False)
    monkeypatch.delattr(felix, "cost_model", raising=False)
    assert felix.cost_model.MLPModel is tvm.auto_scheduler.cost_model.MLPModel


def test_names_are_imported_by_the_paths_that_tvm_has():
    from tvm.relay.function import Function
    from tvm.relay.op.tensor import add
    from tvm.relay.op.transform import concatenate
    from tvm.relay.transform.transform import FoldConstant
    from tvm.tir.generic import cast

    relay = tvm.relay
    assert (Function, add, concatenate) == (relay.Function, relay.add, relay.concatenate)
    assert FoldConstant is relay.transform.FoldConstant
    assert str(cast(tvm.tir.Var("x", "int32"), "int64").dtype) == "int64"
    with pytest.raises(ImportError, match="nonsense"):
        from tvm.relay.op.tensor import nonsense  # noqa: F401


def test_each_part_of_a_search_is_imported_by_its_own_module_too():
    from tvm.meta_schedule.mutator.mutate_tile_size import MutateTileSize
    from tvm.meta_schedule.postproc.rewrite_reduction_block import RewriteReductionBlock
    from tvm.script.parser.tir import prim_func

    ms = tvm.meta_schedule
    assert MutateTileSize is ms.mutator.MutateTileSize
    assert RewriteReductionBlock is ms.postproc.RewriteReductionBlock
    assert prim_func is tvm.script.tir.prim_func


def test_older_names_are_shown_by_from_imports_too():
    with pytest.raises(ImportError, match=r"use tvm\.te\.placeholder"):
        from tvm import placeholder  # noqa: F401
    with pytest.raises(ImportError, match=r"use tvm\._ffi, which has _init_api"):
        from tvm._ffi.function import _init_api  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from tvm import nonsense
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from tvm.felix.optim import nonsense  # noqa: F401


def test_felix_has_its_modules_as_attributes():
    text = "from tvm import felix; print(felix._ffi_api.GetLoopBounds, felix.utils.coalesce_dicts)"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("PackedFunc")


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


def test_modules_that_programs_bring_along_are_taken(monkeypatch):
    class Brought(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            return ModuleSpec(name, self) if name == "tvm.contrib.cudnn" else None

        def exec_module(self, module):
            module.exists = lambda: False

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Brought()])
    monkeypatch.delitem(sys.modules, "tvm.contrib.cudnn", raising=False)
    from tvm.contrib import cudnn

    assert cudnn.exists() is False
    monkeypatch.delattr(tvm.contrib, "cudnn")
    monkeypatch.delitem(sys.modules, "tvm.contrib.cudnn")
    with pytest.raises(ModuleNotFoundError, match="needs? no library"):
        sys.meta_path.pop()
        importlib.import_module("tvm.contrib.cudnn")
