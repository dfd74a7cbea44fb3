"""Building and running on this machine, in processes of their own."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler.utils import get_const_tuple
from tvm.contrib import utils
from tvm.driver.build_module import schedule_to_module

from ..measure_node import MeasureErrorNo, MeasureInput
from ..task.space import InstantiationError
from .device_runner import DeviceRunner, interval
from .measure import Builder, BuildResult, Runner
from .rpc_methods import RPCRunner, check_remote, default_module_loader, request_remote

__all__ = [
    "LocalBuilder",
    "LocalRunner",
    "RPCRunner",
    "check_remote",
    "default_module_loader",
    "measure_option",
    "request_remote",
]


class LocalBuilder(Builder):
    """Compiles points on this machine, several at once.

    Templates are run in this process, where they are defined; code is made in workers, so that a
    build that hangs or crashes costs its own result only.

    Parameters
    ----------
    timeout : seconds for one build.
    n_parallel : builds at once; by default one a core.
    build_kwargs : options of `PassContext` by name, under which points are compiled.
    build_func : "default" or a function (path, object files) that links a library, as
        `Module.export_library` takes it, called in this process.
    do_fork : accepted for old scripts; workers are always processes of their own.
    runtime : only None: there is one runtime.

    Raises
    ------
    ValueError : an unknown `build_func` or a `runtime`.
    """

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: dict[str, Any] | None = None,
        build_func: str | Callable[..., Any] = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel)
        if runtime is not None:
            raise ValueError(f"LocalBuilder: there is one runtime, got runtime={runtime!r}")
        if isinstance(build_func, str) and build_func != "default":
            raise ValueError(
                f"LocalBuilder: build_func is 'default' or links a file, got {build_func!r}"
            )
        self.user_build_kwargs = dict(build_kwargs or {})
        self.build_func = build_func
        self._builder = auto_scheduler.LocalBuilder(timeout=timeout, n_parallel=self.n_parallel)

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[BuildResult]:
        results = [self._prepare(entry) for entry in measure_inputs]
        ready = [(result, result.candidate) for result in results if result.candidate is not None]
        if callable(self.build_func):
            for entry, result in zip(measure_inputs, results):
                if result.candidate is not None:
                    self._link(entry, result)
            return results
        programs = self._builder.build([candidate for _, candidate in ready])
        for (result, _), program in zip(ready, programs):
            result.time_cost += float(program.time_cost)
            if program.error_no:
                result.error_no = MeasureErrorNo(int(program.error_no))
                result.error = RuntimeError(str(program.error_msg))
            else:
                result.program = program
        return results

    def _prepare(self, entry: MeasureInput) -> BuildResult:
        """Run the template; what it refuses never reaches a worker."""
        start = time.perf_counter()
        try:
            schedule, arguments = entry.task.instantiate(entry.config)
            with entry.target, tvm.transform.PassContext(config=self.user_build_kwargs):
                module = schedule_to_module(schedule, arguments)
                self._check_device(schedule, arguments)
        except Exception as error:  # a template is anybody's code
            return BuildResult(
                None, [], error, time.perf_counter() - start, MeasureErrorNo.INSTANTIATION_ERROR
            )
        candidate = auto_scheduler.ModuleCandidate(
            module, entry.target, str(entry.task.workload), flop=float(entry.task.flop or 0)
        )
        info = [
            (get_const_tuple(arg.shape), str(arg.dtype))
            for arg in arguments
            if isinstance(arg, te.Tensor)
        ]
        return BuildResult(None, info, None, time.perf_counter() - start, candidate=candidate)

    def _check_device(self, schedule: te.Schedule, arguments: Any) -> None:
        limits = self.build_kwargs.get("check_gpu")
        if not limits:
            return
        module = tvm.lower(schedule, arguments)
        for function in module.functions.values():
            if not tvm.tir.analysis.verify_gpu_code(function, limits):
                raise InstantiationError(
                    f"the program does not fit the device, whose limits are {limits}"
                )

    def _link(self, entry: MeasureInput, result: BuildResult) -> None:
        start = time.perf_counter()
        folder = utils.tempdir()
        path = folder.relpath(f"program.{getattr(self.build_func, 'output_format', 'so')}")
        try:
            schedule, arguments = entry.task.instantiate(entry.config)
            with entry.target, tvm.transform.PassContext(config=self.user_build_kwargs):
                module = tvm.build(schedule, arguments, target=entry.target)
            module.export_library(path, fcompile=self.build_func)
        except Exception as error:  # the linker is the caller's
            result.error, result.error_no = error, MeasureErrorNo.COMPILE_HOST
        else:
            seconds = time.perf_counter() - start
            result.program = auto_scheduler.BuildResult(
                str(Path(path)), arguments, 0, None, seconds
            )
            result._folder = folder
        result.time_cost += time.perf_counter() - start


class LocalRunner(DeviceRunner):
    """Times points on this machine, one at a time, in a process of its own.

    Parameters
    ----------
    timeout : seconds for one point, warm-up included.
    number : calls in one repeat.
    repeat : repeats, each giving one cost.
    min_repeat_ms : a repeat is at least this long.
    cooldown_interval : seconds between two points; old scripts call it `coldown_interval`.
    enable_cpu_cache_flush : time each call with cold caches.
    module_loader : only None; it prepares a remote session.
    device : number of the device.

    Raises
    ------
    ValueError : a `module_loader`, or both spellings of the interval.
    """

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: float = 0,
        cooldown_interval: float | None = None,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
        coldown_interval: float | None = None,
        device: int = 0,
    ) -> None:
        super().__init__(timeout, 1)
        if module_loader is not None:
            raise ValueError("LocalRunner: a module_loader is for remote sessions; leave it out")
        self._runner = auto_scheduler.LocalRunner(
            timeout=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval=interval("LocalRunner", cooldown_interval, coldown_interval),
            enable_cpu_cache_flush=enable_cpu_cache_flush,
            device=device,
        )
        self._device_number = device

    def _time(self, candidates: Sequence[Any], programs: Sequence[Any]) -> list[Any]:
        # Each by itself: a batch would time those briefly that are far from its best.
        return [self._runner.run([c], [p])[0] for c, p in zip(candidates, programs)]

    @contextlib.contextmanager
    def _device(self) -> Iterator[tvm.runtime.Device]:
        assert self.task is not None and self.task.target is not None
        yield tvm.device(str(self.task.target.kind.name), self._device_number)


def measure_option(builder: Builder | str, runner: Runner | str) -> dict[str, Any]:
    """What tuners measure with.

    Parameters
    ----------
    builder, runner : "local", or objects of classes derived from `Builder` and `Runner`.

    Raises
    ------
    ValueError : anything else.
    """
    known = {"builder": LocalBuilder, "runner": LocalRunner}
    chosen: dict[str, Any] = {"builder": builder, "runner": runner}
    for role, value in chosen.items():
        if value == "local":
            chosen[role] = known[role]()
        elif not isinstance(value, (Builder, Runner)):
            raise ValueError(
                f"measure_option: {role} is 'local' or an object of class "
                f"{role.capitalize()}, got {value!r}"
            )
    return chosen
