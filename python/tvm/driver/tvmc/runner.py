"""Running a package, here or on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tvm
from tvm import rpc
from tvm.contrib import graph_executor

from .errors import TVMCException
from .model import TVMCPackage
from .result import TVMCResult

__all__ = ["DEVICES", "FILL_MODES", "run"]

DEVICES = ("cpu", "cuda")
FILL_MODES = ("zeros", "ones", "random")


def _filled(shape: tuple[int, ...], dtype: str, mode: str) -> np.ndarray:
    """An input that nobody gave."""
    if mode == "zeros":
        return np.zeros(shape, dtype)
    if mode == "ones":
        return np.ones(shape, dtype)
    numbers = np.random.default_rng().random(shape)
    if dtype == "bool":
        return numbers > 0.5
    return (numbers * 128 if np.issubdtype(np.dtype(dtype), np.integer) else numbers).astype(dtype)


def _inputs(
    module: graph_executor.GraphModule,
    weights: set[str],
    given: Mapping[str, Any] | None,
    mode: str,
) -> dict[str, Any]:
    shapes, dtypes = module.get_input_info()
    names = [name for name in dtypes if name not in weights]
    unknown = sorted(set(given or ()) - set(names))
    if unknown:
        raise TVMCException(
            f"run: the network has no input {', '.join(unknown)}; its inputs are {', '.join(names)}"
        )
    values = dict(given or {})
    for name in names:
        shape = tuple(int(extent) for extent in shapes[name])
        if name not in values:
            values[name] = _filled(shape, dtypes[name], mode)
        elif tuple(np.shape(values[name])) != shape:
            raise TVMCException(
                f"run: input {name} is of shape {shape}, got {tuple(np.shape(values[name]))}"
            )
    return values


def _session(hostname: str, port: int, rpc_key: str | None) -> rpc.RPCSession:
    if rpc_key is not None:
        return rpc.connect_tracker(hostname, port).request(rpc_key)
    return rpc.connect(hostname, port)


def run(
    tvmc_package: TVMCPackage,
    device: str,
    hostname: str | None = None,
    port: int = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    end_to_end: bool = False,
) -> TVMCResult:
    """Run a compiled network.

    Parameters
    ----------
    device : "cpu" or "cuda".
    hostname, port, rpc_key : run on another machine: of a tracker that gives out devices of this
        key, or without a key of a server.
    inputs : arrays by name.
    fill_mode : what inputs that are not given are filled with: "zeros", "ones" or "random" numbers.
    benchmark : measure the time of a run, `repeat` times the mean of `number` runs.
    end_to_end : count copies of inputs and outputs.

    Raises
    ------
    TVMCException : an input is not known or has another shape, or an option is not known.
    RPCError : the other machine is not there or refuses.
    """
    if device not in DEVICES:
        raise TVMCException(f'run: device "{device}" is not one of {", ".join(DEVICES)}')
    if fill_mode not in FILL_MODES:
        raise TVMCException(f'run: fill mode "{fill_mode}" is not one of {", ".join(FILL_MODES)}')
    if hostname is None:
        library = tvm.runtime.load_module(tvmc_package.lib_path)
        where = tvm.device(device)
    else:
        session = _session(hostname, port, rpc_key)
        session.upload(tvmc_package.lib_path)
        library = session.load_module(tvmc_package.lib_name)
        where = session.device(device)
    module = graph_executor.GraphModule(library["default"](where))
    weights = set(tvm.runtime.load_param_dict(tvmc_package.params).keys())
    if weights:
        module.load_params(tvmc_package.params)
    values = _inputs(module, weights, inputs, fill_mode)
    module.set_input(**values)
    module.run()
    times = None
    if benchmark:
        feed = values if end_to_end else {}
        times = module.benchmark(where, repeat=repeat, number=number, end_to_end=end_to_end, **feed)
    outputs = {f"output_{k}": module.get_output(k).numpy() for k in range(module.get_num_outputs())}
    return TVMCResult(outputs, times)
