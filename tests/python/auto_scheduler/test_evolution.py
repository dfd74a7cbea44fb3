"""Random programs and their evolution: every program is valid and computes the right thing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import auto_scheduler
from tvm.auto_scheduler import PythonBasedModel, SketchPolicy, _ffi_api

FEW = {"evolutionary_search_population": 48, "sample_init_min_population": 8}

WORKLOADS = {
    "matmul": ("test_matmul", 24, 20, 36),
    "rfactor": ("test_matmul", 2, 3, 96),
    "two_matmuls": ("test_two_matmuls", 16),
    "conv": ("test_conv_relu", 9, 8, 4, 12, 3, 2, 1),
    "row_min": ("test_row_min", 6, 128),
    "softmax": ("test_softmax", 5, 48),
    "max_pool": ("test_max_pool", 8, 8),
    "winograd": ("test_winograd", 8, 4, 8),
}


def _task(workload, target="llvm -num-cores=4"):
    name, *args = WORKLOADS[workload]
    return auto_scheduler.SearchTask(func=name, args=args, target=target)


def _policy(task, seed=0, **params):
    return SketchPolicy(task, params={**FEW, **params}, seed=seed, verbose=0)


class Preference(PythonBasedModel):
    """Scores a program by a function of it."""

    def __init__(self, score):
        super().__init__()
        self.score = score

    def predict(self, task, states):
        return [self.score(state) for state in states]


def _splits(state):
    """[extent, lengths] of each split step."""
    records = [_ffi_api.StepToRecord(step) for step in state.transform_steps]
    return [
        (int(record[3]), [int(length) for length in record[4]])
        for record in records
        if record[0] == "SP"
    ]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("space", ["ansor", "felix"])
def test_sampled_and_evolved_programs_compute_the_same(workload, space, assert_state_is_correct):
    task = _task(workload)
    policy = _policy(task, search_space=space)
    population = policy.sample_initial_population()
    evolved = policy.evolutionary_search(population, 16)
    for state in [*population[:3], *evolved[:3]]:
        assert_state_is_correct(task.compute_dag, state)


@given(
    shape=st.tuples(*[st.integers(1, 40)] * 3),
    seed=st.integers(0, 1000),
    space=st.sampled_from(["ansor", "felix"]),
)
@settings(max_examples=10, deadline=None)
def test_matmuls_of_any_shape_have_correct_programs(shape, seed, space):
    task = auto_scheduler.SearchTask(func="test_matmul", args=shape, target="llvm -num-cores=2")
    policy = _policy(task, seed, search_space=space)
    population = policy.sample_initial_population()
    n, m, k = shape
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(-1, 1, size).astype("float32") for size in ((n, k), (k, m)))
    for state in [population[-1], *policy.evolutionary_search(population, 2)]:
        func = tvm.build(*task.compute_dag.apply_steps_from_state(state), target="llvm")
        out = tvm.nd.array(np.full((n, m), np.nan, "float32"))
        func(tvm.nd.array(a), tvm.nd.array(b), out)
        np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-4, err_msg=str(state))


@pytest.mark.parametrize("workload", ["matmul", "conv", "softmax"])
def test_bounds_kept_while_drawing_are_those_of_a_replay(workload):
    task = _task(workload)
    policy = _policy(task)
    population = policy.sample_initial_population()
    for state in [*population, *policy.evolutionary_search(population, 32)]:
        replayed = task.compute_dag.infer_bound_from_state(state)
        assert hash(replayed.state_object) == hash(state.state_object)


@pytest.mark.parametrize("workload", ["matmul", "conv", "rfactor"])
def test_split_lengths_divide_their_loops(workload):
    policy = _policy(_task(workload), max_innermost_split_factor=4)
    population = policy.sample_initial_population()
    for state in [*population, *policy.evolutionary_search(population, 64)]:
        for extent, lengths in _splits(state):
            assert extent % math.prod(lengths) == 0
            assert lengths[-1] <= 4


def test_states_are_distinct():
    policy = _policy(_task("conv"), evolutionary_search_population=256)
    population = policy.sample_initial_population()
    assert len({str(state) for state in population}) == len(population)
    evolved = policy.evolutionary_search(population, 128)
    assert len({str(state) for state in evolved}) == len(evolved) == 128


def test_no_parallel_loop_is_inside_of_another():
    policy = _policy(_task("two_matmuls"), evolutionary_search_population=256)
    population = policy.sample_initial_population()
    for state in [*population, *policy.evolutionary_search(population, 256)]:
        outer = -1
        for line in str(state).splitlines():
            depth = len(line) - len(line.lstrip())
            if depth <= outer:
                outer = -1
            if line.lstrip().startswith("parallel"):
                assert outer == -1, str(state)
                outer = depth


def test_all_vectors_are_as_short_as_asked():
    policy = _policy(_task("conv"), max_vectorize_size=4)
    for state in policy.sample_initial_population():
        for stage in state.stages:
            for loop in stage.iters:
                if int(loop.annotation) == 2:
                    assert int(loop.range.extent) <= 4


def test_compute_locations_can_be_left_alone():
    task = _task("conv")
    fixed = _policy(task, disable_change_compute_location=1).sample_initial_population()
    padding = {int(state.stages[1].compute_at) for state in fixed}
    assert padding == {0}
    free = _policy(task).sample_initial_population()
    assert {int(state.stages[1].compute_at) for state in free} == {0, 1, 2}


def test_evolution_climbs_and_sorts():
    def score(state):
        # The more threads the better: something that mutations of tile sizes can reach.
        return float(
            max(
                int(loop.range.extent)
                for stage in state.stages
                for loop in stage.iters
                if loop.range is not None
            )
        )

    model = Preference(score)
    policy = SketchPolicy(_task("matmul"), model, params=FEW, seed=1, verbose=0)
    population = policy.sample_initial_population()[:8]
    evolved = policy.evolutionary_search(population, 24)
    scores = model.predict(None, evolved)
    assert scores == sorted(scores, reverse=True)
    start = sorted(model.predict(None, population))
    assert scores[0] >= start[-1]
    assert sum(scores[:8]) > sum(start)


def test_programs_without_a_score_are_dropped():
    model = Preference(lambda state: -math.inf if hash(state) % 2 else 1.0)
    policy = SketchPolicy(_task("matmul"), model, params=FEW, seed=1, verbose=0)
    population = policy.sample_initial_population()
    assert all(hash(state.state_object) % 2 == 0 for state in population)
    evolved = policy.evolutionary_search(population, 24)
    assert evolved
    assert all(hash(state.state_object) % 2 == 0 for state in evolved)


def test_a_space_without_valid_programs_is_an_error():
    policy = SketchPolicy(
        _task("matmul"), Preference(lambda state: -math.inf), params=FEW, seed=1, verbose=0
    )
    with pytest.raises(ValueError, match="none of .* programs .* is valid"):
        policy.sample_initial_population()


def test_a_generation_does_not_ask_twice_about_a_program():
    asked = []

    def score(state):
        asked.append(hash(state))
        return 1.0

    policy = SketchPolicy(_task("matmul"), Preference(score), params=FEW, seed=2, verbose=0)
    population = policy.sample_initial_population()
    asked.clear()
    policy.evolutionary_search(population, 8)
    assert len(set(asked)) == len(asked)


def test_equal_seeds_evolve_alike_whatever_the_number_of_threads():
    def evolve():
        policy = _policy(_task("conv"), seed=9)
        return [str(s) for s in policy.evolutionary_search(policy.sample_initial_population(), 16)]

    many = evolve()
    configure = tvm.get_global_func("runtime.config_threadpool")
    try:
        configure(1)
        assert evolve() == many
    finally:
        configure(0)


GPU_WORKLOADS = {
    "matmul": ("test_matmul", 32, 24, 16),
    "cross_thread": ("test_matmul", 2, 3, 128),
    "conv": ("test_conv_relu", 6, 6, 4, 16, 3, 1, 1),
    "row_min": ("test_row_min", 6, 128),
    "softmax": ("test_softmax", 3, 64),
    "max_pool": ("test_max_pool", 8, 8),
    "winograd": ("test_winograd", 8, 4, 8),
}
# The emulator wants vectors aligned, as CUDA does and OpenCL does not; powers of two are.
MALI_WORKLOADS = {
    "matmul": ("test_matmul", 32, 16, 16),
    "conv": ("test_conv_relu", 8, 8, 4, 16, 3, 1, 1),
    "row_min": ("test_row_min", 8, 128),
}


@pytest.mark.parametrize(
    ("workload", "target"),
    [
        *((workload, "cuda") for workload in GPU_WORKLOADS),
        *((workload, "opencl -device=mali") for workload in MALI_WORKLOADS),
    ],
)
def test_gpu_programs_compute_the_same_emulated(workload, target, random_inputs, run_schedule):
    name, *args = (GPU_WORKLOADS if target == "cuda" else MALI_WORKLOADS)[workload]
    task = auto_scheduler.SearchTask(func=name, args=args, target=target)
    dag = task.compute_dag
    policy = _policy(task, evolutionary_search_population=256)
    population = policy.sample_initial_population()
    inputs = random_inputs(dag)
    expected = run_schedule(*dag.apply_steps_from_state(dag.get_init_state()), inputs)
    emulated = tvm.target.emulated("cuda", check_races=True)
    for state in [*population[:3], *policy.evolutionary_search(population, 3)]:
        sch, args = dag.apply_steps_from_state(state)
        func = tvm.build(sch, args, target=emulated)
        out = tvm.nd.array(np.full(expected.shape, np.nan, "float32"))
        func(*[tvm.nd.array(x) for x in inputs], out)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4, err_msg=str(state))


def test_gpu_programs_respect_the_limits_of_the_device():
    limits = auto_scheduler.HardwareParams(
        max_shared_memory_per_block=4096, max_threads_per_block=64, target="cuda"
    )
    task = auto_scheduler.SearchTask(
        func="test_matmul", args=(128, 128, 128), target="cuda", hardware_params=limits
    )
    policy = _policy(task, evolutionary_search_population=1024)
    population = policy.sample_initial_population()
    for state in [*population, *policy.evolutionary_search(population, 64)]:
        shared = 0
        for stage in state.stages:
            extents = {str(loop.name): int(loop.range.extent) for loop in stage.iters}
            for loop in stage.iters:
                if int(loop.annotation) == 6:
                    assert int(loop.range.extent) <= 64
            if str(stage.op.name).endswith(".shared"):
                shared += 4 * math.prod(extents.values())
        assert shared <= 4096


def test_mali_programs_use_vectors_instead_of_shared_memory():
    task = auto_scheduler.SearchTask(
        func="test_matmul", args=(64, 64, 64), target="opencl -device=mali"
    )
    limits = task.hardware_params
    assert [int(limits.max_threads_per_block), int(limits.max_vthread_extent)] == [256, 1]
    assert int(limits.max_shared_memory_per_block) == 32768
    policy = _policy(task, evolutionary_search_population=256)
    population = policy.sample_initial_population()
    stages = [stage for state in population for stage in state.stages]
    assert not any(str(stage.scope) == "shared" for stage in stages)
    lanes = [
        int(loop.range.extent)
        for stage in stages
        for loop in stage.iters
        if int(loop.annotation) == 2
    ]
    assert 2 <= max(lanes) <= 4


def test_the_potential_space_is_the_neighbourhood_of_the_best_measured():
    task = _task("matmul")
    policies = {
        mode: _policy(task, evolutionary_search_mode=mode, evolutionary_search_num_iters=0)
        for mode in ("normal", "potential-space")
    }
    # Nothing is measured yet, so both start from random programs.
    first = {mode: policy.propose(4) for mode, policy in policies.items()}
    assert [c.state for c in first["normal"]] == [c.state for c in first["potential-space"]]
    best, other = first["normal"][:2]
    results = [auto_scheduler.MeasureResult([cost], 0, None, 1, 1) for cost in (1e-3, 1.0)]
    changed = {}
    for mode, policy in policies.items():
        policy.observe([best, other], results)
        proposed = policy.propose(8)
        assert proposed
        # What one mutation leaves as it was: all steps but one.
        known = [[str(s) for s in c.state.transform_steps] for c in (best, other)]
        changed[mode] = [
            min(_differences([str(s) for s in c.state.transform_steps], steps) for steps in known)
            for c in proposed
        ]
    assert max(changed["potential-space"]) <= 2
    assert np.mean(changed["potential-space"]) < np.mean(changed["normal"])


def _differences(left, right):
    """Steps that differ between two histories."""
    differing = sum(a != b for a, b in zip(left, right))
    return differing + abs(len(left) - len(right))
