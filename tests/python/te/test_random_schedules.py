"""Random programs under random schedules compute what NumPy computes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_te import PROGRAMS, random_gpu_schedule, random_schedule
from testing_tir import StepLimitError, run_prim_func
from tvm.error import ScheduleError


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
@settings(max_examples=15, deadline=None)
def test_loop_nest_of_any_schedule_equals_numpy(name, seed):
    check(name, seed, lambda sch, args: tvm.driver.schedule_to_module(sch, args)["main"])


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_lowered_form_of_any_schedule_equals_numpy(name, seed):
    check(name, seed, lambda sch, args: tvm.lower(sch, args)["main"])


ALLOWED = ("VerifyMemory", "VerifyGPUCode", "ThreadSync")


def check_compiled(name: str, seed: int, make_schedule, target) -> None:
    rng = random.Random(seed)
    program = PROGRAMS[name](rng)
    try:
        sch = make_schedule(program, rng)
        func = tvm.build(sch, [*program.inputs, *program.outputs], target=target)
    except ScheduleError:
        return
    except tvm.error.TVMError as error:
        # What no GPU can run is refused by name.
        assert any(word in str(error) for word in ALLOWED), f"{name}, seed {seed}: {error}"
        return
    arrays = program.random_inputs(seed)
    expected = program.expected(arrays)
    results = [tvm.nd.array(np.full(e.shape, -77, e.dtype)) for e in expected]
    func(*[tvm.nd.array(a) for a in arrays], *results)
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result.numpy(), wanted, err_msg=f"{name}, seed {seed}")


@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_machine_code_of_any_schedule_equals_numpy(name, seed):
    check_compiled(name, seed, random_schedule, "llvm")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_machine_code_of_many_schedules_equals_numpy(name, seed):
    check_compiled(name, seed, random_schedule, "llvm")


GPU_PROGRAMS = sorted(set(PROGRAMS) - {"scan"})


@pytest.mark.parametrize("name", GPU_PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_emulated_kernels_of_any_schedule_equal_numpy(name, seed):
    check_compiled(name, seed, random_gpu_schedule, tvm.target.emulated("cuda"))


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_PROGRAMS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_emulated_kernels_of_many_schedules_equal_numpy(name, seed):
    check_compiled(name, seed, random_gpu_schedule, tvm.target.emulated("cuda"))
