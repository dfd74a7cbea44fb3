"""Helpers for tests of graph programs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.testing import nn, vm
from tvm.relax.testing.lib_comparator import LibCompareVMInstrument
from tvm.script import ir as I
from tvm.script import relax as R


def test_layers_emit_into_the_builder():
    builder = relax.BlockBuilder()
    with builder.function("main"):
        model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False))
        data = nn.Placeholder((5, 4), name="x")
        builder.emit_func_output(model(data), params=[data, *model.parameters()])
    main = relax.VirtualMachine(relax.build(builder.get()))["main"]
    rng = np.random.default_rng(0)
    x, w, b, v = (rng.random(s, "float32") for s in ((5, 4), (4, 3), (3,), (3, 2)))
    got = main(*map(tvm.nd.array, (x, w, b, v))).numpy()
    np.testing.assert_allclose(got, np.maximum(x @ w + b, 0) @ v, rtol=1e-5)
    with pytest.raises(RuntimeError, match="no function is being built"):
        nn.ReLU()(data)


def test_functions_of_tests_are_called_by_name():
    @I.ir_module
    class Calls:
        @R.function(pure=False)
        def main(x: R.Tensor((1, 2), "float32")) -> R.Tensor((1, 4), "float32"):
            y = R.call_packed("test.vm.add", x, x, sinfo_args=R.Tensor((1, 2), "float32"))
            return R.call_dps_packed("test.vm.tile", (y,), R.Tensor((1, 4), "float32"))

    machine = relax.VirtualMachine(relax.build(Calls))
    x = tvm.nd.array(np.array([[1, 2]], "float32"))
    result = vm.check_saved_func(machine, "main", x)
    np.testing.assert_array_equal(result.numpy(), [[2, 4, 2, 4]])


def test_parts_of_a_network_are_marked_to_be_computed_again():
    builder = relax.BlockBuilder()
    with builder.function("main"):
        x = nn.Placeholder((4,), name="x")
        layers = [lambda v: nn.emit(relax.op.sin(v)), lambda v: nn.emit(relax.op.exp(v))] * 2
        builder.emit_func_output(nn.emit_checkpoint_sequential(layers, 2, x), params=[x])
    names = [str(b.value.op.name) for b in builder.get()["main"].body.blocks[0].bindings]
    start, end = "relax.grad.start_checkpoint", "relax.grad.end_checkpoint"
    assert names == [start, "relax.sin", "relax.exp", end, "relax.sin", "relax.exp"]
    with builder.function("whole"):
        x = nn.Placeholder((4,), name="x")
        out = nn.emit_checkpoint_sequential(layers, [1, 3], x, checkpoint_last=True)
        builder.emit_func_output(out, params=[x])
    names = [str(b.value.op.name) for b in builder.get()["whole"].body.blocks[0].bindings]
    assert names.count(start) == names.count(end) == 2
    with pytest.raises(ValueError, match="no 5 segments"):
        nn.emit_checkpoint_sequential(layers, 5, x)
    with pytest.raises(ValueError, match="of 3 functions, and there are 4"):
        nn.emit_checkpoint_sequential(layers, [1, 2], x)


def test_parameters_get_random_arrays():
    builder = relax.BlockBuilder()
    with builder.function("main"):
        x = nn.Placeholder((2, 3), name="x")
        builder.emit_func_output(nn.emit_te(lambda a: tvm.topi.exp(a), x), params=[x])
    (array,) = nn.init_params(builder.get())
    assert array.shape == (2, 3) and 0 <= array.numpy().min() < array.numpy().max() < 1
    open_ = relax.Var("y", R.Tensor(("n",), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [open_]):
        builder.emit_func_output(open_)
    with pytest.raises(ValueError, match="y has no fixed shape"):
        nn.init_params(builder.get())


def test_kernels_are_compared_with_those_of_another_library():
    @I.ir_module
    class Two:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            # A condition makes a program of the function, whose calls an instrument sees.
            if R.const(True, "bool"):
                y = R.exp(x)
            else:
                y = R.sin(x)
            return y

    mod = relax.transform.LegalizeOps()(Two)
    kernels = {
        gvar: func.with_attr("global_symbol", gvar.name_hint)
        for gvar, func in mod.functions.items()
        if isinstance(func, tvm.tir.PrimFunc)
    }
    reference = tvm.build(tvm.IRModule(kernels), target="llvm")
    seen = []

    class Compare(LibCompareVMInstrument):
        def compare(self, name, ref_args, new_args, ret_indices):
            super().compare(name, ref_args, new_args, ret_indices)
            seen.append(name)

    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    machine.set_instrument(Compare(reference, tvm.cpu(), verbose=False))
    x = np.linspace(0, 1, 4, dtype="float32")
    np.testing.assert_allclose(machine["main"](tvm.nd.array(x)).numpy(), np.exp(x), rtol=1e-5)
    assert len(seen) == 1 and "exp" in seen[0]
    wrong = Compare(reference, tvm.cpu(), verbose=False)
    results = [tvm.nd.array(np.zeros(2, "float32")), tvm.nd.array(np.ones(2, "float32"))]
    with pytest.raises(AssertionError, match="kernel k, argument 0"):
        wrong.compare("k", results[:1], results[1:], [0])
