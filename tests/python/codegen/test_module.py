"""Built modules: argument checks, sources, files, and other processes."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.target import Target, llvm_build


def doubled(name="double", n=16):
    A = te.placeholder((n, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    s[B].parallel(B.op.axis[0])
    return s, [A, B]


@pytest.fixture(scope="module")
def module():
    s, args = doubled()
    return tvm.build(s, args, target="llvm", name="double")


def array(shape, dtype="float32"):
    return tvm.nd.array(np.ones(shape, dtype))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((array((16, 4)),), TypeError, "double: expected 2 arguments, got 1"),
        ((array((16, 4)), 3), TypeError, r"argument 1 \(B\): expected a tensor"),
        ((array((16,)), array((16, 4))), ValueError, r"argument 0 \(A\): expected 2 axes, got 1"),
        (
            (array((16, 4)), array((16, 5))),
            ValueError,
            r"argument 1 \(B\).shape\[1\]: expected 4, got 5",
        ),
        (
            (array((16, 4), "int32"), array((16, 4))),
            TypeError,
            r"argument 0 \(A\): expected dtype float32",
        ),
    ],
)
def test_wrong_arguments_are_named(module, arguments, error, message):
    with pytest.raises(error, match=message):
        module["double"](*arguments)


def test_sources_are_kept(module):
    assert re.search(r"^define .*i32 @double\(", module.get_source("ll"), re.MULTILINE)
    assert "double:" in module.get_source("asm")
    assert module.get_source() == module.get_source("ll")
    with pytest.raises(ValueError, match='format "cu" is not one of "ll", "asm" and "s"'):
        module.get_source("cu")


def test_two_functions_share_a_module():
    mods = [tvm.lower(*doubled(name), name=name) for name in ("first", "second")]
    built = tvm.build(mods, target="llvm")
    for name in ("first", "second"):
        out = tvm.nd.empty((16, 4), "float32")
        built[name](array((16, 4)), out)
        assert out.numpy().sum() == 128
    with pytest.raises(ValueError, match="two functions are called first; give each its own name"):
        tvm.build([mods[0], mods[0]], target="llvm")


def test_object_code_loads_where_it_is_sent():
    s, args = doubled()
    target = Target("llvm")
    code = llvm_build.compile_object(tvm.driver.prepare(s, args, target, "double"), target)
    loaded = llvm_build.load_object(pickle.loads(pickle.dumps(code)))
    out = tvm.nd.empty((16, 4), "float32")
    loaded["double"](array((16, 4)), out)
    assert out.numpy().sum() == 128
    with pytest.raises(ValueError, match="the module was loaded from machine code"):
        loaded.get_source()


def test_an_exported_library_runs_in_a_fresh_process(module, tmp_path):
    path = tmp_path / "double.so"
    module.export_library(str(path))
    script = (
        "import sys, numpy as np, tvm\n"
        "f = tvm.runtime.load_module(sys.argv[1])['double']\n"
        "a = tvm.nd.array(np.arange(64, dtype='float32').reshape(16, 4))\n"
        "b = tvm.nd.empty((16, 4), 'float32')\n"
        "f(a, b)\n"
        "assert (b.numpy() == 2 * a.numpy()).all()\n"
        "print('ran', 'llvmlite' in sys.modules)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("ran")


def test_a_file_of_an_unknown_format_is_refused(module, tmp_path):
    with pytest.raises(ValueError, match='cannot write format "xyz"; use "o", "ll", "bc" or'):
        module.save(str(tmp_path / "double.xyz"))


def test_a_schedule_needs_its_arguments():
    s, _ = doubled()
    with pytest.raises(ValueError, match="args are required for a schedule"):
        tvm.build(s, target="llvm")


def test_a_kind_without_generator_is_named():
    s, args = doubled()
    with pytest.raises(ValueError, match="target.build.metal is not enabled"):
        tvm.build(s, args, target="metal")


@pytest.mark.parametrize("target", ["llvm", "c", "stackvm"])
def test_a_variable_that_nothing_binds_is_named(target):
    buffer = tir.decl_buffer((4,), "float32", "A")
    func = tir.PrimFunc([buffer], tir.BufferStore(buffer, 1.0, [tir.Var("lost", "int32")]))
    unseen = tvm.transform.PassContext(config={"ir.verify": False})
    with unseen, pytest.raises(ValueError, match="lost has no value"):
        tvm.build(func, target=target, name="f")


@pytest.mark.parametrize("suffix", [".so", ".dylib", ".tar", ".o"])
def test_a_module_comes_back_from_every_kind_of_file(module, tmp_path, suffix):
    path = tmp_path / f"double{suffix}"
    if suffix == ".o":
        module.save(path)
    else:
        module.export_library(path)
    result = tvm.nd.empty((16, 4))
    tvm.runtime.load_module(path)["double"](array((16, 4)), result)
    np.testing.assert_array_equal(result.numpy(), 2 * np.ones((16, 4)))


@pytest.mark.parametrize("suffix", [".ll", ".bc"])
def test_llvm_ir_is_loaded_as_machine_code(module, tmp_path, suffix):
    path = tmp_path / f"double{suffix}"
    module.save(path)
    again = tvm.runtime.load_module(path)
    result = tvm.nd.empty((16, 4))
    again["double"](array((16, 4)), result)
    np.testing.assert_array_equal(result.numpy(), 2 * np.ones((16, 4)))
    assert "define" in again.get_source("ll") and "double" in again.get_source("asm")


def test_files_that_are_no_llvm_ir_for_this_machine_are_refused(tmp_path):
    (tmp_path / "text.ll").write_text("nothing of the kind")
    with pytest.raises(ValueError, match="is no LLVM IR"):
        tvm.runtime.load_module(tmp_path / "text.ll")
    (tmp_path / "other.ll").write_text('target triple = "riscv64-unknown-linux-gnu"')
    with pytest.raises(ValueError, match="is code for riscv64"):
        tvm.runtime.load_module(tmp_path / "other.ll")
    with pytest.raises(RuntimeError, match="cannot read"):
        tvm.runtime.load_module(tmp_path / "missing.bc")


def test_a_module_with_imports_travels_in_an_archive(tmp_path):
    _, args = doubled()
    B = args[1]
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    tvm.build(s, args, tvm.target.emulated("cuda"), name="double").export_library(
        tmp_path / "double.tar"
    )
    result = tvm.nd.empty((16, 4))
    tvm.runtime.load_module(tmp_path / "double.tar")["double"](array((16, 4)), result)
    np.testing.assert_array_equal(result.numpy(), 2 * np.ones((16, 4)))


def test_files_that_cannot_be_linked_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match=r'there is no file ".*nothing\.o"'):
        tvm.runtime.load_module(tmp_path / "nothing.o")
    (tmp_path / "text.o").write_text("no object file")
    with pytest.raises(RuntimeError, match="failed"):
        tvm.runtime.load_module(tmp_path / "text.o")


def test_bitcode_is_written_on_request(module, tmp_path):
    module.save(tmp_path / "double.bc")
    assert (tmp_path / "double.bc").read_bytes()[:2] == b"BC"


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_functions_that_are_linked_in_are_the_system_library(tmp_path, kind):
    s, args = doubled()
    name = f"double_in_{kind}"
    target = Target(f"{kind} -system-lib")
    tvm.build(s, args, Target(target, target), name=name).export_library(tmp_path / "lib.so")
    script = f"""
