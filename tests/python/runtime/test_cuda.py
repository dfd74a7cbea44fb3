"""Arrays, streams, launches and timing on a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te

DEV = tvm.cuda(0)
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not DEV.exist, reason="there is no CUDA device"),
]


def add_one(n, name="add_one"):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    block, thread = s[B].split(B.op.axis[0], factor=128)
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(s, [A, B], target="cuda", name=name)


def test_facts_of_the_device_are_known():
    assert DEV.warp_size == 32
    assert DEV.max_threads_per_block >= 1024
    assert DEV.max_shared_memory_per_block >= 48 << 10
    assert DEV.multi_processor_count > 0 and DEV.total_global_memory > 1 << 30
    assert DEV.max_thread_dimensions[:2] == [1024, 1024] and DEV.l2_cache_size_bytes > 0
    assert DEV.api_version == DEV.driver_version >= 11000
    assert float(DEV.compute_version) >= 5.0 and DEV.device_name
    assert tvm.target.cuda().get_attr("arch") == "sm_" + DEV.compute_version.replace(".", "")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
def test_an_array_comes_back_as_it_went(dtype):
    values = np.arange(1000).astype(dtype)
    there = tvm.nd.array(values, DEV)
    np.testing.assert_array_equal(there.numpy(), values)
    again = tvm.nd.empty(values.shape, dtype, DEV)
    there.copyto(again)
    np.testing.assert_array_equal(again.numpy(), values)


def test_a_kernel_computes_and_its_source_can_be_read():
    mod = add_one(1000)
    a = tvm.nd.array(np.arange(1000, dtype="float32"), DEV)
    b = tvm.nd.empty((1000,), device=DEV)
    mod["add_one"](a, b)
    np.testing.assert_array_equal(b.numpy(), np.arange(1000) + 1)
    assert "__global__" in mod.imported_modules[0].get_source()


def test_an_exported_library_launches_its_kernels(tmp_path):
    add_one(64).export_library(tmp_path / "lib.so")
    mod = tvm.runtime.load_module(tmp_path / "lib.so")
    b = tvm.nd.empty((64,), device=DEV)
    mod["add_one"](tvm.nd.array(np.zeros(64, "float32"), DEV), b)
    np.testing.assert_array_equal(b.numpy(), 1)


def test_work_on_another_stream_is_done_after_a_sync():
    mod = add_one(1 << 20)
    a = tvm.nd.array(np.zeros(1 << 20, "float32"), DEV)
    b = tvm.nd.empty((1 << 20,), device=DEV)
    stream = DEV.create_raw_stream()
    DEV.set_raw_stream(stream)
    try:
        mod["add_one"](a, b)
        DEV.sync(stream)
        np.testing.assert_array_equal(b.numpy(), 1)
    finally:
        DEV.set_raw_stream(0)
        DEV.free_raw_stream(stream)


def test_time_is_taken_on_the_device():
    mod = add_one(1 << 24)
    a = tvm.nd.array(np.zeros(1 << 24, "float32"), DEV)
    b = tvm.nd.empty((1 << 24,), device=DEV)
    result = mod.time_evaluator("add_one", DEV, number=3, repeat=3)(a, b)
    # 128 MiB have to move; no device does that in less than ten microseconds.
    assert len(result.results) == 3 and min(result.results) > 1e-5


def test_memory_on_the_wrong_device_is_refused():
    mod = add_one(64)
    a = tvm.nd.array(np.zeros(64, "float32"))
    with pytest.raises(ValueError, match="device"):
        mod["add_one"](a, tvm.nd.empty((64,), device=DEV))
