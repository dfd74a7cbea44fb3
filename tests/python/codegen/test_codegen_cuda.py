"""Kernels printed as CUDA C, and accepted by NVIDIA's compiler."""

from __future__ import annotations

import re

import pytest

import tvm
from tvm import te, tir
from tvm.ir import IRModule, PointerType, PrimType
from tvm.target import Target

pytest.importorskip("cuda.bindings.nvrtc")

from tvm.contrib import nvrtc

TARGET = Target("cuda -arch=sm_80")


def pointer(name, dtype, scope="global"):
    return tir.Var(name, PointerType(PrimType(dtype), scope))


def memory(name, dtype, size, scope="global"):
    return tir.Buffer(pointer(name, dtype, scope), dtype, [size], name=name)


def kernel(buffers, make_body, threads=32, blocks=2, scalars=(), name="f", dynamic=False):
    """A module of one kernel with `threads` threads a block."""
    tx, bx = te.thread_axis((0, threads), "threadIdx.x"), te.thread_axis((0, blocks), "blockIdx.x")
    body = make_body(tx.var, bx.var)
    for axis, extent in ((tx, threads), (bx, blocks)):
        body = tir.AttrStmt(axis, "thread_extent", tir.const(extent, "int32"), body)
    tags = ["blockIdx.x", "threadIdx.x"] + (["tir.use_dyn_shared_memory"] if dynamic else [])
    func = tir.PrimFunc([*(b.data for b in buffers), *scalars], body)
    attrs = {
        "global_symbol": name,
        "calling_conv": 2,
        "tir.kernel_launch_params": tags,
        "tir.noalias": True,
    }
    for key, value in attrs.items():
        func = func.with_attr(key, value)
    return IRModule.from_expr(func, name)


def store(buffer, value, index):
    return tir.BufferStore(buffer, value, [index])


def load(buffer, index):
    return tir.BufferLoad(buffer, [index])


def build(mod):
    return tvm.target.build_module(mod, TARGET)


def test_a_vector_addition_is_a_kernel_with_a_cubin():
    a, b = memory("A", "float32", 64), memory("B", "float32", 64)
    n = tir.Var("n", "int32")

    def body(tx, bx):
        i = bx * 32 + tx
        return tir.IfThenElse(i < n, store(b, load(a, i) + 1.0, i), None)

    mod = build(kernel([a, b], body, scalars=[n]))
    assert mod.type_key == "cuda"
    source = mod.get_source()
    assert 'extern "C" __global__ void __launch_bounds__(32) f(' in source
    assert "const float* __restrict__ A, float* __restrict__ B, int n" in source
    assert mod.get_function_list() == ["f"]
    assert mod.format == "cubin"


@pytest.mark.parametrize(
    ("dtype", "lanes", "wide"),
    [
        ("float32", 4, "float4"),
        ("float32", 2, "float2"),
        ("int32", 4, "int4"),
        ("float16", 8, "int4"),
        ("float16", 2, "half2"),
        ("int8", 4, "unsigned int"),
        ("bfloat16", 4, "int2"),
    ],
)
def test_neighbouring_elements_move_in_one_access(dtype, lanes, wide):
    a, b = memory("A", dtype, 1024), memory("B", dtype, 1024)

    def body(tx, bx):
        place = tir.Ramp((bx * 32 + tx) * lanes, 1, lanes)
        value = load(a, place)
        return store(b, value + value, place)

    source = build(kernel([a, b], body)).get_source()
    assert source.count(f"*({wide}*)") == 2 and source.count(f"(const {wide}*)") == 2


def test_a_place_that_may_not_be_aligned_is_read_element_by_element():
    a, b = memory("A", "float32", 1024), memory("B", "float32", 1024)

    def body(tx, bx):
        value = load(a, tir.Ramp((bx * 32 + tx) * 4 + 1, 1, 4))
        return store(b, value, tir.Ramp((bx * 32 + tx) * 4, 1, 4))

    source = build(kernel([a, b], body)).get_source()
    assert source.count("(const float4*)") == 1 and "*(float4*)(B" in source


def test_shared_memory_and_barriers():
    a, b = memory("A", "float32", 64), memory("B", "float32", 64)
    tile = memory("tile", "float32", 32, "shared")

    def body(tx, bx):
        sync = tir.Evaluate(tir.Call("int32", "tir.tvm_storage_sync", [tir.StringImm("shared")]))
        steps = [
            store(tile, load(a, bx * 32 + tx), tx),
            sync,
            store(b, load(tile, 31 - tx), bx * 32 + tx),
        ]
        return tir.Allocate(tile.data, "float32", [32], True, tir.SeqStmt(steps))

    source = build(kernel([a, b], body)).get_source()
    assert "__shared__ __align__(32) float tile[32];" in source
    assert source.count("__syncthreads();") == 1


