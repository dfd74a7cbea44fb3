"""Object code that is linked into another module's library; small doors of the runtime."""

import pickle

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cc


def _add(name, value):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + value, name="b")
    return tvm.build(te.create_schedule(b.op), [a, b], "llvm", name=name)


def test_object_code_is_linked_where_it_is_imported(tmp_path):
    _add("add_two", 2.0).save(tmp_path / "two.o")
    static = tvm.runtime.load_static_library(tmp_path / "two.o", ["add_two"])
    assert static.type_key == "static_library" and static.is_dso_exportable
    assert static.implements_function("add_two") and not static.implements_function("add_one")
    assert not static.is_runnable
    with pytest.raises(AttributeError, match="add_two"):
        static["add_two"]
    host = _add("add_one", 1.0)
    host.import_module(static)
    host.export_library(tmp_path / "both.so")
    loaded = tvm.runtime.load_module(tmp_path / "both.so")
    assert not loaded.imported_modules
    for name, value in (("add_one", 1), ("add_two", 2)):
        out = tvm.nd.empty((8,))
        loaded[name](tvm.nd.array(np.zeros(8, "float32")), out)
        np.testing.assert_array_equal(out.numpy(), np.full(8, value))
    with pytest.raises(RuntimeError, match="no file"):
        tvm.runtime.load_static_library(tmp_path / "none.o", [])


def test_views_and_values_of_arrays():
    array = tvm.nd.array(np.arange(6, dtype="float32"))
    view = array._create_view((2, 3))
    array[:] = 7
    np.testing.assert_array_equal(view.numpy(), np.full((2, 3), 7))
    view[...] = tvm.nd.array(np.ones((2, 3), "float32"))
    np.testing.assert_array_equal(array.numpy(), np.ones(6))
    with pytest.raises(ValueError, match="whole array"):
        array[2] = 1
    with pytest.raises(ValueError):
        array._create_view((7,))


def test_values_cross_the_border():
    assert tvm.testing.echo("text") == "text" and tvm.testing.echo(3) == 3
    shape = tvm.runtime.ShapeTuple([2, 3])
    assert tvm.testing.echo(shape) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert tvm.testing.test_wrap_callback(lambda: 5)() == 5
    with pytest.raises(RuntimeError, match="what I said"):
        tvm.testing.test_raise_error_callback("what I said")()


def test_a_module_of_python_functions_grows():
    module = tvm.support.FrontendTestModule()
    module["one"] = lambda: 1
    module.add_function("two", lambda: 2)
    assert module["one"]() + module["two"]() == 3 and module.type_key == "frontend_test"
    with pytest.raises(AttributeError, match="one"):
        module["three"]


def test_static_libraries_for_programs(tmp_path):
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] * 3.0, name="b")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="thrice")
    assert module._collect_dso_modules() == [module]
    module.export_library(tmp_path / "kernels.a", fcompile=cc.create_staticlib)
    assert (tmp_path / "kernels.a").read_bytes().startswith(b"!<arch>")
    # What a linker takes out of it is the function.
    options = ["-Wl,--whole-archive", str(tmp_path / "kernels.a"), "-Wl,--no-whole-archive"]
    cc.create_shared(tmp_path / "kernels.so", [], options=options)
    out = tvm.nd.empty((8,))
    tvm.runtime.load_module(tmp_path / "kernels.so")["thrice"](
        tvm.nd.array(np.ones(8, "float32")), out
    )
    np.testing.assert_array_equal(out.numpy(), np.full(8, 3))
    with pytest.raises(RuntimeError, match="no such|cannot|failed"):
        cc.create_staticlib(tmp_path / "x.a", [tmp_path / "missing.o"])


def test_compilers_say_their_machine():
    assert "-" in cc.get_target_by_dump_machine(cc.get_cc())()
    with pytest.raises(RuntimeError, match="cannot run"):
        cc.get_target_by_dump_machine("no-such-compiler")()
