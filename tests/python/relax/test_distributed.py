"""Tensors on several devices: text, how placements spread, and what workers compute."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relax
from tvm.contrib import utils
from tvm.relax.distributed import (
    DeviceMesh,
    DTensorStructInfo,
    Placement,
    PlacementSpec,
    PlacementSpecKind,
    device_mesh,
    transform,
)
from tvm.relax.distributed.kernel_axes import KernelAxes
from tvm.runtime import disco
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

S, D, HEADS, WIDTH = 8, 64, 4, 16


def test_a_mesh_has_a_device_at_each_point():
    mesh = device_mesh((2, 3), tvm.ir.Range(1, 7))
    assert mesh.extents == (2, 3)
    assert [int(i) for i in mesh.device_ids] == [1, 2, 3, 4, 5, 6]
    assert DeviceMesh((2,), [5, 7]) == DeviceMesh((2,), [5, 7])
    with pytest.raises(ValueError, match="5 devices for a mesh of 6 points"):
        DeviceMesh((2, 3), [0, 1, 2, 3, 4])


def test_placements_are_texts():
    placement = Placement.from_text("S[1], R")
    assert str(placement) == "S[1], R"
    assert placement.axes == (1, None)
    assert placement.dim_specs[0].kind == PlacementSpecKind.kSharding
    assert PlacementSpec.replica().axis == -1
    with pytest.raises(ValueError, match='"T" of "R, T" is neither R nor S'):
        Placement.from_text("R, T")


def test_struct_info_of_parts_says_what_does_not_fit():
    mesh = DeviceMesh((2, 2), tvm.ir.Range(0, 4))
    tensor = relax.TensorStructInfo((4, 8), "float32")
    info = DTensorStructInfo(tensor, mesh, "S[0], R")
    assert tvm.ir.load_json(tvm.ir.save_json(info)) == info
    assert info.as_type() == relax.distributed.DTensorType(2, "float32")
    with pytest.raises(ValueError, match="must have the same dimension size, got 2 and 1"):
        DTensorStructInfo(tensor, mesh, "R")
    with pytest.raises(ValueError, match="got 2 of"):
        DTensorStructInfo(tensor, mesh, "S[2], R")


@I.ir_module
class Pair:
    I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})

    @T.prim_func
    def double(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
        for i, j in T.grid(8, 4):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    @R.function
    def main(x: R.DTensor((8, 4), "float32", "mesh[0]", "S[0]")):
        y = R.dist.call_tir(
            Pair.double, (x,), out_sinfo=R.DTensor((8, 4), "float32", "mesh[0]", "S[0]")
        )
        z = R.add(y, R.dist.const(1.0, R.DTensor((), "float32", "mesh[0]", "R")))
        return R.dist.redistribute(z, device_mesh="mesh[0]", placement="R")


def test_a_module_on_a_mesh_reads_back_as_it_prints():
    text = Pair.script()
    assert 'I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})' in text
    assert 'out_sinfo=R.DTensor((8, 4), "float32", "mesh[0]", "S[0]")' in text
    assert 'R.dist.redistribute(z, device_mesh="mesh[0]", placement="R")' in text
    constants = tvm.script.from_source(Pair.script(show_meta=True))
    tvm.ir.assert_structural_equal(constants, Pair)
    assert str(Pair["main"].ret_struct_info.placement) == "R"


def test_a_mesh_that_the_module_lacks_is_named():
    text = Pair.script(show_meta=True).replace('"mesh[0]", "S[0]"', '"mesh[1]", "S[0]"')
    with pytest.raises(tvm.error.DiagnosticError, match=r"no mesh `mesh\[1\]`.*mesh\[0\]"):
        tvm.script.from_source(text)


@T.prim_func(private=True)
def reshaped(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 4, 16), "float32")):
    for i, j, k in T.grid(8, 4, 16):
        with T.block("reshape"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj * 16 + vk]


@T.prim_func(private=True)
def flattened(A: T.Buffer((8, 4, 16), "float32"), B: T.Buffer((8, 64), "float32")):
    for i, j in T.grid(8, 64):
        with T.block("flatten"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj // 16, vj % 16]


@T.prim_func(private=True)
def shifted(A: T.Buffer((9,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("shift"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi + 1]


@T.prim_func(private=True)
def numbered(B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("number"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.cast(vi, "float32")


@pytest.mark.parametrize(
    ("func", "parts", "together"),
    [
        (reshaped, 2, [{(0, 0), (1, 0)}, {(0, 1), (1, 1)}]),
        (reshaped, 8, [{(0, 0), (1, 0)}]),
        (flattened, 4, [{(0, 0), (1, 0)}, {(0, 1), (1, 1)}]),
        (flattened, 8, [{(0, 0), (1, 0)}]),
        (shifted, 2, []),
        (numbered, 2, []),
    ],
)
def test_dimensions_that_are_divided_together(func, parts, together):
    found = [g.dims for g in KernelAxes(func).groups() if not g.why_not(parts)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, together))


def _workers_run(mod, count, arrays):
    """What each worker's part of the result is; the arguments are those of the first."""
    lowered = tvm.transform.Sequential(
        [
            transform.LowerGlobalViewToLocalView(),
            transform.LegalizeRedistribute(),
            transform.LowerDistIR(),
            relax.transform.LegalizeOps(),
        ]
    )(mod)
    executable = relax.build(lowered, "llvm")
    folder = utils.tempdir()
    path = folder.relpath("parts.so")
    executable.export_library(path)
    session = disco.ThreadedSession(num_workers=count)
    try:
        main = session.load_vm_module(path, device=tvm.cpu())["main"]
        given = []
        for array in arrays:
            given.append(session.empty(array.shape, str(array.dtype)))
            given[-1].debug_copy_from(0, array)
        result = main(*given)
        return [result.debug_get_from_remote(worker).numpy() for worker in range(count)]
    finally:
        session.shutdown()


