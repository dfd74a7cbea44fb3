"""Programs with symbolic extents, built once and run at every size."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.open_sizes import OpenExecutable
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Mlp:
    @T.prim_func
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n = T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((1, "m"), "float32"),
        w0: R.Tensor(("n", "m"), "float32"),
        b0: R.Tensor(("n",), "float32"),
        w1: R.Tensor(("k", "n"), "float32"),
        b1: R.Tensor(("k",), "float32"),
    ):
        n, k = T.int64(), T.int64()
        cls = Mlp
        with R.dataflow():
            lv0 = R.call_tir(cls.linear, (x, w0, b0), out_sinfo=R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed(
                "test.open_sizes.relu", (lv0,), out_sinfo=R.Tensor((1, n), "float32")
            )
            out = R.call_tir(cls.linear, (lv1, w1, b1), out_sinfo=R.Tensor((1, k), "float32"))
            R.output(out)
        return out


@I.ir_module
class Rows:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.reshape(R.nn.relu(R.matmul(x, w)), (n * 8,))
            R.output(y)
        return y

    @R.function
    def twice(x: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


@pytest.fixture(autouse=True)
def relu():
    def run(x, out):
        out.copyfrom(np.maximum(x.numpy(), 0))

    tvm.register_func("test.open_sizes.relu", run, override=True)
    yield
    tvm._ffi.registry.remove_global_func("test.open_sizes.relu")


def _arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


@pytest.mark.parametrize("sizes", [(20, 7, 3), (64, 16, 10)])
def test_kernels_and_packed_functions_of_symbolic_shapes_run_at_every_size(sizes):
    machine = relax.VirtualMachine(relax.build(Mlp, "llvm"), tvm.cpu())
    m, n, k = sizes
    x, w0, b0, w1, b1 = _arrays((1, m), (n, m), (n,), (k, n), (k,))
    got = machine["main"](*map(tvm.nd.array, (x, w0, b0, w1, b1))).numpy()
    wanted = np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_all_sizes_are_compiled_once():
    executable = relax.build(Rows, "llvm")
    assert type(executable) is relax.vm_build.Executable
    machine = relax.VirtualMachine(executable, tvm.cpu())
    (w,) = _arrays((4, 8))
    for n in (1, 3, 64, 129):
        (x,) = _arrays((n, 4))
        got = machine["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
        np.testing.assert_allclose(got, np.maximum(x @ w, 0).ravel(), rtol=1e-5, atol=1e-5)


def test_each_choice_of_sizes_can_be_compiled_once():
    """As for graphics processors, whose kernels of open sizes have no schedules."""
    compiled = []

    def compile_fixed(mod):
        compiled.append(1)
        return relax.build(mod, "llvm")

    executable = OpenExecutable(Rows, compile_fixed, lambda: relax.build(Rows, "llvm"))
    assert sorted(executable.function_names) == ["main", "twice"]
    machine = relax.VirtualMachine(executable, tvm.cpu())
    (w,) = _arrays((4, 8))
    for n in (3, 5, 3, 5):
        (x,) = _arrays((n, 4))
        got = machine["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
        np.testing.assert_allclose(got, np.maximum(x @ w, 0).ravel(), rtol=1e-5, atol=1e-5)
    assert len(compiled) == 2
    x = tvm.nd.array(_arrays((2, 2))[0])
    np.testing.assert_array_equal(machine["twice"](x).numpy(), 2 * x.numpy())


def test_a_call_of_open_sizes_is_profiled_and_timed():
    machine = relax.VirtualMachine(relax.build(Rows, "llvm"), tvm.cpu())
    x, w = map(tvm.nd.array, _arrays((3, 4), (4, 8)))
    assert "Duration" in str(machine.profile("main", x, w))
    assert machine.module.time_evaluator("main", tvm.cpu(), number=1)(x, w).mean > 0


def test_sizes_that_do_not_fit_are_refused_with_both():
    executable = relax.build(Mlp, "llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    x, w0, b0, w1, b1 = map(tvm.nd.array, _arrays((1, 4), (3, 5), (3,), (2, 3), (2,)))
    with pytest.raises(ValueError, match="'w0' has extent 1 of 5, must be 4, as another value"):
        machine["main"](x, w0, b0, w1, b1)
    with pytest.raises((TypeError, ValueError), match="5"):
        machine["main"](x)
    with pytest.raises((TypeError, ValueError), match="'x' must have 2 axes"):
        machine["main"](b0, w0, b0, w1, b1)


def test_the_program_for_all_sizes_can_be_read():
    executable = relax.build(Mlp, "llvm")
    assert "main" in executable.as_text()
    assert "Programs: 1" in executable.stats()


def test_a_library_has_kernels_for_all_sizes(tmp_path):
    relax.build(Mlp, "llvm").export_library(tmp_path / "mlp.so")
    machine = relax.VirtualMachine(relax.load_executable(tmp_path / "mlp.so"), tvm.cpu())
    for m, n, k in ((20, 7, 3), (64, 16, 10)):
        x, w0, b0, w1, b1 = _arrays((1, m), (n, m), (n,), (k, n), (k,))
        got = machine["main"](*map(tvm.nd.array, (x, w0, b0, w1, b1))).numpy()
        wanted = np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="'w0' has extent 1 of 5, must be 4, as another value"):
        args = _arrays((1, 4), (3, 5), (3,), (2, 3), (2,))
        machine["main"](*map(tvm.nd.array, args))
