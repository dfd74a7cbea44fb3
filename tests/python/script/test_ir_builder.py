"""Programs built by calls."""

from __future__ import annotations

import pytest

import tvm
from tvm import tir
from tvm.script import tir as script
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import ir as I
from tvm.script.ir_builder import tir as T


def test_a_function_is_what_its_calls_say():
    with IRBuilder() as builder, T.prim_func():
        T.func_name("scale")
        a = T.arg("A", T.Buffer((8, 4), "float32"))
        b = T.arg("B", T.Buffer((8, 4), "float32"))
        with T.grid(8, 4) as (i, j), T.block("scaled"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.buffer_store(b, a[v_i, v_j] * 2.0, [v_i, v_j])

    @script.prim_func
    def scale(A: script.Buffer((8, 4), "float32"), B: script.Buffer((8, 4), "float32")):
        for i, j in script.grid(8, 4):
            with script.block("scaled"):
                v_i, v_j = script.axis.remap("SS", [i, j])
                B[v_i, v_j] = A[v_i, v_j] * 2.0

    tvm.ir.assert_structural_equal(builder.get(), scale)


def test_a_module_holds_the_functions_that_end_in_it():
    with IRBuilder() as builder, I.ir_module():
        I.module_attrs({"version": 2})
        callee = I.decl_function("second")
        with T.prim_func():
            T.func_name("first")
            T.evaluate(tir.Call("int32", callee, []))
        with T.prim_func(is_private=True):
            T.func_name("second")
            T.evaluate(0)
    mod = builder.get()
    assert [var.name_hint for var in mod.get_global_vars()] == ["second", "first"]
    assert mod["first"].body.value.op.same_as(callee)
    assert "global_symbol" not in (mod["second"].attrs or {})


def test_branches_have_two_cases():
    with IRBuilder() as builder, T.If(T.int32() < 3):
        with T.Then():
            T.evaluate(1)
        with T.Else():
            T.evaluate(2)
            T.evaluate(3)
    stmt = builder.get()
    assert int(stmt.then_case.value) == 1
    assert [int(part.value) for part in stmt.else_case.seq] == [2, 3]


def test_regions_that_nobody_says_are_marked_outside_of_functions():
    with IRBuilder() as builder, T.block("b"):
        T.reads([])
        T.evaluate(0)
    assert int(builder.get().block.annotations["tir.script_parsing_detect_access"]) == 2


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: T.reads(), "stands in a block"),
        (lambda: T.Then().__enter__(), "stands directly in a T.If"),
        (lambda: T.func_name("f"), "belongs to a function"),
        (lambda: I.module_attrs({}), "belongs into a module"),
        (lambda: T.evaluate(T.Buffer((8,))), "is not a value"),
        (lambda: T.axis.spatial(8, 0), "an axis stands in a block"),
        (lambda: T.thread_binding(8), "the thread is missing"),
        (lambda: T.Buffer((8, 8), buffer_type="other"), "there is no buffer_type"),
    ],
)
def test_calls_out_of_place_are_refused(build, message):
    with IRBuilder(), pytest.raises((ValueError, TypeError), match=message):
        build()


def test_a_builder_makes_one_program():
    with IRBuilder() as builder:
        T.evaluate(0)
    with pytest.raises(ValueError, match="make another builder"):
        builder.__enter__()
    with pytest.raises(ValueError, match="nothing was built"):
        IRBuilder().get()


def test_an_error_inside_leaves_the_builder_of_the_thread_as_it_was():
    with pytest.raises(KeyError), IRBuilder() as builder, T.prim_func(), T.block():
        raise KeyError("x")
    assert not builder.frames
    assert not IRBuilder.is_in_scope()
