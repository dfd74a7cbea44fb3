"""Programs in cells of a notebook, whose module has no file."""

from __future__ import annotations

import linecache
import sys
import types

import pytest

import tvm

CELL = """\
import tvm
from tvm.script import ir as I, tir as T

extent = 8

@I.ir_module
class Doubled:
    @T.prim_func
    def main(a: T.Buffer((extent,), "float32")):
        for i in range(extent):
            a[i] = a[i] * T.float32(2)

@T.prim_func
def alone(a: T.Buffer((extent,), "float32")):
    for i in range(extent):
        a[i] = a[i] + T.float32(1)
"""


def run_cell(monkeypatch, text, known=True):
    name = "/tmp/ipykernel_1/cell.py"
    module = types.ModuleType("module_of_a_notebook")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    if known:
        monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
    exec(compile(text, name, "exec"), vars(module))
    return module


def test_classes_and_functions_of_a_cell_are_read(monkeypatch):
    cell = run_cell(monkeypatch, CELL)
    expected = tvm.script.from_source(cell.Doubled.script())
    tvm.ir.assert_structural_equal(cell.Doubled, expected)
    assert "a[i] + T.float32(1.0)" in cell.alone.script()


def test_a_text_that_is_nowhere_is_said_to_be(monkeypatch):
    with pytest.raises(ValueError, match="the text of Doubled is not in a file"):
        run_cell(monkeypatch, CELL, known=False)
