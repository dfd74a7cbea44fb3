"""A device that the compiler has never heard of: memory, target kind and code generator."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import testing_dpu
import tvm
from tvm import te
from tvm.runtime import register_device


@pytest.fixture(scope="module")
def memory():
    return testing_dpu.register_dpu()


def vector_add(n=100):
    A, B = (te.placeholder((n,), name=name) for name in "AB")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], factor=16)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, B, C]


def test_vector_add_runs_on_the_device(memory):
    s, tensors = vector_add()
    module = tvm.build(s, tensors, target=testing_dpu.dpu(model="tiny"), name="add")
    source = module.imported_modules[0].get_source()
    assert "__dpu_kernel void" in source
    assert "dpu_group(0)" in source
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(100).astype("float32") for _ in range(2))
    device = tvm.device("dpu", 0)
    c = tvm.nd.empty((100,), "float32", device)
    module["add"](tvm.nd.array(a, device), tvm.nd.array(b, device), c)
    np.testing.assert_allclose(c.numpy(), a + b)
    assert memory.used


def test_matmul_with_two_thread_axes_runs_on_the_device(memory):
    m, n, depth = 12, 10, 7
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    block, thread = s[C].split(j, factor=4)
    s[C].bind(i, te.thread_axis("blockIdx.y"))
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    function = tvm.build(s, [A, B, C], target=testing_dpu.dpu(), name="matmul")["matmul"]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, depth), "float32"), rng.standard_normal((depth, n), "float32")
    device = tvm.device("dpu")
    c = tvm.nd.empty((m, n), "float32", device)
    function(tvm.nd.array(a, device), tvm.nd.array(b, device), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-5, atol=1e-5)


def test_the_device_has_its_name_everywhere(memory):
    device = tvm.device("dpu", 0)
    assert str(device) == "dpu(0)"
    assert device.device_type == testing_dpu.NUMBER
    assert device.exist
    assert tvm.runtime.enabled("dpu")
    target = testing_dpu.dpu("tiny", "-scratch-bytes=4096")
    assert target.kind.name == "dpu"
    assert target.model == "tiny"
    assert target.get_attr("scratch-bytes") == 4096


def test_a_hook_sees_and_changes_the_source(memory):
    tvm.register_func("tvm_callback_dpu_postproc", lambda text: "// checked\n" + text)
    try:
        s, tensors = vector_add()
        module = tvm.build(s, tensors, target=testing_dpu.dpu())
        assert module.imported_modules[0].get_source().startswith("// checked\n")
    finally:
        tvm._ffi.registry.remove_global_func("tvm_callback_dpu_postproc")


def test_arrays_of_the_cpu_are_refused(memory):
    s, tensors = vector_add()
    function = tvm.build(s, tensors, target=testing_dpu.dpu(), name="add")["add"]
    arrays = [tvm.nd.array(np.zeros(100, "float32")) for _ in tensors]
    with pytest.raises((ValueError, TypeError), match="device"):
        function(*arrays)


def test_a_kernel_without_threads_is_refused(memory):
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    with pytest.raises(tvm.error.TVMError, match="bind"):
        tvm.build(te.create_schedule(B.op), [A, B], target=testing_dpu.dpu())


def test_a_full_device_says_so(memory):
    with pytest.raises(MemoryError, match="dpu: cannot allocate 1000000 bytes"):
        tvm.nd.empty((1000000,), "int8", tvm.device("dpu"))


def test_numbers_and_names_are_given_once(memory):
    with pytest.raises(ValueError, match='dpu = 40 is taken by device "dpu"'):
        register_device("dpu", testing_dpu.NUMBER)
    with pytest.raises(ValueError, match='is taken by device "cuda"'):
        register_device("other", 2)
    # 13 is managed CUDA memory.
    for number in (0, 13, 64):
        with pytest.raises(ValueError, match="belongs to DLPack; take one from 32 to 63"):
            register_device("other", number)
    with pytest.raises(ValueError, match="no name"):
        register_device("two words", 41)


def test_the_extension_device_of_dlpack_can_be_had():
    script = (
        "import tvm, testing_dpu\n"
        "tvm.runtime.register_device('ext_dev', 12, testing_dpu.DpuMemory())\n"
        "print(tvm.nd.array([1.0, 2.0], tvm.device('ext_dev')).device)"
    )
    folder = os.path.dirname(testing_dpu.__file__)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([folder, *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "ext_dev(0)\n", done.stderr


def test_a_kind_without_generator_names_the_missing_function():
    tvm.target.register_target_kind("dpu_without_generator", 1)
    s, tensors = vector_add()
    with pytest.raises(ValueError, match="target.build.dpu_without_generator is not enabled"):
        tvm.build(s, tensors, target=tvm.target.Target("dpu_without_generator", host="llvm"))


@pytest.mark.parametrize("result", [None, 5])
def test_a_generator_that_gives_no_module_is_named(result):
    tvm.target.register_target_kind(f"dpu_giving_{result}", 1)
    name = f"target.build.dpu_giving_{result}"
    tvm.register_func(name, lambda mod, target: result)
    with pytest.raises(TypeError, match=f"{name} must return a runtime.Module, got"):
        tvm.target.build_module(tvm.IRModule(), f"dpu_giving_{result}")
    tvm._ffi.remove_global_func(name)


def test_an_error_of_a_function_is_not_lost_where_memory_is_freed(memory):
    device = tvm.device("dpu", 0)

    def fails(array):
        raise KeyError("of the function")

    # The array that is made for the call ends while its exception is on the way.
    function = tvm.runtime.convert(fails)
    used = dict(memory.used)
    with pytest.raises(KeyError, match="of the function"):
        function(tvm.nd.array(np.ones(3, "float32"), device))
    assert memory.used == used


@pytest.mark.parametrize("frees", [True, False])
def test_arrays_that_outlive_the_interpreter_end_quietly(frees):
    script = f"""
import ctypes
import numpy as np
import tvm
from tvm.runtime import DeviceAPI, register_device

class Memory(DeviceAPI):
    blocks = {{}}
    def alloc(self, device, nbytes, alignment):
        block = ctypes.create_string_buffer(nbytes + alignment)
        address = -(-ctypes.addressof(block) // alignment) * alignment
        self.blocks[address] = block
        return address
    def free(self, device, address):
        if not {frees}:
            raise KeyError("lost")
        del self.blocks[address]
    def copy(self, source, source_device, target, target_device, nbytes):
        ctypes.memmove(target, source, nbytes)

register_device("own", 40, Memory())
early = tvm.nd.array(np.ones(3, "float32"), tvm.device("own", 0))
late = tvm.nd.array(np.ones(3, "float32"), tvm.device("own", 0))
del early
print("end")
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    # The array that dies in time is told of, the one that does not leaves its memory.
    assert done.stderr.count("was not freed") == (0 if frees else 1)
