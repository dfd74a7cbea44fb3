"""Vectors whose length is a multiple that only the machine knows."""

import re

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.target.features import has_scalable_vectors

SVE = "llvm -mtriple=aarch64-linux-gnu -mattr=+sve"
NEON = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
RISCV = "llvm -mtriple=riscv64-linux-gnu -mattr=+m,+f,+d,+v"


def test_types_and_lanes():
    ramp = tir.Ramp(0, 1, 4 * tir.vscale())
    assert ramp.dtype == "int32xvscalex4"
    assert tvm.DataType(ramp.dtype).scalable and tvm.DataType(ramp.dtype).lanes == 4
    assert str(ramp.lanes) == str(tir.vscale() * 4)
    assert tir.Broadcast(tir.const(1.0, "float32"), tir.vscale()).dtype == "float32xvscalex1"
    assert int(tir.Ramp(0, 1, 8).lanes) == 8
    # A scalar joins a vector, sums of vectors keep the lanes.
    total = ramp + 3
    assert total.dtype == ramp.dtype and (total < ramp).dtype == "boolxvscalex4"
    assert tir.Cast("float32xvscalex4", ramp).dtype == "float32xvscalex4"
    assert str(tir.get_vscale_expr("float16")) == str(tir.vscale() * 8)
    assert tir.is_vscale(tir.vscale()) and not tir.is_vscale(tir.vscale() * 2)


@pytest.mark.parametrize("shift", [lambda v: v << 2, lambda v: 2 * v * 2, lambda v: v * 4])
def test_forms_of_a_number_of_lanes(shift):
    assert tir.Ramp(0, 1, shift(tir.vscale())).dtype == "int32xvscalex4"


@pytest.mark.parametrize(
    "lanes", [lambda v: v * v, lambda v: v + 4, lambda v: 0, lambda v: v * 32768, lambda v: -v]
)
def test_other_numbers_of_lanes_are_refused(lanes):
    with pytest.raises(ValueError, match="multiple of vscale|lanes must be"):
        tir.Broadcast(1, lanes(tir.vscale()))


def test_lanes_that_differ_do_not_join():
    with pytest.raises(TypeError, match="lanes differ"):
        tir.Ramp(0, 1, 4 * tir.vscale()) + tir.Ramp(0, 1, 4)


def test_text_is_read_back():
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        T.func_attr({"global_symbol": "main"})
        B[0 : T.vscale() * 4] = A[0 : T.vscale() * 4] + T.Broadcast(T.float32(1), T.vscale() * 4)
        B[T.Ramp(64, 1, 4 * T.vscale())] = A[T.Ramp(0, 2, 4 * T.vscale())]

    text = main.script()
    assert "T.vscale()" in text
    again = tvm.script.from_source(text)
    tvm.ir.assert_structural_equal(main, again)
    tvm.ir.assert_structural_equal(main, tvm.ir.load_json(tvm.ir.save_json(main)))


def test_analyzer_knows_that_vscale_is_positive():
    analyzer = tvm.arith.Analyzer()
    assert analyzer.can_prove(tir.vscale() >= 1)
    assert analyzer.can_prove(4 * tir.vscale() > 3)
    assert not analyzer.can_prove(tir.vscale() >= 2)
    n = tir.vscale() * 4
    ramp, limit = tir.Ramp(0, 1, n), tir.Broadcast(n, n)
    assert str(analyzer.simplify(ramp < limit)).startswith("T.Broadcast(T.bool(True)")
    assert not analyzer.can_prove(tir.Ramp(1, 1, n).base + n <= n)
    whole = tir.FloorDiv(tir.Ramp(0, 1, n), tir.Broadcast(n, n))
    assert analyzer.simplify(whole).dtype == "int32xvscalex4"


