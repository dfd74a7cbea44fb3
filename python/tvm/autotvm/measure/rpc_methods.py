"""Running on devices of a tracker."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tvm
from tvm import auto_scheduler, rpc
from tvm.auto_scheduler.measure_jobs import Inputs
from tvm.auto_scheduler.measure_local import RunnerOptions, function_of
from tvm.auto_scheduler.utils import check_remote as _check_remote
from tvm.auto_scheduler.utils import request_remote

from ..measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from .device_runner import DeviceRunner, failure, interval
from .measure import BuildResult

__all__ = ["RPCRunner", "check_remote", "default_module_loader", "request_remote"]


class RPCRunner(DeviceRunner):
    """Times points on devices that a tracker gives out.

    Parameters
    ----------
    key : kind of device.
    host, port : of the tracker.
    priority : requests of a higher one are served first.
    timeout : seconds for one point, sending it included.
    n_parallel : devices used at once; 1 if left out.
    number, repeat, min_repeat_ms, enable_cpu_cache_flush, device : as of LocalRunner.
    cooldown_interval : seconds between two points; old scripts call it `coldown_interval`.
    module_loader : function (remote_kwargs, build_result) to a context manager over a session and
        the module to time in it, such as `default_module_loader` gives; `remote_kwargs` has
        ``device_key``, ``host``, ``port``, ``priority`` and ``timeout``.

    Raises
    ------
    ValueError : both spellings of the interval, or a number out of range.
    RPCError : the tracker is not there, or has no such device.
    """

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: float = 0,
        cooldown_interval: float | None = None,
        enable_cpu_cache_flush: bool = False,
        module_loader: Callable[..., Any] | None = None,
        coldown_interval: float | None = None,
        device: int = 0,
    ) -> None:
        super().__init__(timeout, n_parallel or 1)
        self._runner = auto_scheduler.RPCRunner(
            key,
            host,
            port,
            priority,
            n_parallel=n_parallel or 1,
            timeout=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval=interval("RPCRunner", cooldown_interval, coldown_interval),
            enable_cpu_cache_flush=enable_cpu_cache_flush,
            device=device,
        )
        self.key, self.host, self.port, self.priority = key, host, int(port), priority
        self.module_loader = module_loader
        self._device_number = device

    @property
    def remote_kwargs(self) -> dict[str, Any]:
        """What a module loader needs to ask for a device."""
        return {
            "device_key": self.key,
            "host": self.host,
            "port": self.port,
            "priority": self.priority,
            "timeout": self.timeout,
        }

    @contextlib.contextmanager
    def _device(self) -> Iterator[tvm.runtime.Device]:
        assert self.task is not None and self.task.target is not None
        with request_remote(self.key, self.host, self.port, self.priority, 0) as remote:
            yield remote.device(str(self.task.target.kind.name), self._device_number)

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]
    ) -> list[MeasureResult]:
        if self.module_loader is None:
            return super().run(measure_inputs, build_results)
        return [
            self._run_loaded(entry, built) if built.program and built.candidate else failure(built)
            for entry, built in zip(measure_inputs, build_results)
        ]

    def _run_loaded(self, entry: MeasureInput, built: BuildResult) -> MeasureResult:
        """Time what the caller's loader gives."""
        assert self.module_loader is not None and built.program is not None
        start = time.perf_counter()
        options = RunnerOptions.of(self._runner)
        flush = options.enable_cpu_cache_flush
        inputs = Inputs()
        try:
            with self.module_loader(self.remote_kwargs, built) as (remote, module):
                device = remote.device(str(entry.target.kind.name), self._device_number)
                arrays = [
                    tvm.nd.array(inputs.original(index, shape, dtype), device)
                    for index, (shape, dtype) in enumerate(built.arg_info)
                ]
                timer = module.time_evaluator(
                    function_of(built.program),
                    device,
                    number=1 if flush else options.number,
                    repeat=options.repeat,
                    min_repeat_ms=0 if flush else options.min_repeat_ms,
                    f_preproc="cache_flush_cpu_non_first_arg" if flush else "",
                )
                costs: tuple[Any, ...] = tuple(timer(*arrays).results)
            number = MeasureErrorNo.NO_ERROR
        except rpc.RPCSessionTimeoutError as error:
            costs, number = (error,), MeasureErrorNo.RUN_TIMEOUT
        except Exception as error:  # the loader is the caller's
            costs, number = (error,), MeasureErrorNo.RUNTIME_DEVICE
        time.sleep(options.cooldown_interval)
        seconds = built.time_cost + time.perf_counter() - start
        return MeasureResult(costs, number, seconds, time.time())


def check_remote(
    target: Any,
    device_key: str,
    host: str | None = None,
    port: int | None = None,
    priority: int = 100,
    timeout: float = 10,
) -> bool:
    """Whether a device of a tracker becomes free in time, and is there for a target; see
    `auto_scheduler.utils.check_remote`."""
    return _check_remote(device_key, host, port, priority, timeout, kind=str(target))


def default_module_loader(
    pre_load_function: Callable[[rpc.RPCSession, BuildResult], None] | None = None,
) -> Callable[..., Any]:
    """A module loader of `RPCRunner` that uploads and loads what was built.

    Parameters
    ----------
    pre_load_function : called with the session and the build result first, for instance to prepare
        the device.
    """

    @contextlib.contextmanager
    def load(remote_kwargs: dict[str, Any], build_result: BuildResult) -> Iterator[Any]:
        with request_remote(**remote_kwargs) as remote:
            if pre_load_function is not None:
                pre_load_function(remote, build_result)
            library = str(build_result.filename)
            remote.upload(library)
            yield remote, remote.load_module(os.path.basename(library))

    return load
