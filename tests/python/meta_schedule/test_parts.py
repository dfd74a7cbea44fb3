"""Databases, cost models, builders, runners, arguments, the profiler."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
from testing_traces import TARGET, matmul_module, sum_module
from tvm import meta_schedule as ms
from tvm import tir
from tvm.meta_schedule.cost_model.program_bound import bound_cycles
from tvm.meta_schedule.testing.local_rpc import LocalRPC
from tvm.runtime.workers import Job, WorkerPool
from tvm.script import tir as T
from tvm.target import Target


def _record(database: Any, seconds: float, factor: int = 4, n: int = 32) -> Any:
    mod = matmul_module(n)
    sch = tir.Schedule(mod)
    sch.split(sch.get_loops(sch.get_block("C"))[0], factors=[None, factor])
    record = ms.database.TuningRecord(
        sch.trace, database.commit_workload(mod), [seconds], Target(TARGET),
        ms.ArgInfo.from_entry_func(mod),
    )  # fmt: skip
    database.commit_tuning_record(record)
    return record


@pytest.mark.parametrize("kind", ["memory", "json"])
def test_databases_answer_with_the_fastest(kind: str, tmp_path: Path) -> None:
    options = {"work_dir": tmp_path} if kind == "json" else {}
    database = ms.database.create(kind, **options)
    for seconds, factor in ((0.3, 2), (0.1, 4), (0.2, 8), (1e10, 16)):
        _record(database, seconds, factor)
    _record(database, 0.5, 4, 16)
    mod, target = matmul_module(), Target(TARGET)
    workload = database.commit_workload(mod)
    assert [r.run_secs for r in database.get_top_k(workload, 9)] == [[0.1], [0.2], [0.3]]
    assert len(database) == 5 and database.has_workload(mod)
    assert not database.has_workload(matmul_module(64))
    assert "factors=[None, 4]" in str(database.query_schedule(mod, target).trace)
    assert database.query(mod, target, kind="record").run_secs == [0.1]
    assert database.query_ir_module(matmul_module(64), target) is None
    with pytest.raises(ValueError, match="not negative"):
        database.get_top_k(workload, -1)
    with pytest.raises(ValueError, match="unknown kind"):
        database.query(mod, target, kind="text")
    if kind == "json":
        again = ms.database.JSONDatabase(work_dir=tmp_path)
        assert [r.as_json() for r in again.get_all_tuning_records()] == [
            r.as_json() for r in database.get_all_tuning_records()
        ]
    pruned = ms.database.MemoryDatabase()
    database.dump_pruned(pruned)
    assert sorted(r.run_secs for r in pruned.get_all_tuning_records()) == [[0.1], [0.5]]


def test_unions_ask_several() -> None:
    one, two = ms.database.MemoryDatabase(), ms.database.MemoryDatabase()
    _record(one, 0.3)
    _record(two, 0.1)
    mod, target = matmul_module(), Target(TARGET)
    union, ordered = ms.database.UnionDatabase(one, two), ms.database.OrderedUnionDatabase(one, two)
    assert union.query_tuning_record(mod, target).run_secs == [0.1]
    assert ordered.query_tuning_record(mod, target).run_secs == [0.3]
    with pytest.raises(TypeError, match="only answers queries"):
        len(union)
    with union:
        assert ms.database.Database.current() is union
    assert ms.database.Database.current() is None

    def schedule(sch: tir.Schedule) -> bool:
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])
        return True

    assert "parallel" in str(ms.database.create(schedule).query_schedule(mod, target).trace)


def test_damaged_files_are_named(tmp_path: Path) -> None:
    database = ms.database.JSONDatabase(work_dir=tmp_path)
    _record(database, 0.1)
    records = tmp_path / "database_tuning_record.json"
    good = records.read_text()
    records.write_text(good + good[:40])
    assert len(ms.database.JSONDatabase(work_dir=tmp_path)) == 1
    for bad in ('{"a": 1}', "[7, []]", "[0, [1, 2, 3, 4]]", "[0, null]"):
        records.write_text(good + bad + "\n" + good)
        with pytest.raises(ValueError, match=r"database_tuning_record\.json:2: "):
            ms.database.JSONDatabase(work_dir=tmp_path)
    workloads = tmp_path / "database_workload.json"
    changed = json.loads(workloads.read_text())
    workloads.write_text(json.dumps(["1", changed[1]]) + "\n")
    with pytest.raises(ValueError, match=r"database_workload\.json:1: .*hash"):
        ms.database.JSONDatabase(work_dir=tmp_path)


def test_candidates_are_built_and_timed(tmp_path: Path) -> None:
    mods = [matmul_module(), sum_module(64)]
    builder = ms.builder.LocalBuilder(max_workers=2)
    built = builder.build([ms.builder.BuilderInput(mod, Target("llvm")) for mod in mods])
    assert [result.error_msg for result in built] == [None, None]
    config = ms.runner.EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)
    runner = ms.runner.LocalRunner(evaluator_config=config)
    inputs = [
        ms.runner.RunnerInput(result.artifact_path, "llvm", ms.ArgInfo.from_entry_func(mod))
        for result, mod in zip(built, mods)
    ]
    inputs.append(ms.runner.RunnerInput(str(tmp_path / "none.so"), "llvm", []))
    *fine, missing = [future.result() for future in runner.run(inputs)]
    assert all(r.error_msg is None and len(r.run_secs) == 2 for r in fine)
    assert missing.run_secs is None and "none.so" in missing.error_msg
    for result in built:
        ms.utils.remove_build_dir(result.artifact_path)
        assert not Path(result.artifact_path).parent.exists()


def test_candidates_are_timed_on_devices_of_a_tracker(tmp_path: Path) -> None:
    mod = matmul_module()
    [built] = ms.builder.LocalBuilder(max_workers=1).build(
        [ms.builder.BuilderInput(mod, Target("llvm"))]
    )
    entry = ms.runner.RunnerInput(built.artifact_path, "llvm", ms.ArgInfo.from_entry_func(mod))
    missing = ms.runner.RunnerInput(str(tmp_path / "none.so"), "llvm", [])
    config = ms.runner.EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)
    with LocalRPC() as local:
        rpc_config = ms.runner.RPCConfig(
            local.tracker_host, local.tracker_port, local.tracker_key, 1, 100
        )
        assert rpc_config.count_num_servers() == 1
        runner = ms.runner.create("rpc", rpc_config, config)
        fine, refused = [future.result() for future in runner.run([entry, missing])]
    assert fine.error_msg is None and len(fine.run_secs) == 2
    assert refused.error_msg.startswith("RPCRunner: An exception occurred\n")
    with pytest.raises(ValueError, match="tracker_key is missing; give it, or set TVM_TRACKER_KEY"):
        ms.runner.RPCRunner(ms.runner.RPCConfig("127.0.0.1", 9190))
    ms.utils.remove_build_dir(built.artifact_path)


def test_functions_of_ones_own_build_and_run(tmp_path: Path) -> None:
    mod = matmul_module()
    calls: list[str] = []
    # Those of a runner are called in a copy of this process.
    log = tmp_path / "called"

    def note(what: str) -> None:
        with log.open("a") as file:
            file.write(what + "\n")

    def build(m: Any, target: Target, params: Any) -> Any:
        calls.append("build")
        return ms.builder.local_builder.default_build(m, target, params)

    def evaluate(module: Any, device: Any, config: Any, sets: Any) -> list[float]:
        note("evaluate")
        return [1.0]

    [built] = ms.builder.LocalBuilder(f_build=build).build(
        [ms.builder.BuilderInput(mod, Target("llvm"))]
    )
    runner = ms.runner.LocalRunner(f_run_evaluator=evaluate, f_cleanup=lambda: note("end"))
    entry = ms.runner.RunnerInput(built.artifact_path, "llvm", ms.ArgInfo.from_entry_func(mod))
    [future] = runner.run([entry])
    assert future.result().run_secs == [1.0] and calls == ["build"]
    assert log.read_text().split() == ["evaluate", "end"]
    slow = ms.runner.LocalRunner(timeout_sec=0.3, f_alloc_argument=lambda *_: time.sleep(60))
    [late] = slow.run([entry])
    assert late.result().error_msg == "LocalRunner: Timeout, killed after 0.3 seconds"
    assert late.result().run_secs is None
    [dead] = ms.runner.LocalRunner(f_run_evaluator=lambda *_: os._exit(7)).run([entry])
    assert "7" in dead.result().error_msg
    [wrong] = ms.runner.LocalRunner(f_run_evaluator=lambda *_: 1 / 0).run([entry])
    assert wrong.result().error_msg.startswith("LocalRunner: An exception occurred\nZeroDivision")
    ms.utils.remove_build_dir(built.artifact_path)
    [refused] = ms.builder.LocalBuilder(f_build="tests.nobody").build(
        [ms.builder.BuilderInput(mod, Target("llvm"))]
    )
    assert "tests.nobody" in refused.error_msg
    [unbound] = ms.builder.LocalBuilder().build(
        [ms.builder.BuilderInput(mod, Target("llvm"), {"weight": None})]
    )
    assert "binds no arrays" in unbound.error_msg


@pytest.mark.parametrize(
    ("kind", "needs"), [("XGBModel", "xgboost"), ("MLPModel", "torch")], ids=["trees", "perceptron"]
)
def test_a_model_learns_and_is_kept(kind: str, needs: str, tmp_path: Path) -> None:
    pytest.importorskip(needs)
    context = ms.TuneContext(
        matmul_module(64, 64, 64), target=TARGET, space_generator="post-order-apply",
        search_strategy="replay-trace", rand_state=2,
    )  # fmt: skip
    context.pre_tuning(40, 40)
    candidates = context.generate_measure_candidates()
    # As if unrolled or long programs were slow: something that features tell.
    costs = [1e-3 * (1 + len(str(c.sch.mod))) for c in candidates]
    made = getattr(ms.cost_model, kind)
    model = made(num_warmup_samples=10)
    assert model.predict(context, candidates).shape == (40,) and not model.trained
    results = [ms.runner.RunnerResult([cost], None) for cost in costs]
    model.update(context, candidates[:20], results[:20])
    model.update(context, candidates[20:], results[20:])
    scores = model.predict(context, candidates)
    assert np.corrcoef(scores, 1 / np.array(costs))[0, 1] > 0.8
    path = str(tmp_path / "model")
    model.save(path)
    other = made(num_warmup_samples=10)
    other.load(path)
    np.testing.assert_allclose(other.predict(context, candidates), scores, rtol=1e-5)
    (tmp_path / "model").write_bytes(b"no archive")
    with pytest.raises(ValueError, match=r"no measurements of an XGBModel|no file of tensors"):
        other.load(path)


def test_scores_of_packs_are_sums_and_training_follows_them() -> None:
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    tables = [rng.random((rows, 3)).astype("float32") for rows in (1, 3, 2)]
    packs = ms.cost_model.PackSum(tables, np.array([1.0, 0.5, 0.25]))
    rows = np.array([1.0, 0.1, 0.2, 0.3, 0.0, 0.5])
    np.testing.assert_allclose(packs.predict_with_score(rows), [1.0, 0.6, 0.5])
    gradient, hessian = packs.obj_square_error(rows)
    np.testing.assert_allclose(gradient, [0.0, 0.05, 0.05, 0.05, 0.0625, 0.0625])
    np.testing.assert_allclose(hessian, [1.0, 0.5, 0.5, 0.5, 0.25, 0.25])
    assert packs.rmse(rows) == ("p-rmse", pytest.approx(np.sqrt((0.01 + 0.0625) / 3)))
    assert packs.average_peak_score(-rows, 2) == ("a-peak@2", pytest.approx((0.25 + 0.5) / 2))


def test_training_stops_where_trees_no_longer_help() -> None:
    pytest.importorskip("xgboost")
    context = ms.TuneContext(matmul_module(64, 64, 64), target=TARGET)
    sch = tir.Schedule(context.mod)
    config = ms.cost_model.XGBConfig(max_depth=2, nthread=1)
    sizes = []
    for rounds in (1, 20):
        model = ms.cost_model.XGBModel(
            config=config, num_warmup_samples=1, early_stopping_rounds=rounds, num_tuning_cores=1
        )
        # All look alike, so the error stays once their mean is known.
        results = [ms.runner.RunnerResult([cost], None) for cost in (1.0, 2.0)]
        model.update(context, [ms.MeasureCandidate(sch, [])] * 2, results)
        sizes.append(model.booster.num_boosted_rounds())
    assert sizes[0] <= sizes[1] < 300


def test_random_models_repeat(tmp_path: Path) -> None:
    one, two = ms.cost_model.RandomModel(seed=4), ms.cost_model.RandomModel(seed=4)
    candidates: list[Any] = [None] * 10
    assert (one.predict(None, candidates) == two.predict(None, candidates)).all()
    one.save(str(tmp_path / "state"))
    two.load(str(tmp_path / "state"))
    assert (one.predict(None, candidates) == two.predict(None, candidates)).all()
    (tmp_path / "state").write_text('{"a": 1}')
    with pytest.raises(ValueError, match="no state"):
        two.load(str(tmp_path / "state"))


def test_parts_are_made_by_kind() -> None:
    assert isinstance(ms.Builder.create("local"), ms.builder.LocalBuilder)
    assert isinstance(ms.Runner.create("local"), ms.runner.LocalRunner)
    assert isinstance(ms.CostModel.create("random"), ms.cost_model.RandomModel)
    assert ms.CostModel.create("none") is None
    assert isinstance(ms.SearchStrategy.create("replay-trace"), ms.search_strategy.ReplayTrace)
    assert isinstance(ms.TaskScheduler.create("round-robin"), ms.task_scheduler.RoundRobin)
    extractor = ms.FeatureExtractor.create("per-store-feature", buffers_per_store=3)
    assert isinstance(extractor, ms.feature_extractor.PerStoreFeature)
    for part in (ms.Builder, ms.Runner, ms.CostModel, ms.SearchStrategy, ms.FeatureExtractor):
        with pytest.raises(ValueError, match=f"{part.__name__}.create: unknown kind 'other'"):
            part.create("other")


def test_mutators_may_take_a_random_state() -> None:
    class Forgetting(ms.mutator.PyMutator):
        def apply(self, trace: tir.schedule.Trace, _: int) -> tir.schedule.Trace:
            return tir.schedule.Trace(trace.insts, {})

    class Plain(ms.mutator.PyMutator):
        def apply(self, trace: tir.schedule.Trace) -> tir.schedule.Trace:
            return trace

    sch = tir.Schedule(matmul_module(8))
    sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], 2)
    assert Forgetting().apply(sch.trace).decisions == {} and len(sch.trace.decisions) == 1
    assert Forgetting().apply(sch.trace, 7) is not None
    trace = sch.trace
    assert Plain().apply(trace) is trace


def test_dummies_say_that_all_went_well() -> None:
    from tvm.meta_schedule.testing import dummy_object as dummy

    future = dummy.DummyRunnerFuture()
    assert future.done() and all(5 <= float(s) <= 30 for s in future.result().run_secs)


def test_arguments_and_the_profiler() -> None:
    infos = ms.ArgInfo.from_prim_func(matmul_module(3, 4, 5)["main"])
    assert [str(info) for info in infos] == [
        'TensorInfo("float32", [3, 5])', 'TensorInfo("float32", [5, 4])',
        'TensorInfo("float32", [3, 4])',
    ]  # fmt: skip
    assert [ms.TensorInfo.from_json(info.as_json()) for info in infos] == infos
    for bad in (["TENSOR", 1, [2]], ["VECTOR", "float32", [2]], 7):
        with pytest.raises(ValueError, match="TENSOR"):
            ms.TensorInfo.from_json(bad)
    with ms.Profiler() as profiler:
        with ms.Profiler.timeit("a"):
            time.sleep(0.01)
        assert ms.Profiler.current() is profiler
    times = profiler.get()
    assert 0.01 <= times["a"] <= times["Total"] and "Total" in profiler.table()
    assert ms.Profiler.current() is None


def test_operands_laid_out_beforehand_are_timed_in_their_layout():
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        P = T.alloc_buffer((4, 16, 4))
        for i, j in T.grid(16, 16):
            with T.block("layout_rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                P[vi // 4, vj, vi % 4] = A[vi, vj]
        for i, j in T.grid(16, 16):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = P[vi // 4, vj, vi % 4] * 2.0

    mod = tvm.IRModule({"main": main})
    args = ms.ArgInfo.from_entry_func(mod)
    assert [info.shape for info in args] == [[4, 16, 4], [16, 16]]
    kept = ms.ArgInfo.from_entry_func(mod, remove_preproc=False)
    assert [info.shape for info in kept] == [[16, 16], [16, 16]]
    target = tvm.target.Target("llvm")
    built = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(mod, target)])[0]
    assert built.error_msg is None
    runner_input = ms.runner.RunnerInput(built.artifact_path, "llvm", args)
    (future,) = ms.runner.LocalRunner().run([runner_input])
    assert future.result().error_msg is None


def test_slow_candidates_are_called_once(tmp_path):
    def product(repeats, name):
        @T.prim_func
        def main(a: T.Buffer((64,), "float32"), b: T.Buffer((64,), "float32")):
            for i, k in T.grid(64, repeats):
                with T.block("b"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        b[vi] = T.float32(0)
                    b[vi] = T.sin(b[vi]) + a[vi]

        path = tmp_path / f"{name}.so"
        tvm.build(main, target="llvm").export_library(str(path))
        return str(path)

    info = [ms.arg_info.TensorInfo("float32", (64,))] * 2
    slow, fast = product(40_000, "slow"), product(100, "fast")
    config = ms.runner.EvaluatorConfig(number=2, repeat=3, min_repeat_ms=5)

    runner = ms.runner.LocalRunner(evaluator_config=config)

    def repeats(paths, best=None):
        inputs = [ms.runner.RunnerInput(path, "llvm", info, best) for path in paths]
        results = [future.result() for future in runner.run(inputs)]
        assert [r.error_msg for r in results] == [None] * len(paths)
        return [len(r.run_secs) for r in results]

    # The first one is slow, which shows when the second one is known.
    assert repeats([slow, fast]) == [1, 3]
    assert repeats([slow, slow]) == [3, 3]
    runner.hopeless_factor = math.inf
    assert repeats([slow, fast]) == [3, 3]
    with pytest.raises(ValueError, match="must be above 1"):
        ms.runner.LocalRunner(hopeless_factor=1)


def _library(function: tir.PrimFunc, path: Path) -> str:
    tvm.build(function, target="llvm").export_library(str(path))
    return str(path)


def test_candidates_that_take_far_too_long_or_crash_do_not_cost_a_worker(tmp_path: Path) -> None:
    @T.prim_func
    def endless(b: T.Buffer((4,), "float32")):
        b[0] = T.float32(1)
        while b[0] < T.float32(2):
            b[1] = b[1] + T.float32(1)

    @T.prim_func
    def crashing(b: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", "abort"))
        b[0] = T.float32(1)

    @T.prim_func
    def fine(b: T.Buffer((4,), "float32")):
        for i in range(4):
            b[i] = T.float32(1)

    paths = [
        _library(function, tmp_path / f"{name}.so")
        for name, function in (("fine", fine), ("endless", endless), ("crashing", crashing))
    ]
    config = ms.runner.EvaluatorConfig(number=1, repeat=2, min_repeat_ms=50)
    runner = ms.runner.LocalRunner(timeout_sec=60, evaluator_config=config)

    def run(path: str) -> Any:
        info = [ms.arg_info.TensorInfo("float32", (4,))]
        return runner.run([ms.runner.RunnerInput(path, "llvm", info, 1e-7)])[0].result()

    # As long as a repeat every call may take, however fast the best program is.
    first = run(paths[0])
    assert first.error_msg is None and first.at_least is None
    [worker] = runner._pool.process_ids()
    stopped = run(paths[1])
    assert stopped.run_secs is None and "stopped" in stopped.error_msg
    assert 0.05 <= stopped.at_least < 60
    crashed = run(paths[2])
    assert crashed.at_least is None and "SIGABRT" in crashed.error_msg
    assert run(paths[0]).error_msg is None
    assert runner._pool.process_ids() == [worker]


def test_a_call_that_is_long_enough_is_the_only_one(tmp_path: Path) -> None:
    @T.prim_func
    def fine(b: T.Buffer((4,), "float32")):
        for i in range(4):
            b[i] = T.float32(1)

    arguments = {
        "path": _library(fine, tmp_path / "fine.so"),
        "device": "llvm",
        "args_info": [["TENSOR", "float32", [4]]],
        "alloc_repeat": 1,
        "config": ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=0)._asdict(),
        "once_above": 0.0,
        "long": 0.0,
        "stop_after": None,
    }
    with WorkerPool(1, timeout=60) as pool:
        name = "tvm.meta_schedule.worker_jobs:run"
        once, careful = pool.run([Job(name, arguments), Job(name, {**arguments, "once_above": 9})])
    assert once.result["once"] and len(once.result["seconds"]) == 1
    assert not careful.result["once"] and len(careful.result["seconds"]) == 3


def test_what_was_stopped_is_recorded_as_that(tmp_path: Path) -> None:
    database = ms.database.JSONDatabase(work_dir=tmp_path)
    workload = database.commit_workload(matmul_module())
    trace = tir.Schedule(workload.mod).trace
    for seconds, at_least in (([1e10], 0.25), ([0.5], None)):
        database.commit_tuning_record(
            ms.database.TuningRecord(trace, workload, seconds, TARGET, [], at_least)
        )
    again = ms.database.JSONDatabase(work_dir=tmp_path)
    records = again.get_all_tuning_records()
    assert [record.at_least for record in records] == [0.25, None]
    assert [len(record.as_json()) for record in records] == [5, 4]
    assert [r.run_secs for r in again.get_top_k(workload, 2)] == [[0.5]]
    with pytest.raises(ValueError, match="expected 4 or 5"):
        ms.database.TuningRecord.from_json([*records[0].as_json(), 1], workload)


def _scheduled(steps: Any) -> Any:
    sch = tir.Schedule(matmul_module(256, 256, 256))
    steps(sch, *sch.get_loops(sch.get_block("C")))
    return ms.MeasureCandidate(sch, [])


def test_a_bound_tells_hopeless_programs_apart() -> None:
    def tiled(sch: Any, i: Any, j: Any, k: Any) -> None:
        i0, i1 = sch.split(i, [None, 4])
        j0, j1 = sch.split(j, [None, 16])
        sch.reorder(i0, j0, k, i1, j1)
        sch.unroll(i1)
        sch.vectorize(j1)

    def plain(sch: Any, i: Any, j: Any, k: Any) -> None:
        pass

    def lanes_far_apart(sch: Any, i: Any, j: Any, k: Any) -> None:
        i0, i1 = sch.split(i, [None, 16])
        sch.reorder(i0, j, k, i1)
        sch.vectorize(i1)

    def lanes_without_a_pattern(sch: Any, i: Any, j: Any, k: Any) -> None:
        i0, i1 = sch.split(i, [None, 4])
        j0, j1 = sch.split(j, [None, 4])
        sch.reorder(i0, j0, k, i1, j1)
        sch.vectorize(sch.fuse(i1, j1))

    programs = [tiled, plain, lanes_far_apart, lanes_without_a_pattern]
    context = ms.TuneContext(
        matmul_module(256, 256, 256), target=Target("llvm -mcpu=skylake-avx512 -num-cores=1")
    )
    candidates = [_scheduled(steps) for steps in programs]
    cycles = bound_cycles(context, candidates)
    # 256^3 multiply-adds in 16 lanes on two units.
    assert 256**3 / 32 <= cycles[0] < min(cycles[1:]) / 4
    assert cycles[3] == max(cycles)
    scores = ms.cost_model.XGBModel().predict(context, candidates)
    np.testing.assert_allclose(scores * cycles, 1e6)
    context.target = Target("cuda")
    assert bound_cycles(context, candidates) is None
    assert len(ms.cost_model.XGBModel().predict(context, candidates)) == 4
    with pytest.raises(ValueError, match="unknown prior 'none'"):
        ms.cost_model.XGBModel(prior="none")


def test_a_bound_shares_work_among_cores_and_knows_what_stays_in_registers() -> None:
    def body(sch: Any, i: Any, j: Any, k: Any, rows: int) -> None:
        i0, i1 = sch.split(i, [None, rows])
        j0, j1 = sch.split(j, [None, 16])
        sch.reorder(i0, j0, k, i1, j1)
        sch.unroll(i1)
        sch.vectorize(j1)

    def cycles_of(steps: Any, cores: int) -> float:
        target = Target(f"llvm -mcpu=skylake-avx512 -num-cores={cores}")
        context = ms.TuneContext(matmul_module(256, 256, 256), target=target)
        [cycles] = bound_cycles(context, [_scheduled(steps)])
        return float(cycles)

    def parallel(sch: Any, i: Any, j: Any, k: Any) -> None:
        body(sch, i, j, k, 8)
        sch.parallel(sch.get_loops(sch.get_block("C"))[0])

    few = cycles_of(lambda *loops: body(*loops, 8), 1)
    # One row waits for each sum, and 64 of them do not fit 32 registers.
    assert cycles_of(lambda *loops: body(*loops, 1), 1) > 1.5 * few
    assert cycles_of(lambda *loops: body(*loops, 64), 1) > 1.2 * few
    assert few / 5 < cycles_of(parallel, 4) < few / 2
