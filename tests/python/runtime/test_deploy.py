"""Exported libraries in programs that have libtvm_runtime only."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relax, te
from tvm._ffi.libinfo import find_lib_path
from tvm.runtime.elf import write_embedding_object
from tvm.runtime.linker import create_shared
from tvm.runtime.module import IMPORTS_SYMBOL

EXAMPLES = Path(__file__).parents[3] / "docs/examples/deploy_c"
sys.path.insert(0, str(EXAMPLES))
import compile as example  # noqa: E402
import flags  # noqa: E402

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    example.add_kernel().export_library(folder / "add.so")
    example.small_network().export_library(folder / "network.so")
    return folder


def run(*command, **environment):
    # A program that finds Python's or the compiler's libraries would prove nothing.
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done


def compiled(compiler, source, folder, *options):
    program = folder / Path(source).stem
    run(compiler, *options, EXAMPLES / source, "-o", program, *flags.flags())
    return program


def numbers(text):
    return np.array([float(line) for line in text.split()], "float32")


@needs_cc
def test_a_c_program_calls_a_kernel_and_gets_its_errors(libraries):
    done = run(compiled("cc", "deploy.c", libraries, "-Wall", "-Werror"), libraries / "add.so")
    np.testing.assert_array_equal(numbers(done.stdout), 11 * np.arange(8))
    assert "refused: TypeError: add" in done.stderr


@needs_cc
def test_a_c_program_runs_a_network(libraries):
    program = compiled("cc", "deploy_network.c", libraries, "-Wall", "-Werror")
    done = run(program, libraries / "network.so")
    weight = np.subtract.outer(np.arange(4), np.arange(3))
    expected = np.maximum(np.arange(8).reshape(2, 4) @ weight, 0)
    np.testing.assert_array_equal(numbers(done.stdout), expected.reshape(-1))
    linked = run("ldd", program).stdout
    assert "libtvm_runtime.so" in linked
    assert "libtvm.so" not in linked
    assert "libpython" not in linked


@needs_cc
def test_a_cpp_program_calls_a_kernel(libraries):
    program = compiled("c++", "deploy.cc", libraries, "-std=c++20", "-O0")
    done = run(program, libraries / "add.so")
    np.testing.assert_array_equal(numbers(done.stdout), 2 * np.arange(8))
    assert "refused: TypeError" in done.stderr


def test_python_runs_a_library_with_the_runtime_alone(libraries):
    done = run(sys.executable, EXAMPLES / "run_without_compiler.py", libraries / "add.so")
    np.testing.assert_array_equal(numbers(done.stdout), 2 * np.arange(8))


def test_python_runs_a_network_with_the_runtime_alone(libraries):
    script = (
        "import sys, numpy as np, tvm\n"
        "from tvm.runtime import relax_vm\n"
        "main = relax_vm.VirtualMachine(relax_vm.load_executable(sys.argv[1]))['main']\n"
        "print(main(tvm.nd.array(np.ones((2, 4), 'float32'))).shape)\n"
        "print(any('libtvm.so' in line for line in open('/proc/self/maps')))\n"
    )
    done = run(sys.executable, "-c", script, libraries / "network.so", TVM_USE_RUNTIME_LIB="1")
    assert done.stdout.split("\n")[:2] == ["(2, 3)", "False"]


def test_the_compiler_is_missed_by_name_when_only_the_runtime_is_here():
    script = (
        "import tvm\n"
        "assert tvm._ffi.base._RUNTIME_ONLY\n"
        "try:\n    tvm.build\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    done = run(sys.executable, "-c", script, TVM_USE_RUNTIME_LIB="1")
    assert "tvm.build needs the compiler" in done.stdout


def test_find_lib_path_names_existing_libraries():
    assert [Path(path).name for path in find_lib_path()] == ["libtvm_runtime.so", "libtvm.so"]
    assert all(Path(path).is_file() for path in find_lib_path())


def kernel(name, scale):
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] * scale, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", name=name)


def caller_of(name):
    """A host function "host": out[i] is what the function of that name makes of i."""
    out = te.compute((4,), lambda i: tvm.tir.call_packed(name, i), name="out")
    return tvm.build(te.create_schedule(out.op), [out], "llvm", name="host")


def c_module(name, factor):
    """C source of a function that multiplies its argument."""
    source = (
        "#include <tvm/runtime/c_runtime_api.h>\n"
        f"int32_t {name}(const TVMAny* args, int32_t count, TVMAny* ret) {{\n"
        "  (void)count;\n"
        "  ret->type_code = kTVMInt;\n"
        f"  ret->v_int64 = {factor} * args[0].v_int64;\n"
        "  return 0;\n"
        "}\n"
    )
    return tvm.runtime._ffi_api.CSourceModuleCreate(source, "c", [name], [])


def result_of(module):
    out = tvm.nd.empty((4,), "int32")
    module["host"](out)
    return out.numpy().tolist()


def test_compiled_code_calls_a_function_of_an_import(tmp_path):
    host = caller_of("times_three")
    with pytest.raises(ValueError, match="times_three"):
        result_of(host)
    host.import_module(c_module("times_three", 3))
    assert result_of(host) == [0, 3, 6, 9]
    path = tmp_path / "merged.so"
    host.export_library(path)
    loaded = tvm.runtime.load_module(path)
    # Its code was linked into the same library.
    assert loaded.imported_modules == []
    assert result_of(loaded) == [0, 3, 6, 9]


@needs_cc
def test_a_module_of_cpp_source_is_compiled_when_it_is_called(tmp_path):
    source = """
    #include <tvm/runtime/c_runtime_api.h>
    #include <vector>
    extern "C" int32_t total(const TVMAny* args, int32_t count, TVMAny* ret) {
      std::vector<int64_t> values;
      for (int32_t i = 0; i < count; ++i) values.push_back(args[i].v_int64);
      ret->type_code = kTVMInt;
      ret->v_int64 = 0;
      for (int64_t value : values) ret->v_int64 += value;
      return 0;
    }
    """
    create = tvm.runtime._ffi_api.CSourceModuleCreate
    module = create(source, "cc", ["total"], None)
    assert module["total"](1, 2, 4) == 7
    assert module.format == "cc"
    assert module.get_source("cc") == source
    module.export_library(tmp_path / "total.so")
    assert tvm.runtime.load_module(tmp_path / "total.so")["total"](5, 6) == 11
    with pytest.raises(ValueError, match='"c" or "cc", not "rust"'):
        create(source, "rust", [], None)
    with pytest.raises(ValueError, match="no module hands out constants"):
        create(source, "cc", [], ["weight"])


def test_imports_come_before_global_functions():
    tvm.register_func("test.times", lambda x: 100 * x)
    assert result_of(caller_of("test.times")) == [0, 100, 200, 300]
    host = caller_of("test.times")
    host.import_module(tvm.runtime.module_from_functions("own", {"test.times": lambda x: 2 * x}))
    assert result_of(host) == [0, 2, 4, 6]
    tvm._ffi.remove_global_func("test.times")


def test_a_library_loaded_twice_outlives_either_module(tmp_path):
    host = caller_of("times_five")
    host.import_module(c_module("times_five", 5))
    path = tmp_path / "twice.so"
    host.export_library(path)
    first, second = tvm.runtime.load_module(path), tvm.runtime.load_module(path)
    assert result_of(first) == [0, 5, 10, 15]
    del first
    assert result_of(second) == [0, 5, 10, 15]


def test_modules_without_object_code_travel_inside_the_library(libraries):
    # An executable is such a module: it is saved as bytes and finds its kernels in its import.
    loaded = tvm.runtime.load_module(libraries / "network.so")
    assert loaded.type_key == "relax.Executable"
    assert [module.type_key for module in loaded.imported_modules] == ["library"]


def test_a_module_of_python_functions_is_loaded_by_its_kind(tmp_path):
    def board_module(data):
        factor = int(data)
        scale = {"scale": lambda x: factor * x}
        return tvm.runtime.module_from_functions("test_board", scale, data)

    tvm.register_func("runtime.module.loadbinary_test_board", board_module, override=True)
    host = caller_of("scale")
    host.import_module(board_module("7"))
    path = tmp_path / "board.so"
    host.export_library(path)
    loaded = tvm.runtime.load_module(path)
    assert [module.type_key for module in loaded.imported_modules] == ["test_board"]
    assert result_of(loaded) == [0, 7, 14, 21]
    tvm._ffi.remove_global_func("runtime.module.loadbinary_test_board")
    with pytest.raises(ValueError, match="nothing here can load it; register a function"):
        tvm.runtime.load_module(path)


def test_device_modules_run_with_the_runtime_alone(tmp_path):
    a = te.placeholder((100,), name="a")
    b = te.compute((100,), lambda i: a[i] * 2.0, name="b")
    schedule = te.create_schedule(b.op)
    outer, inner = schedule[b].split(b.op.axis[0], factor=32)
    schedule[b].bind(outer, te.thread_axis("blockIdx.x"))
    schedule[b].bind(inner, te.thread_axis("threadIdx.x"))
    target = tvm.target.emulated("cuda")
    path = tmp_path / "device.so"
    tvm.build(schedule, [a, b], target=target, name="double").export_library(path)
    script = (
        "import sys, numpy as np, tvm\n"
        "module = tvm.runtime.load_module(sys.argv[1])\n"
        "a, b = tvm.nd.array(np.ones(100, 'float32')), tvm.nd.empty((100,))\n"
        "module['double'](a, b)\n"
        "print(module.imported_modules[0].type_key, b.numpy().sum())\n"
    )
    done = run(sys.executable, "-c", script, path, TVM_USE_RUNTIME_LIB="1")
    assert done.stdout.split() == ["stackvm", "200.0"]


def test_a_network_inside_a_kernel_module_is_refused(tmp_path):
    outer = kernel("outer", 2.0)
    outer.import_module(example.small_network().mod)
    with pytest.raises(ValueError, match="export it as a library of its own"):
        outer.export_library(tmp_path / "nested.so")


def test_a_module_that_cannot_be_saved_is_named(tmp_path):
    host = kernel("host", 2.0)
    host.import_module(tvm.runtime.system_lib())
    with pytest.raises(ValueError, match='kind "system_lib" cannot be saved inside a library'):
        host.export_library(tmp_path / "x.so")


def test_another_linker_may_be_given(tmp_path):
    seen = {}

    def link(output, files, **options):
        seen.update(output=output, files=list(files), options=options)

    kernel("k", 2.0).export_library(tmp_path / "x.so", fcompile=link, cpu="board")
    assert seen["output"] == str(tmp_path / "x.so")
    assert len(seen["files"]) == 1
    assert seen["options"] == {"cpu": "board"}


def test_a_failing_linker_shows_its_output(tmp_path):
    with pytest.raises(RuntimeError, match="failed:\n.*no-such-option"):
        kernel("k", 2.0).export_library(tmp_path / "x.so", options=["--no-such-option"])


@needs_cc
def test_a_library_written_anew_is_loaded_anew(tmp_path):
    path = str(tmp_path / "add.so")
    loaded = []
    for amount in range(3):
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i] + float(amount), name="B")  # noqa: B023
        tvm.build(te.create_schedule(B.op), [A, B], name="add").export_library(path)
        loaded.append(tvm.runtime.load_module(path)["add"])
    loaded.append(tvm.runtime.load_module(path)["add"])
    for amount, add in zip([0, 1, 2, 2], loaded, strict=True):
        result = tvm.nd.empty((4,))
        add(tvm.nd.array(np.zeros(4, "float32")), result)
        np.testing.assert_array_equal(result.numpy(), np.full(4, amount))


CPP = EXAMPLES.parent / "deploy_cpp"


@needs_cc
@pytest.mark.skipif(shutil.which("cmake") is None, reason="no cmake")
def test_a_cmake_project_runs_a_network_with_its_weights(libraries, tmp_path):
    arguments = run(sys.executable, CPP / "configure.py").stdout
    run("cmake", "-S", CPP, "-B", tmp_path, "-DCMAKE_CXX_FLAGS=-O0", *shlex.split(arguments))
    run("cmake", "--build", tmp_path)
    program = tmp_path / "run_network"
    done = run(program, libraries / "network.so", 2, 4)
    weight = np.subtract.outer(np.arange(4), np.arange(3))
    expected = np.maximum(np.arange(8).reshape(2, 4) @ weight, 0)
    np.testing.assert_array_equal(numbers(done.stdout), expected.reshape(-1))
    example.small_network().export_library(tmp_path / "beside.so", weights=tmp_path / "w")
    beside = run(program, tmp_path / "beside.so", 2, 4)
    assert beside.stdout == done.stdout
    refused = subprocess.run(
        [str(program), str(libraries / "network.so"), "3", "4"], capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "refused: ValueError" in refused.stderr


@pytest.mark.parametrize(
    ("target", "machine"),
    [("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell", 62),
     ("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", 183)],
)  # fmt: skip
def test_a_network_is_compiled_for_another_processor(tmp_path, target, machine):
    executable = example.small_network(target)
    executable.export_library(tmp_path / "network.tar", workspace_dir=tmp_path / "parts")
    objects = sorted((tmp_path / "parts").glob("*.o"))
    assert [file.name for file in objects] == ["imports.o", "module0.o"]
    for code in objects:
        # The machine in the header of an ELF file.
        assert int.from_bytes(code.read_bytes()[18:20], "little") == machine


def test_bytes_in_an_object_that_no_compiler_wrote_are_found_by_the_runtime(tmp_path):
    executable = example.small_network()
    executable.export_library(tmp_path / "network.so", workspace_dir=tmp_path)
    code, written = tmp_path / "module0.o", tmp_path / "written.o"
    assert write_embedding_object(written, IMPORTS_SYMBOL, tmp_path / "imports.bin", code)
    create_shared(tmp_path / "linked.so", [code, written])
    x = tvm.nd.array(np.ones((2, 4), "float32"))
    results = [
        relax.VirtualMachine(tvm.runtime.load_module(tmp_path / name), tvm.cpu())["main"](x)
        for name in ("network.so", "linked.so")
    ]
    np.testing.assert_array_equal(*(result.numpy() for result in results))
    assert not write_embedding_object(written, "name", code, tmp_path / "imports.c")
