"""Modules over machine code, timing, threads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tvm
from tvm.runtime import _ffi_api

SOURCE = """
#include <stdint.h>
#include <tvm/runtime/c_runtime_api.h>

int32_t scale(const TVMAny* args, int32_t num_args, TVMAny* ret) {
  if (num_args != 2 || args[0].type_code != kTVMDLTensor) {
    TVMAPISetLastError("ValueError: scale: expected a tensor and a number");
    return -1;
  }
  const DLTensor* tensor = (const DLTensor*)args[0].v_handle;
  for (int64_t i = 0; i < tensor->shape[0]; ++i) ((float*)tensor->data)[i] *= args[1].v_float64;
  ret->type_code = kTVMInt;
  ret->v_int64 = tensor->shape[0];
  return 0;
}

static int32_t mark(int32_t task, int32_t num_task, void* data) {
  ((int32_t*)data)[task] += 1;
  if (((int32_t*)data)[0] > 1000 && task == 1) {
    TVMAPISetLastError("ValueError: task 1 failed");
    return -1;
  }
  return 0;
}

int32_t mark_tasks(const TVMAny* args, int32_t num_args, TVMAny* ret) {
  const DLTensor* tensor = (const DLTensor*)args[0].v_handle;
  return TVMBackendParallelLaunch(mark, tensor->data, (int32_t)tensor->shape[0]);
}

const char __tvm_main__[] = "scale";
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("library")
    (folder / "lib.c").write_text(SOURCE)
    root = os.path.dirname(tvm.__file__)
    # Installed packages carry the headers; a checkout has them beside the package.
    include = [os.path.join(root, "include"), os.path.join(root, "..", "..", "include")]
    command = [compiler, "-shared", "-fPIC", "-o", str(folder / "lib.so"), str(folder / "lib.c")]
    subprocess.run([*command, *(f"-I{path}" for path in include)], check=True)
    return folder / "lib.so"


def test_library_functions_run_on_arrays(library):
    mod = tvm.runtime.load_module(library)
    array = tvm.nd.array(np.arange(4, dtype="float32"))
    assert mod["scale"](array, 2.0) == 4
    assert array.numpy().tolist() == [0, 2, 4, 6]
    assert mod(array, 0.5) == 4
    assert array.numpy().tolist() == [0, 1, 2, 3]
    assert mod.type_key == "library"


def test_error_of_compiled_code_keeps_its_kind(library):
    mod = tvm.runtime.load_module(library)
    with pytest.raises(ValueError, match="scale: expected a tensor and a number"):
        mod["scale"](1)


def test_function_outlives_its_module(library):
    mark = tvm.runtime.load_module(library)["mark_tasks"]
    counts = tvm.nd.array(np.zeros(5, "int32"))
    mark(counts)
    assert counts.numpy().tolist() == [1] * 5


def test_error_of_a_parallel_task_reaches_python(library):
    mark = tvm.runtime.load_module(library)["mark_tasks"]
    counts = tvm.nd.array(np.full(3, 1000, "int32"))
    with pytest.raises(ValueError, match="task 1 failed"):
        mark(counts)
        mark(counts)


def test_unknown_function_is_named(library):
    mod = tvm.runtime.load_module(library)
    assert not mod.implements_function("nope")
    with pytest.raises(AttributeError, match='no function "nope"'):
        mod["nope"]


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="missing.so"):
        tvm.runtime.load_module(tmp_path / "missing.so")
    with pytest.raises(ValueError, match='format "txt".*there are loaders for .*so, stackvm'):
        tvm.runtime.load_module(tmp_path / "a.txt")
    with pytest.raises(ValueError, match="has no extension"):
        tvm.runtime.load_module("noextension")


def test_a_device_is_no_name(library):
    module = tvm.runtime.load_module(library)
    with pytest.raises(TypeError, match="dev must be a Device such as tvm.cpu.., got str"):
        module.time_evaluator("scale", "cpu")


def test_a_library_has_the_name_of_one(library):
    module = tvm.runtime.load_module(library)
    with pytest.raises(ValueError, match=r'"lib.zip" must end in ".so" or ".tar"'):
        module.export_library("lib.zip")


def test_time_evaluator_returns_one_mean_for_each_repeat(library):
    mod = tvm.runtime.load_module(library)
    array = tvm.nd.array(np.zeros(1000, "float32"))
    timer = mod.time_evaluator("scale", tvm.cpu(), number=3, repeat=4, cache_flush_bytes=1 << 16)
    result = timer(array, 1.0)
    assert len(result.results) == 4
    assert 0 < result.min <= result.median <= result.max
    assert "4 repeats" in str(result)
    with pytest.raises(ValueError, match="number must be >= 1, got 0"):
        mod.time_evaluator("scale", tvm.cpu(), number=0)


def test_arrays_can_be_put_out_of_the_caches_before_each_repeat(library):
    mod = tvm.runtime.load_module(library)
    array = tvm.nd.array(np.ones(1000, "float32"))
    flush = "cache_flush_cpu_non_first_arg"
    timer = mod.time_evaluator("scale", tvm.cpu(), number=1, repeat=2, f_preproc=flush)
    assert len(timer(array, 1.0).results) == 2
    # The contents stay as they are, and what is no array is left alone.
    tvm.get_global_func(flush)(array, array, 3, "text")
    np.testing.assert_array_equal(array.numpy(), np.ones(1000))


def test_address_module_lists_and_owns(library):
    owner_freed = []

    class Owner:
        def __del__(self):
            owner_freed.append(True)

    import ctypes

    handle = ctypes.CDLL(str(library))
    address = ctypes.cast(handle.scale, ctypes.c_void_p).value
    mod = _ffi_api.ModuleFromAddresses({"scale": address}, tvm._ffi.hold(Owner()), "text")
    func = mod["scale"]
    assert mod.get_function_list() == ["scale"]
    assert mod.get_source() == "text"
    with pytest.raises(ValueError, match="cannot be saved"):
        mod.save("x.o")
    del mod
    assert not owner_freed
    assert func(tvm.nd.array(np.ones(2, "float32")), 3.0) == 2
    del func
    assert owner_freed


def test_library_path_is_the_runtime():
    assert tvm.runtime.system_lib_path().name.startswith("libtvm_runtime")


def test_thread_pool_can_be_resized():
    before = tvm.runtime.num_threads()
    tvm.runtime.config_threadpool(3)
    assert tvm.runtime.num_threads() == 3
    tvm.runtime.config_threadpool()
    assert tvm.runtime.num_threads() == before
    with pytest.raises(ValueError, match="got -2"):
        tvm.runtime.config_threadpool(-2)


@pytest.mark.parametrize(("value", "expected"), [("3", "3"), ("zero", "ValueError")])
def test_thread_count_comes_from_the_environment(value, expected):
    code = (
        "import tvm\n"
        "try:\n"
        "    print(tvm.runtime.num_threads())\n"
        "except ValueError as error:\n"
        "    print('ValueError', error)\n"
    )
    env = {**os.environ, "TVM_NUM_THREADS": value}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.startswith(expected), done.stderr
