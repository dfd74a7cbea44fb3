"""Element functions that te offers, against NumPy on the code generators of the host."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir

UNARY = {
    "acosh": np.arccosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "exp2": np.exp2,
    "log10": np.log10,
    "log2": np.log2,
    "nearbyint": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
}


def run(shape, dtype, body, *arrays, target="llvm"):
    inputs = [te.placeholder(a.shape, str(a.dtype)) for a in arrays]
    out = te.compute(shape, lambda i: body(*(x[i] for x in inputs)))
    assert out.dtype == dtype
    result = tvm.nd.empty(shape, dtype)
    func = tvm.build(te.create_schedule(out.op), [*inputs, out], target=target)
    func(*map(tvm.nd.array, arrays), result)
    return result.numpy()


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
@pytest.mark.parametrize("name", UNARY)
def test_functions_equal_numpy(name, target):
    x = np.linspace(0.1, 0.9, 9).astype("float32") + (1 if name == "acosh" else 0)
    found = run(x.shape, "float32", getattr(tir, name), x, target=target)
    np.testing.assert_allclose(found, UNARY[name](x), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_infinities_and_nan_are_told_apart(dtype):
    x = np.array([0, -1.5, np.inf, -np.inf, np.nan], dtype)
    for name in ("isfinite", "isinf", "isnan"):
        np.testing.assert_array_equal(
            run(x.shape, "bool", getattr(te, name), x), getattr(np, name)(x)
        )


def test_integers_are_finite():
    i = te.var("i")
    assert bool(te.isfinite(i).value)
    assert not bool(te.isinf(tir.Ramp(i, 1, 4)).value)
    assert te.isinf(tir.Ramp(i, 1, 4)).dtype == "boolx4"


def test_arithmetic_by_name_equals_the_operators():
    x, y = np.array([5.0, 7.0], "float32"), np.array([2.0, 3.0], "float32")
    for name in ("add", "subtract", "multiply", "fmod"):
        np.testing.assert_array_equal(
            run((2,), "float32", getattr(te, name), x, y), getattr(np, name)(x, y)
        )
    assert tvm.ir.structural_equal(te.add(te.var("i"), 1).b, tir.const(1, "int32"))


def test_where_and_init_of_a_sum_may_be_given_by_place():
    A = te.placeholder((4, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], k, k > 2, 3.0), name="B")
    x = np.arange(24, dtype="float32").reshape(4, 6)
    result = tvm.nd.empty((4,))
    tvm.build(te.create_schedule(B.op), [A, B])(tvm.nd.array(x), result)
    np.testing.assert_array_equal(result.numpy(), x[:, 3:].sum(axis=1) + 3)


def test_reducers_combine_plain_values_too():
    a, b, c = (te.var(name) for name in "abc")
    assert tvm.ir.structural_equal(te.sum(a, b, c), a + b + c)
    assert te.max(2, 5, 3, 4).value == 5


def test_index_division_rounds_down():
    x = np.array([-7, -1, 0, 5], "int32")
    np.testing.assert_array_equal(run((4,), "int32", lambda v: te.indexdiv(v, 4), x), x // 4)
    np.testing.assert_array_equal(run((4,), "int32", lambda v: te.indexmod(v, 4), x), x % 4)


def test_an_intrinsic_of_llvm_is_called_by_name():
    x = np.array([1.0, -2.0], "float32")
    found = run(
        (2,), "float32", lambda v: tir.call_llvm_pure_intrin("float32", "llvm.fabs.f32", v), x
    )
    np.testing.assert_array_equal(found, np.abs(x))


def test_an_intrinsic_of_llvm_takes_the_type_of_its_result():
    x = np.array([1.5, 2.0, -3.0], "float32")
    signature = tir.const(3, "uint32")
    for more in ((), (signature,)):  # as TVM spells it, with the number of arguments first
        found = run(
            (3,),
            "float32",
            lambda v: tir.call_llvm_pure_intrin("float32", "llvm.fma", *more, v, v, v),  # noqa: B023
            x,
        )
        np.testing.assert_array_equal(found, x * x + x)
    x = tir.Var("x", "int32x4")
    call = tir.call_llvm_pure_intrin("int32x4", "llvm.ctpop", x)
    assert call.args[0].value == "llvm.ctpop.v4i32"
    call = tir.call_llvm_intrin("int64", "llvm.readcyclecounter")
    assert call.args[0].value == "llvm.readcyclecounter"


def test_address_of_takes_an_element():
    B = tir.decl_buffer((4,), name="B")
    assert str(tir.address_of(B[1])) == "T.address_of(B[1])"
    with pytest.raises(TypeError, match="expected a BufferLoad"):
        tir.address_of(B)
    assert str(tir.isnullptr(B.data)) == "T.isnullptr(B)"


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_exp10_of_half_precision_is_as_exact_as_its_type(target):
    values = np.linspace(-4, 4.5, 40).astype("float16")
    A = te.placeholder(values.shape, "float16")
    B = te.compute(values.shape, lambda i: tir.exp10(A[i]))
    result = tvm.nd.empty(values.shape, "float16")
    tvm.build(te.create_schedule(B.op), [A, B], target)(tvm.nd.array(values), result)
    expected = np.power(10, values.astype("float64")).astype("float16")
    np.testing.assert_allclose(result.numpy(), expected, rtol=2e-3, atol=1e-7)
