"""Gradient search over traces: what it knows of a trace, and what it proposes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tvm  # noqa: E402
from tvm import meta_schedule as ms  # noqa: E402
from tvm import te, tir  # noqa: E402
from tvm.meta_schedule.runner import RunnerResult  # noqa: E402
from tvm.meta_schedule.search_strategy.trace_program import TraceProgram  # noqa: E402
from tvm.meta_schedule.testing import te_workload  # noqa: E402
from tvm.target import Target  # noqa: E402

TARGET = Target("llvm -mcpu=skylake-avx512 -num-cores=2")


def _context(function: tir.PrimFunc, strategy: Any = "felix") -> ms.TuneContext:
    return ms.TuneContext(
        function,
        target=TARGET,
        space_generator="post-order-apply",
        search_strategy=strategy,
        rand_state=5,
    )


def _programs(function: tir.PrimFunc) -> list[TraceProgram]:
    context = _context(function)
    context.pre_tuning(max_trials=4, num_trials_per_iter=4)
    return context.search_strategy.programs


PRODUCT = te_workload.matmul(32, 48, 64)


def test_knobs_are_all_factorizations() -> None:
    program = _programs(te.create_prim_func(PRODUCT))[0]
    assert [knob.extent for knob in program.knobs] == [32, 48, 64]
    for knob in program.knobs:
        assert (knob.tiles.prod(axis=1) == knob.extent).all()
        assert len({tuple(tile) for tile in knob.tiles.tolist()}) == len(knob.tiles)
    # Ways to give five factors of two to four levels.
    assert len(program.knobs[0].tiles) == math.comb(8, 3)


def test_points_of_the_relaxation_keep_the_extents_and_are_rounded_back() -> None:
    program = _programs(te.create_prim_func(PRODUCT))[0]
    indices = program.sample(20, np.random.default_rng(0))
    points = program.points(indices)
    np.testing.assert_array_equal(program.round(points), indices)
    relaxed = program.relaxed(program.free(points))
    begin = 0
    for knob in program.knobs:
        end = begin + knob.tiles.shape[1]
        total = relaxed[:, begin:end].sum(-1).numpy()
        np.testing.assert_allclose(total, math.log2(knob.extent), rtol=1e-9)
        begin = end


@pytest.mark.parametrize(
    "make", [lambda: PRODUCT, lambda: te_workload.conv2d_nhwc(1, 8, 8, 8, 16, 3)]
)
def test_gradients_agree_with_differences(make: Any) -> None:
    program = _programs(te.create_prim_func(make()))[0]
    indices = program.sample(4, np.random.default_rng(1))
    free = program.free(program.points(indices))
    # Away from whole sizes, where the number of cores that wait jumps.
    noise = torch.rand(free.shape, dtype=free.dtype, generator=torch.Generator().manual_seed(3))
    free = (free + 0.2 * noise).requires_grad_(True)
    unrolled = torch.zeros(4, dtype=torch.float64)
    direction = torch.randn(
        free.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )

    def value(at: Any) -> Any:
        return program.describe(program.relaxed(at), unrolled)[0].sum()

    value(free).backward()
    slope = float((free.grad * direction).sum())
    step = 1e-6
    with torch.no_grad():
        change = float(value(free + step * direction) - value(free - step * direction))
    assert slope == pytest.approx(change / (2 * step), rel=1e-3, abs=1e-6)


def test_wide_tiles_that_fit_are_preferred_to_single_elements() -> None:
    program = _programs(te.create_prim_func(te_workload.matmul(256, 256, 256)))[0]

    def index(knob: int, tile: list[int]) -> int:
        return int(np.flatnonzero((program.knobs[knob].tiles == tile).all(axis=1))[0])

    good = [index(0, [4, 4, 4, 4]), index(1, [2, 2, 2, 32]), index(2, [16, 16])]
    bad = [index(0, [256, 1, 1, 1]), index(1, [256, 1, 1, 1]), index(2, [256, 1])]
    bounds, _ = program.describe(program.points(np.array([good, bad])), torch.zeros(2))
    assert float(bounds[1] - bounds[0]) > 3


def test_proposals_are_distinct_right_and_decided() -> None:
    function = te.create_prim_func(PRODUCT)
    context = _context(function)
    with torch.inference_mode():  # as a caller may have it, who is about to run a network
        context.pre_tuning(max_trials=12, num_trials_per_iter=6)
    seen: set[int] = set()
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, dtype=np.float32) for shape in ((32, 64), (64, 48))]
    while True:
        with torch.no_grad():
            candidates = context.generate_measure_candidates()
        if candidates is None:
            break
        assert len(candidates) == 6
        keys = {int(tvm.ir.structural_hash(c.sch.mod)) for c in candidates}
        assert len(keys) == 6 and not keys & seen
        seen |= keys
        arrays = [tvm.nd.array(array) for array in [*inputs, np.zeros((32, 48), "float32")]]
        tvm.build(candidates[0].sch.mod, target="llvm")(*arrays)
        np.testing.assert_allclose(arrays[2].numpy(), inputs[0] @ inputs[1], rtol=1e-4)
        results = [RunnerResult([1e-3 * (i + 1)], None) for i in range(6)]
        context.notify_runner_results(candidates, results)
    assert len(seen) == 12
    context.post_tuning()


def test_a_seed_repeats_proposals() -> None:
    function = te.create_prim_func(PRODUCT)

    def hashes() -> list[int]:
        context = _context(function)
        context.pre_tuning(max_trials=4, num_trials_per_iter=4)
        found = context.generate_measure_candidates() or []
        return [int(tvm.ir.structural_hash(c.sch.mod)) for c in found]

    assert hashes() == hashes()


def test_spaces_without_tiles_are_drawn_from() -> None:
    function = te.create_prim_func(te_workload.norm_bmn(1, 64, 64))
    context = _context(function)
    context.pre_tuning(max_trials=3, num_trials_per_iter=3)
    assert not context.search_strategy.programs
    assert context.generate_measure_candidates()


def test_records_are_those_of_the_other_strategies(tmp_path: Path) -> None:
    function = te.create_prim_func(te_workload.matmul(16, 16, 16))
    target = Target("llvm -num-cores=2")
    database = ms.tune_tir(
        function,
        target,
        str(tmp_path),
        4,
        num_trials_per_iter=4,
        strategy="felix",
        seed=1,
        runner=ms.runner.LocalRunner(
            evaluator_config=ms.runner.EvaluatorConfig(number=1, repeat=1, min_repeat_ms=0)
        ),
    )
    assert ms.compile_tir(database, function, target) is not None
    assert sorted(path.name for path in tmp_path.glob("*.json")) == [
        "database_tuning_record.json",
        "database_workload.json",
    ]
