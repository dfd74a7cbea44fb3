"""Building and running on this machine, in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler.utils import get_const_tuple
from tvm.contrib import utils
from tvm.driver.build_module import schedule_to_module

from ..measure_node import MeasureErrorNo, MeasureInput, MeasureResult
from ..task.space import InstantiationError
from .measure import Builder, BuildResult, Runner

__all__ = ["LocalBuilder", "LocalRunner", "measure_option"]


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


class LocalRunner(Runner):
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
        if cooldown_interval is not None and coldown_interval is not None:
            raise ValueError(
                "LocalRunner: give cooldown_interval only; coldown_interval is its old name"
            )
        wait = coldown_interval if cooldown_interval is None else cooldown_interval
        self._runner = auto_scheduler.LocalRunner(
            timeout=timeout,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval=0.1 if wait is None else wait,
            enable_cpu_cache_flush=enable_cpu_cache_flush,
            device=device,
        )
        self._device = device

    def get_build_kwargs(self) -> dict[str, Any]:
        if self.task is None or self.task.target is None or "gpu" not in self.task.target.keys:
            return {}
        device = tvm.device(str(self.task.target.kind.name), self._device)
        if not device.exist:
            return {}
        limits = {
            "max_shared_memory_per_block": device.max_shared_memory_per_block,
            "max_threads_per_block": device.max_threads_per_block,
        }
        return {"check_gpu": limits}

    def run(
        self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult]
    ) -> list[MeasureResult]:
        results = []
        for built in build_results:
            if built.program is None or built.candidate is None:
                results.append(_failure(built))
                continue
            [timed] = self._runner.run([built.candidate], [built.program])
            if timed.error_no:
                error = RuntimeError(str(timed.error_msg))
                costs: tuple[Any, ...] = (error,)
            else:
                costs = tuple(float(cost) for cost in timed.costs)
            results.append(
                MeasureResult(
                    costs,
                    int(timed.error_no),
                    built.time_cost + float(timed.all_cost) - float(built.program.time_cost),
                    float(timed.timestamp),
                )
            )
        return results


def _failure(built: BuildResult) -> MeasureResult:
    return MeasureResult((built.error,), int(built.error_no), built.time_cost, time.time())


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
