"""Functions over values of any kind: branches, tuples, shapes, functions, objects, open sizes."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.runtime import ShapeTuple
from tvm.runtime.relax_vm import VMInstrumentReturnKind
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def machine_of(mod, **options):
    return relax.VirtualMachine(relax.build(mod, "llvm", **options), tvm.cpu())


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@I.ir_module
class Branches:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), c: R.Tensor((), "bool")
    ):
        n = T.int64()
        if c:
            y = R.matmul(x, w)
            z = R.nn.relu(y)
        else:
            y = R.matmul(x, w)
            z = R.add(y, y)
        s = R.shape_of(z)
        return (z, (s, x), R.reshape(z, (n * 8,)))


def test_branches_tuples_and_shapes_at_every_size(tmp_path):
    executable = relax.build(Branches)
    executable.export_library(tmp_path / "net.so")
    machines = [
        relax.VirtualMachine(executable),
        relax.VirtualMachine(relax.load_executable(tmp_path / "net.so")),
    ]
    w = array(4, 8)
    for machine in machines:
        for n in (1, 5):
            x = array(n, 4)
            for chosen in (True, False):
                condition = tvm.nd.array(np.array(chosen))
                args = [tvm.nd.array(x), tvm.nd.array(w), condition]
                z, (shape, same), flat = machine["main"](*args)
                wanted = np.maximum(x @ w, 0) if chosen else 2 * (x @ w)
                np.testing.assert_allclose(z.numpy(), wanted, rtol=1e-4, atol=1e-5)
                assert tuple(shape) == (n, 8)
                np.testing.assert_array_equal(same.numpy(), x)
                np.testing.assert_allclose(flat.numpy(), wanted.ravel(), rtol=1e-4, atol=1e-5)


def test_what_does_not_fit_is_refused_with_its_name():
    main = machine_of(Branches)["main"]
    w, c = tvm.nd.array(array(4, 8)), tvm.nd.array(np.array(True))
    x = tvm.nd.array(array(2, 4))
    with pytest.raises(ValueError, match="main: input 'x' has extent 1 of 5, must be 4"):
        main(tvm.nd.array(array(2, 5)), w, c)
    with pytest.raises(ValueError, match="main: input 'x' must have 2 axes, has the shape"):
        main(tvm.nd.array(array(4)), w, c)
    with pytest.raises(ValueError, match="main: input 'c' must be bool, is float32"):
        main(x, w, tvm.nd.array(np.array(1, "float32")))
    with pytest.raises(TypeError, match="main: input 'w' must be a tensor, got int"):
        main(x, 3, c)
    with pytest.raises(TypeError, match=r"takes 3 inputs \(x, w, c\), got 1"):
        main(x)


def test_a_kernel_with_open_sizes_runs_in_a_library(tmp_path):
    @I.ir_module
    class Rows:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
            with R.dataflow():
                y = R.nn.softmax(R.nn.relu(R.matmul(x, w)))
                out = R.concat((y, y), axis=0)
                R.output(out)
            return out

    relax.build(Rows).export_library(tmp_path / "rows.so")
    script = (
        "import sys, numpy as np, tvm\n"
        "from tvm.runtime import relax_vm\n"
        "main = relax_vm.VirtualMachine(relax_vm.load_executable(sys.argv[1]))['main']\n"
        "w = np.arange(32).reshape(4, 8).astype('float32') / 32\n"
        "for n in (1, 3, 6):\n"
        "    x = np.ones((n, 4), 'float32')\n"
        "    e = np.exp(np.maximum(x @ w, 0))\n"
        "    wanted = np.concatenate([e / e.sum(1, keepdims=True)] * 2)\n"
        "    got = main(tvm.nd.array(x), tvm.nd.array(w)).numpy()\n"
        "    np.testing.assert_allclose(got, wanted, rtol=1e-4)\n"
        "print('ran')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "rows.so")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TVM_USE_RUNTIME_LIB": "1"},
    )
    assert done.stdout == "ran\n", done.stderr


def test_functions_call_each_other_themselves_and_what_they_are_given():
    @I.ir_module
    class Calls:
        @R.function
        def power(x: R.Tensor((2,), "float32"), n: R.Prim("int64")) -> R.Tensor((2,), "float32"):
            stop = R.call_pure_packed("test.programs.is_zero", n, sinfo_args=R.Tensor((), "bool"))
            if stop:
                y = R.ones_like(x)
            else:
                less = R.call_pure_packed("test.programs.less", n, sinfo_args=R.Prim("int64"))
                rest = Calls.power(x, less)
                y = R.multiply(x, rest)
            return y

        @R.function(pure=False)
        def twice(
            x: R.Tensor((2,), "float32"),
            f: R.Callable([R.Tensor((2,), "float32")], R.Tensor((2,), "float32"), False),
        ) -> R.Tensor((2,), "float32"):
            y = f(x)
            return f(y)

    tvm.register_func("test.programs.is_zero", lambda n: tvm.nd.array(np.array(n == 0)))
    tvm.register_func("test.programs.less", lambda n: n - 1)
    try:
        machine = machine_of(Calls)
        x = tvm.nd.array(np.array([2, 3], "float32"))
        np.testing.assert_array_equal(machine["power"](x, 3).numpy(), [8, 27])
        with pytest.raises(RecursionError):
            machine["power"](x, 10**7)
        with pytest.raises(TypeError, match="input 'n' must be a number of type int64, got str"):
            machine["power"](x, "three")
        add = machine["twice"](x, lambda y: tvm.nd.array(y.numpy() + 1))
        np.testing.assert_array_equal(add.numpy(), [4, 5])
    finally:
        for name in ("is_zero", "less"):
            tvm._ffi.remove_global_func(f"test.programs.{name}")
    with pytest.raises(ValueError, match="'test.programs.is_zero', which neither the executable"):
        machine_of(Calls)["power"](x, 3)


def test_closures_keep_what_they_capture():
    @I.ir_module
    class Closures:
        @R.function
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            @R.function
            def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return R.add(x, z)

            return inner

    machine = machine_of(Closures)
    x, y = (tvm.nd.array(np.array(v, "float32")) for v in ([1, 2], [10, 20]))
    closure = machine["main"](x, y)
    np.testing.assert_array_equal(machine.invoke_closure(closure, y).numpy(), [11, 22])


def test_shapes_that_follow_from_values_are_matched():
    @I.ir_module
    class Matched:
        @R.function
        def main(x: R.Tensor("float32", ndim=2), s: R.Shape(["m", "k"])):
            m, k = T.int64(), T.int64()
            y = R.match_cast(x, R.Tensor((m, k + 1), "float32"))
            z = R.add(y, y)
            return (z, R.shape([m * 2, k]))

    machine = machine_of(Matched)
    x = array(2, 4)
    z, shape = machine["main"](tvm.nd.array(x), ShapeTuple([2, 3]))
    np.testing.assert_array_equal(z.numpy(), 2 * x)
    assert tuple(shape) == (4, 3)
    with pytest.raises(ValueError, match="'y' has extent 1 of 4, must be 6, as another value says"):
        machine["main"](tvm.nd.array(x), ShapeTuple([2, 5]))


class Cached(nn.Module):
    """Sums up all rows that it was ever given."""

    def __init__(self):
        self.cache = nn.KVCache(2, [3])

    def forward(self, x: nn.Tensor, total: int):
        self.cache.append(x)
        rows = self.cache.view(total)
        return nn.op.softmax(rows, axis=0)


def test_a_network_with_a_cache_keeps_it_between_calls(tmp_path):
    spec = {"forward": {"x": nn.spec.Tensor(["n", 3], "float32"), "total": int}}
    mod, _ = Cached().export_tvm(spec=spec)
    relax.build(mod).export_library(tmp_path / "cached.so")
    machine = relax.VirtualMachine(relax.load_executable(tmp_path / "cached.so"))
    for _ in range(2):  # each effect is a cache of its own
        (cache,) = machine["_initialize_effect"]()
        rows = np.zeros((0, 3), "float32")
        for count in (1, 3, 2):
            more = array(count, 3, seed=count)
            rows = np.concatenate([rows, more])
            out, (cache,) = machine["forward"](tvm.nd.array(more), ShapeTuple([len(rows)]), cache)
            e = np.exp(rows)
            np.testing.assert_allclose(out.numpy(), e / e.sum(0), rtol=1e-4)
    with pytest.raises(ValueError, match="the cache has 6 rows of 3 elements"):
        machine["forward"](tvm.nd.array(array(0, 3)), ShapeTuple([9]), cache)


def test_a_torch_module_with_a_cache_and_debugging_prints(capfd):
    import torch

    class Printing(Cached):
        def forward(self, x: nn.Tensor, total: int):
            nn.print_(x)
            return super().forward(x, total)

    spec = {"forward": {"x": nn.spec.Tensor([1, 3], "float32"), "total": int}}
    run = Printing().jit(spec=spec, debug=True)
    for total in (1, 2):
        out = run["forward"](torch.ones(1, 3), total)
        torch.testing.assert_close(out, torch.full((total, 3), 1 / total))
    assert "[[1, 1, 1]]" in capfd.readouterr().out


def test_printing_and_assertions(capfd):
    @I.ir_module
    class Checked:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "int32"), ok: R.Tensor((), "bool")) -> R.Tensor((2,), "int32"):
            _ = R.print(x, format="x is {}")
            _1 = R.assert_op(ok, x, format="not ok: {}")
            return x

    main = machine_of(Checked)["main"]
    x = tvm.nd.array(np.array([1, -2], "int32"))
    main(x, tvm.nd.array(np.array(True)))
    assert "x is [1, -2]" in capfd.readouterr().out
    with pytest.raises(AssertionError, match=r"not ok: \[1, -2\]"):
        main(x, tvm.nd.array(np.array(False)))


def test_inputs_are_kept_results_taken_apart_and_calls_saved():
    @I.ir_module
    class Nested:
        @R.function
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            with R.dataflow():
                s = R.add(x, y)
                R.output(s)
            return (s, (x, (y,)))

    machine = machine_of(Nested)
    x, y = array(2), array(2, seed=1)
    machine.set_input("main", x, y=y)
    machine.invoke_stateful("main")
    total, (first, (second,)) = machine.get_outputs("main")
    np.testing.assert_allclose(total.numpy(), x + y)
    np.testing.assert_array_equal(first.numpy(), x)
    np.testing.assert_array_equal(second.numpy(), y)
    assert "vm.builtin.make_tuple" in str(machine.profile("main", *map(tvm.nd.array, (x, y))))
    machine.save_function("main", "kept", x, y, include_return=False)
    assert machine["kept"]() is None
    assert machine.time_evaluator("kept", tvm.cpu(), number=1)().mean > 0
    with pytest.raises(ValueError, match="takes x, y; missing: y"):
        machine.set_input("main", x=x)
    with pytest.raises(ValueError, match="'main' was not run"):
        machine_of(Nested).get_outputs("main")


def test_calls_are_watched_and_left_out():
    machine = machine_of(Branches)
    seen = []

    def watch(function, name, before, result, *args):
        seen.append((name, before))
        return VMInstrumentReturnKind.SKIP_RUN if name == "relu" else VMInstrumentReturnKind.NO_OP

    machine.set_instrument(watch)
    args = [array(2, 4), array(4, 8), np.array(True)]
    machine["main"](*map(tvm.nd.array, args))
    assert ("matmul", True) in seen and ("matmul", False) in seen
    assert ("relu", True) in seen and ("relu", False) not in seen


def test_programs_written_by_hand():
    builder = relax.ExecBuilder()
    with builder.function("pick", num_inputs=3):
        builder.emit_if(builder.r(0), 3)
        builder.emit_call("vm.builtin.copy", [builder.r(1)], builder.r(3))
        builder.emit_goto(2)
        builder.emit_call("vm.builtin.copy", [builder.r(2)], builder.r(3))
        builder.emit_ret(builder.r(3))
    with builder.function("constant"):
        shape = builder.convert_constant((2, 3))
        builder.emit_call("vm.builtin.make_tuple", [shape, 4, 2.5, "text"], builder.r(0))
        builder.emit_ret(builder.r(0))
    executable = builder.get()
    assert "if %0 else +3" in executable.as_text()
    assert "Programs: 2" in executable.stats()
    machine = relax.VirtualMachine(executable)
    assert [machine["pick"](c, 5, 6) for c in (1, 0)] == [5, 6]
    assert [*machine["constant"]()] == [ShapeTuple([2, 3]), 4, 2.5, "text"]


def test_a_program_as_python_builds_it_again():
    builder = relax.ExecBuilder()
    with builder.function("pick", num_inputs=3):
        builder.emit_if(builder.r(0), 3)
        builder.emit_call("vm.builtin.copy", [builder.r(1)], builder.r(3))
        builder.emit_goto(2)
        builder.emit_call("vm.builtin.copy", [builder.r(2)], builder.r(3))
        builder.emit_call("testing.seen", [builder.vm_state(), builder.imm(4), builder.f("pick")])
        builder.emit_ret(builder.r(3))
    executable = builder.get()
    text = executable.as_python()
    assert text.splitlines()[:4] == [
        "ib = relax.ExecBuilder()",
        'with ib.function("pick", num_inputs=3):',
        "    ib.emit_if(ib.r(0), 3)",
        '    ib.emit_call("vm.builtin.copy", args=[ib.r(1)], dst=ib.r(3))',
    ]
    names = {"relax": relax}
    exec(text, names)
    assert names["ib"].get().as_text() == executable.as_text()


@pytest.mark.parametrize(
    ("emit", "message"),
    [
        (lambda b: b.emit_goto(-1), "names a step forward -1"),
        (lambda b: b.emit_goto(7), "names a step forward 7"),
        (lambda b: b.emit_call("f", [0], b.r(0)), "does not end by returning a value"),
    ],
)
def test_programs_that_would_not_end_are_refused(emit, message):
    builder = relax.ExecBuilder()
    with builder.function("f"):
        emit(builder)
    with pytest.raises(ValueError, match=message):
        builder.get()


def test_values_that_nothing_gives_and_kernels_that_do_not_exist_are_named():
    @I.ir_module
    class Unknown:
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            return R.add(x, x)

    with pytest.raises(ValueError, match=r"operator 'relax.add' has no kernel for operands"):
        relax.build(Unknown)
    with pytest.raises(ValueError, match='exec_mode must be "bytecode" or "compiled"'):
        relax.build(Branches, exec_mode="fast")
    with pytest.raises(ValueError, match="for cuda, functions take and give tensors"):
        relax.build(Branches, "cuda -arch=sm_80")


def test_kernels_outside_of_dataflow_blocks_are_fused_too():
    @I.ir_module
    class Plain:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 8), "float32")):
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            return (z, R.add(z, z))

    executable = relax.build(Plain)
    assert "Programs: 0" in executable.stats() and "Kernels: 2" in executable.stats()
    x, w = array(2, 4), array(4, 8)
    z, twice = relax.VirtualMachine(executable)["main"](tvm.nd.array(x), tvm.nd.array(w))
    np.testing.assert_allclose(z.numpy(), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(twice.numpy(), 2 * z.numpy())


def test_extents_of_numbers_alone_need_no_heap():
    two = tvm.tir.IntImm("int64", 2)
    builder = relax.BlockBuilder()
    flag = relax.Var("flag", R.Tensor((), "bool"))
    with builder.function("main", [flag]):
        twice = relax.ShapeExpr([tvm.tir.Mul(two, two)])
        builder.emit_func_output(builder.emit(relax.op.ones(twice, "float32")))
    made = machine_of(builder.get())["main"](tvm.nd.array(np.array(True)))
    np.testing.assert_array_equal(made.numpy(), np.ones(4, "float32"))
