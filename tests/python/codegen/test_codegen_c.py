"""Functions printed as C: what they compute, how they fail, and what a C compiler says of them."""

from __future__ import annotations

import random
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tvm
from testing_te import PROGRAMS, random_schedule
from tvm import te, tir
from tvm._ffi.libinfo import find_include_path

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


def assert_clean(source: str) -> None:
    """The text is C11 that a compiler has nothing to say about."""
    command = ["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", f"-I{find_include_path()[0]}"]
    done = subprocess.run([*command, "-xc", "-"], input=source, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}\n{source}"


def run(func, *arrays):
    tensors = [tvm.nd.array(a) for a in arrays]
    func(*tensors)
    return tensors[-1].numpy()


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=445)  # One outcome of a hoisted test does not read a cache.
@settings(max_examples=4, deadline=None)
def test_random_programs_equal_numpy_and_compile_without_warnings(name, seed):
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    sch = random_schedule(program, rng)
    mod = tvm.build(sch, [*program.inputs, *program.outputs], target="c", name="f")
    assert_clean(mod.get_source("c"))
    arrays = program.random_inputs(seed)
    expected = program.expected(arrays)
    tensors = [tvm.nd.array(a) for a in [*arrays, *(np.full_like(e, -77) for e in expected)]]
    mod["f"](*tensors)
    for tensor, wanted in zip(tensors[len(arrays) :], expected):
        np.testing.assert_array_equal(tensor.numpy(), wanted)


def elementwise(body, dtype, result, n=16, vectorize=4):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: body(A[i]), name="B")
    assert B.dtype == result
    s = te.create_schedule(B.op)
    if vectorize:
        s[B].vectorize(s[B].split(B.op.axis[0], factor=vectorize)[1])
    mod = tvm.build(s, [A, B], target="c", name="f")
    assert_clean(mod.get_source())
    return mod["f"]


@pytest.mark.parametrize("vectorize", [0, 4])
@pytest.mark.parametrize(
    ("body", "dtype", "result", "expected"),
    [
        (lambda x: x * x + x, "int8", "int8", lambda a: a * a + a),
        (lambda x: tir.floordiv(x, 3), "int32", "int32", lambda a: a // 3),
        (lambda x: tir.floormod(x, -3), "int64", "int64", lambda a: a % -3),
        (lambda x: tir.floormod(x, 4), "int32", "int32", lambda a: a % 4),
        (lambda x: tir.truncdiv(x, 3), "int32", "int32", lambda a: np.trunc(a / 3).astype("int32")),
        (lambda x: (~x ^ 12) & (x << 2), "int32", "int32", lambda a: (~a ^ 12) & (a << 2)),
        (lambda x: tir.max(x, tir.const(0.0)), "float32", "float32", lambda a: np.maximum(a, 0)),
        (lambda x: x * x, "float16", "float16", lambda a: a * a),
        (lambda x: x.astype("int32") + 1, "float64", "int32", lambda a: a.astype("int32") + 1),
        (lambda x: x > 0, "float32", "bool", lambda a: a > 0),
        (lambda x: tir.reinterpret("int32", x), "float32", "int32", lambda a: a.view("int32")),
        (
            lambda x: tir.popcount(x),
            "int32",
            "int32",
            np.vectorize(lambda v: (int(v) & 0xFFFFFFFF).bit_count()),
        ),
        (lambda x: x.astype("bfloat16").astype("float32"), "float32", "float32", lambda a: a),
    ],
)
def test_an_operator_means_what_it_means_elsewhere(body, dtype, result, expected, vectorize):
    a = np.arange(-8, 8).astype(dtype)
    got = run(elementwise(body, dtype, result, vectorize=vectorize), a, np.zeros(16, result))
    np.testing.assert_array_equal(got, expected(a))


@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "erf", "floor", "exp10", "log1p"]
)
def test_elementary_functions(name):
    a = np.linspace(0.1, 3, 16).astype("float32")
    import math

    reference = {
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "erf": np.vectorize(math.erf),
        "exp10": lambda x: 10.0**x,
    }.get(name) or getattr(np, name)
    func = elementwise(lambda x: getattr(tir, name)(x), "float32", "float32")
    got = run(func, a, np.zeros(16, "float32"))
    np.testing.assert_allclose(got, reference(a.astype("float64")), rtol=2e-6)


