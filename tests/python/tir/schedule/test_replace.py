"""ScheduleState.replace: another statement in the place of a loop or block, and what stays."""

from __future__ import annotations

import copy
import pickle

import pytest

import tvm
from testing_blocks import chain, check, matmul
from tvm import tir


def chained():
    func, answer = chain(8, 8)
    return tir.Schedule(func, debug_mask="all"), func, answer


def test_references_stay_where_variables_do():
    sch, func, _ = chained()
    state = sch.state
    block = sch.get_child_blocks(sch.get_block("root"))[0]
    outer, inner = (sch.get_sref(loop) for loop in sch.get_loops(block))
    own = sch.get_sref(block)
    old = outer.stmt
    part = tir.BlockRealize([], True, tir.Block([], [], [], "around", old))
    state.replace(outer, part)
    assert outer.parent.stmt.name_hint == "around"
    assert inner.parent.same_as(outer)
    assert inner.stmt.loop_var.same_as(old.body.loop_var)
    # Nobody said that the block is the same one.
    assert own.stmt is None
    assert str(state.mod["main"].script()) != str(func.script())
    tvm.ir.assert_structural_equal(
        sch.mod["main"].with_attr("global_symbol", "x"),
        state.mod["main"].with_attr("global_symbol", "x"),
    )


def test_blocks_stay_as_the_caller_says():
    sch, _, _ = chained()
    state = sch.state
    sref = sch.get_sref(sch.get_child_blocks(sch.get_block("root"))[0])
    old = sref.stmt
    new = tir.Block(
        old.iter_vars, old.reads, old.writes, "renamed", old.body, old.init, old.alloc_buffers
    )
    state.replace(sref, new, {old: new})
    assert sref.stmt.name_hint == "renamed"
    assert state.get_sref(sref.stmt).same_as(sref)
    tvm.ir.assert_structural_equal(sref.stmt, new)


def test_a_schedule_goes_on_from_what_took_the_place():
    sch, func, answer = chained()
    first = sch.get_child_blocks(sch.get_block("root"))[0]
    loop = sch.get_sref(sch.get_loops(first)[0])
    old = loop.stmt
    # The same loop in another order of its iterations.
    last = old.min + old.extent - 1
    turned = tir.stmt_functor.substitute(old.body, {old.loop_var: last - old.loop_var})
    sch.state.replace(loop, tir.For(old.loop_var, old.min, old.extent, old.kind, turned))
    again = sch.get_child_blocks(sch.get_block("root"))[0]
    sch.split(sch.get_loops(again)[0], [None, 4])
    check(sch, func, answer)


def test_the_module_that_was_there_stays():
    sch, func, answer = chained()
    before = sch.mod
    text = before.script()
    root = sch.get_sref(sch.get_block("root"))
    child = root.stmt.body
    sch.state.replace(root, tir.Block([], [], [], "root", child, None, root.stmt.alloc_buffers))
    assert before.script() == text
    check(sch, func, answer)


@pytest.mark.parametrize("kind", ["statement", "loop for a block", "gone", "elsewhere"])
def test_what_cannot_take_a_place_is_refused(kind):
    sch, func, _ = chained()
    blocks = sch.get_child_blocks(sch.get_block("root"))
    sref = sch.get_sref(blocks[0])
    loop = sch.get_sref(sch.get_loops(blocks[0])[0])
    with pytest.raises((TypeError, ValueError), match="replace: "):
        if kind == "statement":
            sch.state.replace(loop, tir.Evaluate(0))
        elif kind == "loop for a block":
            sch.state.replace(sref, loop.stmt)
        elif kind == "gone":
            sch.fuse(*sch.get_loops(blocks[0]))
            sch.state.replace(loop, loop.stmt or sch.get(sch.get_loops(blocks[1])[0]))
        else:
            other = sch.get(blocks[1])
            sch.state.replace(sref, sref.stmt, {other: sref.stmt})
    assert sch.mod["main"].script() == func.script() or kind == "gone"


def test_a_state_is_the_text_of_an_object():
    func, _ = matmul(4, 4, 4)
    other, _ = matmul(5, 5, 5)
    target = copy.copy(func)
    target.__setstate__(other.__getstate__())
    tvm.ir.assert_structural_equal(target, other)
    tvm.ir.assert_structural_equal(pickle.loads(pickle.dumps(func)), func)
