"""Traces: what they print, replay through text, JSON and objects, and other decisions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_blocks import chain, check, matmul, replay
from testing_random_blocks import random_schedule
from tvm import tir
from tvm.ir import structural_equal
from tvm.tir.schedule import Instruction, InstructionKind
from tvm.tir.schedule.testing import (
    assert_structural_equal_ignore_global_symbol,
    verify_trace_roundtrip,
)

TEXT = """\
# from tvm import tir
def apply_trace(sch: tir.Schedule) -> None:
    b0 = sch.get_block(name="C", func_name="main")
    l1, l2, l3 = sch.get_loops(block=b0)
    v4, v5 = sch.sample_perfect_tile(loop=l2, n=2, max_innermost_factor=16, decision=[8, 16])
    l6, l7 = sch.split(loop=l2, factors=[v4, v5], preserve_unit_iters=True, \
disable_predication=False)
    sch.reorder(l1, l6, l3, l7)
    b8 = sch.decompose_reduction(block=b0, loop=l3)"""


def stochastic(sch, decision=None):
    block = sch.get_block("C", "main")
    i, j, k = sch.get_loops(block=block)
    factors = sch.sample_perfect_tile(loop=j, n=2, decision=decision)
    j_0, j_1 = sch.split(loop=j, factors=factors)
    sch.reorder(i, j_0, k, j_1)
    sch.decompose_reduction(block, k)
    return sch


def square(n=128):
    return matmul(n, n, n)[0]


def test_a_trace_prints_as_a_python_function():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    assert str(sch.trace) == TEXT


def test_a_trace_of_nothing_is_a_function_too():
    assert replay(tir.Schedule(square()), square()).trace.insts == []


@pytest.mark.parametrize("seed", range(10))
def test_running_the_printed_trace_gives_the_same_module(seed):
    sch = stochastic(tir.Schedule(square(), seed=seed))
    again = replay(sch, square())
    assert structural_equal(again.mod, sch.mod)
    assert str(again.trace) == str(sch.trace)


def test_a_trace_goes_through_json():
    sch = stochastic(tir.Schedule(square(), seed=3))
    sch.annotate(sch.get_block("C_init"), "note", {"a": [1, 2.5, "x"], "b": -1})
    fresh = tir.Schedule(square())
    tir.Trace.apply_json_to_schedule(sch.trace.as_json(), fresh)
    assert structural_equal(fresh.mod, sch.mod)
    assert str(fresh.trace) == str(sch.trace)
    assert fresh.trace.as_json() == sch.trace.as_json()


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "3",
        "[[], [[0, 1]]]",
        '[[["NoSuch", {}, []]], []]',
        '[[["GetBlock", {"name": "open(1)", "func_name": "2"}, ["b0"]]], []]',
        '[[["GetLoops", {"block": "b7"}, []]], []]',
        '[[["GetLoops", {"block": 7}, []]], []]',
        '[[["GetBlock", {"name": "(1).real"}, ["b0"]]], []]',
        '[[["GetBlock", {"name": "1"}, ["x"]]], []]',
    ],
)
def test_json_that_is_no_trace_is_refused(text):
    with pytest.raises((ValueError, KeyError)):
        tir.Trace.from_json(text)


VALUES = ["3", "-1", '"x"', "None", "[]", "{}", "1.5", "b0", "l1", "v4", "[l1, l1]", "(1 // 0)"]


@given(seed=st.integers(0, 2**32 - 1), data=st.data())
@settings(max_examples=25, deadline=None)
def test_json_of_other_values_is_refused_or_does_no_harm(seed, data):
    func, answer = matmul(4, 6, 8, epilogue=True)
    rows, decisions = random_schedule(func, seed, steps=6).trace.as_json()
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=3)) if rows else []:
        parts = [part for part in row[1:-1] if part]
        if not parts:
            rows.remove(row)
            break
        part = data.draw(st.sampled_from(parts))
        places = sorted(part) if isinstance(part, dict) else list(range(len(part)))
        part[data.draw(st.sampled_from(places))] = data.draw(st.sampled_from(VALUES))
    sch = tir.Schedule(func, debug_mask="all")
    try:
        tir.Trace.apply_json_to_schedule([rows, decisions], sch)
    except tvm.error.TVMError:
        return
    check(sch, func, answer)


def test_json_with_unknown_arguments_is_refused():
    with pytest.raises(ValueError, match="GetBlock of a trace: there is no argument nom"):
        tir.Trace.from_json('[[["GetBlock", {"nom": "\'C\'"}, ["b0"]]], []]')
    with pytest.raises(ValueError, match="GetBlock of a trace: the argument name is missing"):
        tir.Trace.from_json('[[["GetBlock", {}, ["b0"]]], []]')


def test_sizes_computed_from_samples_are_in_the_trace():
    sch = tir.Schedule(square(), seed=0)
    i, j, k = sch.get_loops(sch.get_block("C"))
    a, b = sch.sample_perfect_tile(i, 2)
    sch.split(j, [None, tir.max(a * 2 - 1, b // 2) + 1])
    assert "factors=[None, (tir.max(((v4 * 2) - 1), (v5 // 2)) + 1)]" in str(sch.trace)
    assert structural_equal(replay(sch, square()).mod, sch.mod)
    fresh = tir.Schedule(square())
    tir.Trace.apply_json_to_schedule(sch.trace.as_json(), fresh)
    assert structural_equal(fresh.mod, sch.mod)


def test_another_decision_gives_another_module():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    sample = sch.trace.insts[2]
    assert sch.trace.get_decision(sample) == [8, 16]
    trace = sch.trace.with_decision(sample, [32, 4], remove_postproc=True)
    other = tir.Schedule(square())
    trace.apply_to_schedule(other, remove_postproc=True)
    assert "j_0 in range(32)" in str(other.mod) or "128, 32" in str(other.mod)
    assert sch.trace.get_decision(sample) == [8, 16]
    with pytest.raises(ValueError, match="GetBlock is no sampling instruction"):
        sch.trace.with_decision(sch.trace.insts[0], 1, remove_postproc=True)


def test_a_decision_provider_chooses():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    other = tir.Schedule(square())
    sch.trace.apply_to_schedule(other, False, lambda inst, inputs, attrs, decision: [64, 2])
    assert "decision=[64, 2]" in str(other.trace)


def test_postprocessing_can_be_left_out():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    before = sch.mod
    sch.enter_postproc()
    sch.unroll(sch.get_loops(sch.get_block("C_init"))[-1])
    other = tir.Schedule(square())
    sch.trace.apply_to_schedule(other, remove_postproc=True)
    assert structural_equal(other.mod, before)
    assert structural_equal(replay(sch, square()).mod, sch.mod)


def test_a_simplified_trace_leaves_out_what_nothing_needs():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    sch.get_loops(sch.get_block("C_init"))
    short = sch.trace.simplified(remove_postproc=True)
    assert len(short) == len(sch.trace) - 2
    again = tir.Schedule.from_trace(square(), short)
    assert structural_equal(again.mod, sch.mod)


def test_a_trace_of_another_module_is_refused():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    with pytest.raises(tir.ScheduleError, match="with the name: C_init"):
        tir.Schedule(chain()[0]).get_block("C_init")
    with pytest.raises(tir.ScheduleError, match="it was recorded for another module"):
        sch.trace.apply_to_schedule(tir.Schedule(chain()[0]), remove_postproc=False)


def test_popping_takes_the_last_instruction():
    sch = stochastic(tir.Schedule(square()), decision=[8, 16])
    trace = tir.Trace(sch.trace.insts, sch.trace.decisions)
    assert trace.pop().kind.name == "DecomposeReduction"
    assert len(trace) == 5
    assert tir.schedule.InstructionKind.get("SamplePerfectTile").is_sampling
    with pytest.raises(tvm.error.KeyError, match="no instruction is called 'Nope'; there are"):
        tir.schedule.InstructionKind.get("Nope")


def test_other_languages_apply_traces_by_name():
    sch = stochastic(tir.Schedule(square(), seed=4))
    text = json.dumps(sch.trace.as_json())
    apply_json = tvm.get_global_func("tir.schedule.ApplyJSON")
    assert structural_equal(apply_json(tvm.IRModule({"main": square()}), text), sch.mod)
    assert tir.schedule._ffi_api.AsPython(text) == str(sch.trace)
    assert tir.schedule._ffi_api.Simplified(text) == text


def test_an_instruction_is_made_of_its_parts():
    loop, outer, inner = tir.LoopRV(), tir.LoopRV(), tir.LoopRV()
    split = Instruction(
        kind=InstructionKind.get("Split"),
        inputs=[loop, None, 32],
        attrs=[True, False],
        outputs=[outer, inner],
    )
    assert split.arguments["factors"][0] is None and split.arguments["disable_predication"] is False
    assert [value is None for value in split.inputs] == [False, True, False]
    assert list(split.attrs) == [True, False]
    assert str(split) == (
        "_, _ = sch.split(loop=_, factors=[None, 32], preserve_unit_iters=True, "
        "disable_predication=False)"
    )
    # What is left out at the end has its default, and a buffer is a position and a side.
    layout = Instruction(InstructionKind.get("SetAxisSeparator"), [tir.BlockRV()], [0, 1, [1]], [])
    assert list(layout.arguments["buffer"]) == ["write", 0]
    assert list(layout.attrs)[:2] == [0, 1]
    with pytest.raises(ValueError, match="Split has 2 attributes, got 3"):
        Instruction(InstructionKind.get("Split"), [loop, 4], [True, False, True], [outer])
    with pytest.raises(ValueError, match="GetLoops needs more than 0 inputs"):
        Instruction(InstructionKind.get("GetLoops"), [], [], [loop])


def test_parts_of_every_instruction_make_it_again():
    sch = random_schedule(square(16), 3)
    for inst in sch.trace.insts:
        again = Instruction(inst.kind, inst.inputs, inst.attrs, inst.outputs)
        assert str(again) == str(inst)
        assert len(again.values) == len(inst.values)


def test_a_trace_that_tvm_saved_is_read():
    saved = [
        [
            ["GetBlock", [], ["C", "main"], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1", "l2", "l3"]],
            ["SamplePerfectTile", ["l2"], [2, 16], ["v4", "v5"]],
            ["Split", ["l2", "v4", "v5"], [1, 0], ["l6", "l7"]],
            ["Reorder", ["l1", "l6", "l3", "l7"], [], []],
            ["DecomposeReduction", ["b0", "l3"], [], ["b8"]],
            ["GetBlock", [], ["C_init", "main"], ["b9"]],
            ["Annotate", ["b9", '"text"'], ["key"], []],
        ],
        [[2, [8, 16]]],
    ]
    sch = tir.Schedule(square())
    tir.Trace.apply_json_to_schedule(saved, sch)
    other = tir.Schedule(square())
    stochastic(other, [8, 16])
    other.annotate(other.get_block("C_init"), "key", "text")
    assert structural_equal(sch.mod, other.mod)
    unknown = [[["GetLoops", ["b7"], [], ["l1"]]], []]
    with pytest.raises(ValueError, match='no instruction before gives "b7"'):
        tir.Trace.apply_json_to_schedule(unknown, tir.Schedule(square()))


def test_postprocessing_can_be_left_out_of_the_text():
    sch = tir.Schedule(square())
    loops = sch.get_loops("C")
    sch.enter_postproc()
    sch.vectorize(loops[1])
    assert len(sch.trace.as_python()) == 4
    assert len(sch.trace.as_python(remove_postproc=True)) == 2


def test_roundtrips_are_checked():
    sch = stochastic(tir.Schedule(square()))
    again = verify_trace_roundtrip(sch, square())
    assert_structural_equal_ignore_global_symbol(again.mod, sch.mod)
    with pytest.raises(ValueError, match="there is no format"):
        verify_trace_roundtrip(sch, square(), text_format="yaml")
    with pytest.raises(ValueError):
        assert_structural_equal_ignore_global_symbol(square(), sch.mod["main"])
