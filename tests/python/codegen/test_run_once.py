"""Parts of functions that run at most once, and handles that last as long as the code."""

from __future__ import annotations

import concurrent.futures
import ctypes

import numpy as np
import pytest

import tvm
from tvm import te, tir

TARGETS = ["llvm", "c"]


def _increments(runner: object, fails: bool = False) -> tvm.IRModule:
    n = tir.SizeVar("n", "int32")
    buffer = tir.decl_buffer((n,), "int64")
    ib = tir.ir_builder.create()
    data = ib.buffer_ptr(buffer)
    ib.scope_attr(te.thread_axis((0, 1), "cop"), "coproc_uop_scope", runner)
    with ib.for_range(0, n, "i", kind="parallel") as i:
        data[i] = data[i] + tir.const(1, "int64")
    if fails:
        ib.emit(tir.call_packed("testing.run_once.refuse"))
    return tvm.IRModule.from_expr(
        tir.PrimFunc([buffer], ib.get()).with_attr("global_symbol", "ramp")
    )


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_marked_runs_once_however_many_threads_call(target):
    ramp = tvm.build(_increments("TVMBackendRunOnce"), target=target)
    a = tvm.nd.array(np.arange(1000, dtype="int64"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: ramp(a), range(16)))
    np.testing.assert_array_equal(a.numpy(), np.arange(1000) + 1)
    again = tvm.build(_increments("TVMBackendRunOnce"), target=target)
    again(a)
    np.testing.assert_array_equal(a.numpy(), np.arange(1000) + 2)


@pytest.mark.parametrize("target", TARGETS)
def test_what_failed_runs_again(target):
    calls = []

    @tvm.register_func("testing.run_once.refuse", override=True)
    def refuse():
        calls.append(len(calls))
        if len(calls) < 3:
            raise ValueError("not yet")

    ramp = tvm.build(_increments("TVMBackendRunOnce", fails=True), target=target)
    a = tvm.nd.array(np.zeros(3, "int64"))
    for _ in range(2):
        with pytest.raises(ValueError, match="not yet"):
            ramp(a)
    ramp(a)
    ramp(a)
    assert calls == [0, 1, 2]
    np.testing.assert_array_equal(a.numpy(), [3, 3, 3])


@pytest.mark.parametrize("target", TARGETS)
def test_static_handles_keep_what_is_written_to_them(target):
    seen = []

    @tvm.register_func("testing.run_once.count", override=True)
    def count(first, second):
        for handle in (first, second):
            slot = ctypes.cast(handle, ctypes.POINTER(ctypes.c_void_p))
            seen.append(slot[0] or 0)
            slot[0] = (slot[0] or 0) + 1

    ib = tir.ir_builder.create()
    handle = tir.call_intrin("handle", "tir.tvm_static_handle")
    other = tir.call_intrin("handle", "tir.tvm_static_handle")
    ib.emit(tir.call_packed("testing.run_once.count", handle, other))
    mod = tvm.IRModule.from_expr(tir.PrimFunc([], ib.get()).with_attr("global_symbol", "main"))
    tvm.ir.assert_structural_equal(tvm.script.from_source(mod.script()), mod)
    function = tvm.build(mod, target=target)
    for _ in range(3):
        function()
    assert seen == [0, 0, 1, 1, 2, 2]


def test_c_looks_packed_functions_up_once_and_declares_functions_first():
    def caller(symbol):
        ib = tir.ir_builder.create()
        a = ib.pointer("float32", name="A")
        ib.emit(tir.call_packed("testing.run_once.log", a[0]))
        ib.emit(tir.call_packed("testing.run_once.log", a[1]))
        return tir.PrimFunc([a.asobject().data], ib.get()).with_attr("global_symbol", symbol)

    mod = tvm.IRModule({"one": caller("one"), "two": caller("two")})
    source = tvm.build(mod, target="c").get_source()
    assert source.count("static void* testing_run_once_log_packed = NULL;") == 1
    assert source.count("if (testing_run_once_log_packed == NULL)") == 4
    assert source.count("int32_t one(void* args") == 2


@pytest.mark.parametrize("target", TARGETS)
def test_addresses_of_ctypes_are_handles(target):
    ib = tir.ir_builder.create()
    pointer = tir.Var("pointer", "handle")
    ib.emit(tir.call_packed("testing.run_once.pass", pointer))
    mod = tvm.IRModule.from_expr(
        tir.PrimFunc([pointer], ib.get()).with_attr("global_symbol", "main")
    )
    seen = []
    tvm.register_func("testing.run_once.pass", seen.append, override=True)
    function = tvm.build(mod, target=target)
    function(ctypes.c_void_p(4096))
    function(ctypes.c_void_p(0))
    assert [type(address) for address in seen] == [ctypes.c_void_p, ctypes.c_void_p]
    assert [address.value for address in seen] == [4096, None]


def test_run_once_names_a_function():
    with pytest.raises(TypeError, match="coproc_uop_scope: expected the name of a C function"):
        tvm.build(_increments(tir.const(1, "int32")), target="llvm")


def test_stackvm_refuses_what_other_functions_run():
    with pytest.raises(ValueError, match="build for the target llvm or c"):
        tvm.build(_increments("TVMBackendRunOnce"), target="stackvm")
