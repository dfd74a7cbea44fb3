"""Sorts and running sums become kernels for where they run, other operators stay."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import dlight as dl
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 8), "float32")):
        with R.dataflow():
            a = R.sort(x, axis=-1)
            b = R.argsort(x, axis=-1)
            c = R.topk(x, k=2, axis=-1)
            d = R.cumsum(R.nn.relu(x), axis=1)
            R.output(a, b, c, d)
        return (a, b, c, d)


@pytest.mark.parametrize(("target", "parallel"), [("llvm", False), ("cuda", True)])
def test_kernels_are_for_the_current_target(target: str, parallel: bool) -> None:
    with tvm.target.Target(target):
        mod = relax.backend.DispatchSortScan()(Module)
    names = {str(gvar.name_hint) for gvar in mod.get_global_vars()}
    assert names == {"sort", "argsort", "topk", "cumsum", "main"}
    assert "R.nn.relu" in mod["main"].script() and "R.sort" not in mod["main"].script()
    kernels = [mod[name] for name in ("sort", "cumsum")]
    assert all(("threadIdx.x" in str(kernel)) == parallel for kernel in kernels)


def test_results_are_those_of_numpy() -> None:
    mod = relax.backend.DispatchSortScan()(Module)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = np.random.default_rng(0).normal(size=(3, 8)).astype("float32")
    order, places, best, sums = machine["main"](tvm.nd.array(x))
    np.testing.assert_array_equal(order.numpy(), np.sort(x))
    np.testing.assert_array_equal(places.numpy(), np.argsort(x))
    np.testing.assert_array_equal(best[0].numpy(), np.sort(x)[:, :-3:-1])
    np.testing.assert_allclose(sums.numpy(), np.maximum(x, 0).cumsum(1), rtol=1e-5)


def test_the_device_of_the_operand_goes_before() -> None:
    @I.ir_module
    class OnDevice:
        I.module_global_infos({"vdevice": [I.vdevice("cuda", 0)]})

        @R.function
        def main(x: R.Tensor((8,), "float32", "cuda:0")):
            with R.dataflow():
                a = R.sort(x, axis=0)
                R.output(a)
            return a

    with tvm.target.Target("llvm"):
        mod = relax.backend.DispatchSortScan()(OnDevice)
    assert "threadIdx.x" in str(mod["sort"])


def test_kernels_of_open_extents_launch_by_themselves() -> None:
    @I.ir_module
    class Open:
        @R.function
        def main(x: R.Tensor(("rows", "columns"), "float32")):
            a = R.argsort(x, descending=True)
            b = R.cumsum(x, axis=1)
            return (a, b)

    with tvm.target.Target("cuda"):
        mod = relax.backend.DispatchSortScan()(Open)
        # A rule that binds loops would launch threads within threads.
        kept = dl.ApplyDefaultSchedule(dl.gpu.Fallback())(mod)
    for name in ("argsort", "cumsum"):
        tvm.ir.assert_structural_equal(kept[name], mod[name])
    x = np.random.default_rng(0).normal(size=(3, 300)).astype("float32")
    order, sums = tvm.nd.empty((3, 300), "int32"), tvm.nd.empty((3, 300))
    emulated = tvm.target.emulated("cuda")
    tvm.build(mod["argsort"].with_attr("global_symbol", "main"), target=emulated)(
        tvm.nd.array(x), order
    )
    tvm.build(mod["cumsum"].with_attr("global_symbol", "main"), target=emulated)(
        tvm.nd.array(x), sums
    )
    np.testing.assert_array_equal(order.numpy(), np.argsort(-x, kind="stable"))
    np.testing.assert_allclose(sums.numpy(), x.cumsum(1), rtol=1e-5, atol=1e-5)