import ctypes, numpy as np, tvm
ctypes.CDLL({str(tmp_path / "lib.so")!r})
function = tvm.runtime.system_lib()[{name!r}]
result = tvm.nd.empty((16, 4))
function(tvm.nd.array(np.ones((16, 4), "float32")), result)
assert (result.numpy() == 2).all()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_libraries_in_one_program_have_prefixes(tmp_path, kind):
    s, args = doubled()
    prefix = f"{kind}_net_"
    mod = tvm.lower(s, args, name=f"{prefix}double").with_attr("system_lib_prefix", prefix)
    tvm.build(mod, target=kind).export_library(tmp_path / "lib.so")
    script = f"""
import ctypes, numpy as np, tvm
assert tvm.runtime.system_lib({prefix!r}).get_function_list() == []
ctypes.CDLL({str(tmp_path / "lib.so")!r})
library = tvm.runtime.system_lib({prefix!r})
assert library.get_function_list() == ["double"]
result = tvm.nd.empty((16, 4))
library["double"](tvm.nd.array(np.ones((16, 4), "float32")), result)
assert (result.numpy() == 2).all()
assert not tvm.runtime.system_lib("other_").implements_function("double")
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    other = tvm.lower(s, args, name="doubled").with_attr("system_lib_prefix", prefix)
    with pytest.raises(ValueError, match="'doubled' does not begin with it"):
        tvm.build(other, target=kind)


@pytest.mark.parametrize("kind", ["llvm", "c"])
def test_a_library_finds_its_imports_after_another_was_loaded_for_everybody(tmp_path, kind):
    s, args = doubled()
    system = Target("llvm -system-lib")
    tvm.build(s, args, Target(system, system)).export_library(tmp_path / "system.so")
    s = te.create_schedule(args[1].op)
    s[args[1]].bind(s[args[1]].op.axis[0], te.thread_axis("blockIdx.x"))
    gpu = Target(tvm.target.emulated("cuda"), kind)
    tvm.build(s, args, gpu, name="twice").export_library(tmp_path / "gpu.so")
    script = f"""
