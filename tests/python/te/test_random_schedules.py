"""Random programs under random schedules compute what NumPy computes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_te import PROGRAMS, random_schedule
from testing_tir import StepLimitError, run_prim_func


def check(name: str, seed: int, lower) -> None:
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    sch = random_schedule(program, rng)
    func = lower(sch, [*program.inputs, *program.outputs])
    arrays = program.random_inputs(seed)
    expected = program.expected(arrays)
    results = [np.full(e.shape, -77, e.dtype) for e in expected]
    try:
        run_prim_func(func, *arrays, *results, max_stores=20_000)
    except StepLimitError:
        # A producer recomputed in many inner loops: legal, and as slow as it sounds.
        return
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result, wanted, err_msg=f"{name}, seed {seed}\n{func}")


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_loop_nest_of_any_schedule_equals_numpy(name, seed):
    check(name, seed, lambda sch, args: tvm.driver.schedule_to_module(sch, args)["main"])


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_lowered_form_of_any_schedule_equals_numpy(name, seed):
    check(name, seed, lambda sch, args: tvm.lower(sch, args)["main"])
