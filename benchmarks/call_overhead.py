"""What the border between Python and C++ costs: import, calls, fields; and a parallel region.

    python benchmarks/call_overhead.py --json call_overhead.json

Each figure is the median of repeats in this process, in microseconds; the limits are the project's.
The import is timed in fresh interpreters, beside that of NumPy alone, which it includes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import tvm
from tvm import te

REPEATS = 15
CALLS = 20_000


def microseconds(func: Callable[[], object]) -> float:
    """Median over repeats of the time of one call."""
    return statistics.median(timeit.repeat(func, number=CALLS, repeat=REPEATS)) / CALLS * 1e6


def import_microseconds(package: str) -> float:
    """Median time of an import in a fresh interpreter, start-up excluded."""
    code = f"import time; t = time.perf_counter(); import {package}; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return statistics.median(runs) * 1e6


def microseconds_in_cpp(func: object, *args: object) -> float:
    """Median over repeats of the time of one call, made in a loop in C++."""
    evaluator = tvm.get_global_func("runtime.TimeEvaluator")
    seconds = evaluator(func, tvm.cpu(), CALLS, REPEATS, 0.0, 1, 0.0, 1, 0, None)(*args)
    return statistics.median(seconds) * 1e6


def two_elements(parallel: bool) -> object:
    """A compiled function that stores two numbers, by two threads or by one."""
    a = te.placeholder((2,), name="a")
    b = te.compute((2,), lambda i: a[i] + 1.0, name="b")
    schedule = te.create_schedule(b.op)
    if parallel:
        schedule[b].parallel(b.op.axis[0])
    return tvm.build(schedule, [a, b], "llvm", name="two")["two"]


def fork_join_microseconds() -> float:
    """What a parallel region at two threads adds to a call, while the threads are busy."""
    tvm.runtime.config_threadpool(2)
    arrays = (tvm.nd.empty((2,)), tvm.nd.empty((2,)))
    try:
        with_region = microseconds_in_cpp(two_elements(parallel=True), *arrays)
        without = microseconds_in_cpp(two_elements(parallel=False), *arrays)
    finally:
        tvm.runtime.config_threadpool()
    return with_region - without


def measure() -> dict[str, tuple[float, float | None]]:
    """Microseconds and, where the project promises one, the limit."""
    no_arguments = tvm.get_global_func("runtime.NumThreads")
    get_item = tvm.get_global_func("runtime.ArrayGetItem")
    array = tvm.runtime.convert([1, 2, 3])
    literal = tvm.ir.IntImm("int32", 3)
    tvm.register_func("benchmark.callback", lambda x: x, override=True)
    callback = tvm.get_global_func("benchmark.callback")
    return {
        "import numpy": (import_microseconds("numpy"), None),
        "import tvm": (import_microseconds("tvm"), 500_000.0),
        "Python function call": (microseconds(lambda: None), None),
        "packed call, no arguments": (microseconds(lambda: no_arguments()), 2.0),
        "packed call, object and int": (microseconds(lambda: get_item(array, 1)), 2.0),
        "Python callback from C++": (microseconds_in_cpp(callback, 1), 2.0),
        "packed call into Python and back": (microseconds(lambda: callback(1)), None),
        "fork-join of two busy threads": (fork_join_microseconds(), 1.0),
        "field of an object": (microseconds(lambda: literal.value), None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    arguments = parser.parse_args()
    figures = measure()
    print(f"{'what':<36}{'us':>12}{'limit':>12}")
    for name, (value, limit) in figures.items():
        print(f"{name:<36}{value:>12.2f}{'' if limit is None else limit:>12}")
    if arguments.json is not None:
        rows = {name: {"us": value, "limit_us": limit} for name, (value, limit) in figures.items()}
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