def _layer(workers):
    @I.ir_module
    class Layer:
        I.module_global_infos({"mesh": [R.device_mesh((workers,), I.Range(0, workers))]})

        @R.function
        def main(
            x: R.Tensor((1, S, D), "float32"),
            wq: R.Tensor((D, D), "float32"),
            wk: R.Tensor((D, D), "float32"),
            wv: R.Tensor((D, D), "float32"),
            wo: R.Tensor((D, D), "float32"),
            cut: R.Tensor((1, S, D), "float32"),
        ):
            with R.dataflow():
                q0 = R.matmul(x, R.permute_dims(wq))
                q1 = R.dist.annotate_sharding(q0, device_mesh="mesh[0]", placement="S[2]")
                k0 = R.matmul(x, R.permute_dims(wk))
                v0 = R.matmul(x, R.permute_dims(wv))
                q = R.permute_dims(R.reshape(q1, (1, S, HEADS, WIDTH)), axes=[0, 2, 1, 3])
                k = R.permute_dims(R.reshape(k0, (1, S, HEADS, WIDTH)), axes=[0, 2, 3, 1])
                v = R.permute_dims(R.reshape(v0, (1, S, HEADS, WIDTH)), axes=[0, 2, 1, 3])
                a = R.nn.softmax(R.divide(R.matmul(q, k), R.const(4.0, "float32")), axis=-1)
                o = R.reshape(R.permute_dims(R.matmul(a, v), axes=[0, 2, 1, 3]), (1, S, D))
                y = R.add(x, R.matmul(o, R.permute_dims(wo)))
                c = R.dist.annotate_sharding(cut, device_mesh="mesh[0]", placement="S[2]")
                s = R.nn.softmax(c, axis=-1)
                t = R.sum(R.nn.relu(c), axis=[2], keepdims=True)
                r = R.add(R.add(y, s), t)
                R.output(r)
            return r

    return Layer


def _expected(x, wq, wk, wv, wo, cut):
    x, wq, wk, wv, wo, cut = map(torch.from_numpy, (x, wq, wk, wv, wo, cut))
    q, k, v = ((x @ w.T).reshape(1, S, HEADS, WIDTH).transpose(1, 2) for w in (wq, wk, wv))
    attended = torch.softmax(q @ k.transpose(2, 3) / 4, -1) @ v
    y = x + attended.transpose(1, 2).reshape(1, S, D) @ wo.T
    return (y + torch.softmax(cut, -1) + torch.relu(cut).sum(2, keepdim=True)).numpy()


