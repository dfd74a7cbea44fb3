"""Strategies, mutators, schedulers: what is proposed, how often, and what is learned."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from testing_traces import (
    TARGET,
    CountingRunner,
    NoBuilder,
    matmul_module,
    outputs_of,
    shifted_matmul_module,
)
from tvm import meta_schedule as ms
from tvm import tir


def _two_tiles(sch: tir.Schedule) -> None:
    _, j, k = sch.get_loops(sch.get_block("C"))
    for loop in (j, k):
        sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=8))


def _search(strategy: Any, trials: int, per_iter: int, **options: Any) -> list[list[Any]]:
    context = ms.TuneContext(
        matmul_module(),
        target=TARGET,
        space_generator=ms.space_generator.ScheduleFn(_two_tiles, **options),
        search_strategy=strategy,
        rand_state=3,
    )
    context.pre_tuning(
        trials,
        per_iter,
        database=ms.database.MemoryDatabase(),
        cost_model=ms.cost_model.RandomModel(seed=1),
    )
    batches: list[list[Any]] = []
    while (batch := context.generate_measure_candidates()) is not None:
        batches.append(batch)
        context.notify_runner_results(batch, [ms.runner.RunnerResult([0.1], None)] * len(batch))
    return batches


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_replay_fills_batches(strategy: str) -> None:
    assert [len(batch) for batch in _search(strategy, 20, 7)] == [7, 7, 6]


def test_evolution_proposes_each_program_once() -> None:
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=16, init_min_unmeasured=20, genetic_num_iters=2, eps_greedy=0.2
    )
    batches = _search(strategy, 2000, 5)
    keys = [int(tvm.ir.structural_hash(c.sch.mod)) for batch in batches for c in batch]
    # 4 x 4 ways to split 32 in two with inner tiles up to 8.
    assert len(keys) == len(set(keys)) == 16
    assert [len(batch) for batch in batches][-4:] == [0, 0, 0, 0]


def test_evolution_gives_up_where_nothing_is_legal() -> None:
    class Never(ms.postproc.PyPostproc):
        def apply(self, sch: tir.Schedule) -> bool:
            return False

    assert _search(ms.search_strategy.EvolutionarySearch(), 100, 10, postprocs=[Never()]) == []


def test_runs_follow_one_another() -> None:
    strategy = ms.search_strategy.ReplayTrace()
    with pytest.raises(RuntimeError, match="pre_tuning"):
        strategy.generate_measure_candidates()
    context = ms.TuneContext(
        matmul_module(), target=TARGET, space_generator=_two_tiles, search_strategy=strategy
    )
    context.pre_tuning(1, 1)
    with pytest.raises(ValueError, match="post_tuning"):
        context.pre_tuning(1, 1)
    with pytest.raises(ValueError, match="database and a cost model"):
        ms.search_strategy.EvolutionarySearch().pre_tuning(1, 1, [])


def _traces() -> list[Any]:
    context = ms.TuneContext(
        shifted_matmul_module(), target=TARGET, space_generator="post-order-apply", rand_state=5
    )
    return [sch.trace.simplified(remove_postproc=True) for sch in context.generate_design_space()]


@pytest.mark.parametrize(
    ("mutator", "kind"),
    [
        (ms.mutator.MutateTileSize(), "SamplePerfectTile"),
        (ms.mutator.MutateUnroll(), "SampleCategorical"),
    ],
)
def test_mutators_change_one_decision(mutator: Any, kind: str) -> None:
    for trace in _traces():
        for _ in range(10):
            mutant = mutator.apply(trace)
            assert mutant is not None
            differing = [
                str(inst.kind.name)
                for inst, other in zip(trace.insts, mutant.insts)
                if str(trace.get_decision(inst)) != str(mutant.get_decision(other))
            ]
            assert differing == [kind]
            before, after = tir.Schedule(shifted_matmul_module()), shifted_matmul_module()
            mutant.apply_to_schedule(before, remove_postproc=True)
            np.testing.assert_array_equal(outputs_of(before.mod), outputs_of(after))


def test_places_of_computation_are_those_that_are_legal() -> None:
    mod = shifted_matmul_module()
    context = ms.TuneContext(
        mod,
        target=TARGET,
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[ms.schedule_rule.RandomComputeLocation()],
            mutator_probs={ms.mutator.MutateComputeLocation(): 1.0},
        ),
        rand_state=1,
    )
    [sch] = context.generate_design_space()
    [mutator] = context.space_generator.mutator_probs
    trace = sch.trace.simplified(remove_postproc=True)
    programs = set()
    for _ in range(20):
        mutant = mutator.apply(trace)
        after = tir.Schedule(mod)
        mutant.apply_to_schedule(after, remove_postproc=True)
        programs.add(str(after.mod))
        np.testing.assert_array_equal(outputs_of(after.mod), outputs_of(mod))
    assert str(sch.mod) not in programs and len(programs) > 1


def test_parallelism_is_mutated() -> None:
    trace = _traces()[0]
    seeded = {str(ms.mutator.MutateTileSize().apply(trace, 7)) for _ in range(5)}
    assert len(seeded) == 1
    # Jobs that one, two and three loops make; 16 are reached with the second loop already.
    sch = tir.Schedule(matmul_module(64, 64, 8))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, factors=sch.sample_perfect_tile(i, 2, decision=[8, 8]))
    j_0, j_1 = sch.split(j, factors=sch.sample_perfect_tile(j, 2, decision=[4, 16]))
    sch.reorder(i_0, j_0, k, i_1, j_1)
    sch.annotate(sch.get_block("root"), "meta_schedule.parallel", 16)
    mutator = ms.mutator.MutateParallel(max_jobs_per_core=64)
    generator = ms.space_generator.PostOrderApply(
        sch_rules=[], postprocs=[], mutator_probs={mutator: 1.0}
    )
    ms.TuneContext(matmul_module(64, 64, 8), target=TARGET, space_generator=generator)
    limits = {int(mutator.apply(sch.trace).insts[-1].inputs[1]) for _ in range(40)}
    assert limits == {8}


def _tune(scheduler: Any, weights: list[float], trials: int) -> tuple[Any, Any]:
    tasks = [
        ms.TuneContext(
            mod,
            target=TARGET,
            space_generator=_two_tiles,
            search_strategy="replay-trace",
            task_name=name,
            rand_state=1,
        )
        for name, mod in (("small", matmul_module()), ("large", matmul_module(64, 64, 64)))
    ]
    database = ms.database.MemoryDatabase()
    scheduler.tune(
        tasks,
        weights,
        max_trials_global=trials,
        max_trials_per_task=12,
        num_trials_per_iter=3,
        builder=NoBuilder(),
        runner=CountingRunner(),
        measure_callbacks=[ms.measure_callback.AddToDatabase()],
        database=database,
        cost_model=None,
    )
    return database, tasks


@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_schedulers_spend_what_there_is(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    scheduler = ms.task_scheduler.create(kind)
    database, tasks = _tune(scheduler, [1.0, 1.0], 100)
    assert len(database) == 24 and scheduler.remaining_tasks_ == 0
    for task in tasks:
        top = database.get_top_k(database.commit_workload(task.mod), 100)
        assert len(top) == 12
        assert [r.mean_seconds() for r in top] == sorted(r.mean_seconds() for r in top)
    scheduler.print_tuning_statistics()
    text = capsys.readouterr().out
    assert "Total trials: 24" in text and "65536" in text and "524288" in text


def test_the_gradient_prefers_what_weighs_more() -> None:
    scheduler = ms.task_scheduler.GradientBased(seed=1)
    _tune(scheduler, [1.0, 50.0], 15)
    small, large = (len(task.latency_ms) for task in scheduler.tasks_)
    assert small + large == 15 and large > small


def test_failures_are_counted_and_recorded() -> None:
    class Failing(CountingRunner):
        def run(self, runner_inputs: Any) -> list[Any]:
            return [ms.runner.LocalRunnerFuture(error_message="broken") for _ in runner_inputs]

    context = ms.TuneContext(
        matmul_module(), target=TARGET, space_generator=_two_tiles, search_strategy="replay-trace"
    )
    scheduler, database = ms.task_scheduler.RoundRobin(), ms.database.MemoryDatabase()
    scheduler.tune(
        [context], [1.0], 4, 4, 2, NoBuilder(), Failing(),
        ms.measure_callback.create("default"), database, ms.cost_model.RandomModel(),
    )  # fmt: skip
    assert scheduler.tasks_[0].run_error_count == 4 == len(database)
    assert not database.get_top_k(database.commit_workload(context.mod), 4)


def test_what_was_stopped_is_no_failure() -> None:
    class Stopping(CountingRunner):
        def run(self, runner_inputs: Any) -> list[Any]:
            return [ms.runner.LocalRunnerFuture(None, "stopped", 0.5) for _ in runner_inputs]

    context = ms.TuneContext(
        matmul_module(), target=TARGET, space_generator=_two_tiles, search_strategy="replay-trace"
    )
    scheduler, database = ms.task_scheduler.RoundRobin(), ms.database.MemoryDatabase()
    model = ms.cost_model.XGBModel()
    scheduler.tune(
        [context], [1.0], 4, 4, 2, NoBuilder(), Stopping(),
        ms.measure_callback.create("default"), database, model,
    )  # fmt: skip
    assert scheduler.tasks_[0].run_error_count == 0
    assert [record.at_least for record in database.get_all_tuning_records()] == [0.5] * 4
    [group] = model.data.values()
    assert list(group.costs) == [0.5] * 4
    assert not database.get_top_k(database.commit_workload(context.mod), 4)


def test_without_measurements_evolution_takes_the_best_of_a_sample() -> None:
    class Counting(ms.cost_model.XGBModel):
        asked = 0

        def predict(self, context: Any, candidates: Any) -> np.ndarray:
            self.asked += len(candidates)
            scores = super().predict(context, candidates)
            self.scores = sorted(scores, reverse=True)
            return scores

    model = Counting()
    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=40, init_min_unmeasured=20, eps_greedy=0.0
    )
    context = ms.TuneContext(
        matmul_module(128, 128, 128), target=TARGET, space_generator="post-order-apply",
        search_strategy=strategy, rand_state=5,
    )  # fmt: skip
    context.pre_tuning(8, 8, database=ms.database.MemoryDatabase(), cost_model=model)
    batch = context.generate_measure_candidates()
    assert model.asked <= 40
    chosen = ms.cost_model.XGBModel().predict(context, batch)
    np.testing.assert_allclose(chosen, model.scores[:8])


def test_a_module_is_tuned_and_compiled(tmp_path: Path) -> None:
    mod = matmul_module()
    for _ in range(2):
        database = ms.tune_tir(
            mod,
            TARGET,
            str(tmp_path),
            4,
            space=_two_tiles,
            strategy="replay-trace",
            runner=ms.runner.LocalRunner(
                evaluator_config=ms.runner.EvaluatorConfig(number=1, min_repeat_ms=0)
            ),
            seed=1,
        )
    # The second run goes on from the first.
    assert len(database) == 8
    sch = ms.compile_tir(database, mod, TARGET)
    assert sch is not None
    np.testing.assert_array_equal(outputs_of(sch.mod), outputs_of(mod))
    assert ms.compile_tir(database, matmul_module(16), TARGET) is None
    assert (tmp_path / "database_tuning_record.json").exists()
    log = (tmp_path / "logs" / "tvm.meta_schedule.log").read_text()
    steps = ["Initializing", "picks", "to builder", "to runner", "[Updated]", "has finished"]
    places = [log.index(step) for step in steps]
    assert places == sorted(places)


def test_messages_are_printed_unless_a_program_has_its_own_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def search() -> str:
        ms.tune_tir(
            matmul_module(), TARGET, str(tmp_path), 1, space=_two_tiles, strategy="replay-trace",
            runner=ms.runner.LocalRunner(
                evaluator_config=ms.runner.EvaluatorConfig(number=1, min_repeat_ms=0)
            ),
        )  # fmt: skip
        return capsys.readouterr().out

    root = logging.getLogger()
    # Programs that ran before in this process, such as a tuning run, may have their own.
    for logger in (root, logging.getLogger("tvm")):
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)
    shown = search()
    assert shown.count(f"Logging directory: {tmp_path / 'logs'}") == 1
    assert "Total trials: 1" in shown
    monkeypatch.setattr(root, "handlers", [logging.NullHandler()])
    assert search() == ""
    assert logging.getLogger("tvm.meta_schedule").handlers == []


def test_what_cannot_be_tuned_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown kind 'annealing'"):
        ms.tune_tir(matmul_module(), TARGET, str(tmp_path), 1, strategy="annealing")
    with pytest.raises(ValueError, match="no tensor program"):
        ms.tune_tir(tvm.IRModule({}), TARGET, str(tmp_path), 1)
    two = tvm.IRModule({"f": matmul_module()["main"], "g": matmul_module()["main"]})
    with pytest.raises(ValueError, match="'main'"):
        ms.TuneContext(two)
