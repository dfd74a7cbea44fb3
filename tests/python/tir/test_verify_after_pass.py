"""The option "ir.verify": functions are looked at after each pass, and the error names the pass."""

from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.ir import IRModule
from tvm.transform import PassContext, Sequential

VERIFY = {"ir.verify": True}
SILENT = {"ir.verify": False}


def doubled():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    return te.create_prim_func([A, B])


def breaking(change):
    """A pass that does to the statement of a function what it should not."""

    @tir.transform.prim_func_pass(opt_level=0, name="test.Breaks")
    def apply(func, mod, ctx):
        return tir.PrimFunc(func.params, change(func), func.ret_type, func.buffer_map, func.attrs)

    return apply


def store(func, index):
    (buffer, *_) = (func.buffer_map[param] for param in func.params)
    return tir.BufferStore(buffer, tir.const(0, "float32"), index)


def unbound(func):
    return store(func, [tir.Var("lost", "int32")])


def real_index(func):
    return store(func, [tir.const(1, "float32")])


def twice(func):
    i = tir.Var("i", "int32")
    loop = tir.For(i, 0, 8, tir.ForKind.SERIAL, store(func, [i]))
    return tir.SeqStmt([loop, loop])


def threads(func):
    body = store(func, [0])
    for extent in (4, 8):
        axis = te.thread_axis("threadIdx.x")
        body = tir.AttrStmt(axis, "thread_extent", extent, body)
    return body


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (unbound, "variable lost is used but not bound there"),
        (real_index, "an index of buffer A is no integer"),
        (twice, "a variable is bound twice"),
        (threads, "thread axis threadIdx.x has 4 threads inside of 8"),
    ],
)
def test_the_pass_that_spoils_a_function_is_named(change, problem):
    mod = IRModule({"main": doubled()})
    passes = Sequential([tir.transform.Simplify(), breaking(change), tir.transform.Simplify()])
    with (
        PassContext(config=VERIFY),
        pytest.raises(tvm.error.InternalError, match="pass test.Breaks left main .*" + problem),
    ):
        passes(mod)


def test_a_pass_is_not_blamed_for_what_it_was_given():
    with PassContext(config=SILENT):
        broken = breaking(unbound)(IRModule({"main": doubled()}))
    message = "pass test.Breaks was given main that is not well formed: variable lost"
    with PassContext(config=VERIFY), pytest.raises(ValueError, match=message):
        breaking(real_index)(broken)


def test_nothing_is_looked_at_unless_asked():
    with PassContext(config=SILENT):
        assert "lost" in str(breaking(unbound)(IRModule({"main": doubled()})))


def test_a_default_holds_for_contexts_that_do_not_say():
    try:
        PassContext.set_default("ir.verify", False)
        assert not PassContext.current().config["ir.verify"]
        assert not PassContext(opt_level=3).config["ir.verify"]
        assert PassContext(config=VERIFY).config["ir.verify"]
    finally:
        PassContext.set_default("ir.verify", True)
    assert PassContext().config["ir.verify"]


def test_a_default_is_checked_like_an_option():
    with pytest.raises(ValueError, match=r'unknown option "ir.verfy"; did you mean "ir.verify"'):
        PassContext.set_default("ir.verfy", True)
    with pytest.raises(TypeError, match='option "ir.verify": expected bool'):
        PassContext.set_default("ir.verify", "always")
