#!/usr/bin/env python3
"""Whole networks against the engines that people use, interleaved in one process.

Each network runs in a process of its own, in which PyTorch eager, `torch.compile`, ONNX Runtime,
OpenVINO and ours take turns with the same number of threads: as topi schedules the kernels, and
with `--trials` tuned as well. Figures are the least of all rounds, so that what else the machine
does counts little. The engines come with the extra "peers"; those that are not installed are left
out. A second table says how steady each engine is: its median against its least time, and how
often its threads give up the processor in one of many runs back to back.

    python benchmarks/networks.py --threads 1 --trials 300 --json networks.json
    python benchmarks/networks.py --threads 1 --small --onnx --no-torch-compile
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from network_cases import (
    CASES,
    SMALL_CASES,
    engines,
    load_case,
    torch_compiled,
    use_threads,
)

OURS = ("untuned", "tuned")
PEERS = ("onnxruntime", "openvino")
ENGINES = ("eager", "compile", *PEERS, "onnx", *OURS)


def least_kernel_seconds(network: Any, runs: int = 5) -> float:
    """Sum over all kernel calls of the network, each the least of some profiled runs."""
    runs_of_calls = [
        [call["Duration (us)"].microseconds for call in network.profile().calls]
        for _ in range(runs)
    ]
    return sum(min(times) for times in zip(*runs_of_calls)) * 1e-6


def voluntary_switches(function: Callable[[], Any], runs: int = 20) -> float:
    """How often threads of this process give up the processor in a run, in the mean of some runs.

    The runs follow each other at once, so that threads that sleep between runs only count as none.
    """
    function()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(runs):
        function()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before) / runs


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    use_threads(options.threads)
    import torch

    import tvm
    from tvm import felix
    from tvm.felix.timing import interleaved_seconds, output_difference, torch_variants

    tvm.runtime.config_threadpool(options.threads)
    model, inputs = load_case(name)
    row: dict[str, Any] = {"network": name, "threads": options.threads}

    start = time.perf_counter()
    networks = {"untuned": felix.compile(model, inputs, cache=False)}
    row["compile_seconds"] = time.perf_counter() - start
    if options.trials:
        folder = (options.out or Path(tempfile.mkdtemp())) / name
        start = time.perf_counter()
        networks["tuned"] = felix.tune(
            model, inputs, options.trials, folder=folder, cache=False, seed=options.seed
        )
        row["search_seconds"] = time.perf_counter() - start

    peers, problems = engines(model, inputs, options.threads, options.onnx)
    variants = torch_variants(model, inputs)
    functions = {**variants, **peers}
    if not options.no_torch_compile:
        functions["compile"] = torch_compiled(model, inputs)
    functions |= {key: lambda n=network: n(*inputs) for key, network in networks.items()}
    samples = interleaved_seconds(functions, options.rounds, options.budget)
    least = {key: min(seconds) for key, seconds in samples.items()}
    least["eager"] = min(least.pop(key) for key in variants)
    row["seconds"] = least
    row["median_seconds"] = {
        key: statistics.median(samples[key]) for key in samples if key not in variants
    }
    row["switches"] = {
        key: voluntary_switches(function)
        for key, function in functions.items()
        if key not in variants
    }

    best = networks.get("tuned", networks["untuned"])
    with torch.inference_mode():
        row["max_abs_diff"], row["max_rel_diff"] = output_difference(best(*inputs), model(*inputs))
    row["kernels_seconds"] = least_kernel_seconds(best)
    row["problems"] = problems
    return row


def best_of_ours(row: Mapping[str, Any]) -> float:
    """Seconds of ours, tuned where that was measured."""
    return row["seconds"].get("tuned", row["seconds"]["untuned"])


def ratio(row: Mapping[str, Any], names: Sequence[str]) -> float | None:
    """How many times faster ours is than the fastest of some engines; None without these."""
    present = [row["seconds"][name] for name in names if name in row["seconds"]]
    return min(present) / best_of_ours(row) if present else None


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """Of those that there are."""
    known = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else None


def _cell(value: float | None, form: str = ".2f") -> str:
    return "" if value is None else format(value, form)


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table, times in milliseconds."""
    shown = [engine for engine in ENGINES if any(engine in row["seconds"] for row in rows)]
    heads = [
        "network", *shown, "best peer / ours", "eager / ours", "compile / ours",
        "kernels / network",
    ]  # fmt: skip
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        times = [row["seconds"].get(engine) for engine in shown]
        lines.append(
            [
                row["network"],
                *(_cell(t and t * 1e3, ".2f" if t and t >= 1e-3 else ".4f") for t in times),
                _cell(ratio(row, PEERS)),
                _cell(ratio(row, ["eager"])),
                _cell(ratio(row, ["compile"])),
                _cell(row["kernels_seconds"] / best_of_ours(row)),
            ]
        )
    means = [
        _cell(geometric_mean([ratio(row, names) for row in rows]))
        for names in (PEERS, ["eager"], ["compile"])
    ]
    lines.append(["geometric mean", *[""] * len(shown), *means, ""])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def steadiness(rows: Sequence[Mapping[str, Any]]) -> str:
    """Median over least time, and voluntary switches a run, of each engine; PyTorch eager aside."""
    # Rows of an older file have neither.
    measured = [row for row in rows if "switches" in row]
    shown = [engine for engine in ENGINES if any(engine in row["switches"] for row in measured)]
    heads = ["network", *(f"{e}: median / least, switches" for e in shown)]
    lines = [heads, ["---"] * len(heads)]
    for row in measured:
        cells = [
            f"{row['median_seconds'][e] / row['seconds'][e]:.2f}, {row['switches'][e]:.1f}"
            if e in row["switches"]
            else ""
            for e in shown
        ]
        lines.append([row["network"], *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Run the networks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*CASES, *SMALL_CASES]
    parser.add_argument("--networks", nargs="*", choices=names, help="by default the large ones")
    parser.add_argument("--small", action="store_true", help="the small and recurrent ones instead")
    parser.add_argument("--onnx", action="store_true", help="ours from the ONNX file as well")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--trials", type=int, default=0, help="programs to measure a network")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds to time a network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-torch-compile", action="store_true", help="it takes a minute each")
    parser.add_argument("--json", type=Path, help="file for the figures; rows are added to it")
    parser.add_argument("--out", type=Path, help="keep each search's folder under this one")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.networks = options.networks or list(SMALL_CASES if options.small else CASES)
    if options.worker:
        (name,) = options.networks
        options.json.write_text(json.dumps(measure(name, options)))
        return 0

    rows = []
    if options.json and options.json.exists():
        kept = json.loads(options.json.read_text())["rows"]
        rows = [row for row in kept if row["network"] not in options.networks]
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.networks:
            part = Path(scratch) / f"{name}.json"
            done = subprocess.run(_worker_command(name, options, part), check=False)
            if done.returncode or not part.exists():
                print(f"{name}: the process ended with {done.returncode}", file=sys.stderr)
                continue
            row = json.loads(part.read_text())
            rows.append(row)
            rows.sort(key=lambda row: names.index(row["network"]))
            if options.json:
                options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
            if row["problems"]:
                print(f"{name}: {row['problems']}", file=sys.stderr)
    print(markdown(rows), steadiness(rows), sep="\n\n")
    return 0


def _worker_command(name: str, options: argparse.Namespace, result: Path) -> list[str]:
    """The command that measures one network into a file."""
    command = [sys.executable, __file__, "--worker", "--networks", name, "--json", str(result)]
    for key in ("threads", "trials", "rounds", "budget", "seed"):
        command += [f"--{key}", str(getattr(options, key))]
    if options.no_torch_compile:
        command.append("--no-torch-compile")
    if options.onnx:
        command.append("--onnx")
    return command + (["--out", str(options.out)] if options.out else [])


if __name__ == "__main__":
    sys.exit(main())
