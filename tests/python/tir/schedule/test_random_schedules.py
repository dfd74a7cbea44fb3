"""Random schedules of functions of blocks compute what NumPy computes, and replay."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import testing_random_blocks as steps
import tvm
from testing_blocks import check, replay
from testing_random_blocks import (
    GPU_STEPS,
    PROGRAMS,
    REFUSED,
    backwards,
    bind_the_rest,
    random_schedule,
)
from tvm import tir
from tvm.ir import structural_equal

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.tuples(*[st.integers(2, 20)] * 3)


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=SEEDS, sizes=SIZES)
@settings(max_examples=8, deadline=None)
def test_machine_code_of_any_schedule_equals_numpy(name, seed, sizes):
    func, answer = PROGRAMS[name](*sizes)
    sch = random_schedule(func, seed, steps=10)
    check(sch, func, answer)
    assert structural_equal(replay(sch, func).mod, sch.mod)
    # The module can be scheduled again by one who does not know how it came about.
    check(random_schedule(sch.mod["main"], seed + 1, steps=5), func, answer)


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=SEEDS, sizes=SIZES)
@settings(max_examples=5, deadline=None)
def test_parallel_iterations_may_run_in_any_order(name, seed, sizes):
    func, answer = PROGRAMS[name](*sizes)
    table = [*steps.STEPS, *[steps.mark, steps.compute_at] * 4]
    sch = random_schedule(func, seed, steps=10, table=table)
    turned = tir.Schedule(backwards(sch.mod["main"]))
    check(turned, func, answer)


@given(seed=SEEDS, sizes=SIZES)
@settings(max_examples=10, deadline=None)
def test_a_trace_goes_through_json_whatever_it_holds(seed, sizes):
    func, _ = PROGRAMS["matmul_epilogue"](*sizes)
    sch = random_schedule(func, seed, steps=14)
    fresh = tir.Schedule(func)
    tir.Trace.apply_json_to_schedule(sch.trace.as_json(), fresh)
    assert structural_equal(fresh.mod, sch.mod)
    assert str(fresh.trace) == str(sch.trace)
    short = tir.Schedule.from_trace(func, sch.trace.simplified(remove_postproc=True))
    assert structural_equal(short.mod, sch.mod)


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=SEEDS, sizes=SIZES)
@settings(max_examples=6, deadline=None)
def test_kernels_of_any_schedule_equal_numpy(name, seed, sizes):
    func, answer = PROGRAMS[name](*sizes)
    sch = random_schedule(func, seed, steps=14, table=GPU_STEPS)
    if not bind_the_rest(sch, random.Random(seed)):
        return
    try:
        check(sch, func, answer, target=tvm.target.emulated("cuda"))
    except tvm.error.TVMError as error:
        assert any(word in str(error) for word in REFUSED), f"{sch.trace}\n{error}"
