"""Pragmas that bring code along for the functions a program calls."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.contrib import clang, utils
from tvm.target import Target

needs_clang = pytest.mark.skipif(not clang.find_clang(required=False), reason="no clang")

TWICE = """
int twice_plus_one(float* c, const float* a, int n) {
  for (int i = 0; i < n; ++i) c[i] = 2 * a[i] + 1;
  return 0;
}
"""
# The same as LLVM IR for machines without clang, but for one element.
TWICE_IR = """
define float @twice_of(float %x) {
  %y = fmul float %x, 2.0
  ret float %y
}
"""


def schedule_with(pragma, code):
    """Four rows that a function of the imported code computes."""
    A = te.placeholder((4, 16), name="A")
    B = te.extern(
        (4, 16),
        [A],
        lambda ins, outs: tir.call_extern(
            "int32", "twice_plus_one", outs[0].access_ptr("w"), ins[0].access_ptr("r"), 64
        ),
        name="B",
    )
    C = te.compute((4, 16), lambda i, j: B[i, j] - 1.0, name="C")
    s = te.create_schedule(C.op)
    s[C].pragma(C.op.axis[0], pragma, code)
    return s, [A, C]


def check(module):
    a, c = np.ones((4, 16), "float32"), tvm.nd.empty((4, 16))
    module(tvm.nd.array(a), c)
    np.testing.assert_array_equal(c.numpy(), 2 * a)


def test_c_is_printed_before_the_functions_that_call_it():
    module = tvm.build(*schedule_with("import_c", TWICE), Target("c", host="c"))
    assert module.get_source().count("int twice_plus_one(") == 1
    check(module)


@needs_clang
def test_c_becomes_llvm_ir_that_is_linked():
    check(tvm.build(*schedule_with("import_llvm", clang.create_llvm(TWICE)), "llvm"))


@needs_clang
def test_llvm_ir_may_be_a_file():
    folder = utils.tempdir()
    path = folder.relpath("twice.ll")
    clang.create_llvm(TWICE, output=path)
    check(tvm.build(*schedule_with("import_llvm", path), "llvm"))


def test_imported_llvm_ir_is_inlined():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: tir.call_pure_extern("float32", "twice_of", A[i]), name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "import_llvm", TWICE_IR)
    module = tvm.build(s, [A, B], "llvm")
    assert "call float @twice_of" not in module.get_source()
    a, b = np.arange(8, dtype="float32"), tvm.nd.empty((8,))
    module(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), 2 * a)


@pytest.mark.parametrize(
    ("pragma", "code", "target", "message"),
    [
        ("import_c", TWICE, "llvm", "compile it with tvm.contrib.clang.create_llvm"),
        ("import_llvm", TWICE_IR, Target("c", host="c"), "import C with the pragma import_c"),
        ("import_llvm", "int f(void);\n", "llvm", "expected LLVM IR"),
        ("import_llvm", "nowhere.ll", "llvm", 'cannot read "nowhere.ll"'),
        ("import_llvm", 3, "llvm", "expected code as text, got 3"),
    ],
)
def test_what_cannot_be_imported_is_refused(pragma, code, target, message):
    with pytest.raises((ValueError, TypeError), match=message):
        tvm.build(*schedule_with(pragma, code), target)


def test_a_call_of_a_function_that_is_not_there_is_named():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: tir.call_extern("float32", "nobody_has_this", A[i]))
    with pytest.raises(RuntimeError, match=r"calls nobody_has_this.*ctypes\.CDLL"):
        tvm.build(te.create_schedule(B.op), [A, B], "llvm")


def test_clang_says_what_it_does_not_accept():
    if not clang.find_clang(required=False):
        with pytest.raises(RuntimeError, match="install it"):
            clang.create_llvm("int f(;")
    else:
        with pytest.raises(RuntimeError, match="expected parameter declarator"):
            clang.create_llvm("int f(;")
