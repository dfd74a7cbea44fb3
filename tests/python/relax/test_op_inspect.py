"""Programs ask a tensor for its element type, its dimensions and where it lies."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Asks:
    @R.function
    def code(x: R.Tensor) -> R.Prim("uint8"):
        return x.dtype.type_code

    @R.function
    def bits(x: R.Tensor) -> R.Prim("uint8"):
        return x.dtype.bits

    @R.function
    def lanes(x: R.Tensor) -> R.Prim("uint16"):
        return x.dtype.lanes

    @R.function
    def ndim(x: R.Tensor) -> R.Prim("int32"):
        return x.ndim

    @R.function
    def last_extent(x: R.Tensor(ndim=2)) -> R.Prim("int64"):
        return x.shape[1]

    @R.function
    def extent(x: R.Tensor, axis: R.Prim("int64")) -> R.Prim("int64"):
        return x.shape[axis]

    @R.function
    def stride(x: R.Tensor, axis: R.Prim("int64")) -> R.Prim("int64"):
        return x.strides[axis]

    @R.function
    def byte_offset(x: R.Tensor) -> R.Prim("uint64"):
        return x.byte_offset

    @R.function
    def elem_offset(x: R.Tensor) -> R.Prim("int64"):
        return x.elem_offset


@pytest.fixture(scope="module")
def machine():
    return relax.VirtualMachine(relax.build(Asks, "llvm"), tvm.cpu())


def test_values_are_those_of_the_tensor_that_comes(machine):
    x = tvm.nd.array(np.zeros((4, 5, 6), "float16"))
    asked = {name: machine[name](x) for name in ("code", "bits", "lanes", "ndim")}
    assert asked == {"code": 2, "bits": 16, "lanes": 1, "ndim": 3}
    assert [machine["extent"](x, axis) for axis in range(3)] == [4, 5, 6]
    assert [machine["stride"](x, axis) for axis in range(3)] == [30, 6, 1]
    assert machine["byte_offset"](x) == machine["elem_offset"](x) == 0
    assert machine["last_extent"](tvm.nd.array(np.zeros((2, 9), "int8"))) == 9
    with pytest.raises(IndexError, match="axis 3 of a tensor of 3 dimensions"):
        machine["extent"](x, 3)


def test_programs_that_ask_come_back_from_their_text():
    tvm.ir.assert_structural_equal(tvm.script.from_source(Asks.script()), Asks)


def test_what_struct_info_tells_is_known_at_once():
    m = tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo((m, 8), "bfloat16"))
    assert x.ndim.struct_info == relax.PrimStructInfo(tir.IntImm("int32", 2))
    assert x.dtype.bits.struct_info == relax.PrimStructInfo(tir.IntImm("uint8", 16))
    assert x.shape[0].struct_info == relax.PrimStructInfo(m)
    assert x.strides[0].struct_info == relax.PrimStructInfo("int64")
    y = relax.Var("y", relax.TensorStructInfo(dtype="void"))
    assert y.dtype.lanes.struct_info == relax.PrimStructInfo("uint16")
    assert y.shape[1].struct_info == relax.PrimStructInfo("int64")


def test_what_is_no_scalar_is_refused():
    x = relax.Var("x", relax.TensorStructInfo((2, 8), "float32"))
    with pytest.raises(ValueError, match="axis 2 of a tensor of 2 dimensions"):
        x.shape[2]
    with pytest.raises(ValueError, match="axis -1"):
        x.strides[-1]
    with pytest.raises(TypeError, match="scalar of int64"):
        relax.op.inspect.tensor_shape_i(x, relax.PrimValue(tir.const(0, "int32")))
    with pytest.raises(TypeError, match="as many items"):
        list(x.shape)
    with pytest.raises(TypeError, match=r"x\.dtype is no value"):
        relax.Tuple([x.dtype])
    with pytest.raises(TypeError, match="must be a tensor"):
        relax.op.inspect.tensor_ndim(relax.Var("s", relax.ShapeStructInfo([1])))