@pytest.mark.parametrize(("workers", "kernels_first"), [(2, True), (4, False)])
def test_workers_compute_attention_by_heads(workers, kernels_first):
    mod = _layer(workers)
    passes = [relax.transform.LegalizeOps(), transform.PropagateSharding()]
    placed = tvm.transform.Sequential(passes if kernels_first else passes[::-1])(mod)
    # Rows of the first three weights, columns of the last; a softmax needs whole rows.
    assert [str(p.struct_info.placement) for p in placed["main"].params] == [
        "R", "S[0]", "S[0]", "S[0]", "S[1]", "S[2]",
    ]  # fmt: skip
    assert placed.script().count("R.dist.redistribute") == 1
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal([int(e) for e in p.struct_info.shape]).astype("float32") / 4
        for p in mod["main"].params
    ]
    for part in _workers_run(placed, workers, arrays):
        # Sums of 64 products of numbers below 1, in another order.
        np.testing.assert_allclose(part, _expected(*arrays), rtol=1e-5, atol=1e-5)


def test_results_that_are_divided_stay_with_their_workers():
    part = _workers_run(
        transform.PropagateSharding()(_halves(2)), 2, [np.arange(8, dtype="float32")]
    )
    np.testing.assert_array_equal(part[0], np.arange(4) * 2.0)
    np.testing.assert_array_equal(part[1], np.arange(4, 8) * 2.0)


def _halves(workers):
    @I.ir_module
    class Halves:
        I.module_global_infos({"mesh": [R.device_mesh((workers,), I.Range(0, workers))]})

        @R.function
        def main(x: R.Tensor((8,), "float32")):
            y = R.dist.annotate_sharding(x, device_mesh="mesh[0]", placement="S[0]")
            return R.add(y, y)

    return relax.transform.LegalizeOps()(Halves)


def test_copies_become_parts():
    @I.ir_module
    class Shares:
        I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})

        @R.function
        def main(x: R.DTensor((4, 6), "float32", "mesh[0]", "R")):
            return R.dist.redistribute(x, device_mesh="mesh[0]", placement="S[1]")

    x = np.arange(24, dtype="float32").reshape(4, 6)
    left, right = _workers_run(Shares, 2, [x])
    np.testing.assert_array_equal(left, x[:, :3])
    np.testing.assert_array_equal(right, x[:, 3:])


def test_annotations_that_contradict_each_other_are_named():
    @I.ir_module
    class Both:
        I.module_global_infos({"mesh": [R.device_mesh((2,), I.Range(0, 2))]})

        @R.function
        def main(x: R.Tensor((8, 8), "float32")):
            y = R.dist.annotate_sharding(x, device_mesh="mesh[0]", placement="S[0]")
            z = R.nn.relu(y)
            return R.dist.annotate_sharding(z, device_mesh="mesh[0]", placement="S[1]")

    with pytest.raises(ValueError, match="sharding conflict at x: dimensions 0 and 1"):
        transform.PropagateSharding()(Both)


def test_meshes_of_two_dimensions_are_refused_where_workers_exchange_tensors():
    @I.ir_module
    class Grid:
        I.module_global_infos({"mesh": [R.device_mesh((2, 2), I.Range(0, 4))]})

        @R.function
        def main(x: R.DTensor((8, 8), "float32", "mesh[0]", "S[0], S[1]")):
            return R.nn.relu(x)

    assert str(Grid["main"].ret_struct_info.placement) == "S[0], S[1]"
    with pytest.raises(ValueError, match="the mesh has one dimension, not 2"):
        transform.LowerDistIR()(Grid)


def test_operands_that_lie_differently_are_refused():
    mesh = DeviceMesh((2,), [0, 1])
    tensor = relax.TensorStructInfo((8, 8), "float32")
    x = relax.Var("x", DTensorStructInfo(tensor, mesh, "S[1]"))
    w = relax.Var("w", DTensorStructInfo(tensor, mesh, "R"))
    with pytest.raises(TypeError, match=r"operand 1 has to be along \[0\]"):
        relax.op.matmul(x, w)
    product = relax.op.matmul(x, relax.Var("w", DTensorStructInfo(tensor, mesh, "S[0]")))
    assert str(product.struct_info.placement) == "R"
