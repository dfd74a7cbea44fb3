"""What builder and runner workers do; see `tvm.runtime.workers` for how they are called."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import tvm
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


def _brief(module: Any, device: Any, arrays: list[Any], enough: float, long: float) -> float:
    """Seconds of the first call, or of a later one if that is needed to know it below `enough`.

    The first call of a short program is a cold one, and others of the machine may disturb it; one
    that takes `long` is hardly changed by either.
    """
    function = module[module.entry_name]
    device.sync()
    least = math.inf
    for _ in range(3):
        start = time.perf_counter()
        function(*arrays)
        device.sync()
        least = min(least, time.perf_counter() - start)
        if least <= enough or least >= long:
            break
    return least


def run(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Time the library `path` on `device` with arrays of `args_info`.

    Parameters
    ----------
    arguments : `once_above`, seconds of a call above which it is not timed carefully; `long`,
        seconds from which on one call tells as much as three.

    Returns
    -------
    `seconds` of each repeat; `once` says that it is that of a single call.
    """
    try:
        device = tvm.device(arguments["device"], 0)
        module = tvm.runtime.load_module(arguments["path"])
        sets = allocate(device, arguments["args_info"], arguments["alloc_repeat"])
        enough, long = arguments["once_above"], arguments["long"]
        brief = _brief(module, device, sets[0], enough, long)
        if brief > enough:
            return {"error": None, "seconds": [brief], "once": True}, b""
        seconds = evaluate(module, device, arguments["config"], sets)
        return {"error": None, "seconds": seconds, "once": False}, b""
    except Exception as error:  # what is run is a candidate of a search
        return {"error": f"{type(error).__name__}: {error}"}, b""