def test_blocks_of_dynamic_shared_memory_lie_one_after_the_other():
    a = memory("A", "float32", 64)
    first, second = (
        memory("x", "float16", 20, "shared.dyn"),
        memory("y", "float32", 8, "shared.dyn"),
    )

    def body(tx, bx):
        steps = tir.SeqStmt(
            [
                store(first, tir.const(1.0, "float16"), tx),
                store(second, load(a, tx), tx),
                store(a, load(second, tx) + load(first, tx).astype("float32"), tx),
            ]
        )
        inner = tir.Allocate(second.data, "float32", [8], True, steps)
        return tir.Allocate(first.data, "float16", [20], True, inner)

    source = build(kernel([a], body, dynamic=True)).get_source()
    assert source.count("extern __shared__") == 1
    assert re.search(r"half\* x = .*tvm_dynamic_shared \+ 0\)", source)
    assert re.search(r"float\* y = .*tvm_dynamic_shared \+ 64\)", source)


def test_threads_of_a_warp_exchange_values():
    a = memory("A", "float32", 64)

    def body(tx, bx):
        mask = tir.Call("uint32", "tir.tvm_warp_activemask", [])
        args = [mask, load(a, tx), 16, 32, 32]
        return store(a, load(a, tx) + tir.Call("float32", "tir.tvm_warp_shuffle_down", args), tx)

    source = build(kernel([a], body)).get_source()
    assert "__shfl_down_sync(__activemask(), A[" in source


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "sigmoid", "rsqrt", "erf", "floor", "exp10", "log1p", "atan"]
)
def test_elementary_functions_compile_for_every_float(dtype, name):
    a = memory("A", dtype, 64)
    nvrtc.compile_cuda(
        tvm.target._ffi_api.EmitCUDA(
            kernel([a], lambda tx, bx: store(a, getattr(tir, name)(load(a, tx)), tx)), TARGET
        ),
        "ptx",
    )


@pytest.mark.parametrize(
    "source", ["int8", "uint8", "int64", "bool", "float16", "bfloat16", "float64"]
)
@pytest.mark.parametrize(
    "result", ["int8", "uint8", "int64", "bool", "float16", "bfloat16", "float64"]
)
def test_conversions_compile(source, result):
    a, b = memory("A", source, 64), memory("B", result, 64)
    text = tvm.target._ffi_api.EmitCUDA(
        kernel([a, b], lambda tx, bx: store(b, load(a, tx).astype(result), tx)), TARGET
    )
    nvrtc.compile_cuda(text, "ptx")


def test_integer_and_float_operators_compile():
    a, f = memory("A", "int32", 64), memory("F", "float16", 64)

    def body(tx, bx):
        x, y = load(a, tx), load(a, tx + 32)
        h = load(f, tx)
        values = [
            tir.floordiv(x, y),
            tir.floormod(x, 8),
            tir.truncmod(x, y),
            tir.max(x, y),
            x >> y,
            tir.popcount(x),
            tir.if_then_else(x > 0, load(a, x), y),
            tir.Select(x > y, x, y),
        ]
        steps = [store(a, value, tx) for value in values]
        steps += [store(f, tir.max(h, tir.const(0.0, "float16")) * h, tx)]
        steps += [store(f, tir.const(float("-inf"), "float16"), tx)]
        return tir.SeqStmt(steps)

    source = build(kernel([a, f], body)).get_source()
    assert "(int)threadIdx.x) % 8" not in source and "& 7" in source


def test_copies_to_shared_memory_may_end_at_the_next_barrier():
    a, b = memory("A", "float32", 256), memory("B", "float32", 256)
    tile = memory("tile", "float32", 128, "shared")

    def body(tx, bx):
        sync = tir.Evaluate(tir.Call("int32", "tir.tvm_storage_sync", [tir.StringImm("shared")]))
        place = tir.Ramp(tx * 4, 1, 4)
        copy = store(tile, load(a, tir.Ramp(bx * 128 + tx * 4, 1, 4)), place)
        copy = tir.AttrStmt(tx, "pragma_async_copy", tir.const(1, "int32"), copy)
        steps = [copy, sync, store(b, load(tile, 127 - tx), bx * 32 + tx)]
        return tir.Allocate(tile.data, "float32", [128], True, tir.SeqStmt(steps))

    source = build(kernel([a, b], body)).get_source()
    assert re.search(r"__pipeline_memcpy_async\(tile \+ .*, 16\);", source)
    wait = source.index("__pipeline_wait_prior(0);")
    assert source.index("__pipeline_commit();") < wait < source.index("__syncthreads();")


def fragment_call(name, *args):
    return tir.Evaluate(tir.Call("handle", f"tir.{name}", list(args)))


