"""What builder and runner workers do; see `tvm.runtime.workers` for how they are called."""

from __future__ import annotations

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


def allocate(device: Any, args_info: list[Any], repeat: int) -> list[list[Any]]:
    """Random arrays, one list a repeat; they stay away from zero and from denormal numbers.

    Parameters
    ----------
    args_info : lists ["TENSOR", dtype, shape].
    """
    rng = np.random.default_rng(0)
    sets = []
    for _ in range(repeat):
        arrays = []
        for _, dtype, shape in args_info:
            if dtype.startswith("float"):
                data = rng.uniform(0.1, 1.0, shape).astype(dtype)
            else:
                data = rng.integers(0, 2 if dtype == "bool" else 10, shape).astype(dtype)
            arrays.append(tvm.nd.array(data, device))
        sets.append(arrays)
    return sets


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


def run(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """Time the library `path` on `device` with arrays of `args_info`."""
    try:
        device = tvm.device(arguments["device"], 0)
        module = tvm.runtime.load_module(arguments["path"])
        sets = allocate(device, arguments["args_info"], arguments["alloc_repeat"])
        return {"error": None, "seconds": evaluate(module, device, arguments["config"], sets)}, b""
    except Exception as error:  # what is run is a candidate of a search
        return {"error": f"{type(error).__name__}: {error}"}, b""
