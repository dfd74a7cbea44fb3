"""Types of users: numbers held as integers, with operators in functions of their own."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.target import datatype

# A type that keeps the negative of a float32, so that nothing works by accident.
SOURCE = r"""
#include <stdint.h>
#include <string.h>
static float get(uint32_t bits) { float v; memcpy(&v, &bits, 4); return -v; }
static uint32_t put(float v) { uint32_t bits; v = -v; memcpy(&bits, &v, 4); return bits; }
uint32_t NegFromFloat(float v) { return put(v); }
float NegToFloat(uint32_t v) { return get(v); }
uint32_t NegAdd(uint32_t a, uint32_t b) { return put(get(a) + get(b)); }
uint32_t NegMul(uint32_t a, uint32_t b) { return put(get(a) * get(b)); }
uint32_t NegMax(uint32_t a, uint32_t b) { return get(a) > get(b) ? a : b; }
uint32_t NegSqrt(uint32_t a) {
  float v = get(a), r = v;
  for (int i = 0; i < 40; ++i) r = (r + v / r) / 2;
  return put(r);
}
uint32_t NegLeast(void) { return put(-3.0e38f); }
"""
NAME, CODE = "passes_neg", 177
DTYPE = f"custom[{NAME}]32"


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("datatype")
    (folder / "neg.c").write_text(SOURCE)
    path = folder / "libneg.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", folder / "neg.c", "-o", path], check=True)
    loaded = ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
    if not datatype.get_type_registered(CODE):
        datatype.register(NAME, CODE)
    lower = datatype.create_lower_func
    datatype.register_op(lower({(32, 32): "NegFromFloat"}), "Cast", "llvm", "float", NAME)
    datatype.register_op(lower({(32, 32): "NegToFloat"}), "Cast", "llvm", NAME, "float")
    for operator in ("Add", "Mul", "Max"):
        datatype.register_op(lower({32: f"Neg{operator}"}), operator, "llvm", NAME)
    datatype.register_op(lower({32: "NegFromFloat"}), "FloatImm", "llvm", NAME)
    datatype.register_op(lower({32: "NegSqrt"}), "Call", "llvm", NAME, intrinsic_name="tir.sqrt")
    datatype.register_op(
        datatype.lower_ite, "Call", "llvm", NAME, intrinsic_name="tir.if_then_else"
    )
    datatype.register_min_func(datatype.create_min_lower_func({32: "NegLeast"}, NAME), NAME)
    yield loaded
    # Other builds need not look for such types.
    tvm._ffi.registry.remove_global_func("tvm.datatype.lowering")


def run(A, *stages, shape=(16,)):
    s = te.create_schedule(stages[-1].op)
    a = np.random.default_rng(0).uniform(0.5, 2, (16,)).astype("float32")
    out = tvm.nd.empty(shape)
    tvm.build(s, [A, stages[-1]], target="llvm")(tvm.nd.array(a), out)
    return a, out.numpy()


def test_types_have_names_and_codes():
    assert datatype.get_type_name(CODE) == NAME
    assert datatype.get_type_code(NAME) == CODE


def test_operators_are_calls_of_functions():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i].astype(DTYPE), name="B")
    C = te.compute((16,), lambda i: B[i] * B[i] + tir.const(1.5, DTYPE), name="C")
    D = te.compute((16,), lambda i: te.if_then_else(i < 8, C[i], tir.sqrt(C[i])), name="D")
    E = te.compute((16,), lambda i: D[i].astype("float32"), name="E")
    a, out = run(A, B, C, D, E)
    c = a * a + np.float32(1.5)
    np.testing.assert_allclose(out, np.where(np.arange(16) < 8, c, np.sqrt(c)), rtol=1e-6)


def test_maxima_begin_at_the_least_number():
    A = te.placeholder((16,), name="A")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((16,), lambda i: (A[i] * -1.0).astype(DTYPE), name="B")
    C = te.compute((1,), lambda i: te.max(B[k], axis=k), name="C")
    D = te.compute((1,), lambda i: C[i].astype("float32"), name="D")
    a, out = run(A, B, C, D, shape=(1,))
    assert out[0] == -a.min()


def test_arrays_may_hold_the_type():
    A = te.placeholder((16,), name="A", dtype=DTYPE)
    B = te.compute((16,), lambda i: A[i] + A[i], name="B")
    s = te.create_schedule(B.op)
    module = tvm.build(s, [A, B], target="llvm")
    assert "NegAdd" in module.get_source("ll")


def test_vectors_of_the_type_repeat_and_choose_values():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i].astype(DTYPE), name="B")
    C = te.compute((16,), lambda i: tir.Select(i < 8, B[i], B[3]), name="C")
    D = te.compute((16,), lambda i: (C[i] + B[5]).astype("float32"), name="D")
    s = te.create_schedule(D.op)
    for stage in (C, D):
        s[stage].vectorize(stage.op.axis[0])
    a = np.random.default_rng(0).random(16, dtype="float32")
    out = tvm.nd.empty((16,))
    tvm.build(s, [A, D], target="llvm")(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), np.where(np.arange(16) < 8, a, a[3]) + a[5])


def test_vectors_of_other_types_are_left_as_they_are():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i].astype(DTYPE), name="B")
    C = te.compute(
        (16,),
        lambda i: tir.Select(i < 8, B[i].astype("float32") * A[2], A[15 - i]),
        name="C",
    )
    s = te.create_schedule(C.op)
    s[C].vectorize(C.op.axis[0])
    a = np.random.default_rng(0).random(16, dtype="float32")
    out = tvm.nd.empty((16,))
    tvm.build(s, [A, C], target="llvm")(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), np.where(np.arange(16) < 8, a * a[2], a[::-1]))


def test_vectors_of_the_type_are_transposed():
    A = te.placeholder((32, 48), name="A")
    B = te.compute((32, 48), lambda i, j: A[i, j].astype(DTYPE), name="B")
    C = te.compute((48, 32), lambda i, j: B[j, i], name="C")
    D = te.compute((48, 32), lambda i, j: C[i, j].astype("float32"), name="D")
    s = te.create_schedule(D.op)
    i, j = s[C].op.axis
    (outer, i), (block, j) = s[C].split(i, 16), s[C].split(j, 16)
    s[C].reorder(outer, block, i, j)
    s[C].vectorize(j)
    a = np.random.default_rng(0).random((32, 48), dtype="float32")
    out = tvm.nd.empty((48, 32))
    module = tvm.build(s, [A, D], target="llvm")
    module(tvm.nd.array(a), out)
    np.testing.assert_array_equal(out.numpy(), a.T)
    assert "shufflevector" in module.get_source("ll")


def test_an_operator_that_nobody_gave_is_named():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i].astype(DTYPE), name="B")
    C = te.compute((16,), lambda i: (B[i] - B[i]).astype("float32"), name="C")
    with pytest.raises(tvm.error.ValueError, match=rf"nobody says what Sub of custom\[{NAME}\]32"):
        run(A, B, C)


def test_bits_without_a_function_are_named():
    x = tir.Var("x", f"custom[{NAME}]16")
    with pytest.raises(tvm.error.ValueError, match="Add of 16 bits; those named are for \\[32\\]"):
        datatype.create_lower_func({32: "NegAdd"})(x + x)


@pytest.mark.parametrize(("kind", "missing"), [("Cast", "dest_type"), ("Call", "intrinsic")])
def test_incomplete_registrations_are_refused(kind, missing):
    with pytest.raises(tvm.error.ValueError, match=f"a {kind} needs {missing}_name"):
        datatype.register_op(lambda op: op, kind, "llvm", NAME)
