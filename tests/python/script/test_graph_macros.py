"""Macros of graph functions: lines that are read where they are called."""

from __future__ import annotations

import pytest

import tvm
from tvm.script import from_source
from tvm.script import relax as R
from tvm.script import tir as T


@R.macro
def _add_and_scale(x, y, factor=2.0):
    total = R.add(x, y)
    scaled = R.multiply(total, R.const(factor, "float32"))
    return scaled  # noqa: RET504


@T.macro
def _store(buffer, i):
    buffer[i] = T.float32(0)


def test_a_macro_is_its_lines():
    @R.function(private=True)
    def used(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = _add_and_scale(x, y)
            b = _add_and_scale(a, y, factor=0.5)
            R.output(b)
        return b

    @R.function(private=True)
    def written(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            t = R.add(x, y)
            s = R.multiply(t, R.const(2.0, "float32"))
            a = s
            u = R.add(a, y)
            v = R.multiply(u, R.const(0.5, "float32"))
            b = v
            R.output(b)
        return b

    tvm.ir.assert_structural_equal(used, written)


def test_names_of_the_caller():
    @R.macro(hygienic=False)
    def outside(x):
        return R.add(x, other)  # noqa: F821

    @R.function(private=True)
    def used(x: R.Tensor((2,), "float32"), other: R.Tensor((2,), "float32")):
        return outside(x)

    @R.function(private=True)
    def written(x: R.Tensor((2,), "float32"), other: R.Tensor((2,), "float32")):
        return R.add(x, other)

    tvm.ir.assert_structural_equal(used, written)


def test_macros_of_the_other_dialect_are_refused():
    around = {"_store": _store, "_add_and_scale": _add_and_scale}
    with pytest.raises(tvm.error.DiagnosticError, match=r"T.macro\(_store\) is for tensor"):
        from_source(
            '@R.function\ndef f(x: R.Tensor((2,), "float32")):\n    _store(x, 0)\n    return x\n',
            around,
        )
    with pytest.raises(tvm.error.DiagnosticError, match=r"R.macro\(_add_and_scale\) is for graph"):
        from_source(
            '@T.prim_func\ndef f(A: T.Buffer((2,), "float32")):\n    _add_and_scale(A, A)\n', around
        )
    with pytest.raises(TypeError, match="does nothing when Python runs it"):
        _add_and_scale(1, 2)
