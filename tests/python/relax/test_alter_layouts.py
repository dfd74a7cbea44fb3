"""Kernels in other layouts: which ones fit, and networks that use them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, tir
from tvm.relax.analysis import suggest_layout_transforms
from tvm.relax.transform import AlterOpImpl, LegalizeOps
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@T.prim_func(private=True)
def pooled(x: T.Buffer((2, 8, 9, 9), "float32"), y: T.Buffer((2, 8, 4, 8), "float32")):
    for n, c, h, w, i, j in T.grid(2, 8, 4, 8, 2, 2):
        with T.block("pool"):
            vn, vc, vh, vw, vi, vj = T.axis.remap("SSSSRR", [n, c, h, w, i, j])
            with T.init():
                y[vn, vc, vh, vw] = T.float32(0)
            y[vn, vc, vh, vw] = T.max(y[vn, vc, vh, vw], x[vn, vc, vh * 2 + vi, vw + vj])


@T.prim_func(private=True)
def biased(
    x: T.Buffer((2, 8, 4), "float32"),
    bias: T.Buffer((8, 4), "float32"),
    turned: T.Buffer((8, 2, 4), "float32"),
    y: T.Buffer((2, 8, 4), "float32"),
):
    for n, c, h in T.grid(2, 8, 4):
        with T.block("add"):
            vn, vc, vh = T.axis.remap("SSS", [n, c, h])
            y[vn, vc, vh] = x[vn, vc, vh] + bias[vc, vh] + turned[vc, vn, vh]


def _shapes(func: tir.PrimFunc, layout) -> dict[str, list[int]]:
    """Shapes of parameters after what is suggested for a layout of the result."""
    schedule = tir.Schedule(func)
    for block, maps in suggest_layout_transforms(func, [layout]).items():
        for what, index_map in maps.items():
            if isinstance(what, tir.Block):
                schedule.transform_block_layout(block.name_hint, index_map)
            else:
                schedule.transform_layout(block.name_hint, what, index_map)
    made = schedule.mod["main"]
    buffers = [made.buffer_map[p] for p in made.params]
    return {str(buffer.name): [int(e) for e in buffer.shape] for buffer in buffers}


def test_windows_are_laid_out_like_results() -> None:
    shapes = _shapes(pooled, lambda n, c, h, w: (n, h, w, c // 4, c % 4))
    assert shapes == {"x": [2, 9, 9, 2, 4], "y": [2, 4, 8, 2, 4]}


def test_operands_of_fewer_axes_and_other_orders() -> None:
    shapes = _shapes(biased, lambda n, c, h: (n, h, c))
    assert shapes == {"x": [2, 4, 8], "bias": [4, 8], "turned": [8, 2, 4], "y": [2, 4, 8]}


@pytest.mark.parametrize("layout", [lambda n, c, h: (n, c // 3, c % 3, h)], ids=["padded"])
def test_nothing_is_suggested_for_layouts_with_padding(layout) -> None:
    assert suggest_layout_transforms(biased, [layout]) == {}


def test_layouts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="Mismatch between output buffer shape and index map"):
        suggest_layout_transforms(biased, [lambda a, b: (b, a)])
    with pytest.raises(ValueError, match="Incompatible PrimFunc and write_transformations"):
        suggest_layout_transforms(biased, [lambda a, b, c: (b, a, c)] * 4)
    with pytest.raises(AssertionError, match="an IndexMap or a function"):
        suggest_layout_transforms(biased, [2])


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(
        a: T.Buffer((16,), "float32"), b: T.Buffer((16,), "float32"), o: T.Buffer((16,), "float32")
    ):
        T.func_attr({"operator_name": "relax.add"})
        for i in range(16):
            with T.block("add"):
                vi = T.axis.spatial(16, i)
                o[vi] = a[vi] + b[vi]

    @R.function
    def main(x: R.Tensor((16,), "float32"), y: R.Tensor((16,), "float32")):
        with R.dataflow():
            lv = R.call_tir(Module.add, (x, y), R.Tensor((16,), "float32"))
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv


@T.prim_func(private=True)
def tiled(a: T.Buffer((4, 4), "float32"), b: T.Buffer((16,), "float32"), o: T.handle):
    out = T.match_buffer(o, (4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = a[vi, vj] + b[vi * 4 + vj]


def test_kernels_in_other_layouts_compute_the_same() -> None:
    layouts = [lambda i: (i // 4, i % 4), lambda i: (i,), lambda i: (i // 4, i % 4)]
    mod = AlterOpImpl({"relax.add": tiled}, {"relax.add": layouts}, {"relax.add": [[], [], []]})(
        Module
    )
    names = sorted(str(gvar.name_hint) for gvar in mod.get_global_vars())
    assert names == ["main", "relax_add_replacement"]
    assert str(mod["main"]).count("R.layout_transform") == 2
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=16).astype("float32") for _ in range(2))
    vm = relax.VirtualMachine(relax.build(mod))
    got = vm["main"](tvm.nd.array(x), tvm.nd.array(y)).numpy()
    np.testing.assert_allclose(got, np.maximum(x + y, 0), rtol=1e-6)


def test_layouts_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="2 inputs and 1 results, and 1 layouts"):
        AlterOpImpl({"relax.add": tiled}, {"relax.add": [lambda i: (i // 4, i % 4)]})(Module)


@T.prim_func(private=True)
def copied(a: T.Buffer((4, 4), "float32"), b: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            b[vi, vj] = a[vi, vj]


@I.ir_module
class Short:
    @T.prim_func(private=True)
    def copy(a: T.Buffer((14,), "float32"), b: T.Buffer((14,), "float32")):
        T.func_attr({"operator_name": "relax.copy"})
        for i in range(14):
            with T.block("copy"):
                vi = T.axis.spatial(14, i)
                b[vi] = a[vi]

    @R.function
    def main(x: R.Tensor((14,), "float32")) -> R.Tensor((14,), "float32"):
        cls = Short
        with R.dataflow():
            y = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((14,), "float32"))
            R.output(y)
        return y


def test_padding_of_results_is_cut_off() -> None:
    layout = lambda i: (i // 4, i % 4)  # noqa: E731
    mod = AlterOpImpl({"relax.copy": copied}, {"relax.copy": [layout, layout]})(Short)
    assert "remove_pad" in [str(gvar.name_hint) for gvar in mod.get_global_vars()]
    x = np.arange(14, dtype="float32")
    got = relax.VirtualMachine(relax.build(mod))["main"](tvm.nd.array(x)).numpy()
    np.testing.assert_array_equal(got, x)


def test_separators_of_both_sides_reach_the_kernel() -> None:
    layout = lambda i: (i // 4, i % 4)  # noqa: E731
    mod = AlterOpImpl(
        {"relax.copy": copied},
        {"relax.copy": [layout, layout]},
        {"relax.copy": [[1], []]},
        {"relax.copy": [[], [1]]},
    )(Short)
    # There and back: the middle value has two dimensions of memory on both ways.
    there, _, back, _ = (b.value for b in mod["main"].body.blocks[0].bindings)
    assert list(there.attrs["axis_separators"]) == [1]
    assert list(back.attrs["input_axis_separators"]) == [1]
    kernels = LegalizeOps()(mod)
    separated = [
        [list(buffer.axis_separators) for buffer in func.buffer_map.values()]
        for gvar, func in kernels.functions.items()
        if "layout_transform" in gvar.name_hint
    ]
    assert sorted(separated) == [[[], [1]], [[1], []]]


def test_layout_transforms_become_kernels_that_pad() -> None:
    x = relax.Var("x", relax.TensorStructInfo((7,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.op.layout_transform(x, lambda i: (i // 4, i % 4), pad_value=-1.0))
        builder.emit_func_output(y)
    mod = LegalizeOps()(builder.get())
    assert "te_layout_transform_with_pad" in [str(v.name_hint) for v in mod.get_global_vars()]
    vm = relax.VirtualMachine(relax.build(mod))
    got = vm["main"](tvm.nd.array(np.arange(7, dtype="float32"))).numpy()
    np.testing.assert_array_equal(got.ravel(), [0, 1, 2, 3, 4, 5, 6, -1])
