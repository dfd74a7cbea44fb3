#!/usr/bin/env python3
"""Tapes as smoothing leaves them, in normal form, and after equality saturation, once and twice.

    python benchmarks/tape.py --json tape.json
    python benchmarks/tape.py --operations

For every sketch of 30 tasks: entries, and the time of values and gradients at 64 points as the
search asks for them, the four tapes interleaved in one process; and what simplification takes,
which is the processor time of all sketches of the task together. A task's time is the sum over its
sketches. `--operations` measures single operations instead: the costs in tape_ops.def.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tvm import te, topi
from tvm.felix import nn
from tvm.felix.ffi import get_feature_pack
from tvm.felix.sym_task import SymTaskAndInstances, extract_tasks, make_task, merge_tasks
from tvm.felix.tape import ITERATIONS, NODE_LIMIT, Tape, TapeOp, TapeVar

POINTS = 64
KINDS = ("plain", "normal form", "saturated", "saturated twice")


def _elementwise_chain(x: te.Tensor) -> te.Tensor:
    return topi.nn.relu(topi.add(topi.multiply(x, x), x))


def handmade() -> Iterator[tuple[str, list[te.Tensor]]]:
    """Operators that the networks lack."""
    for n, k, m in ((1, 512, 1000), (64, 768, 768), (128, 1024, 512)):
        a, b = te.placeholder((n, k), name="a"), te.placeholder((m, k), name="b")
        yield f"dense {n}x{k}x{m}", [a, b, topi.nn.relu(topi.nn.dense(a, b))]
    for batch, n, k in ((12, 128, 64), (8, 64, 256)):
        a = te.placeholder((batch, n, k), name="a")
        b = te.placeholder((batch, n, k), name="b")
        yield f"batch_matmul {batch}x{n}x{k}", [a, b, topi.nn.batch_matmul(a, b)]
    for shape in ((64, 1000), (96, 128)):
        x = te.placeholder(shape, name="x")
        yield f"softmax {shape[0]}x{shape[1]}", [x, topi.nn.softmax(x)]
    x = te.placeholder((128, 768), name="x")
    gamma, beta = te.placeholder((768,), name="gamma"), te.placeholder((768,), name="beta")
    yield "layer_norm 128x768", [x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, [1], 1e-5)]
    x = te.placeholder((56, 96, 48), name="x")
    yield "elementwise 56x96x48", [x, _elementwise_chain(x)]


def tasks(count: int) -> list[tuple[str, SymTaskAndInstances]]:
    """Handmade ones, then those of two networks in turn, most work first."""
    found = [(name, make_task(tensors, desc=name)) for name, tensors in handmade()]
    networks = [
        (name, merge_tasks([extract_tasks(*nn.load_network(name))]))
        for name in ("resnet18", "mobilenet_v2")
    ]
    for rank in range(max(len(network) for _, network in networks)):
        for name, network in networks:
            if rank < len(network) and len(found) < count:
                found.append((f"{name} {network[rank].instances[0].desc}", network[rank]))
    return found[:count]


def seconds(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """The best time of each call; calls take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def measure(task: SymTaskAndInstances, rounds: int, limits: tuple[int, int]) -> dict:
    """Sums over the sketches of a task."""
    row: dict = {
        "sketches": 0,
        "nodes": [0] * len(KINDS),
        "forward_us": [0.0] * len(KINDS),
        "backward_us": [0.0] * len(KINDS),
        "simplify_seconds": 0.0,
        "stop_reasons": [],
        "largest_error": 0.0,
    }
    for sketch in task.task.sketches:
        try:
            pack = get_feature_pack(
                task.task.ansor_task, sketch.code, sketch.context, iterations=0, node_limit=0
            )
        except ValueError:
            continue  # its constraints cannot be met
        plain = pack.tape
        start = time.process_time()
        saturated, stop_reason, _ = plain.simplify(*limits)
        row["simplify_seconds"] += time.process_time() - start
        row["stop_reasons"].append(stop_reason)
        twice = saturated.simplify(*limits).tape
        tapes: list[Tape] = [plain, plain.simplify(0, 0).tape, saturated, twice]
        rng = np.random.default_rng(0)
        lower, upper = plain.var_lower.numpy(), plain.var_upper.numpy()
        points = lower + rng.uniform(size=(POINTS, len(upper))) * (upper - lower)
        weights = rng.normal(size=(POINTS, plain.n_roots))
        expected = plain.forward(points)
        error = np.abs(saturated.forward(points) - expected) / np.maximum(1, np.abs(expected))
        row["largest_error"] = max(row["largest_error"], float(error.max()))
        forward = seconds([partial(t.forward, points) for t in tapes], rounds)
        backward = seconds([partial(t.backward, points, weights) for t in tapes], rounds)
        row["sketches"] += 1
        for k in range(len(KINDS)):
            row["nodes"][k] += len(tapes[k])
            row["forward_us"][k] += forward[k] * 1e6
            row["backward_us"][k] += backward[k] * 1e6
    times = [row["forward_us"][k] + row["backward_us"][k] for k in range(len(KINDS))]
    row["time_us"] = times
    row["speedup"] = times[0] / times[2]
    row["normal_form_speedup"] = times[0] / times[1]
    row["second_speedup"] = times[2] / times[3]
    return row


