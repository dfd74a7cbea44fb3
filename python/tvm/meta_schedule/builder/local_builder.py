"""Compiling on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm.ir import IRModule
from tvm.runtime import Module
from tvm.runtime.workers import Job, WorkerPool
from tvm.target import Target
from tvm.tir.transform import RemoveWeightLayoutRewriteBlock

from ..utils import cpu_count, get_global_func_with_default_on_worker
from .builder import Builder, BuilderInput, BuilderResult

__all__ = ["LocalBuilder", "default_build", "default_export"]

_JOBS = "tvm.meta_schedule.worker_jobs"


def default_build(mod: IRModule, target: Target, params: Mapping[str, Any] | None = None) -> Module:
    """What `LocalBuilder` compiles with unless told otherwise: `tvm.build`.

    Operands whose layout a program may choose are taken in that layout, as they are timed.

    Raises
    ------
    ValueError : there are `params`, which only a function of one's own can bind.
    """
    if params:
        raise ValueError(
            f"default_build: it binds no arrays, got {sorted(params)}; give f_build= that does"
        )
    return tvm.build(RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=True)(mod), target=target)


def default_export(mod: Module) -> str:
    """Write a module into a library in a folder of its own; returns its path."""
    path = os.path.join(tempfile.mkdtemp(prefix="ms_build_"), "tvm_tmp_mod.so")
    mod.export_library(path)
    return path


class LocalBuilder(Builder):
    """Compiles in worker processes, several at once.

    Parameters
    ----------
    max_workers : builds at once; by default one a core.
    timeout_sec : for one build.
    f_build : (module, target, params) to a runtime module, or the name of such a registered
        function; one of one's own runs in this process, without the time limit.
    f_export : runtime module to the path of a library, likewise.
    initializer : called once before the first build.
    """

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: str | Callable[..., Module] | None = None,
        f_export: str | Callable[[Module], str] | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.max_workers = max_workers or cpu_count()
        self.timeout_sec = timeout_sec
        self.f_build, self.f_export, self.initializer = f_build, f_export, initializer
        self._pool = WorkerPool(self.max_workers, timeout_sec, modules=[_JOBS])
        self._ready = False

    def prepare(self) -> None:
        if self.f_build is None and self.f_export is None:
            self._pool.start()

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        if not self._ready and self.initializer is not None:
            self.initializer()
        self._ready = True
        if (
            self.f_build is not None
            or self.f_export is not None
            or any(entry.params for entry in build_inputs)
        ):
            return [self._build_here(entry) for entry in build_inputs]
        paths = [
            os.path.join(tempfile.mkdtemp(prefix="ms_build_"), "tvm_tmp_mod.so")
            for _ in build_inputs
        ]
        jobs = [
            Job(
                f"{_JOBS}:build",
                {"module": tvm.ir.save_json(entry.mod), "target": str(entry.target), "path": path},
            )
            for entry, path in zip(build_inputs, paths)
        ]
        results = []
        for path, outcome in zip(paths, self._pool.run(jobs)):
            if outcome.status == "timeout":
                error = f"Timeout, killed after {self.timeout_sec} seconds"
            else:
                error = outcome.result["error"] if outcome.status == "done" else outcome.message
            if error:
                shutil.rmtree(os.path.dirname(path), ignore_errors=True)
            results.append(
                BuilderResult(None if error else path, error and f"LocalBuilder: {error}")
            )
        return results

    def _build_here(self, entry: BuilderInput) -> BuilderResult:
        try:
            f_build = get_global_func_with_default_on_worker(self.f_build, default_build)
            f_export = get_global_func_with_default_on_worker(self.f_export, default_export)
            module = f_build(entry.mod, entry.target, entry.params)
            return BuilderResult(str(f_export(module)), None)
        except Exception as error:  # the caller's functions
            return BuilderResult(
                None, f"LocalBuilder: An exception occurred\n{type(error).__name__}: {error}"
            )
