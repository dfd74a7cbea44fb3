"""Views: the memory of a tensor in another shape and type."""

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.relax.op import memory
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

X = relax.Var("x", R.Tensor((4, 6), "float32"))


@I.ir_module
class Views:
    @R.function
    def main(x: R.Tensor((16, 16), "float32")) -> R.Tuple(
        R.Tensor((8, 8), "float32"), R.Tensor((16, 8), "float64"), R.Tensor((64,), "uint8")
    ):
        rows = R.memory.view(x, R.shape([8, 8]), relative_byte_offset=512)
        wide = R.memory.view(x, dtype="float64")
        last = R.memory.ensure_zero_offset(
            R.memory.view(x, R.shape([64]), R.dtype("uint8"), R.prim_value(960))
        )
        return (rows, wide, last)


def _check(mod):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    array = np.random.default_rng(0).random((16, 16), "float32")
    rows, wide, last = machine["main"](tvm.nd.array(array))
    np.testing.assert_array_equal(rows.numpy(), array[8:12].reshape(8, 8))
    np.testing.assert_array_equal(wide.numpy(), array.view("float64"))
    np.testing.assert_array_equal(last.numpy(), array[15].view("uint8"))


def test_views_are_run():
    _check(Views)


def test_views_are_calls_of_the_runtime_when_builtins_are_lowered():
    mod = relax.transform.ToNonDataflow()(Views)
    mod = relax.transform.LowerRuntimeBuiltin()(relax.transform.RemovePurityChecking()(mod))
    assert "runtime.TVMArrayCreateView" in mod.script()
    assert "memory.view" not in mod.script()
    _check(mod)


def test_views_are_printed_and_read():
    text = Views.script(show_meta=True)
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), Views)


def test_kernels_read_views_of_open_sizes():
    n = tir.Var("n", "int64")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
    with builder.function("main", [x]):
        flat = builder.emit(memory.view(x, (n * 4,)))
        # Kernels read what is at a multiple of 64 bytes.
        tail = builder.emit(memory.view(x, (4,), relative_byte_offset=n * 16 - 64))
        builder.emit_func_output(builder.emit(relax.op.add(relax.op.sum(flat), tail)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    array = np.arange(32, dtype="float32").reshape(8, 4)
    result = machine["main"](tvm.nd.array(array)).numpy()
    np.testing.assert_array_equal(result, array.sum() + array[4])


@pytest.mark.parametrize(
    ("settings", "shape", "dtype"),
    [
        ({"shape": (12,)}, (12,), "float32"),
        ({}, (4, 6), "float32"),
        ({"dtype": "int32"}, (4, 6), "int32"),
        ({"dtype": "float16"}, (4, 12), "float16"),
        ({"dtype": "float64"}, (4, 3), "float64"),
        ({"shape": (2, 3), "dtype": "int64", "relative_byte_offset": 48}, (2, 3), "int64"),
    ],
)
def test_what_is_known_of_a_view(settings, shape, dtype):
    call = memory.view(X, **settings)
    tvm.ir.assert_structural_equal(call.struct_info, relax.TensorStructInfo(shape, dtype))


def test_shapes_that_variables_hold_and_tensors_of_unknown_size():
    shape = relax.Var("s", relax.ShapeStructInfo(ndim=2))
    of_any_size = relax.Var("y", relax.TensorStructInfo(dtype="float32", ndim=2))
    known = relax.TensorStructInfo(dtype="float16", ndim=2)
    for call in (memory.view(X, shape, "float16"), memory.view(of_any_size, dtype="float16")):
        tvm.ir.assert_structural_equal(call.struct_info, known)
    n = tir.Var("n", "int64")
    rows = relax.Var("z", relax.TensorStructInfo((2, n), "float32"))
    halves = memory.view(rows, dtype="float16").struct_info
    tvm.ir.assert_structural_equal(halves, relax.TensorStructInfo((2, n * 2), "float16"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (25,)}, "25 elements of float32 from byte 0 on end behind the 96 bytes"),
        ({"shape": (24,), "relative_byte_offset": 4}, "24 elements of float32 from byte 4"),
        ({"shape": (1,), "relative_byte_offset": -4}, "begins at byte 0 or later, got -4"),
        ({"relative_byte_offset": 8}, "a view with an offset needs a shape"),
        ({"dtype": "float32x4"}, "does not hold whole elements of float32x4"),
    ],
)
def test_views_that_are_none_are_refused(settings, message):
    with pytest.raises(tvm.error.ValueError, match=message):
        memory.view(X, **settings)


def test_operands_of_other_kinds_are_refused():
    with pytest.raises(tvm.error.TypeError, match="operand 1 must be a shape"):
        memory.view(X, X)
    with pytest.raises(tvm.error.TypeError, match="the offset is a number"):
        memory.view(X, (2,), relative_byte_offset=X)


def test_the_runtime_checks_what_the_compiler_cannot_know():
    view = tvm.get_global_func("runtime.TVMArrayCreateView")
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    assert view(array, None, None, None).numpy().tolist() == array.numpy().tolist()
    with pytest.raises(tvm.error.ValueError, match="needs 28 bytes, the array has 24"):
        view(array, tvm.runtime.ShapeTuple([6]), "float32", 4)
    with pytest.raises(tvm.error.ValueError, match="begins at byte 0 or later, got -4"):
        view(array, tvm.runtime.ShapeTuple([1]), None, -4)
    with pytest.raises(tvm.error.ValueError, match="does not hold whole elements of float64"):
        view(tvm.nd.empty((2, 3), "float32"), None, "float64")


def test_kernels_take_arrays_with_an_offset_after_it_is_made_zero():
    view = tvm.get_global_func("runtime.TVMArrayCreateView")
    zeroed = tvm.get_global_func("vm.builtin.ensure_zero_offset")
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    part = zeroed(view(array, tvm.runtime.ShapeTuple([2]), None, 8))

    @T.prim_func
    def double(a: T.Buffer((2,), "float32"), b: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("double"):
                k = T.axis.spatial(2, i)
                b[k] = a[k] * T.float32(2)

    out = tvm.nd.empty((2,), "float32")
    tvm.build(double, target="llvm")(part, out)
    assert out.numpy().tolist() == [4.0, 6.0]
    # It is the same memory, not a copy.
    array.copyfrom(np.zeros(6, "float32"))
    assert part.numpy().tolist() == [0.0, 0.0]
    assert zeroed(array).same_as(array)
