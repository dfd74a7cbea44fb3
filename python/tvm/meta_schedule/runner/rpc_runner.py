"""Timing on devices of a tracker."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from tvm.rpc import RPCError, RPCSession
from tvm.runtime import Device, Module

from ..candidate import RunnerResult
from ..utils import get_global_func_with_default_on_worker
from ..worker_jobs import allocate, evaluate
from .config import EvaluatorConfig, RPCConfig
from .runner import Runner, RunnerFuture, RunnerInput

__all__ = [
    "RPCRunner",
    "RPCRunnerFuture",
    "T_ARGUMENT_LIST",
    "T_ARG_INFO_JSON_OBJ_LIST",
    "default_alloc_argument",
    "default_cleanup",
    "default_create_session",
    "default_run_evaluator",
    "default_upload_module",
]

T_ARG_INFO_JSON_OBJ_LIST = list[Any]
T_ARGUMENT_LIST = list[Any]

# What a session may take beyond its time: until a device is free, the request and the end.
_BEYOND_SECONDS = 60.0


def default_create_session(rpc_config: RPCConfig) -> RPCSession:
    """A session with a device that the configuration names."""
    return rpc_config.connect_server()


def default_upload_module(session: RPCSession, local_path: str, remote_path: str) -> Module:
    """Put a library into the session and load it."""
    session.upload(local_path, remote_path)
    loaded: Module = session.load_module(remote_path)
    return loaded


def default_alloc_argument(
    session: RPCSession, device: Device, args_info: list[Any], alloc_repeat: int
) -> list[list[Any]]:
    """Random arrays on the device for lists ["TENSOR", dtype, shape]; one list a repeat."""
    return allocate(device, args_info, alloc_repeat)


def default_run_evaluator(
    session: RPCSession,
    rt_mod: Module,
    device: Device,
    evaluator_config: EvaluatorConfig,
    repeated_args: list[list[Any]],
) -> list[float]:
    """Seconds of each repeat over each list of arrays."""
    return evaluate(rt_mod, device, evaluator_config._asdict(), repeated_args)


def default_cleanup(session: RPCSession | None, remote_path: str | None) -> None:
    """End the session, and with it its files."""
    if session is not None:
        session.close()


class RPCRunnerFuture(RunnerFuture):
    """A result that a thread brings.

    Parameters
    ----------
    future : of the seconds. timeout_sec : to wait for it.
    """

    def __init__(self, future: Future[list[float]], timeout_sec: float) -> None:
        super().__init__()
        self.future, self.timeout_sec = future, timeout_sec

    def done(self) -> bool:
        return self.future.done()

    def result(self) -> RunnerResult:
        try:
            return RunnerResult([float(s) for s in self.future.result(self.timeout_sec)], None)
        except NotYet as error:
            if not self.future.done():
                return RunnerResult(
                    None, f"RPCRunner: Timeout, given up after {self.timeout_sec} seconds"
                )
            reason: Exception = error
        except Exception as error:  # of the device, or of the caller's functions
            reason = error
        return RunnerResult(
            None, f"RPCRunner: An exception occurred\n{type(reason).__name__}: {reason}"
        )


class RPCRunner(Runner):
    """Times libraries on devices that a tracker gives out, each in a session of its own.

    Parameters
    ----------
    rpc_config : tracker and key; by default from the environment, see `RPCConfig`.
    evaluator_config : how to time.
    cooldown_sec : wait after each.
    alloc_repeat : sets of arrays, each timed.
    f_create_session, f_upload_module, f_alloc_argument, f_run_evaluator, f_cleanup : functions, or
        names of registered ones, in the place of the default ones of this module.
    max_workers : devices used at once; 1 if left out.
    initializer : called once before the first run.
    """

    def __init__(
        self,
        rpc_config: RPCConfig | None = None,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_create_session: str | Callable[..., RPCSession] | None = None,
        f_upload_module: str | Callable[..., Module] | None = None,
        f_alloc_argument: str | Callable[..., Any] | None = None,
        f_run_evaluator: str | Callable[..., Any] | None = None,
        f_cleanup: str | Callable[..., Any] | None = None,
        max_workers: int | None = None,
        initializer: Callable[[], None] | None = None,
    ) -> None:
        self.rpc_config = RPCConfig._normalized(rpc_config)
        self.evaluator_config = evaluator_config or EvaluatorConfig()
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        self.f_create_session = f_create_session
        self.f_upload_module = f_upload_module
        self.f_alloc_argument = f_alloc_argument
        self.f_run_evaluator = f_run_evaluator
        self.f_cleanup = f_cleanup
        self.initializer = initializer
        self._threads = ThreadPoolExecutor(max_workers or 1, thread_name_prefix="rpc-runner")
        self._ready = False

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        if not self._ready and self.initializer is not None:
            self.initializer()
        self._ready = True
        timeout = self.rpc_config.session_timeout_sec + _BEYOND_SECONDS
        return [
            RPCRunnerFuture(self._threads.submit(self._run, entry), timeout * (position + 1))
            for position, entry in enumerate(runner_inputs)
        ]

    def _run(self, entry: RunnerInput) -> list[float]:
        find = get_global_func_with_default_on_worker
        session: RPCSession | None = None
        remote_path = os.path.basename(str(entry.artifact_path))
        try:
            session = find(self.f_create_session, default_create_session)(self.rpc_config)
            device = session.device(entry.device_type, 0)
            module = find(self.f_upload_module, default_upload_module)(
                session, str(entry.artifact_path), remote_path
            )
            args_info = [info.as_json() for info in entry.args_info]
            sets = find(self.f_alloc_argument, default_alloc_argument)(
                session, device, args_info, self.alloc_repeat
            )
            seconds: list[float] = find(self.f_run_evaluator, default_run_evaluator)(
                session, module, device, self.evaluator_config, sets
            )
            return seconds
        finally:
            # What failed above is what is reported, not that a broken session cannot be cleaned.
            with contextlib.suppress(RPCError):
                find(self.f_cleanup, default_cleanup)(session, remote_path)
            time.sleep(self.cooldown_sec)
