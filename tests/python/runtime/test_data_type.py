"""Element types by their names."""

from __future__ import annotations

import ml_dtypes
import pytest

import tvm
from tvm import tir

NARROW = [
    "e4m3_float8", "e5m2_float8", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
    "float4_e2m1fn",
]  # fmt: skip


@pytest.mark.parametrize("name", [*NARROW, "e4m3_float8x4", "float32xvscalex4", "int8x16"])
def test_names_cross_the_border_and_come_back(name):
    assert str(tir.Var("x", name).dtype) == name
    assert str(tir.Call(name, "tir.reinterpret", [tir.Var("n")]).dtype) == name
    buffer = tir.decl_buffer((4,), name)
    assert str(buffer.dtype) == name


@pytest.mark.parametrize(
    ("name", "bits", "lanes", "scalable"),
    [
        ("e4m3_float8x4", 8, 4, False),
        ("float4_e2m1fn", 4, 1, False),
        ("float32xvscalex4", 32, 4, True),
        ("uint16x8", 16, 8, False),
    ],
)
def test_types_know_their_parts(name, bits, lanes, scalable):
    dtype = tvm.DataType(name)
    assert (dtype.bits, dtype.lanes, dtype.scalable) == (bits, lanes, scalable)
    assert dtype.with_lanes(1).lanes == 1


def test_names_of_other_frameworks_are_the_same_types():
    assert str(tir.Var("x", "float8_e4m3fn").dtype) == "e4m3_float8"
    assert str(tir.Var("x", "float8_e5m2x2").dtype) == "e5m2_float8x2"


@pytest.mark.parametrize(
    "name", ["float32x4xvscale", "float8_e9", "float32xvscale", "e4m3_float8y"]
)
def test_names_that_are_no_types_are_refused(name):
    with pytest.raises(ValueError, match="cannot read"):
        tvm.DataType(name)
    with pytest.raises(ValueError, match="cannot read"):
        tir.Var("x", name)


def test_scripts_write_the_types_as_they_are():
    data = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("e4m3_float8")))
    buffer = tir.decl_buffer((4,), "e4m3_float8", "A", data=data)
    func = tir.PrimFunc([data], tir.BufferStore(buffer, buffer[0], [1]))
    assert 'T.handle("e4m3_float8")' in str(func)
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)


def test_numpy_has_a_counterpart_of_what_it_knows():
    assert [tvm.DataType(name).to_numpy().name for name in ("bool", "int8", "float16")] == [
        "bool",
        "int8",
        "float16",
    ]
    assert tvm.DataType("e4m3_float8").to_numpy() == ml_dtypes.float8_e4m3fn
    for name in ("float4_e2m1fn", "int8x4", "handle"):
        with pytest.raises(ValueError, match="NumPy has no counterpart"):
            tvm.DataType(name).to_numpy()


def test_kinds_have_the_numbers_of_dlpack():
    numbers = {"int32": 0, "uint8x4": 1, "bool": 1, "float16": 2, "handle": 3, "bfloat16": 4}
    assert {text: tvm.DataType(text).type_code for text in numbers} == numbers
    assert tvm.DataType("e4m3_float8").type_code == tvm.DataTypeCode.E4M3Float
    assert tvm.runtime.DataTypeCode.FLOAT == 2
