"""Blocks around nests of loops, and intrinsics that take their place."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_blocks import chain, check, matmul, replay
from testing_processors import has_feature
from tvm import te, tir
from tvm.ir import structural_equal
from tvm.tir.tensor_intrin import cuda, describe, x86


def tiled(m=12, n=8, k=6, tile=(4, 4, 3)):
    func, answer = matmul(m, n, k)
    sch = tir.Schedule(func, debug_mask="all")
    loops = [sch.split(loop, [None, t]) for loop, t in zip(sch.get_loops("C"), tile, strict=True)]
    sch.reorder(*[outer for outer, _ in loops], *[inner for _, inner in loops])
    return sch, func, answer, loops


def test_a_block_around_a_nest_has_the_outer_parts_of_the_variables():
    func, answer = chain(16, 16)
    sch = tir.Schedule(func, debug_mask="all")
    i, j = sch.get_loops("B")
    (i_0, i_1), (j_0, j_1) = sch.split(i, [None, 4]), sch.split(j, [None, 8])
    sch.reorder(i_0, j_0, i_1, j_1)
    outer = sch.blockize(i_1)
    made = sch.get(outer)
    assert str(made.name_hint) == "B_o"
    assert [int(iv.dom.extent) for iv in made.iter_vars] == [4, 2]
    assert [int(r.extent) for r in made.writes[0].region] == [4, 8]
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("B")] == [4, 8]
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)
    sch.reorder(j_0, i_0)
    sch.compute_at(outer, sch.get_loops("C")[0])
    check(sch, func, answer)


def test_first_values_of_a_reduction_go_to_the_block_around_it():
    sch, func, answer, loops = tiled()
    outer = sch.blockize(loops[0][1])
    assert sch.get(outer).init is not None
    assert sch.get(sch.get_block("C")).init is None
    check(sch, func, answer)
    sch.decompose_reduction(outer, loops[2][0])
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_variables_of_one_value_are_kept_or_not():
    for keep, count in ((True, 3), (False, 2)):
        sch, func, answer, loops = tiled(tile=(4, 4, 6))
        outer = sch.blockize(loops[0][1], preserve_unit_iters=keep)
        assert len(sch.get(outer).iter_vars) == count
        check(sch, func, answer)


def test_only_nests_become_blocks():
    func, _ = chain(10, 16)
    sch = tir.Schedule(func)
    i, j = sch.get_loops("B")
    sch.split(j, [None, 5])
    with pytest.raises(tir.ScheduleError, match="which loops inside and outside .* together"):
        sch.blockize(sch.get_loops("B")[2])
    sch2 = tir.Schedule(func)
    sch2.compute_at("B", sch2.get_loops("C")[0])
    with pytest.raises(tir.ScheduleError, match="holds more than one loop or block"):
        sch2.blockize(sch2.get_loops("C")[0])


def product_of_tiles(name, transposed=False):
    """An intrinsic for C += A @ B of 4 x 3 and 3 x 4 elements, as a call of a packed function."""

    def params():
        shapes = (("A", (4, 3)), ("B", (3, 4)), ("C", (4, 4)))
        return [describe.operand(name, shape, "float32") for name, shape in shapes]

    a, b, c = params()

    def update(i, j, k):
        return tir.BufferStore(c, c[i, j] + a[i, k] * b[k, j], [i, j])

    desc = describe.function_of_block(
        [a, b, c], [c, a, b], [c], describe.nest([4, 4, 3], "SSR", "update", update)
    )
    x, y, z = params()
    stores = [
        tir.BufferStore(z, z[i, j] + sum((x[i, k] * y[k, j] for k in range(3)), 0.0), [i, j])
        for i in range(4)
        for j in range(4)
    ]
    impl = describe.function_of_block([x, y, z], [z, x, y], [z], tir.SeqStmt(stores))
    tir.TensorIntrin.register(name, desc, impl, override=True)


def test_an_intrinsic_does_what_a_nest_did():
    product_of_tiles("test.product_4x4x3")
    sch, func, answer, loops = tiled()
    with pytest.raises(tir.ScheduleError, match="has first values; decompose the reduction first"):
        sch.tensorize(loops[0][1], "test.product_4x4x3")
    sch.decompose_reduction("C", loops[2][0])
    sch.tensorize(loops[0][1], "test.product_4x4x3")
    assert "T.match_buffer(A[" in str(sch.mod)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)


def test_what_differs_from_the_description_is_named():
    product_of_tiles("test.product_4x4x3")
    sch, _, _, loops = tiled(tile=(4, 2, 3))
    sch.decompose_reduction("C", loops[2][0])
    with pytest.raises(tir.ScheduleError, match="has the extent 2 and the description wants 4"):
        sch.tensorize(loops[0][1], "test.product_4x4x3")
    func, _ = chain(16, 16)
    with pytest.raises(tir.ScheduleError, match="does not compute what .* does"):
        other = tir.Schedule(func)
        other.tensorize(other.get_loops("B")[0], "test.product_4x4x3")
    with pytest.raises(ValueError, match="'nothing' is not registered; there are .*dot_16x4_vnni"):
        sch.tensorize(loops[0][1], "nothing")


def packed_product(m, n, k, dtypes):
    A = te.placeholder((m, k), dtypes[0], name="A")
    B = te.placeholder((n, k), dtypes[1], name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n), lambda i, j: te.sum(A[i, r].astype("int32") * B[j, r].astype("int32"), r), name="C"
    )
    return te.create_prim_func([A, B, C])


@pytest.mark.parametrize(
    ("intrin", "feature"),
    [(x86.VNNI_DOT_16x4_INTRIN, "avx512vnni"), (x86.AVX512_DOT_16x4_INTRIN, "avx512bw")],
)
def test_bytes_are_multiplied_by_instructions_of_avx512(intrin, feature):
    m, n, k = 4, 32, 16
    sch = tir.Schedule(packed_product(m, n, k, ("uint8", "int8")), debug_mask="all")
    sch.transform_layout("C", "B", lambda j, r: [j // 16, r // 4, j % 16, r % 4])
    _, j, r = sch.get_loops("C")
    (_, j_1), (r_0, r_1) = sch.split(j, [None, 16]), sch.split(r, [None, 4])
    sch.reorder(r_0, j_1, r_1)
    sch.decompose_reduction("C", r_0)
    sch.tensorize(j_1, intrin)
    if not has_feature(feature):
        return
    rng = np.random.default_rng(1)
    a = rng.integers(0, 100, (m, k)).astype("uint8")
    b = rng.integers(-100, 100, (n, k)).astype("int8")
    packed = np.ascontiguousarray(b.reshape(n // 16, 16, k // 4, 4).transpose(0, 2, 1, 3))
    out = tvm.nd.empty((m, n), "int32")
    built = tvm.build(sch.mod, target="llvm")
    built(tvm.nd.array(a), tvm.nd.array(packed), out)
    np.testing.assert_array_equal(out.numpy(), a.astype("int32") @ b.astype("int32").T)


def test_fragments_of_tensor_cores_are_named_by_type_and_memory():
    group = cuda.get_wmma_intrin_group("shared", "global", "float16", "float32", trans_b=True)
    assert group["compute"] == "wmma_sync_16x16x16_f16f16f32_trans"
    for name in group.values():
        assert tir.TensorIntrin.get(name) is not None
    with pytest.raises(ValueError, match="no products of float32 to float32"):
        cuda.get_wmma_intrin_group("shared", "global", "float32", "float32", trans_b=True)


def test_names_of_intrinsics_are_taken_once():
    intrin = tir.TensorIntrin.get(x86.VNNI_DOT_16x4_INTRIN)
    with pytest.raises(ValueError, match="registered already"):
        tir.TensorIntrin.register(x86.VNNI_DOT_16x4_INTRIN, intrin.desc, intrin.impl)
    assert tir.TensorIntrin.get("nothing", allow_missing=True) is None