def test_tensor_core_fragments():
    a, b, c = (memory(n, t, 256) for n, t in (("A", "float16"), ("B", "float16"), ("C", "float32")))
    fa, fb, fc = (
        memory(n, t, 256, f"wmma.{s}")
        for n, t, s in (
            ("fa", "float16", "matrix_a"),
            ("fb", "float16", "matrix_b"),
            ("fc", "float32", "accumulator"),
        )
    )

    def address(buffer):
        return tir.Call("handle", "tir.address_of", [load(buffer, 0)])

    def body(tx, bx):
        row, col = tir.StringImm("row_major"), tir.StringImm("col_major")
        shape = (16, 16, 16)
        steps = [
            fragment_call("tvm_fill_fragment", fc.data, *shape, 0, tir.const(0.0)),
            fragment_call("tvm_load_matrix_sync", fa.data, *shape, 0, address(a), 16, row),
            fragment_call("tvm_load_matrix_sync", fb.data, *shape, 0, address(b), 16, col),
            fragment_call("tvm_mma_sync", fc.data, 0, fa.data, 0, fb.data, 0, fc.data, 0),
            fragment_call("tvm_store_matrix_sync", fc.data, *shape, 0, address(c), 16, row),
        ]
        stmt = tir.SeqStmt(steps)
        for fragment in (fa, fb, fc):
            stmt = tir.Allocate(fragment.data, fragment.dtype, [256], True, stmt)
        return stmt

    source = build(kernel([a, b, c], body)).get_source()
    assert (
        "fragment<nvcuda::wmma::matrix_b, 16, 16, 16, half, nvcuda::wmma::col_major> fb[1];"
        in source
    )
    assert "nvcuda::wmma::mma_sync(fc[0], fa[0], fb[0], fc[0]);" in source


def test_the_source_can_be_changed_before_it_is_compiled():
    a = memory("A", "float32", 64)
    mod = kernel([a], lambda tx, bx: store(a, tir.const(1.0), tx))

    @tvm.register_func("tvm_callback_cuda_postproc")
    def mark(code, target):
        return f"// for {target.kind.name}\n{code}"

    try:
        assert build(mod).get_source().startswith("// for cuda\n")
    finally:
        tvm._ffi.remove_global_func("tvm_callback_cuda_postproc")


def test_a_module_is_written_as_machine_code_or_as_text(tmp_path):
    a = memory("A", "float32", 64)
    mod = build(kernel([a], lambda tx, bx: store(a, tir.const(1.0), tx)))
    mod.save(tmp_path / "f.cubin")
    assert (tmp_path / "f.cubin").read_bytes().startswith(b"\x7fELF")
    mod.save(tmp_path / "f.cu")
    assert (tmp_path / "f.cu").read_text() == mod.get_source()


def test_machine_code_is_read_back_with_its_kernels(tmp_path):
    a = memory("A", "float32", 64)
    mod = build(kernel([a], lambda tx, bx: store(a, tir.const(1.0), tx)))
    mod.save(tmp_path / "f.cubin")
    loaded = tvm.runtime.load_module(tmp_path / "f.cubin")
    assert loaded.get_function_list() == mod.get_function_list()
    assert loaded.get_source("cubin") == mod.get_source("cubin")
    (tmp_path / "f.cubin.kernels").unlink()
    with pytest.raises(RuntimeError, match="writes two files, which stay together"):
        tvm.runtime.load_module(tmp_path / "f.cubin")


@pytest.mark.parametrize("host", ["llvm", "c"])
def test_kernels_travel_in_the_library_of_their_host(tmp_path, host):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    mod = tvm.build(s, [A, B], target=Target("cuda -arch=sm_80", host=host), name="f")
    (kernels,) = mod.imported_modules
    mod.export_library(tmp_path / "lib.so")
    (loaded,) = tvm.runtime.load_module(tmp_path / "lib.so").imported_modules
    assert loaded.type_key == "cuda"
    assert loaded.get_source() == kernels.get_source()
    assert loaded.get_function_list() == kernels.get_function_list() == ["f_kernel"]


def test_what_a_kernel_cannot_do_is_refused_with_a_remedy():
    a, big = memory("A", "float32", 64), memory("big", "float32", 64, "global")
    sync = tir.Evaluate(tir.Call("int32", "tir.tvm_storage_sync", [tir.StringImm("global")]))
    for body, message in [
        (lambda tx, bx: sync, 'barrier of scope "global".*two launches'),
        (
            lambda tx, bx: tir.Allocate(big.data, "float32", [64], True, store(big, 1.0, tx)),
            'scope "global".*let the host allocate',
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            build(kernel([a], body))
    with pytest.raises(ValueError, match="no kernel; bind loops"):
        build(IRModule())


def test_a_compiler_error_shows_the_log_and_the_text():
    with pytest.raises(RuntimeError, match="(?s)NVRTC cannot compile.*undefined.*missing\\(\\)"):
        nvrtc.compile_cuda('extern "C" __global__ void f() { missing(); }')
    with pytest.raises(ValueError, match="makes no code for -arch=sm_10;"):
        nvrtc.compile_cuda("", arch="sm_10")


@pytest.mark.skipif(tvm.cuda().exist, reason="there is a GPU")
def test_without_a_driver_the_error_names_libcuda():
    assert not tvm.cuda().exist and not tvm.runtime.enabled("cuda")
    with pytest.raises(RuntimeError, match="libcuda"):
        tvm.nd.empty((4,), device=tvm.cuda())
    a = memory("A", "float32", 64)
    mod = build(kernel([a], lambda tx, bx: store(a, tir.const(1.0), tx)))
    with pytest.raises(TypeError, match="expected 3 arguments"):
        mod["f"](0)
    with pytest.raises(RuntimeError, match="libcuda"):
        mod["f"](0, 2, 32)
    # An empty grid launches nothing, and needs no device.
    mod["f"](0, 0, 32)