import ctypes, numpy as np, tvm
ctypes.CDLL({str(tmp_path / "system.so")!r}, mode=ctypes.RTLD_GLOBAL)
result = tvm.nd.empty((16, 4))
module = tvm.runtime.load_module({str(tmp_path / "gpu.so")!r})
module["twice"](tvm.nd.array(np.ones((16, 4), "float32")), result)
assert (result.numpy() == 2).all()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_library_may_be_exported_without_addons(module, tmp_path):
    module.export_library(tmp_path / "lib.so", addons=None)
    assert tvm.runtime.load_module(tmp_path / "lib.so")["double"] is not None


def test_assembly_goes_by_its_extension_too(module):
    assert module.get_source("s") == module.get_source("asm")


def test_functions_of_a_module_share_what_the_process_has_compiled(tmp_path, monkeypatch):
    A = te.placeholder((8,), name="A")

    def module(*factors):
        bodies = {f: te.compute((8,), lambda i, f=f: A[i] * float(f), name="B") for f in factors}
        return tvm.IRModule(
            {
                tvm.ir.GlobalVar(f"times_{f}"): te.create_prim_func([A, B]).with_attr(
                    "global_symbol", f"times_{f}"
                )
                for f, B in bodies.items()
            }
        )

    compiled = []
    emitted = llvm_build._optimized
    monkeypatch.setattr(
        llvm_build, "_optimized", lambda text, *how: compiled.append(0) or emitted(text, *how)
    )
    data = tvm.nd.array(np.arange(8, dtype="float32"))
    for factors, count in (((311, 312), 2), ((312, 313, 311), 1)):
        compiled.clear()
        built = tvm.build(module(*factors), target="llvm")
        assert len(compiled) == count
        path = tmp_path / f"{len(factors)}.so"
        built.export_library(str(path))
        for library in (built, tvm.runtime.load_module(str(path))):
            for factor in factors:
                out = tvm.nd.empty((8,), "float32")
                library[f"times_{factor}"](data, out)
                np.testing.assert_array_equal(out.numpy(), data.numpy() * factor)
        assert all(f"@times_{factor}(" in built.get_source("ll") for factor in factors)
