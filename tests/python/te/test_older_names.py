"""Spellings of TVM 0.6: each says where its job is done now."""

from __future__ import annotations

import importlib

import pytest

import tvm
from tvm import te
from tvm._names_0_6 import _MOVED, modern_name


@pytest.mark.parametrize("name", ["placeholder", "compute", "create_schedule", "context", "const"])
def test_a_name_of_the_top_package_raises_and_names_the_modern_one(name):
    with pytest.raises(AttributeError, match=f"use {modern_name(name)}"):
        getattr(tvm, name)


@pytest.mark.parametrize("name", sorted(_MOVED))
def test_the_modern_name_exists(name):
    if name == "make":
        return
    found = tvm
    for part in modern_name(name).split(".")[1:]:
        found = getattr(found, part, None) or importlib.import_module(f"{found.__name__}.{part}")
    assert found is not None


def test_an_unknown_name_is_refused_without_a_hint():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        _ = tvm.nonsense
    stage = te.create_schedule(te.compute((4,), lambda i: i).op).stages[0]
    with pytest.raises(AttributeError, match="nonsense"):
        _ = stage.nonsense
    with pytest.raises(AttributeError, match="nonsense"):
        _ = te.reduce_axis((0, 4)).nonsense
