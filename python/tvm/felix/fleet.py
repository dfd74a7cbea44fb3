"""Building and measuring on the machines of a Ray cluster.

Each task of the cluster hands its job to a worker process of its own, so that a candidate which
crashes or hangs costs that process and not the cluster's. Jobs of nodes that are lost are done
again on others. Only this process writes records.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.auto_scheduler.measure import ProgramBuilder, ProgramRunner
from tvm.auto_scheduler.measure_local import BuildJobs, DeviceLostError, RunJobs
from tvm.auto_scheduler.measure_node import BuildResult, Candidate, MeasureResult
from tvm.runtime.workers import Job, Outcome, WorkerPool, child_environment

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayError
except ModuleNotFoundError as reason:
    raise ModuleNotFoundError(
        "tuning on a fleet needs the package ray, which is missing here; install it with "
        "`pip install tvm[ray]`",
        name=reason.name,
    ) from reason

__all__ = ["DEVICE_RESOURCE", "BuildPool", "Fleet", "FleetBuilder", "FleetRunner"]

# What a node offers for each device that programs may be timed on, as in
# `ray start --resources '{"tvm_device": 1}'`. Graphics processors are Ray's own resource, "GPU".
DEVICE_RESOURCE = "tvm_device"
_JOBS_MODULE = "tvm.auto_scheduler.measure_jobs"
# A job comes back by its own limit; what is later than this as well was lost with its node.
_GRACE_SECONDS = 60.0
_RETRIES = 3
# Jobs that one task has at most: they are done again if its node is lost.
_MOST_JOBS = 8
_REACH_SECONDS = 10.0

# The worker process of this process, which is one of the cluster's.
_pools: dict[tuple[float, int], WorkerPool] = {}


def _do(job: Job, timeout: float, memory_bytes: int) -> Outcome:
    """Run a job in the worker process that belongs to this process of the cluster."""
    key = (timeout, memory_bytes)
    if key not in _pools:
        _pools[key] = WorkerPool(1, timeout, memory_bytes, [_JOBS_MODULE])
    [outcome] = _pools[key].run([job])
    return outcome


def _do_all(jobs: Sequence[Job], timeout: float, memory_bytes: int) -> list[Outcome]:
    """Run some jobs, one after the other."""
    return [_do(job, timeout, memory_bytes) for job in jobs]


def _shares(count: int, processors: int) -> list[int]:
    """Jobs of each task: many at first, so that few tasks are handed out, and single ones at last,
    so that processors end together."""
    shares = []
    while count:
        shares.append(min(max(count // (2 * processors), 1), _MOST_JOBS))
        count -= shares[-1]
    return shares


class _Device:
    """A device that one runner has for itself, wherever it is."""

    def __init__(self, timeout: float, memory_bytes: int) -> None:
        self._limits = (timeout, memory_bytes)

    def node(self) -> str:
        """Id of the node."""
        return str(ray.get_runtime_context().get_node_id())

    def run(self, job: Job) -> Outcome:
        """Run a job on the device."""
        return _do(job, *self._limits)


class Fleet:
    """A Ray cluster; as a context manager it lets go of the cluster at the end.

    Parameters
    ----------
    address : of the cluster, such as ``ray://host:10001`` or ``auto``; "local" starts one on this
        machine. A cluster that this process is connected to already is taken as it is.

    Raises
    ------
    ConnectionError : there is no cluster at the address.
    """

    def __init__(self, address: str = "local") -> None:
        self._owns = not ray.is_initialized()
        if self._owns:
            options: dict[str, Any] = {
                "address": address,
                "runtime_env": {"env_vars": {"PYTHONPATH": child_environment()["PYTHONPATH"]}},
                "log_to_driver": False,
                "logging_level": "warning",
            }
            if address == "local":
                # It has this machine's cores, and the machine as the device.
                options |= {"resources": {DEVICE_RESOURCE: 1}, "include_dashboard": False}
            try:
                _reach(address)
                ray.init(**options)
            except (OSError, ValueError, RayError) as error:
                raise ConnectionError(
                    f"no Ray cluster at {address}: {str(error).splitlines()[0]}; start one with "
                    '`ray start --head`, or name "local"'
                ) from error

    def amount(self, resource: str) -> int:
        """How much of a resource the nodes have together."""
        return int(ray.cluster_resources().get(resource, 0))

    def builder(self, timeout: float = 15, memory_bytes: int = 0) -> FleetBuilder:
        """Compiles on all processors of the cluster, one candidate each.

        Raises
        ------
        ValueError : no node has processors for it.
        """
        return FleetBuilder(self, timeout, memory_bytes)

    def runner(self, **options: Any) -> FleetRunner:
        """Times on the cluster's devices; see `FleetRunner`."""
        return FleetRunner(self, **options)

    def close(self) -> None:
        """Let go of the cluster, and end it if it was started here."""
        if self._owns and ray.is_initialized():
            ray.shutdown()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reach(address: str) -> None:
    """Raises an OSError where nobody listens; Ray itself tries for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if separator and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), _REACH_SECONDS):
            pass


class BuildPool:
    """Jobs as tasks of the cluster, a processor each; a task has several jobs.

    Parameters
    ----------
    timeout : seconds for one job. memory_bytes : memory that one may take; 0 for no limit.
    """

    def __init__(self, timeout: float, memory_bytes: int) -> None:
        self._limits = (timeout, memory_bytes)
        # A task that is lost with its node is done again by Ray itself.
        self._task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_do_all)

    def run(
        self, jobs: Sequence[Job], on_outcome: Callable[[int, Outcome], None] | None = None
    ) -> list[Outcome]:
        """Run jobs on all processors; one outcome a job, of which `on_outcome` hears with those of
        the same task."""
        processors = max(int(ray.cluster_resources().get("CPU", 1)), 1)
        pending: dict[Any, range] = {}
        begin = 0
        for share in _shares(len(jobs), processors):
            positions = range(begin, begin + share)
            begin += share
            reference = self._task.remote([jobs[i] for i in positions], *self._limits)
            pending[reference] = positions
        outcomes: dict[int, Outcome] = {}
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1)
            for reference in done:
                positions = pending.pop(reference)
                try:
                    results = ray.get(reference)
                except RayError as error:
                    results = [_lost(error)] * len(positions)
                outcomes.update(zip(positions, results, strict=True))
                if on_outcome is not None:
                    for position in positions:
                        on_outcome(position, outcomes[position])
        return [outcomes[i] for i in range(len(jobs))]


class _DevicePool:
    """Jobs on one device. A device that is lost raises `RayError`, and its jobs go elsewhere."""

    def __init__(self, device: Any, limit: float) -> None:
        self._device, self._limit = device, limit

    def run(
        self, jobs: Sequence[Job], on_outcome: Callable[[int, Outcome], None] | None = None
    ) -> list[Outcome]:
        return [ray.get(self._device.run.remote(job), timeout=self._limit) for job in jobs]


def _lost(error: BaseException) -> Outcome:
    text = str(error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    return Outcome("died", message=f"lost with its node: {reason}")


class FleetBuilder(ProgramBuilder):
    """Compiles candidates on all processors of a cluster.

    Parameters
    ----------
    timeout : seconds for one build.
    memory_bytes : memory that one build may take; 0 for no limit.

    Raises
    ------
    ValueError : no node has processors for it.
    """

    def __init__(self, fleet: Fleet, timeout: float = 15, memory_bytes: int = 0) -> None:
        processors = fleet.amount("CPU")
        if processors < 1:
            raise ValueError("Fleet: no node of the cluster offers CPUs to build on")
        self._build = BuildJobs(BuildPool(timeout, memory_bytes))
        super().__init__(processors, timeout)

    def build(
        self, candidates: Sequence[Candidate], unscheduled: bool = False
    ) -> list[BuildResult]:
        """Compile a batch; one result a candidate, failures included."""
        return self._build(list(candidates), unscheduled)


class FleetRunner(ProgramRunner):
    """Times candidates on the devices of a cluster, each of which it has for itself.

    Candidates of a batch are timed on all devices at once. One whose device is lost is timed on
    another.

    Parameters
    ----------
    resource : what a node offers for a device: "tvm_device", or "GPU".
    devices : how many to take; by default all there are.
    memory_bytes : memory that a candidate may take; 0 for no limit.

    The others are those of ProgramRunner.

    Raises
    ------
    ValueError : the cluster has no such device.
    """

    def __init__(
        self,
        fleet: Fleet,
        resource: str = DEVICE_RESOURCE,
        devices: int | None = None,
        timeout: float = 10,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: float = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        memory_bytes: int = 0,
    ) -> None:
        there = fleet.amount(resource)
        wanted = there if devices is None else devices
        if not 1 <= wanted <= there:
            raise ValueError(
                f"Fleet: {wanted} devices are asked for and the cluster has {there}; start nodes "
                f"with `ray start --resources '{{\"{resource}\": 1}}'`"
            )
        super().__init__(
            timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush
        )
        share = {"num_gpus": 1} if resource == "GPU" else {"resources": {resource: 1}}
        actor = ray.remote(num_cpus=0, max_restarts=0, **share)(_Device)
        self._devices: list[Any] = [actor.remote(timeout, memory_bytes) for _ in range(wanted)]
        self._limit = timeout + _GRACE_SECONDS

    def close(self) -> None:
        """Let go of the devices."""
        for device in self._devices:
            ray.kill(device)
        self._devices.clear()

    def run(
        self,
        candidates: Sequence[Candidate],
        programs: Sequence[BuildResult],
        best_seconds: Mapping[str, float] | None = None,
        references: Mapping[str, BuildResult] | None = None,
        on_result: Callable[[int, MeasureResult], None] | None = None,
    ) -> list[MeasureResult]:
        """Time a batch; one result a candidate. See ProgramRunner.

        Raises
        ------
        DeviceLostError : every device is lost.
        """
        best = {str(key): float(seconds) for key, seconds in dict(best_seconds or {}).items()}
        known = dict(references or {})
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for position in range(len(candidates)):
            waiting.put(position)
        answers: queue.SimpleQueue[tuple[int, MeasureResult | None, Any]] = queue.SimpleQueue()

        def serve(device: Any) -> None:
            run = RunJobs(_DevicePool(device, self._limit), self)
            while True:
                try:
                    position = waiting.get_nowait()
                except queue.Empty:
                    return
                candidate = candidates[position]
                key = candidate.workload_key
                try:
                    result = run.run_one(
                        candidate, programs[position], best.get(key), known.get(key)
                    )
                except (RayError, GetTimeoutError, DeviceLostError):
                    answers.put((position, None, device))
                    return
                answers.put((position, result, device))

        results: dict[int, MeasureResult] = {}
        threads = self._serve(serve)
        # Callbacks are this thread's, in the order in which results come.
        while len(results) < len(candidates):
            position, result, device = answers.get()
            if result is None:
                self._devices.remove(device)
                # Its node may be there all the same.
                ray.kill(device)
                if not self._devices:
                    raise DeviceLostError("every device of the fleet is lost")
                waiting.put(position)
                threads += self._serve(serve)
                continue
            results[position] = result
            if on_result is not None:
                on_result(position, result)
        for thread in threads:
            thread.join()
        return [results[i] for i in range(len(candidates))]

    def _serve(self, function: Callable[[Any], None]) -> list[threading.Thread]:
        """Threads, one a device. Such a thread that finds nothing to do ends at once."""
        threads = [threading.Thread(target=function, args=(d,), daemon=True) for d in self._devices]
        for thread in threads:
            thread.start()
        return threads
