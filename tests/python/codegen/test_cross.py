"""Code for other processors than this one, and for vector units chosen by name."""

from __future__ import annotations

import platform
import re
import shutil
import struct
import sys

import numpy as np
import pytest

import testing_processors
import tvm
from tvm import te, tir
from tvm.target import Target

ARM = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


def add(target, lanes, dtype="float32", n=64):
    A, B = (te.placeholder((n,), dtype, name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    _, lane = s[C].split(C.op.axis[0], factor=lanes)
    s[C].vectorize(lane)
    return tvm.build(s, [A, B, C], target=target, name="add")


def elf_symbols(data):
    """Machine number of a 64-bit little-endian ELF object, and names of its symbols."""
    assert data[:6] == b"\x7fELF\x02\x01"
    machine = struct.unpack_from("<H", data, 18)[0]
    (table,) = struct.unpack_from("<Q", data, 40)
    entry, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * entry) for i in range(count)]
    names = set()
    for header in headers:
        if header[1] != 2:
            continue
        strings = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            start = strings + struct.unpack_from("<I", data, at)[0]
            names.add(data[start : data.index(b"\0", start)].decode())
    return machine, names


def test_object_for_another_processor_is_written(tmp_path):
    module = add(ARM, 4)
    module.save(tmp_path / "add.o")
    machine, names = elf_symbols((tmp_path / "add.o").read_bytes())
    assert machine == 183
    assert "add" in names
    assert "fadd\tv" in module.get_source("asm")
    assert module.get_function_list() == ["add"]


def test_code_for_another_processor_is_not_called():
    module = add(ARM, 4)
    with pytest.raises(RuntimeError, match=r"add is code for aarch64-linux-gnu \(cortex-a72\)"):
        module["add"]


def test_library_for_another_processor_needs_its_compiler(tmp_path):
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    module = add(ARM, 4)
    if compiler is None:
        with pytest.raises(ValueError, match="hold code for aarch64-linux-gnu, .* as cc, or"):
            module.export_library(tmp_path / "add.so")
        return
    module.export_library(tmp_path / "add.so", cc=compiler)
    assert elf_symbols((tmp_path / "add.so").read_bytes())[0] == 183


