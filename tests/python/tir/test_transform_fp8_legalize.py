"""8-bit floating point: arithmetic in a wider type, values as bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tvm
from testing_programs import apply, loop
from tvm import te, tir
from tvm.tir import transform

FORMATS = [
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3",
    "float8_e3m4",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e4m3b11fnuz",
]
ALL_BYTES = np.arange(256, dtype="uint8")


def elementwise(f, source, result, n=256):
    a, b = tir.decl_buffer((n,), source, name="A"), tir.decl_buffer((n,), result, name="B")
    return tir.PrimFunc([a, b], loop(n, lambda i: tir.BufferStore(b, f(a[i]), [i])))


def run(func, values, result, n=256):
    out = tvm.nd.empty((n,), result)
    tvm.build(func, target="llvm")(tvm.nd.array(values), out)
    return out.numpy()


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_is_the_number_that_it_stands_for(name):
    values = ALL_BYTES.view(getattr(ml_dtypes, name))
    func = elementwise(lambda x: x.astype("float32"), name, "float32")
    np.testing.assert_array_equal(run(func, values, "float32"), values.astype("float32"))


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_rounded_to_the_nearest_and_even(name):
    dtype = getattr(ml_dtypes, name)
    finite = ALL_BYTES.view(dtype).astype("float32")
    finite = np.sort(finite[np.isfinite(finite)])
    between = (finite[1:] + finite[:-1]) / 2
    odd = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, 0.0, -0.0], "float32")
    parts = [finite, between, np.nextafter(between, np.float32(9e9)), finite * 1.05, odd]
    x = np.concatenate(parts).astype("float32")
    func = elementwise(lambda v: v.astype(name), "float32", name, len(x))
    result = run(func, x, name, len(x)).astype("float32")
    expected = x.astype(dtype).astype("float32")
    np.testing.assert_array_equal(result, expected)
    if not name.endswith("fnuz"):
        assert (np.signbit(result) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("promoted", ["float16", "float32"])
@pytest.mark.parametrize("name", ["e4m3_float8", "e5m2_float8"])
def test_memory_of_a_function_is_of_the_wider_type(name, promoted):
    a, b = tir.decl_buffer((256,), name, name="A"), tir.decl_buffer((256,), name, name="B")
    c = tir.decl_buffer((256,), name, name="C")
    body = tir.SeqStmt(
        [
            loop(256, lambda i: tir.BufferStore(c, a[i] * a[i], [i])),
            loop(256, lambda i: tir.BufferStore(b, tir.max(c[i], a[i]) + c[i], [i])),
        ]
    )
    allocation = tir.Allocate(c.data, name, [256], tir.const(True, "bool"), body)
    func = apply(transform.FP8ComputeLegalize(promoted), tir.PrimFunc([a, b], allocation))
    assert func.body.dtype == promoted
    values = ALL_BYTES.view(
        getattr(ml_dtypes, {"e4m3_float8": "float8_e4m3fn"}.get(name, "float8_e5m2"))
    )
    values = np.where(np.abs(values.astype("float32")) < 8, values, values.dtype.type(1)).astype(
        values.dtype
    )
    x = values.astype(promoted)
    expected = (np.maximum(x * x, x) + x * x).astype(values.dtype)
    np.testing.assert_array_equal(
        run(func, values, name).astype("float32"), expected.astype("float32")
    )


def test_values_are_bytes_where_a_target_lacks_the_type():
    func = elementwise(lambda x: x * x, "e4m3_float8", "e4m3_float8")
    func = apply(transform.FP8ComputeLegalize(), func)
    func = apply(transform.FP8StorageLegalize(), func)
    assert func.buffer_map[func.params[0]].dtype == "e4m3_float8"
    assert func.body.body.value.dtype == "uint8"
    values = ALL_BYTES.view(ml_dtypes.float8_e4m3fn)
    x = values.astype("float32")
    expected = (x * x).astype(ml_dtypes.float8_e4m3fn).astype("float32")
    np.testing.assert_array_equal(run(func, values, "e4m3_float8").astype("float32"), expected)


def test_pointers_become_those_to_bytes():
    pointer = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("e5m2_float8"), "shared"))
    a = tir.decl_buffer((4,), "e5m2_float8", name="A", data=pointer, scope="shared")
    func = tir.PrimFunc([pointer], tir.BufferStore(a, a[0] + a[1], [2]))
    func = apply(transform.FP8StorageLegalize(), apply(transform.FP8ComputeLegalize(), func))
    type_ = func.params[0].type_annotation
    assert str(type_.element_type.dtype) == "uint8"
    assert type_.storage_scope == "shared"
    assert "float8" not in str(func)


def test_kernels_compute_with_8_bits():
    sch = tir.Schedule(
        tvm.te.create_prim_func(
            [
                A := tvm.te.placeholder((64,), "e4m3_float8", name="A"),
                tvm.te.compute((64,), lambda i: A[i] * A[i] + A[i], name="B"),
            ]
        )
    )
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.bind(i, "threadIdx.x")
    module = tvm.build(sch.mod, target=tvm.target.emulated("cuda"))
    values = np.linspace(-4, 4, 64).astype(ml_dtypes.float8_e4m3fn)
    device = tvm.cpu()
    out = tvm.nd.empty((64,), "e4m3_float8", device)
    module(tvm.nd.array(values, device), out)
    x = values.astype("float32")
    expected = (x * x + x).astype(values.dtype).astype("float32")
    np.testing.assert_array_equal(out.numpy().astype("float32"), expected)


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_vectors_multiply_on_every_processor(target):
    A, B = (te.placeholder((16, 16), "e4m3_float8", name=name) for name in "AB")
    k = te.reduce_axis((0, 16), "k")

    def product(i, j):
        return te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k)

    C = te.compute((16, 16), product, name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    outer, inner = s[C].split(j, 8)
    s[C].reorder(i, outer, k, inner)
    s[C].vectorize(inner)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (16, 16)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    out = tvm.nd.empty((16, 16))
    tvm.build(s, [A, B, C], target=target)(tvm.nd.array(a), tvm.nd.array(b), out)
    np.testing.assert_array_equal(out.numpy(), a.astype("float32") @ b.astype("float32"))


def test_another_type_to_compute_in_is_refused():
    with pytest.raises(tvm.error.ValueError, match='"float16" or "float32", got "int8"'):
        transform.FP8ComputeLegalize("int8")


def test_constants_are_numbers_of_the_type():
    assert tir.const(0.3, "e4m3_float8").value == float(ml_dtypes.float8_e4m3fn(0.3))
    assert tir.const(500, "e5m2_float8").value == 512
    assert tvm.tir.max_value("e4m3_float8").value == 448
