"""Helpers for tests of graph programs."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.testing import nn, vm
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
