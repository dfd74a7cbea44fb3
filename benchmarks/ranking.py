#!/usr/bin/env python3
"""How well programs are ranked that the search has not measured, on operators no model has seen.

Random operators of all families are measured (half of the programs as a search chooses them, half
drawn at random), the best quarter of each once more with care, in rounds that have each program
once, because the order of those that differ by a few per cent is otherwise the machine's noise;
--folder keeps all of it, and a second call measures nothing. Then four rankings of each operator's
programs are compared with the measured order: the machine's bound alone, the packaged network
alone, what a search believes before it measured anything of the operator, and what it believes
after the first eight measurements, which are left out of the comparison.

Three rows more say what can be expected. Two are predictions that are off by some per cent at
random. "measured again" compares careful measurements of some processes with those of others: what
is peculiar to a process, such as where its programs and data lie, is the same in all rounds that it
times. Behind each value of the best tenth stands its standard error over the operators. A
prediction above the machine's peak is counted, and there must be none.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

from tvm.auto_scheduler import BuildResult, LocalBuilder, LocalRunner, MeasureInput, MeasureResult
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.auto_scheduler.cost_model.metric import evaluate
from tvm.auto_scheduler.measure_record import careful_file
from tvm.auto_scheduler.measure_session import observe_records
from tvm.felix.checkpoint import packaged_checkpoint
from tvm.felix.optim import Optimizer
from tvm.felix.peak import peak_flops
from tvm.felix.policy import FelixPolicy
from tvm.felix.pretrain import measure_programs
from tvm.felix.search import ConfigInfo
from tvm.felix.sym_task import (
    SymTaskAndInstances,
    load_tasks,
    make_task,
    merge_tasks,
    save_tasks,
)
from tvm.felix.task_model import TaskModel, network_share
from tvm.felix.workloads import random_workloads
from tvm.runtime.files import write_atomically

METRICS = ("spearman", "spearman_top", "peak_score@1", "peak_score@5")
STANDARD_ERROR = "spearman_top_error"
N_KNOWN = 8
CAREFUL_SHARE = 0.25
# Of careful measurements, both halves together, and the rounds of each.
PROCESSES = 4
ROUNDS = 5
# Relative errors of a prediction whose ranking is shown.
ERRORS = (0.02, 0.05)
DRAWS = 16


def measure_best_again(
    tasks: Sequence[SymTaskAndInstances], records: Path, careful: Path, second: Path
) -> None:
    """Measure the best programs of each operator in `records` with care, twice.

    Programs are built once and run by several processes, by each in rounds that have every program
    once, so that what slows the machine down for a while slows all of them down. Processes take
    turns: half of them go to `careful` and the others, as if everything were done once more, to
    `second`.
    """
    if second.exists():
        return
    optimizer = Optimizer(tasks, MLPModelPLWrapper())
    optimizer.restore(records)
    builder = LocalBuilder()
    try:
        batches = []
        for task in tqdm(optimizer.tasks, unit="operator"):
            infos = best_first(task.policy)
            infos = infos[: max(2 * N_KNOWN, round(CAREFUL_SHARE * len(infos)))]
            candidates = [task.policy.get_measure_input(info) for info in infos]
            batches.append((candidates, builder.build(candidates)))
        processes = [in_new_process(batches) for _ in tqdm(range(PROCESSES), unit="process")]
    finally:
        builder.pool.close()
    for half, path in enumerate((careful, second)):
        lines = []
        for (candidates, _), *taken in zip(batches, *processes[half::2]):
            for candidate, seconds in zip(candidates, np.mean(taken, axis=0)):
                result = MeasureResult([float(seconds)], 0, None, 0.0, time.time())
                lines.append(f"{candidate.record(result)}\n")
        write_atomically(path, "".join(lines))


def in_new_process(
    batches: Sequence[tuple[Sequence[MeasureInput], Sequence[BuildResult]]],
) -> list[np.ndarray]:
    """Seconds of the programs of each batch, timed by a process of its own."""
    runner = LocalRunner(number=1, repeat=8, min_repeat_ms=2)
    try:
        return [typical(in_rounds(*batch, runner)) for batch in batches]
    finally:
        runner.pool.close()


def in_rounds(
    candidates: Sequence[MeasureInput], programs: Sequence[BuildResult], runner: LocalRunner
) -> np.ndarray:
    """Seconds of programs, one sample a round: (rounds, n)."""
    samples = np.empty((ROUNDS, len(candidates)))
    for turn in range(ROUNDS):
        # Another one begins each round.
        order = np.roll(np.arange(len(candidates)), -turn)
        results = runner.run([candidates[i] for i in order], [programs[i] for i in order])
        for i, result in zip(order, results):
            samples[turn, i] = min(float(cost) for cost in result.costs)
    return samples


def typical(samples: np.ndarray) -> np.ndarray:
    """Seconds of each program by samples of rounds, (rounds, n) to (n,): the middle of what it
    takes beside the others of a round, at the speed of a typical round."""
    speed = np.median(samples, axis=1, keepdims=True)
    return np.median(samples / speed, axis=0) * float(np.quantile(speed, 0.25))


def best_first(policy: FelixPolicy) -> list[ConfigInfo]:
    """The valid programs that were measured of an operator, the fastest first."""
    infos = [i for i in policy.search_state.measured.values() if i.seconds is not None]
    return sorted(infos, key=lambda info: float(info.seconds or 0.0))


def predictions(policy: FelixPolicy, model: TaskModel, infos: Iterable[ConfigInfo]) -> np.ndarray:
    """ln(GFLOP/s) believed of measured programs, shape (n,)."""
    means = []
    for info in infos:
        function = policy.function.sketch_funcs[info.sketch]
        features = function.features.rows(function.features.point(info.config)[None])
        with torch.no_grad():
            means.append(float(model.believe(info.sketch, torch.from_numpy(features)).mean[0]))
    return np.array(means)


def rankings(policy: FelixPolicy, again: FelixPolicy) -> tuple[dict[str, dict[str, float]], int]:
    """Ranking to metrics for one operator, and how many predictions lie above the peak.

    again : a policy that observed the second careful measurements last.
    """
    function = policy.function
    infos = [i for i in policy.search_state.measured.values() if i.seconds is not None]
    speeds = np.array([function.flops / float(i.seconds or 1.0) for i in infos])
    bound, network = function.model.bound, function.perf_model

    target = policy.search_task.target

    def fresh(model: MLPModelPLWrapper) -> TaskModel:
        share = network_share(model, target)
        return TaskModel(model, bound, function.flops, peak_flops(target), share)

    alone = TaskModel(network, None, function.flops, float("inf"))
    believed = function.model
    policy.search_state.learn_from(list(policy.search_state.measured.values())[:N_KNOWN])
    rest = infos[N_KNOWN:]
    rows = {
        "bound": (predictions(policy, fresh(MLPModelPLWrapper()), infos), speeds),
        "network": (predictions(policy, alone, infos), speeds),
        "belief at first": (predictions(policy, fresh(network), infos), speeds),
        f"belief after {N_KNOWN}": (predictions(policy, believed, rest), speeds[N_KNOWN:]),
    }
    peak = np.log(peak_flops(target) / 1e9)
    above = sum(int((p > peak + 1e-9).sum()) for name, (p, _) in rows.items() if name != "network")
    second = [again.search_state.measured[info.key].seconds for info in infos]
    rows["measured again"] = (np.array([-float(seconds or np.inf) for seconds in second]), speeds)
    # Of a handful of programs an order says nothing.
    metrics = {name: evaluate(*row) for name, row in rows.items() if len(row[1]) >= N_KNOWN}
    return {**metrics, **of_errors(speeds)}, above


def of_errors(speeds: np.ndarray) -> dict[str, dict[str, float]]:
    """Metrics of predictions that differ from the measured speeds by random relative errors."""
    rng = np.random.default_rng(0)
    rows = {}
    for error in ERRORS:
        draws = [
            evaluate(np.log(speeds) + rng.normal(0, error, len(speeds)), speeds)
            for _ in range(DRAWS)
        ]
        rows[f"off by {error:.0%}"] = {
            name: statistics.fmean(draw[name] for draw in draws) for name in METRICS
        }
    return rows


def over_operators(entries: Sequence[dict[str, float]]) -> dict[str, float]:
    """Means of the metrics of some operators, and how sure that of the best tenth is.

    A single operator says nothing of that.
    """
    means = {m: statistics.fmean(entry[m] for entry in entries) for m in METRICS}
    top = [entry["spearman_top"] for entry in entries]
    if len(top) > 1:
        means[STANDARD_ERROR] = statistics.stdev(top) / len(top) ** 0.5
    return means


def main() -> None:
    """Measure, compare, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operators", type=int, default=24)
    parser.add_argument("--per-task", type=int, default=128, help="programs of each operator")
    parser.add_argument(
        "--seed", type=int, default=5, help="of the operators; training had another"
    )
    parser.add_argument("--cost-model", type=Path, default=packaged_checkpoint())
    parser.add_argument("--folder", type=Path, default=Path("ranking_programs"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    torch.set_num_threads(1)
    file = options.folder / "tasks.json"
    if file.exists():
        tasks = load_tasks(file)
    else:
        operators = random_workloads(options.operators, options.seed)
        made = [[make_task(build(), target="llvm", desc=name)] for name, build in operators.items()]
        tasks = merge_tasks(made)
        options.folder.mkdir(parents=True, exist_ok=True)
        save_tasks(tasks, file)
    records = options.folder / "records.json"
    measure_programs(tasks, options.per_task, records, seed=options.seed)
    second = options.folder / "second.json"
    measure_best_again(tasks, records, careful_file(records), second)

    again = Optimizer(tasks, MLPModelPLWrapper())
    again.restore(records)
    observe_records(second, {task.key: task.policy for task in again.tasks})
    optimizer = Optimizer(tasks, MLPModelPLWrapper(pretrained=options.cost_model))
    optimizer.restore(records)
    families: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    above = 0
    for task, twice in zip(optimizer.tasks, again.tasks):
        rows, over = rankings(task.policy, twice.policy)
        above += over
        for name, metrics in rows.items():
            families[task.instance.desc.split()[0]][name].append(metrics)
            families["all"][name].append(metrics)

    report = {
        family: {name: over_operators(entries) for name, entries in rows.items()}
        for family, rows in families.items()
    }
    table = Table("operators", "ranking", *METRICS)
    for family, rows in sorted(report.items()):
        for name, metrics in rows.items():
            shown = {m: f"{metrics[m]:.3f}" for m in METRICS}
            if STANDARD_ERROR in metrics:
                shown["spearman_top"] += f" ± {metrics[STANDARD_ERROR]:.3f}"
            table.add_row(f"{family} ({len(families[family][name])})", name, *shown.values())
    Console(width=max(100, Console().width)).print(table)
    print(f"{above} predictions above the machine's peak")
    if options.json:
        options.json.write_text(json.dumps({"above_peak": above, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