@T.prim_func
def scaled_sum(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    for i in T.serial(256 // (4 * T.vscale())):
        for j in T.vectorized(4 * T.vscale()):
            B[i * (4 * T.vscale()) + j] = A[i * (4 * T.vscale()) + j] * 2.0 + T.float32(1)


def source(func, target, kind="ll"):
    return tvm.build(func, target=target).get_source(kind)


def test_loops_of_vscale_trips_become_scalable_vectors():
    vectors = tir.transform.VectorizeLoop()(tvm.IRModule({"main": scaled_sum}))
    text = vectors.script()
    assert "T.vectorized" not in text and re.search(r"T\.Ramp\(.*T\.vscale\(\) ?\* ?4\)", text)


def test_code_for_sve():
    code = source(scaled_sum, SVE)
    assert "load <vscale x 4 x float>" in code and "store <vscale x 4 x float>" in code
    assert "vscale_range(1,16)" in code
    assembly = source(scaled_sum, SVE, "asm")
    assert re.search(r"ld1[bw]\t\{ z\d+|ldr\tz\d+", assembly)


def test_code_for_riscv():
    assert re.search(r"vl\w*32\.v|vl1re32\.v|vl2re32\.v", source(scaled_sum, RISCV, "asm"))


def test_machines_without_scalable_vectors_have_vscale_one():
    assert not has_scalable_vectors(tvm.target.Target(NEON))
    assert has_scalable_vectors(tvm.target.Target(SVE))
    code = source(scaled_sum, NEON)
    assert "<4 x float>" in code and "vscale" not in code


@pytest.mark.parametrize("target", ["llvm", "stackvm"])
def test_results_where_vscale_is_one(target):
    x = np.random.default_rng(0).random(256, dtype="float32")
    out = tvm.nd.array(np.zeros(256, "float32"))
    tvm.build(scaled_sum, target=target)(tvm.nd.array(x), out)
    if not has_scalable_vectors(tvm.target.Target(target)):
        np.testing.assert_allclose(out.numpy(), x * 2 + 1, rtol=1e-6)


@T.prim_func
def strided(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    places = T.Ramp(0, 3, 4 * T.vscale())
    B[T.Ramp(0, 2, 4 * T.vscale())] = A[places]


def test_strides_are_gathered_and_scattered():
    code = source(strided, SVE)
    assert "llvm.masked.gather.nxv4f32" in code and "llvm.masked.scatter.nxv4f32" in code
    assert "ld1w" in source(strided, SVE, "asm")
    x = np.arange(64, dtype="float32")
    out = tvm.nd.array(np.zeros(64, "float32"))
    host = tvm.target.Target("llvm")
    tvm.build(strided, target=host)(tvm.nd.array(x), out)
    if not has_scalable_vectors(host):
        np.testing.assert_array_equal(out.numpy()[[0, 2, 4, 6]], [0, 3, 6, 9])


def test_active_lanes():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
        T.func_attr({"global_symbol": "main"})
        mask = T.get_active_lane_mask("boolxvscalex4", 0, n)
        B[0 : 4 * T.vscale()] = T.Select(
            mask, A[0 : 4 * T.vscale()], T.Broadcast(T.float32(0), 4 * T.vscale())
        )

    assert "llvm.get.active.lane.mask.nxv4i1.i32" in source(main, SVE)
    assert "whilelo" in source(main, SVE, "asm")
    host = tvm.target.Target("llvm")
    out = tvm.nd.array(np.full(8, -1, "float32"))
    tvm.build(main, target=host)(tvm.nd.array(np.arange(1, 9, dtype="float32")), out, 3)
    if not has_scalable_vectors(host):
        np.testing.assert_array_equal(out.numpy(), [1, 2, 3, 0, -1, -1, -1, -1])


def test_elementary_functions_of_scalable_vectors_are_refused():
    @T.prim_func
    def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        T.func_attr({"global_symbol": "main"})
        B[0 : 4 * T.vscale()] = T.erf(A[0 : 4 * T.vscale()])

    with pytest.raises(ValueError, match="erf of a scalable vector.*vectorize a loop"):
        tvm.build(main, target=SVE)
    tvm.build(main, target=NEON)


def test_elementary_functions_run_lane_by_lane():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main"})
        for j in T.vectorized(4 * T.vscale()):
            B[j] = T.sin(A[j])

    assert "<vscale" not in source(main, SVE)
    host = tvm.target.Target("llvm")
    x, out = np.linspace(-2, 2, 4, dtype="float32"), tvm.nd.array(np.zeros(4, "float32"))
    tvm.build(main, target=host)(tvm.nd.array(x), out)
    if not has_scalable_vectors(host):
        np.testing.assert_allclose(out.numpy(), np.sin(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [64, 61, 3])
def test_schedules_split_by_the_length_of_a_vector(size):
    A = te.placeholder((size,), name="A")
    B = te.compute((size,), lambda i: A[i] * 2.0 + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], factor=4 * tir.vscale())
    s[B].vectorize(inner)
    blocks = tir.Schedule(te.create_prim_func([A, B]))
    (loop,) = blocks.get_loops(blocks.get_block("B"))
    _, inner = blocks.split(loop, [None, 4 * tir.vscale()])
    blocks.vectorize(inner)
    again = tir.Schedule(te.create_prim_func([A, B]))
    tir.schedule.Trace.apply_json_to_schedule(blocks.trace.as_json(), again)
    tvm.ir.assert_structural_equal(blocks.mod, again.mod)
    host = tvm.target.Target("llvm")
    x = np.random.default_rng(size).random(size, dtype="float32")
    for scheduled in (s, blocks.mod):
        args = {"args": [A, B]} if scheduled is s else {}
        out = tvm.nd.array(np.zeros(size, "float32"))
        tvm.build(scheduled, target=host, **args)(tvm.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), x * 2 + 1, rtol=1e-6)
        if size > 4:
            assert "<vscale x 4 x float>" in tvm.build(scheduled, target=SVE, **args).get_source()
