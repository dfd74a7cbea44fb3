"""States: primitives, text, and that any sequence of primitives keeps the program's meaning."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tvm
from tvm import auto_scheduler

PROPERTY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def position_of(state, op):
    """Where the stage of an operation stands."""
    return state.stage_ops.index(op)


def _dag(name, *args):
    return auto_scheduler.ComputeDAG(auto_scheduler.make_workload_key(name, args))


def _loops(state, stage):
    return [(str(it.name), int(it.range.extent)) for it in state[stage].iters]


def test_split_keeps_the_lengths_innermost_first_from_the_end():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    i = state[2].iters[0]
    parts = state.split(2, i, [4, 2])
    assert [str(part.name) for part in parts] == ["i.0", "i.1", "i.2"]
    assert _loops(state, 2)[:3] == [("i.0", 8), ("i.1", 4), ("i.2", 2)]


def test_split_outer_to_inner_keeps_the_number_of_parts():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    state.split(2, state[2].iters[0], [4, 2], inner_to_outer=False)
    assert _loops(state, 2)[:3] == [("i.0", 4), ("i.1", 2), ("i.2", 8)]


def test_split_stores_the_true_extent_in_its_step():
    state = _dag("test_matmul", 60, 32, 16).get_init_state()
    state.split(2, state[2].iters[0], [16])
    assert int(state.transform_steps[0].extent) == 60
    assert _loops(state, 2)[:2] == [("i.0", 4), ("i.1", 16)]


def test_fuse_joins_names_and_extents():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    i, j, _ = state[2].iters
    fused = state.fuse(2, [i, j])
    assert (str(fused.name), int(fused.range.extent)) == ("i@j@", 64 * 32)


def test_follow_split_multiplies_the_levels_it_does_not_follow():
    dag = _dag("test_conv_relu", 8, 8, 4, 16, 1, 1, 0)
    state = dag.get_init_state()
    conv, relu = "conv2d_nhwc", dag.tensors[-1]
    conv = next(op for op in dag.ops if op.name == conv)
    state.split(conv, state[conv].iters[3], [2, 2, 4])
    state.follow_split(relu, state[relu].iters[3], 0, 2)
    assert [extent for _, extent in _loops(state, relu)[3:]] == [1, 2, 8]


def test_attached_stages_stay_at_their_loop():
    dag = _dag("test_matmul", 64, 32, 16)
    state = dag.get_init_state()
    local = position_of(state, state.cache_write(2, "local"))
    i, j = state[local + 1].iters
    state.compute_at(local, local + 1, i)
    state.split(local + 1, state[local + 1].iters[0], [4])
    assert int(state[local].attach_iter) == 1
    i0, i1, j = state[local + 1].iters
    state.reorder(local + 1, [j, i0, i1])
    assert int(state[local].attach_iter) == 2


def test_text_shows_loops_and_attached_stages():
    dag = _dag("test_matmul", 64, 32, 16)
    state = dag.get_init_state()
    local = position_of(state, state.cache_write(2, "local"))
    i, j = state[local + 1].iters
    state.compute_at(local, local + 1, i)
    state.parallel(local + 1, state[local + 1].iters[0])
    text = str(dag.infer_bound_from_state(state))
    assert text == (
        "Placeholder: A, B\n"
        "parallel i (0,64)\n"
        "  for j_c (0,32)\n"
        "    for k (0,16)\n"
        "      C.local = ...\n"
        "  for j (0,32)\n"
        "    C = ...\n"
    )


def test_states_are_equal_when_their_programs_are():
    dag = _dag("test_matmul", 64, 32, 16)
    one, other = dag.get_init_state(), dag.get_init_state()
    one.split(2, one[2].iters[0], [8])
    assert one != other
    other.split(2, other[2].iters[0], [8])
    assert one == other
    assert hash(one) == hash(other)


def test_primitives_do_not_change_a_copy():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    copy = state.copy()
    state.split(2, state[2].iters[0], [8])
    assert len(copy.transform_steps) == 0


def test_an_old_loop_is_refused_by_name():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    i = state[2].iters[0]
    state.split(2, i, [8])
    with pytest.raises(ValueError, match="loop i is not a loop of this stage any more"):
        state.parallel(2, i)


def test_fusing_over_an_attach_point_is_refused():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    local = position_of(state, state.cache_write(2, "local"))
    state.compute_at(local, local + 1, state[local + 1].iters[0])
    i, j = state[local + 1].iters
    with pytest.raises(tvm.error.ScheduleError, match="C.local is computed at loop i"):
        state.fuse(local + 1, [i, j])


def test_inlining_a_reduction_is_refused():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    with pytest.raises(tvm.error.ScheduleError, match="reduces over k"):
        state.compute_inline(2)


def test_marking_a_loop_twice_is_refused():
    state = _dag("test_matmul", 64, 32, 16).get_init_state()
    i = state.parallel(2, state[2].iters[0])
    with pytest.raises(tvm.error.ScheduleError, match="parallel already"):
        state.unroll(2, i)


def test_applying_an_open_length_is_refused():
    dag = _dag("test_matmul", 64, 32, 16)
    state = dag.get_init_state()
    state.split(2, state[2].iters[0], [None])
    with pytest.raises(ValueError, match="still open"):
        dag.apply_steps_from_state(state)


def _random_loops(draw, state, stage):
    """A few splits, a reorder, a fusion and a mark on the loops of one stage."""
    for _ in range(draw(st.integers(0, 3))):
        loop = draw(st.sampled_from(list(state[stage].iters)))
        lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
        state.split(stage, loop, lengths, draw(st.booleans()))
    if draw(st.booleans()):
        state.reorder(stage, draw(st.permutations(list(state[stage].iters))))
    iters = list(state[stage].iters)
    space = [it for it in iters if int(it.iter_kind) == 0]
    if len(iters) > 1 and draw(st.booleans()):
        first = draw(st.integers(0, len(iters) - 2))
        pair = iters[first : first + 2]
        if int(pair[0].iter_kind) == int(pair[1].iter_kind):
            state.fuse(stage, pair)
            space = [it for it in state[stage].iters if int(it.iter_kind) == 0]
    if space and draw(st.booleans()):
        mark = draw(st.sampled_from([state.parallel, state.unroll]))
        mark(stage, draw(st.sampled_from(space)))


@st.composite
def random_states(draw):
    """A DAG with a state that random primitives led to."""
    dag = _dag("test_matmul", *draw(st.sampled_from([(8, 12, 6), (7, 5, 9), (16, 16, 16)])))
    state = dag.get_init_state()
    kind = draw(st.sampled_from(["plain", "cache_write", "cache_read", "rfactor"]))
    if kind == "plain":
        _random_loops(draw, state, 2)
    elif kind == "cache_write":
        local = position_of(state, state.cache_write(2, "local"))
        _random_loops(draw, state, local + 1)
        if draw(st.booleans()):
            target = draw(st.sampled_from(list(state[local + 1].iters)))
            state.compute_at(local, local + 1, target)
        _random_loops(draw, state, local)
    elif kind == "cache_read":
        copy = position_of(state, state.cache_read(0, "local", [2]))
        _random_loops(draw, state, copy)
        _random_loops(draw, state, copy + 2)
    else:
        parts = state.split(2, state[2].iters[2], [draw(st.integers(1, 4))])
        partial = position_of(
            state, state.rfactor(2, draw(st.sampled_from(parts)), draw(st.integers(0, 2)))
        )
        _random_loops(draw, state, partial)
        _random_loops(draw, state, partial + 1)
    return dag, state


@PROPERTY
@given(case=random_states())
def test_random_primitives_keep_the_result(case, assert_state_is_correct):
    dag, state = case
    assert_state_is_correct(dag, state)


@PROPERTY
@given(case=random_states())
def test_steps_survive_their_record_form(case):
    dag, state = case
    records = auto_scheduler.measure_record.steps_to_json(state)
    steps = auto_scheduler.measure_record.steps_from_json(records)
    again = dag.replay_steps(steps)
    assert auto_scheduler.measure_record.steps_to_json(again) == records
    assert str(again) == str(state)
    assert str(dag.infer_bound_from_state(again)) == str(dag.infer_bound_from_state(state))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (["XX", 0], "unknown tag .XX."),
        (["SP", 2, 0], "has 3 fields instead of 6"),
        (["CI", 2, 9], "has 3 fields instead of 2"),
        (["RE", 2, "abc"], "field 2 .after_ids. must be Array.int."),
        (["AN", 2, 0, 40], "no loop annotation has the number 40"),
    ],
)
def test_broken_step_records_are_refused(record, message):
    with pytest.raises(ValueError, match=message):
        auto_scheduler.measure_record.steps_from_json([record])


def test_operands_are_read_ahead_where_a_pragma_says_so():
    dag = _dag("test_matmul", 64, 32, 16)
    state = dag.get_init_state()
    reduction = state[2].iters[2]
    state.pragma(2, reduction, "read_ahead$1$8")
    schedule, args = dag.apply_steps_from_state(state)
    text = str(tvm.lower(schedule, args))
    assert text.count("prefetch") == 1
    replayed = dag.infer_bound_from_state(state)
    assert replayed.transform_steps[-1].pragma_type == "read_ahead$1$8"


def test_pragmas_that_mean_nothing_are_refused():
    dag = _dag("test_matmul", 64, 32, 16)
    state = dag.get_init_state()
    for text in ("read_ahead", "read_ahead$1", "read_ahead$1$x", "auto_unroll_max_step$", "vector"):
        with pytest.raises(ValueError, match="is unknown; use auto_unroll_max_step"):
            state.pragma(2, state[2].iters[2], text)
    state.pragma(2, state[2].iters[2], "read_ahead$7$8")
    with pytest.raises(tvm.error.ScheduleError, match="names operand 7 of .*, which has 2"):
        dag.apply_steps_from_state(state)
