"""The border between Python and C++: functions, values, errors, objects."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import tvm


@pytest.fixture
def registered():
    """Registers functions for one test and forgets them afterwards."""
    names = []

    def register(func, name):
        names.append(name)
        tvm.register_func(name, func)
        return tvm.get_global_func(name)

    yield register
    for name in names:
        tvm._ffi.remove_global_func(name)


def test_import_is_free_of_torch():
    code = "import sys, tvm; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -1, 2**62, 1.5, float("inf"), "", "text", "ünïcödé", "a\0b"]
)
def test_plain_values_come_back_equal(registered, value):
    echo = registered(lambda x: x, "test.echo")
    result = echo(value)
    assert result == value
    assert type(result) is type(value)


def test_containers_come_back_as_sequences_and_mappings(registered):
    echo = registered(lambda x: x, "test.echo")
    result = echo([1, (2.5, "a"), {"k": [None]}])
    assert list(result) == [1, [2.5, "a"], {"k": [None]}]
    assert result[-1]["k"][0] is None
    assert result[1:] == [[2.5, "a"], {"k": [None]}]
    with pytest.raises(IndexError, match="index 3 is out of range for 3 elements"):
        result[3]
    with pytest.raises(KeyError):
        result[2]["missing"]


@pytest.mark.parametrize("value", [np.int64(3), np.float32(3), np.bool_(True)])
def test_numpy_scalars_are_numbers(registered, value):
    assert registered(lambda x: x, "test.echo")(value) == value.item()


def test_types_and_devices_cross(registered):
    echo = registered(lambda x: x, "test.echo")
    array = tvm.nd.empty((2,), np.dtype("float16"))
    assert array.dtype == "float16"
    assert array.dtype.bits == 16
    assert tvm.nd.empty((2,), np.int8).dtype == "int8"
    assert echo(tvm.cuda(1)) == tvm.cuda(1)


def test_callable_passed_to_cpp_is_called_there(registered):
    evaluator = tvm.get_global_func("runtime.TimeEvaluator")
    calls = []
    evaluator(calls.append, tvm.cpu(), 2, 3, 0.0, 1, 0.0, 1, 0, None)("x")
    assert calls == ["x"] * 7


def test_python_function_comes_back_as_itself(registered):
    def func():
        return 1

    assert registered(lambda x: x, "test.echo")(func) is func


def test_registering_twice_needs_override(registered):
    registered(lambda: 1, "test.once")
    with pytest.raises(ValueError, match='"test.once" is already registered'):
        tvm.register_func("test.once", lambda: 2)
    tvm.register_func("test.once", lambda: 2, override=True)
    assert tvm.get_global_func("test.once")() == 2


def test_unknown_function_suggests_similar_names():
    assert tvm.get_global_func("runtime.NumThread", allow_missing=True) is None
    with pytest.raises(ValueError, match='did you mean "runtime.NumThreads"'):
        tvm.get_global_func("runtime.NumThread")


def test_wrong_argument_reports_function_position_and_types():
    with pytest.raises(TypeError, match="ir.IntImm: argument 1: expected int, got str"):
        tvm.ir.IntImm("int32", "three")
    with pytest.raises(TypeError, match="runtime.NumThreads: expected 0 arguments, got 1"):
        tvm.get_global_func("runtime.NumThreads")(1)


def test_cpp_error_is_the_builtin_kind_and_a_tvm_error():
    with pytest.raises(ValueError, match="500 does not fit int8") as caught:
        tvm.ir.IntImm("int8", 500)
    assert isinstance(caught.value, tvm.TVMError)
    assert caught.value.backtrace.startswith("src/ir/expr.cc:")


def test_exception_of_a_callback_keeps_identity_and_both_tracebacks(registered):
    class Mine(Exception):
        pass

    original = Mine("from the callback")

    def fail():
        raise original

    def call_through_cpp():
        tvm.get_global_func("runtime.ParallelFor")(1, lambda i: fail())

    with pytest.raises(Mine) as caught:
        call_through_cpp()
    assert caught.value is original
    frames = [entry.name for entry in caught.traceback]
    assert "call_through_cpp" in frames
    assert frames[-1] == "fail"


def test_key_error_message_is_not_quoted():
    with pytest.raises(KeyError) as caught:
        tvm.IRModule()["f"]
    assert str(caught.value).startswith('IRModule: there is no function "f"')


def test_other_threads_run_during_a_cpp_call(registered):
    # The callback waits for the other thread, which can only proceed if the lock was released.
    started, release = threading.Event(), threading.Event()
    wait = registered(lambda: started.set() or release.wait(20), "test.wait")
    results = []
    worker = threading.Thread(target=lambda: results.append(wait()))
    worker.start()
    assert started.wait(20)
    release.set()
    worker.join(20)
    assert results == [True]


def test_values_without_counterpart_are_refused():
    with pytest.raises(TypeError, match="cannot pass a value of type object"):
        tvm.runtime.convert([object()])
    with pytest.raises(TypeError, match="tvm.nd.array"):
        tvm.runtime.convert(np.zeros(2))
    with pytest.raises(OverflowError):
        tvm.runtime.convert(2**64)


def test_objects_compare_by_identity_of_the_object():
    functions = tvm.runtime.convert([tvm.ir.PrimType("int32")])
    assert functions[0].same_as(functions[0])
    assert tvm.ir.GlobalVar("f") != tvm.ir.GlobalVar("f")
    var = tvm.ir.GlobalVar("f")
    assert {var: 1}[tvm.runtime.convert([var])[0]] == 1


def test_fields_are_read_only_attributes():
    var = tvm.ir.GlobalVar("f")
    assert var.name_hint == "f"
    assert "name_hint" in dir(var)
    with pytest.raises(AttributeError, match="name_hint is read-only"):
        var.name_hint = "g"
    with pytest.raises(AttributeError):
        _ = var.no_such_field


def test_object_without_constructor_call_is_refused():
    class Forgetful(tvm.ir.GlobalVar):
        def __init__(self):
            pass

    with pytest.raises(ValueError, match="has no handle"):
        tvm.runtime.convert([Forgetful()])


def test_objects_pickle_and_copy_through_their_fields():
    value = tvm.ir.Range(2, 7)
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert not other.same_as(value)
        assert other == value


def test_init_api_binds_only_its_own_namespace(registered):
    import types

    module = types.ModuleType("tvm_test_api")
    sys.modules["tvm_test_api"] = module
    registered(lambda: 1, "testns.f")
    registered(lambda: 2, "testns.deeper.g")
    tvm._ffi._init_api("testns", "tvm_test_api")
    assert module.f() == 1
    assert not hasattr(module, "g")
    del sys.modules["tvm_test_api"]


def test_a_converted_function_is_a_packed_one():
    function = tvm.runtime.convert(lambda x: x + 1)
    assert isinstance(function, tvm.runtime.PackedFunc)
    assert function(2) == 3


def test_an_array_that_a_callback_keeps_says_where_its_elements_are():
    kept = []
    tvm.register_func("test.keep", kept.append, override=True)
    size = tvm.tir.SizeVar("n", "int32")
    array = tvm.tir.decl_buffer((size,), "int64")
    call = tvm.tir.Evaluate(tvm.tir.call_packed("test.keep", array))
    function = tvm.tir.PrimFunc([array], call).with_attr("global_symbol", "keep")
    run = tvm.build(tvm.IRModule.from_expr(function), target="llvm")
    given = tvm.nd.array(np.arange(10, dtype="int64"))
    for _ in range(10):  # The stack of a call is used again by the next.
        run(given)
    np.testing.assert_array_equal(kept[0].numpy(), np.arange(10))
