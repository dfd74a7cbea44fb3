"""What builder and runner workers do; see `tvm.runtime.workers` for how they are called."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import tvm
from tvm.runtime.workers.forked import Clock, can_fork, run_forked
from tvm.target import Target
from tvm.tir.transform import RemoveWeightLayoutRewriteBlock

__all__ = ["allocate", "build", "evaluate", "run"]


def build(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Compile `module` (JSON) for `target` into the library `path`."""
    mod = tvm.ir.load_json(arguments["module"])
    try:
        mod = RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=True)(mod)
        tvm.build(mod, target=Target(arguments["target"])).export_library(arguments["path"])
    except Exception as error:  # what is built is a candidate of a search
        return {"error": f"{type(error).__name__}: {error}"}, b""
    return {"error": None}, b""


# What arguments of the last task held, by their description: candidates of a task come in a row,
# and drawing large arrays takes longer than many of them run.
_drawn: dict[str, list[list[np.ndarray]]] = {}


def _contents(args_info: list[Any], repeat: int) -> list[list[np.ndarray]]:
    key = f"{repeat} {args_info}"
    if key not in _drawn:
        rng = np.random.default_rng(0)

        def drawn(dtype: str, shape: list[int]) -> np.ndarray:
            if dtype.startswith("float"):
                return rng.uniform(0.1, 1.0, shape).astype(dtype)
            return rng.integers(0, 2 if dtype == "bool" else 10, shape).astype(dtype)

        _drawn.clear()
        _drawn[key] = [
            [drawn(dtype, shape) for _, dtype, shape in args_info] for _ in range(repeat)
        ]
    return _drawn[key]


def allocate(device: Any, args_info: list[Any], repeat: int) -> list[list[Any]]:
    """Random arrays, one list a repeat; they stay away from zero and from denormal numbers.

    Parameters
    ----------
    args_info : lists ["TENSOR", dtype, shape].
    """
    sets = _contents(args_info, repeat)
    return [[tvm.nd.array(data, device) for data in arrays] for arrays in sets]


def evaluate(
    module: Any, device: Any, config: dict[str, Any], sets: list[list[Any]]
) -> list[float]:
    """Seconds of each repeat over each list of arrays."""
    seconds: list[float] = []
    for arrays in sets:
        timer = module.time_evaluator(
            module.entry_name,
            device,
            number=config["number"],
            repeat=config["repeat"],
            min_repeat_ms=config["min_repeat_ms"],
            cache_flush_bytes=(64 << 20) if config["enable_cpu_cache_flush"] else 0,
        )
        seconds.extend(float(value) for value in timer(*arrays).results)
    return seconds


def _brief(
    module: Any, device: Any, arrays: list[Any], enough: float, long: float, clock: Clock | None
) -> float:
    """Seconds of the first call, or of a later one if that is needed to know it below `enough`.

    The first call of a short program is a cold one, and others of the machine may disturb it; one
    that takes `long` is hardly changed by either.
    """
    function = module[module.entry_name]
    device.sync()
    least = math.inf
    for _ in range(3):
        if clock is not None:
            clock.start()
        start = time.perf_counter()
        function(*arrays)
        device.sync()
        least = min(least, time.perf_counter() - start)
        if clock is not None:
            clock.stop()
        if least <= enough or least >= long:
            break
    return least


def run(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Time the library `path` on `device` with arrays of `args_info`.

    Parameters
    ----------
    arguments : `once_above`, seconds of a call above which it is not timed carefully; `long`,
        seconds from which on one call tells as much as three; `stop_after`, seconds after which the
        first call is stopped, null for none.

    Returns
    -------
    `seconds` of each repeat; `once` says that it is that of a single call; `at_least`, how long a
    call ran that was stopped.
    """
    device = tvm.device(arguments["device"], 0)
    if device.device_type != tvm.cpu().device_type or not can_fork():
        return {"at_least": None, **_timed(arguments, None)}, b""
    # A copy finds them, and the next one too.
    _contents(arguments["args_info"], arguments["alloc_repeat"])
    limit = arguments["stop_after"]
    outcome = run_forked(
        lambda clock: _timed(arguments, clock), math.inf if limit is None else limit
    )
    if outcome.status == "done":
        return {"at_least": None, **outcome.result}, b""
    stopped = outcome.status == "timeout"
    error = f"stopped, as a call takes more than {outcome.seconds:.3g} s and others are known that "
    error += "take far less"
    return {
        "error": error if stopped else outcome.message,
        "at_least": outcome.seconds if stopped else None,
    }, b""


def _timed(arguments: dict[str, Any], clock: Clock | None) -> dict[str, Any]:
    try:
        device = tvm.device(arguments["device"], 0)
        module = tvm.runtime.load_module(arguments["path"])
        sets = allocate(device, arguments["args_info"], arguments["alloc_repeat"])
        enough, long = arguments["once_above"], arguments["long"]
        brief = _brief(module, device, sets[0], enough, long, clock)
        if brief > enough:
            return {"error": None, "seconds": [brief], "once": True}
        seconds = evaluate(module, device, arguments["config"], sets)
        return {"error": None, "seconds": seconds, "once": False}
    except Exception as error:  # what is run is a candidate of a search
        return {"error": f"{type(error).__name__}: {error}"}
