"""Host functions on the stackvm: listing, saving, errors and calls."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def build(make, *shapes, dtype="float32", name="f"):
    inputs = [te.placeholder(s, dtype, name=f"A{i}") for i, s in enumerate(shapes)]
    out = make(*inputs)
    return tvm.build(te.create_schedule(out.op), [*inputs, out], target="stackvm", name=name)


def double():
    return build(lambda a: te.compute(a.shape, lambda i: a[i] * 2.0, name="B"), (8,))


def test_listing_names_instructions_and_buffers():
    text = double().get_source()
    assert "packed function f(" in text
    assert "mul.float32" in text
    assert "; A0: float32, 32 bytes" in text
    assert "for_next" in text


def test_saved_module_runs_again(tmp_path):
    path = tmp_path / "double.stackvm"
    double().save(path)
    module = tvm.runtime.load_module(path)
    a, b = tvm.nd.array(np.arange(8, dtype="float32")), tvm.nd.empty((8,))
    module["f"](a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(8) * 2)
    module(a, b)
    assert module.get_function_list() == ["f"]
    damaged = path.read_bytes()
    path.write_bytes(damaged[: len(damaged) // 2])
    with pytest.raises(ValueError, match="the file is damaged"):
        tvm.runtime.load_module(path)


def test_loading_a_damaged_program_does_not_crash(tmp_path):
    path = tmp_path / "f.stackvm"
    double().save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        data = bytearray(good)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            tvm.runtime.load_module(path)
        except (ValueError, MemoryError):
            refused += 1
    assert refused > 0


def test_arguments_are_checked():
    f = double()["f"]
    with pytest.raises(TypeError, match="expected 2 arguments, got 1"):
        f(tvm.nd.empty((8,)))
    with pytest.raises(ValueError, match=r"f: argument 0 \(A0\)\.shape\[0\]: expected 8, got 7"):
        f(tvm.nd.empty((7,)), tvm.nd.empty((8,)))


def test_index_outside_of_a_buffer_raises():
    A = tir.decl_buffer((4,), "float32", "A")
    n = tir.Var("n", "int32")
    ib = tir.ir_builder.create()
    with ib.for_range(0, n, name="i") as i:
        ib.buffer_ptr(A)[i] = 1.0
    func = tir.PrimFunc([A, n], ib.get(), attrs={"global_symbol": "fill"})
    f = tvm.build(func, target="stackvm", name="fill")["fill"]
    a = tvm.nd.empty((4,))
    f(a, 4)
    assert a.numpy().tolist() == [1, 1, 1, 1]
    with pytest.raises(IndexError, match=r"function fill: store to A\[4\], but A has 4 elements"):
        f(a, 5)


def test_index_is_checked_against_a_size_known_at_run_time():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i + 1], name="B")
    s = te.create_schedule(B.op)
    f = tvm.build(s, [A, B], target="stackvm", name="shift")["shift"]
    with pytest.raises(IndexError, match=r"load of A\[5\], but A has 5 elements of float32"):
        f(tvm.nd.empty((5,)), tvm.nd.empty((5,)))


def test_division_by_zero_raises():
    f = build(
        lambda a, b: te.compute(a.shape, lambda i: tir.truncdiv(a[i], b[i]), name="C"),
        (2,),
        (2,),
        dtype="int32",
    )["f"]
    a, c = tvm.nd.array(np.array([-7, 1], "int32")), tvm.nd.empty((2,), "int32")
    f(a, tvm.nd.array(np.array([2, 1], "int32")), c)
    assert c.numpy().tolist() == [-3, 1]
    with pytest.raises(ValueError, match="div of integer 1 by zero"):
        f(a, tvm.nd.array(np.array([2, 0], "int32")), c)


def test_global_functions_are_called():
    seen = []

    @tvm.register_func("test.stackvm.observe", override=True)
    def observe(text, number, real):
        seen.append((text, number, real))
        return 42

    A = tir.decl_buffer((1,), "int32", "A")
    call = tir.call_packed("test.stackvm.observe", "here", 3, tir.const(0.5, "float32"))
    body = tir.BufferStore(A, call, [0])
    func = tir.PrimFunc([A], body, attrs={"global_symbol": "f"})
    a = tvm.nd.empty((1,), "int32")
    tvm.build(func, target="stackvm", name="f")["f"](a)
    assert seen == [("here", 3, 0.5)]
    assert a.numpy()[0] == 42


def test_thread_binding_without_a_gpu_is_refused():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    func = tvm.lower(s, [A, B])
    with pytest.raises((ValueError, tvm.error.TVMError), match="thread"):
        tvm.target.build_module(tir.transform.MakePackedAPI()(func), "stackvm")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_round_after_each_operation(dtype):
    A, B = te.placeholder((64,), dtype, name="A"), te.placeholder((64,), dtype, name="B")
    C = te.compute((64,), lambda i: A[i] * B[i] + A[i], name="C")
    s = te.create_schedule(C.op)
    results = []
    for target in ("stackvm", "llvm"):
        f = tvm.build(s, [A, B, C], target=target, name="f")["f"]
        rng = np.random.default_rng(1)
        bits = [rng.integers(0x3C00, 0x4200, 64).astype("uint16") for _ in range(2)]
        arrays = [tvm.nd.empty((64,), dtype) for _ in range(3)]
        for array, data in zip(arrays, bits, strict=False):
            array.copyfrom(data.view("float16") if dtype == "float16" else data)
        f(*arrays)
        results.append(arrays[2].numpy().view("uint16").astype(int))
    # LLVM may fuse the two operations and so round once.
    assert np.abs(results[0] - results[1]).max() <= 1


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
@pytest.mark.parametrize(
    ("name", "dtype", "args"),
    [
        ("tir.large_uint_imm", "uint64", lambda n: [n, tir.const(1, "int64")]),
        ("tir.large_uint_imm", "uint64", lambda n: [tir.const(1, "int64")]),
        (
            "tir.tvm_struct_get",
            "int64",
            lambda n: [tir.call_intrin("handle", "tir.null_handle"), 0, n],
        ),
    ],
)
def test_calls_that_take_constants_are_refused_without_them(target, name, dtype, args):
    n, b = tir.SizeVar("n", "int64"), tir.decl_buffer((1,), dtype, name="B")
    store = tir.BufferStore(b, tir.call_intrin(dtype, name, *args(n)), [0])
    func = tir.PrimFunc([b, n], store).with_attr("global_symbol", "main")
    with pytest.raises(tvm.TVMError, match="constant"):
        tvm.build(tvm.IRModule({"main": func}), target=target)
