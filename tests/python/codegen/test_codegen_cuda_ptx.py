"""NVIDIA's instructions by their names, in kernels that NVIDIA's compiler accepts."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.script import tir as T

pytest.importorskip("cuda.bindings.nvrtc")


def source(func, arch="sm_80"):
    """CUDA C of a function, which the compiler has made machine code of."""
    (device,) = tvm.build(func, target=f"cuda -arch={arch}").imported_modules
    return device.get_source()


@T.prim_func
def product(
    A: T.Buffer((16, 16), "float16"),
    B: T.Buffer((16, 16), "float16"),
    C: T.Buffer((16, 16), "float32"),
):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    T.launch_thread("blockIdx.x", 1)
    tx = T.launch_thread("threadIdx.x", 32)
    A_s = T.allocate([256], "float16", "shared")
    B_s = T.allocate([256], "float16", "shared")
    a = T.allocate([8], "float16", "local")
    b = T.allocate([8], "float16", "local")
    c = T.allocate([8], "float32", "local")
    T.evaluate(T.mma_fill(8, c, 0, dtype="float32"))
    T.evaluate(T.ptx_cp_async(A_s, tx * 8, A.data, tx * 8, 16, dtype="float16"))
    T.evaluate(T.ptx_cp_async(B_s, tx * 8, B.data, tx * 8, 16, tx < 30, dtype="float16"))
    T.evaluate(T.ptx_commit_group(dtype=""))
    T.evaluate(T.ptx_wait_group(0, dtype=""))
    T.tvm_storage_sync("shared")
    row = 16 * (tx % 16) + 8 * (tx // 16)
    T.evaluate(T.ptx_ldmatrix(False, 4, ".b16", a, 0, A_s, row, dtype="float16"))
    T.evaluate(T.ptx_ldmatrix(True, 4, ".b16", b, 0, B_s, row, dtype="float16"))
    for half in T.unroll(2):
        T.evaluate(
            T.ptx_mma(
                "m16n8k16",
                "row",
                "col",
                "fp16",
                "fp16",
                "fp32",
                a,
                0,
                b,
                4 * half,
                c,
                4 * half,
                False,
                dtype="float32",
            )
        )
    T.evaluate(T.mma_store(16, 16, C.access_ptr("w"), c, 0, 16, dtype="float32"))


def test_a_product_of_a_warp_is_instructions():
    text = source(product)
    assert text.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, ") == 2
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in text
    assert "cp.async.cg.shared.global [%0], [%1], %2;" in text
    assert "< 30)) ? 16 : 0)" in text
    assert "cp.async.wait_group" in text
    # Elements of local arrays are taken two at a time.
    assert "__align__(16) half a[8];" in text


def test_instructions_print_and_read_back():
    again = tvm.script.from_source(product.script())
    tvm.ir.assert_structural_equal(again, product)


def one_product(
    shape, types, counts, out, bit_op=None, sparse=False, saturate=False, layout="col", data=None
):
    """A kernel of one product of local arrays whose sums go out."""
    names = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp64": "float64"}
    names |= {"int1": "int32", "int4": "int32", "uint4": "int32"}
    kinds = [data or names.get(name, name) for name in types]

    def call(a, b, c, e):
        head = (out, shape, "row", layout, *types, a, 0, b, 0, c, 0)
        if sparse:
            return tir.ptx_mma_sp(*head, e, 0, 0, saturate)
        return tir.ptx_mma(*head, saturate, bit_op)

    @T.prim_func
    def func(C: T.Buffer((32 * counts[2],), out)):
        T.func_attr({"global_symbol": "main"})
        T.launch_thread("blockIdx.x", 1)
        tx = T.launch_thread("threadIdx.x", 32)
        a = T.allocate([counts[0]], kinds[0], "local")
        b = T.allocate([counts[1]], kinds[1], "local")
        c = T.allocate([counts[2]], out, "local")
        e = T.allocate([1], "uint32", "local")
        c_1 = T.Buffer((counts[2],), out, data=c, scope="local")
        for i in range(counts[2]):
            c_1[i] = T.Cast(out, 0)
        T.evaluate(call(a, b, c, e))
        for i in range(counts[2]):
            C[tx * counts[2] + i] = c_1[i]

    return func


@pytest.mark.parametrize(
    ("shape", "types", "counts", "out", "text"),
    [
        ("m8n8k4", ("fp64", "fp64", "fp64"), (1, 1, 2), "float64", ".f64.f64.f64.f64 {%0, %1}"),
        ("m16n8k8", ("bf16", "bf16", "fp32"), (4, 2, 4), "float32", ".f32.bf16.bf16.f32"),
        ("m16n8k8", ("tf32", "tf32", "fp32"), (4, 2, 4), "float32", ".f32.tf32.tf32.f32"),
        ("m16n8k16", ("fp16", "fp16", "fp16"), (8, 4, 4), "float16", "{%0, %1}, {%2, %3, %4, %5}"),
        ("m16n8k32", ("int8", "uint8", "int32"), (16, 8, 4), "int32", ".s32.s8.u8.s32"),
        ("m8n8k32", ("int4", "uint4", "int32"), (1, 1, 2), "int32", ".s32.s4.u4.s32 {%0, %1}"),
    ],
)
def test_products_of_many_types(shape, types, counts, out, text):
    assert text in source(one_product(shape, types, counts, out))


def test_products_of_bits_saturating_and_sparse():
    bits = one_product("m16n8k256", ("int1", "int1", "int32"), (4, 2, 4), "int32", bit_op="xor")
    assert ".s32.b1.b1.s32.xor.popc" in source(bits)
    limited = one_product("m8n8k16", ("int8", "int8", "int32"), (4, 4, 2), "int32", saturate=True)
    assert ".col.satfinite.s32.s8.s8.s32" in source(limited)
    sparse = one_product("m16n8k16", ("fp16", "fp16", "fp32"), (4, 4, 4), "float32", sparse=True)
    assert "mma.sp.sync.aligned.m16n8k16" in source(sparse)


@pytest.mark.parametrize(
    ("shape", "types", "layout", "message"),
    [
        (
            "m16n8k16",
            ("fp64", "fp64", "fp64"),
            "col",
            "no product m16n8k16 of f64; there are m8n8k4",
        ),
        ("m16n8k8", ("fp16", "bf16", "fp32"), "col", "no product of f16 and bf16 with sums of f32"),
        ("m16n8k8", ("fp16", "fp16", "int32"), "col", "with sums of s32"),
        ("m16n8k8", ("fp16", "fp16", "fp32"), "row", 'takes rows .* "row" and "col"'),
        ("m16n8k8", ("fp99", "fp16", "fp32"), "col", 'no matrices of "fp99"'),
    ],
)
def test_products_that_do_not_exist_are_refused(shape, types, layout, message):
    with pytest.raises(ValueError, match=message):
        func = one_product(shape, types, (4, 2, 4), "float32", layout=layout, data="float16")
        source(func)


def sums_of_pairs(fetch):
    """Adds neighbours of two tiles of 48 floats, each of which has a barrier of its own.

    fetch : (shared memory, place there, memory, place there, barrier) -> statements by which thread
        0 to 11 asks for four floats of a tile.
    """

    @T.prim_func
    def func(data: T.Buffer((96,), "float32"), sums: T.Buffer((48,), "float32")):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        thread = T.launch_thread("threadIdx.x", 12)
        tiles = T.allocate([96], "float32", "shared")
        tile = T.Buffer((96,), "float32", data=tiles, scope="shared")
        T.evaluate(T.create_barriers(2, dtype=""))
        for stage in T.unroll(2):
            T.evaluate(T.ptx_init_barrier_thread_count(stage, 12, dtype=""))
        for stage in T.unroll(2):
            fetch(tiles, 48 * stage + 4 * thread, data.data, 48 * stage + 4 * thread, stage)
        for stage in T.unroll(2):
            T.evaluate(T.ptx_wait_barrier(stage, dtype=""))
            for pair in range(2):
                at = 24 * stage + 2 * thread + pair
                sums[at] = tile[2 * at] + tile[2 * at + 1]

    return func


def test_copies_that_a_barrier_waits_for():
    def by_threads(to, at, memory, place, barrier):
        T.evaluate(tir.ptx_cp_async("float32", to, at, memory, place, 16))
        T.evaluate(tir.ptx_cp_async_barrier(barrier))
        T.evaluate(tir.ptx_arrive_barrier(barrier))

    text = source(sums_of_pairs(by_threads))
    assert "__shared__ __align__(8) unsigned long long barriers[2];" in text
    assert "cp.async.mbarrier.arrive.shared.b64" in text
    # The next time that one is waited for, it is in its other phase.
    assert "phases[1] ^= 1;" in text


def test_bulk_copies_need_a_barrier():
    def in_bulk(to, at, memory, place, barrier):
        T.evaluate(tir.ptx_cp_async_bulk("float32", to, at, memory, place, 16, barrier))
        T.evaluate(tir.ptx_arrive_barrier_expect_tx(barrier, 16))

    assert "cp.async.bulk.shared::cluster.global" in source(sums_of_pairs(in_bulk), "sm_90")

    @T.prim_func
    def without(A: T.Buffer((32,), "float16")):
        T.launch_thread("threadIdx.x", 32)
        T.evaluate(T.ptx_arrive_barrier(0, dtype=""))

    with pytest.raises(ValueError, match="no create_barriers stands before it"):
        source(without)


def test_a_guarded_load_gives_zero_elsewhere():
    @T.prim_func
    def guarded(A: T.Buffer((20,), "float32"), B: T.Buffer((32,), "float32")):
        T.func_attr({"global_symbol": "main"})
        tx = T.launch_thread("threadIdx.x", 32)
        r = T.allocate([1], "float32", "local")
        r_1 = T.Buffer((1,), "float32", data=r, scope="local")
        T.evaluate(T.ptx_ldg32(r, tx < 20, A[tx], 0, dtype="float32"))
        B[tx] = r_1[0]

    assert "@p ld.global.nc.b32 %0, [%2]" in source(guarded)