def measure_operations(rounds: int) -> None:
    """Nanoseconds a point of each operation, forward and backward, and relative to an addition."""
    variables = [TapeVar(f"x{i}", False, 0.5, 2.0) for i in range(16)]
    points = np.random.default_rng(0).uniform(0.5, 2.0, (POINTS, len(variables)))
    weights = np.ones((POINTS, 1))

    def tape_of(op: int, count: int) -> Tape:
        leaves = range(len(variables))
        places = [[(7 * k + 3 * j) % len(variables) for j in range(3)] for k in range(count)]
        ops = [TapeOp.VAR for _ in leaves] + [op] * count
        args = [[-1] * 3 for _ in leaves] + places
        return Tape(ops, args, [*leaves, *[0] * count], [len(ops) - 1], variables)

    costs = {}
    for op in TapeOp:
        if op in (TapeOp.INT_CONST, TapeOp.REAL_CONST, TapeOp.VAR):
            continue
        short, long = tape_of(op, 100), tape_of(op, 1100)
        calls = [partial(t.forward, points) for t in (short, long)]
        calls += [partial(t.backward, points, weights) for t in (short, long)]
        a, b, c, d = seconds(calls, rounds)
        costs[op.name] = (b - a + d - c) * 1e9 / (1000 * POINTS)
    for name, cost in costs.items():
        print(f"{name:10} {cost:7.3f} ns {10 * cost / costs['ADD']:6.0f}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--node-limit", type=int, default=NODE_LIMIT)
    parser.add_argument("--operations", action="store_true")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    args = parser.parse_args()
    if args.operations:
        measure_operations(args.rounds)
        return
    kinds = " plain normal   sat.  twice"
    print(f"{'':44} {'sk':>2} {'entries':>27}  {'us forward + backward':>27}")
    print(f"{'task':44} {'':>2} {kinds:>27}  {kinds:>27}  ratio    s")
    rows = []
    for name, task in tasks(args.tasks):
        row = {"name": name} | measure(task, args.rounds, (args.iterations, args.node_limit))
        rows.append(row)
        nodes = " ".join(f"{n:6d}" for n in row["nodes"])
        times = " ".join(f"{t:6.0f}" for t in row["time_us"])
        print(
            f"{name[:44]:44} {row['sketches']:2d} {nodes}  {times}  {row['speedup']:6.3f} "
            f"{row['simplify_seconds']:5.2f}",
            flush=True,
        )

    def mean(key: str) -> float:
        return float(np.exp(np.mean([np.log(row[key]) for row in rows])))

    summary = {
        "geometric_mean_speedup": mean("speedup"),
        "of_the_normal_form_alone": mean("normal_form_speedup"),
        "of_saturating_again": mean("second_speedup"),
        "most_simplify_seconds": max(row["simplify_seconds"] for row in rows),
        "largest_error": max(row["largest_error"] for row in rows),
    }
    for key, value in summary.items():
        print(f"{key.replace('_', ' '):28} {value:.3g}")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=2) + "\n")


if __name__ == "__main__":
    main()
