"""The packed calling convention and its checks."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply, loop
from tvm import tir
from tvm.tir import transform


def scale(shape, factor, **buffer):
    a = tir.decl_buffer(shape, name="A", **buffer)
    b = tir.decl_buffer(shape, name="B")
    index = [tir.Var("i"), tir.Var("j")]
    body = tir.BufferStore(b, a[index] * tir.Cast("float32", factor), index)
    for var, extent in reversed(list(zip(index, shape))):
        body = tir.For(var, 0, extent, tir.ForKind.SERIAL, body)
    return tir.PrimFunc([a, b, factor], body).with_attr("global_symbol", "scale")


@pytest.fixture(scope="module")
def built():
    func = scale((tir.SizeVar("n"), 8), tir.Var("factor"))
    return tvm.build(tvm.IRModule({"scale": func}), target="llvm")["scale"]


def arrays(n=4, m=8, dtype="float32"):
    return tvm.nd.array(np.ones((n, m), dtype)), tvm.nd.array(np.zeros((4, 8), "float32"))


def test_function_takes_three_packed_parameters():
    func = apply(transform.MakePackedAPI(), scale((4, 8), tir.Var("factor")))
    assert [str(param) for param in func.params] == ["args", "num_args", "ret"]
    assert len(func.buffer_map) == 0
    assert func.attrs["calling_conv"] == tvm.ir.CallingConv.C_PACKED_FUNC
    again = transform.MakePackedAPI()(tvm.IRModule({"main": func}))["main"]
    assert again.same_as(func)


def test_function_without_a_symbol_is_left_alone():
    b = tir.decl_buffer((4,), name="B")
    func = tir.PrimFunc([b], loop(4, lambda i: tir.BufferStore(b, 0.0, [i])))
    assert transform.MakePackedAPI()(tvm.IRModule({"f": func}))["f"].same_as(func)


def test_arguments_are_bound(built):
    a, b = arrays()
    built(a, b, 3)
    np.testing.assert_array_equal(b.numpy(), np.full((4, 8), 3, "float32"))


def refusals():
    a, b = arrays()
    yield (a, b), TypeError, "scale: expected 3 arguments, got 2"
    yield (a, b, 1.5), TypeError, r"argument 2 \(factor\): expected an integer, got float"
    yield (1, b, 1), TypeError, r"argument 0 \(A\): expected a tensor, got int; make one"
    yield (arrays(m=9)[0], b, 1), ValueError, r"argument 0 \(A\).shape\[1\]: expected 8, got 9"
    yield (arrays(n=5)[0], b, 1), ValueError, r"argument 1 \(B\).shape\[0\]: expected 5, got 4"
    yield (arrays(dtype="float64")[0], b, 1), TypeError, "expected dtype float32, got float64"
    yield (arrays(dtype="bool")[0], b, 1), TypeError, "expected dtype float32, got bool"
    yield ("text", b, 1), TypeError, "expected a tensor, got str"
    yield (a, b, None), TypeError, "expected an integer, got None"
    yield (a, b, 2**31), ValueError, r"argument 2 \(factor\): 2147483648 does not fit int32"
    yield (a, b, -(2**40)), ValueError, "-1099511627776 does not fit int32"
    flat = tvm.nd.array(np.ones(32, "float32"))
    yield (flat, b, 1), ValueError, r"argument 0 \(A\): expected 2 axes, got 1"


@pytest.mark.parametrize(("args", "error", "message"), list(refusals()))
def test_wrong_arguments_are_refused_by_name_with_both_values(built, args, error, message):
    with pytest.raises(error, match=message):
        built(*args)


def test_array_with_gaps_is_refused(built):
    import torch.utils.dlpack

    wide = tvm.nd.from_dlpack(torch.ones(4, 16)[:, :8])
    with pytest.raises(
        ValueError, match=r"strides: expected \(8, 1\) .* got \(16, 1\); make the arr"
    ):
        built(wide, arrays()[1], 1)


def test_declared_strides_are_taken_from_the_array():
    import torch

    strides = [tir.SizeVar("s0"), tir.SizeVar("s1")]
    func = scale((4, 8), tir.Var("factor"), strides=strides)
    run = tvm.build(tvm.IRModule({"scale": func}), target="llvm")["scale"]
    source = torch.arange(64, dtype=torch.float32).reshape(8, 8)
    _, b = arrays()
    run(tvm.nd.from_dlpack(source.T[2:6]), b, 2)
    np.testing.assert_array_equal(b.numpy(), source.T[2:6].numpy() * 2)


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_a_pointer_takes_the_memory_of_an_array(target):
    ib = tir.ir_builder.create()
    n = tir.SizeVar("n")
    source, result = ib.pointer("float32", name="source"), ib.pointer("int32", name="result")
    with ib.for_range(0, n) as i:
        result[i] = source[i].astype("int32")
    func = tir.PrimFunc([source, result, n], ib.get()).with_attr("global_symbol", "convert")
    target = tvm.target.Target(target, host=target)
    convert = tvm.build(tvm.IRModule({"convert": func}), target=target)["convert"]
    numbers = tvm.nd.empty((9,), "int32")
    convert(tvm.nd.array(np.arange(9, dtype="float32")), numbers, 9)
    np.testing.assert_array_equal(numbers.numpy(), np.arange(9))
    with pytest.raises(TypeError, match=r"argument 0 \(source\): expected memory of float32"):
        convert(tvm.nd.array(np.arange(9, dtype="float64")), numbers, 9)


def returning(value, *params):
    return tir.PrimFunc(params, tir.Evaluate(tir.ret(value)))


def typed(dtype):
    return tir.Var("x", dtype)


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_a_value_is_returned_with_its_kind(target):
    n, x, flag = typed("int32"), typed("float32"), typed("bool")
    assert tvm.build(returning(n * 2 + 1, n), target=target)(5) == 11
    assert tvm.build(returning(x * 2.5, x), target=target)(3) == 7.5
    assert tvm.build(returning(n > 2, n), target=target)(3) is True
    assert tvm.build(returning(tir.Select(flag, 1, 2), flag), target=target)(False) == 2


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_a_return_leaves_loops_and_gives_memory_back(target):
    A = tir.decl_buffer((64,), name="A")
    ib = tir.ir_builder.create()
    values = ib.buffer_ptr(A)
    doubled = ib.allocate("float32", 100_000, "doubled")
    with ib.for_range(0, 64) as i:
        doubled[i] = values[i] * 2.0
        values[0] = values[0] + 1.0
        with ib.if_scope(doubled[i] > 10.0):
            ib.emit(tir.ret(i))
    ib.emit(tir.ret(-1.5))
    func = tvm.build(tir.PrimFunc([A], ib.get()), target=target)
    array = np.zeros(64, "float32")
    assert func(tvm.nd.array(array)) == -1.5
    array[7] = 6
    given = tvm.nd.array(array)
    assert func(given) == 7
    assert given.numpy()[0] == 8


def test_one_function_returns_to_another():
    n, m = typed("int32"), typed("int32")
    twice = returning(tir.call_packed("increment", m) * 2, m)
    functions = {"increment": returning(n + 1, n), "twice": twice}
    mod = tvm.IRModule({k: f.with_attr("global_symbol", k) for k, f in functions.items()})
    assert tvm.build(mod, target="llvm")["twice"](4) == 10


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_memory_is_freed_before_a_return(kind):
    ib = tir.ir_builder.create()
    memory = ib.allocate("float32", 100_000, "memory")
    memory[0] = 1.0
    with ib.if_scope(memory[0] > 0.0):
        ib.emit(tir.ret(1))
    mod = tvm.build(tir.PrimFunc([], ib.get()), target=kind)
    assert mod.get_source().count("TVMBackendFreeWorkspace(") >= 2


def test_a_return_that_has_no_meaning_is_refused():
    with pytest.raises(ValueError, match="one iteration cannot end for the others"):
        tvm.build(
            tir.PrimFunc([], loop(4, lambda i: tir.Evaluate(tir.ret(i)), tir.ForKind.PARALLEL))
        )
    with pytest.raises(TypeError, match="float32x4 cannot be returned"):
        tvm.build(returning(tir.const(1, "float32x4")))
    with pytest.raises(ValueError, match="is a part of an expression"):
        tvm.build(tir.PrimFunc([], tir.Evaluate(tir.ret(1) + 1)))