@pytest.mark.parametrize("cpu", [*testing_processors.X86, *testing_processors.ARM])
def test_vectors_are_as_wide_as_the_processor_allows(cpu):
    target = testing_processors.target_of(cpu)
    module = add(target, target.vector_width // 32)
    assert f"fadd contract <{target.vector_width // 32} x float>" in module.get_source("ll")
    register = {128: r"v\d+\.4s", 256: "%ymm", 512: "%zmm"}[target.vector_width]
    assert re.search(rf"fadd\s+{register}|vaddps.*{register}", module.get_source("asm"))


@pytest.mark.parametrize("kind", ["opencl", "metal", "rocm", "vulkan", "opengl"])
def test_kind_without_a_generator_says_so(kind):
    target = Target(kind)
    assert "gpu" in [str(key) for key in target.keys]
    if tvm.get_global_func(f"target.build.{kind}", True) is not None:
        pytest.skip("a generator is registered")
    with pytest.raises(ValueError, match=f"target.build.{kind} is not enabled"):
        A = te.placeholder((8,), name="A")
        B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
        s = te.create_schedule(B.op)
        s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
        tvm.build(s, [A, B], target=target)


def ptx_of(function):
    """A kernel that passes values between threads through shared memory and shuffles."""
    ib = tir.ir_builder.create()
    A, B = (tir.decl_buffer((64,), name=name) for name in "AB")
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    ib.scope_attr(block, "thread_extent", 2)
    ib.scope_attr(thread, "thread_extent", 32)
    staged = ib.allocate("float32", 32, name="staged", scope="shared")
    at = block.var * 32 + thread.var
    staged[thread.var] = ib.buffer_ptr(A)[at]
    ib.emit(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared"))
    value = function(staged[31 - thread.var])
    mask = tir.const(0xFFFFFFFF, "uint32")
    down = tir.call_intrin("float32", "tir.tvm_warp_shuffle_down", mask, value, 1, 32, 32)
    ib.buffer_ptr(B)[at] = down
    attrs = {
        "global_symbol": "exchange",
        "calling_conv": int(tvm.ir.CallingConv.DEVICE_KERNEL_LAUNCH),
        "tir.kernel_launch_params": ["blockIdx.x", "threadIdx.x"],
    }
    func = tir.PrimFunc([A.data, B.data], ib.get(), attrs=attrs)
    module = tvm.target.build_module(tvm.IRModule({"exchange": func}), "nvptx -mcpu=sm_80")
    return module.get_source()


def test_kernels_become_ptx_without_a_gpu():
    ptx = ptx_of(te.exp)
    for part in (
        ".target sm_80",
        ".visible .entry exchange(",
        "%tid.x",
        "%ctaid.x",
        "st.shared",
        "shfl.sync.down.b32",
        "fma.rn.f32",
    ):
        assert part in ptx
    assert ptx.index("st.shared") < ptx.index("bar") < ptx.index("ld.shared")


def test_function_without_an_instruction_on_the_gpu_is_refused():
    with pytest.raises(ValueError, match="no code for operator tir.atan .* the target cuda has it"):
        ptx_of(tir.atan)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("target", ["llvm", "stackvm"])
def test_half_types_keep_their_bits_and_round_to_nearest_even(dtype, target):
    bits = np.arange(0, 1 << 16, 3, dtype="uint16")
    n = len(bits)
    A = te.placeholder((n,), dtype, name="A")
    wide = te.compute((n,), lambda i: A[i].astype("float32"), name="wide")
    back = te.compute((n,), lambda i: (wide[i] * 1.25).astype(dtype), name="back")
    s = te.create_schedule(back.op)
    f = tvm.build(s, [A, wide, back], target=target, name="f")["f"]
    a, w, b = tvm.nd.empty((n,), dtype), tvm.nd.empty((n,)), tvm.nd.empty((n,), dtype)
    a.copyfrom(bits.view("float16") if dtype == "float16" else bits)
    f(a, w, b)
    torch = pytest.importorskip("torch")
    values = torch.from_numpy(bits.view("int16")).view(getattr(torch, dtype)).float()
    expected = (values * 1.25).to(getattr(torch, dtype)).view(torch.int16).numpy()
    numbers = ~np.isnan(values.numpy())
    np.testing.assert_array_equal(w.numpy()[numbers], values.numpy()[numbers])
    np.testing.assert_array_equal(b.numpy().view("int16")[numbers], expected[numbers])


def test_products_of_int8_are_summed_in_int32():
    n, k = 16, 64
    A, B = te.placeholder((k,), "int8", name="A"), te.placeholder((n, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="r")
    product = lambda i: te.sum(A[r].astype("int32") * B[i, r].astype("int32"), axis=r)  # noqa: E731
    C = te.compute((n,), product, name="C")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype("int8") for shape in ((k,), (n, k)))
    for target in ("llvm", "stackvm"):
        s = te.create_schedule(C.op)
        c = tvm.nd.empty((n,), "int32")
        tvm.build(s, [A, B, C], target=target)(tvm.nd.array(a), tvm.nd.array(b), c)
        np.testing.assert_array_equal(c.numpy(), b.astype("int32") @ a.astype("int32"))


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="objects without a system are Linux's"
)
def test_an_architecture_without_a_system_is_this_machine_s():
    architecture = platform.machine().replace("arm64", "aarch64")
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1, name="y")
    function = tvm.build(te.create_schedule(y.op), [x, y], f"llvm -mtriple={architecture}")
    result = tvm.nd.empty((8,))
    function(tvm.nd.array(np.arange(8, dtype="float32")), result)
    np.testing.assert_array_equal(result.numpy(), np.arange(8) + 1)