def scaled(n, name, factor):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * factor, name="B")
    return tvm.lower(te.create_schedule(B.op), [A, B], name=name)


def test_functions_of_one_module_are_called_by_name_and_exported(tmp_path):
    mod = tvm.build([scaled(5, "twice", 2.0), scaled(5, "thrice", 3.0)], target="c")
    assert mod.type_key == "c"
    assert sorted(mod.get_function_list()) == ["thrice", "twice"]
    assert_clean(mod.get_source())
    a = np.arange(5, dtype="float32")
    for module in (mod, None):
        if module is None:
            mod.export_library(tmp_path / "lib.so")
            module = tvm.runtime.load_module(tmp_path / "lib.so")
        np.testing.assert_array_equal(run(module["twice"], a, np.zeros_like(a)), 2 * a)
        np.testing.assert_array_equal(run(module["thrice"], a, np.zeros_like(a)), 3 * a)
    mod.save(tmp_path / "lib.c")
    assert (tmp_path / "lib.c").read_text() == mod.get_source("c")


def test_a_module_with_one_function_has_it_as_entry():
    a = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(
        run(tvm.build(scaled(5, "twice", 2.0), target="c"), a, np.zeros_like(a)), 2 * a
    )


def test_wrong_arguments_are_refused_like_elsewhere():
    modules = [tvm.build(scaled(5, "twice", 2.0), target=target) for target in ("c", "llvm")]
    wrong = [
        (np.zeros(5, "float32"),),
        (np.zeros(4, "float32"), np.zeros(5, "float32")),
        (np.zeros(5, "float64"), np.zeros(5, "float32")),
        (np.zeros((5, 1), "float32"), np.zeros(5, "float32")),
    ]
    for arrays in wrong:
        messages = []
        for module in modules:
            with pytest.raises((TypeError, ValueError)) as caught:
                module["twice"](*map(tvm.nd.array, arrays))
            messages.append((caught.type.__name__, str(caught.value)))
        assert messages[0] == messages[1]


def test_large_scratch_memory_is_given_back_when_a_call_fails():
    @tvm.register_func("testing.refuse", override=True)
    def refuse(value):
        raise KeyError(f"no {value}")

    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute(
        (n,), lambda i: B[n - 1 - i] + tir.call_packed("testing.refuse", 3).astype("float32")
    )
    mod = tvm.build(te.create_schedule(C.op), [A, C], target="c", name="f")
    assert_clean(mod.get_source())
    a = tvm.nd.array(np.zeros(10_000, "float32"))
    with pytest.raises(KeyError, match="no 3"):
        mod["f"](a, tvm.nd.empty((10_000,)))
    assert mod.get_source().count("TVMBackendFreeWorkspace") >= 2


def test_a_function_named_like_a_word_of_c_is_refused():
    with pytest.raises(ValueError, match='cannot be called "double".*another name'):
        tvm.build(scaled(5, "double", 2.0), target="c")


def test_a_host_in_c_launches_kernels():
    A = te.placeholder((300,), name="A")
    B = te.compute((300,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=64)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    target = tvm.target.emulated("cuda -arch=sm_80").with_host("c")
    mod = tvm.build(s, [A, B], target=target, name="f")
    assert mod.type_key == "c" and len(mod.imported_modules) == 1
    assert_clean(mod.get_source())
    a = np.arange(300, dtype="float32")
    np.testing.assert_array_equal(run(mod["f"], a, np.zeros_like(a)), a + 1)


def test_a_loop_bound_to_gpu_threads_is_refused():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i], name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    with pytest.raises(ValueError, match="threadIdx.x"):
        tvm.build(s, [A, B], target="c")
