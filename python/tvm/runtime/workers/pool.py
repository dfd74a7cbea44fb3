"""Worker processes that survive what they run: crashes, endless loops, exhausted memory.

The parent watches the clock. A worker that is late or gone is killed and replaced, and the job it
had comes back as a failure; other jobs are not touched.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tvm.runtime.exit_status import describe_exit

from .wire import pack_frame, take_frame

__all__ = ["Job", "Outcome", "WorkerPool", "child_environment"]

# Importing tvm takes half a second on an idle machine; a loaded one may need far longer.
_STARTUP_SECONDS = 120.0
# Between closing its pipe and being gone.
_EXIT_SECONDS = 5.0
# Of what a worker wrote to standard error before it ended, this much goes into the message.
_STDERR_TAIL_BYTES = 512
_READ_BYTES = 1 << 20


def child_environment() -> dict[str, str]:
    """The environment of a child that finds the package that is running here, installed or not."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


@dataclass(frozen=True)
class Job:
    """A function ``module:name`` to call in a worker, with its arguments.

    Attributes
    ----------
    function : called with ``(arguments, blob)``.
    arguments : whatever JSON can say.
    blob : raw bytes.
    """

    function: str
    arguments: dict[str, Any]
    blob: bytes = b""


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes
    ----------
    status : "done", "error" (the function raised), "died" (the process ended) or "timeout".
    result, blob : what the function returned, for "done".
    message : one line, for the others.
    kind : class name of the exception, for "error".
    seconds : from sending the job to its end, start of a worker excluded.
    """

    status: str
    result: Any = None
    blob: bytes = b""
    message: str = ""
    kind: str = ""
    seconds: float = 0.0


@dataclass(eq=False)
class _Worker:
    """One process, the bytes of its unfinished answer, the job it has, and if that is its last."""

    process: subprocess.Popen[bytes]
    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]
    buffer: bytearray = field(default_factory=bytearray)
    ready: bool = False
    ends: bool = False
    position: int = -1
    sent: float = 0.0
    deadline: float = 0.0

    def kill(self) -> None:
        """End the process and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            # Closing flushes what a dead reader will never take.
            with contextlib.suppress(OSError):
                stream.close()

    def stderr_tail(self) -> str:
        """Last line that the process wrote to standard error."""
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - _STDERR_TAIL_BYTES))
        lines = self.stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


class WorkerPool:
    """Processes that wait for jobs.

    Parameters
    ----------
    size : how many run at once.
    timeout : seconds for one job; the worker is killed after that.
    memory_bytes : memory a worker may allocate on top of what it starts with; 0 for no limit.
    modules : imported when a worker starts, so that the first job does not pay for it.

    Notes
    -----
    Processes start with the first job, or with `start`, and stay. Use the pool from one thread at a
    time: the kernel ends a worker together with the thread that started it.
    """

    def __init__(
        self, size: int, timeout: float, memory_bytes: int = 0, modules: Sequence[str] = ()
    ) -> None:
        self._workers: list[_Worker] = []
        if size < 1:
            raise ValueError(f"WorkerPool: size must be >= 1, got {size}")
        if timeout <= 0:
            raise ValueError(f"WorkerPool: timeout must be > 0 seconds, got {timeout}")
        self.size = size
        self.timeout = timeout
        self.memory_bytes = memory_bytes
        self.modules = list(modules)

    def process_ids(self) -> list[int]:
        """Of the workers alive now."""
        return [w.process.pid for w in self._workers if w.process.poll() is None]

    def start(self) -> None:
        """Start all workers, and go on while they do."""
        self._discard_dead()
        while len(self._workers) < self.size:
            self._start()

    def warm_up(self) -> None:
        """Start all workers and wait until they are ready.

        Raises
        ------
        RuntimeError : a worker does not start.
        """
        self.start()
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:
                selector.register(worker.stdout, selectors.EVENT_READ, worker)
            while any(not worker.ready for worker in self._workers):
                self._wait(selector)
                for worker in list(self._workers):
                    self._take_outcome(worker)

    def run(
        self,
        jobs: Iterable[Job],
        on_outcome: Callable[[int, Outcome], None] | None = None,
    ) -> list[Outcome]:
        """Run jobs, as many at once as there are workers.

        Parameters
        ----------
        jobs : what to run.
        on_outcome : called with position and outcome as soon as a job has ended.

        Returns
        -------
        One outcome a job, in the order of the jobs.

        Raises
        ------
        RuntimeError : a worker does not start.
        """
        queue = list(jobs)
        outcomes: list[Outcome | None] = [None] * len(queue)
        next_job = 0
        open_jobs = len(queue)
        self._discard_dead()
        try:
            with selectors.DefaultSelector() as selector:
                for worker in self._workers:
                    selector.register(worker.stdout, selectors.EVENT_READ, worker)
                while open_jobs:
                    while next_job < len(queue) and len(self._workers) < min(self.size, open_jobs):
                        worker = self._start()
                        selector.register(worker.stdout, selectors.EVENT_READ, worker)
                    for worker in self._workers:
                        if worker.ready and worker.position < 0 and next_job < len(queue):
                            self._send(worker, next_job, queue[next_job])
                            next_job += 1
                    self._wait(selector)
                    for worker in list(self._workers):
                        outcome = self._take_outcome(worker)
                        if outcome is not None:
                            position, worker.position = worker.position, -1
                            outcomes[position] = outcome
                            open_jobs -= 1
                        late = outcome is not None and outcome.status == "timeout"
                        if late or worker.ends or worker.process.poll() is not None:
                            selector.unregister(worker.stdout)
                            self._remove(worker)
                        if outcome is not None and on_outcome is not None:
                            on_outcome(position, outcome)
        except BaseException:
            # Ctrl-C, or an error in the callback: answers still under way belong to nobody.
            for worker in [w for w in self._workers if w.position >= 0]:
                self._remove(worker)
            raise
        return [outcome for outcome in outcomes if outcome is not None]

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    # ------------------------------------------------------------ processes

    def _start(self) -> _Worker:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - kill() closes it
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tvm.runtime.workers.serve",
                str(os.getpid()),
                str(self.memory_bytes),
                *self.modules,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=child_environment(),
            # Its own group, so that a kill also reaches what a candidate may have started.
            start_new_session=True,
        )
        assert process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + _STARTUP_SECONDS
        worker = _Worker(process, process.stdin, process.stdout, stderr, deadline=deadline)
        self._workers.append(worker)
        return worker

    def _remove(self, worker: _Worker) -> None:
        worker.kill()
        self._workers.remove(worker)

    def _discard_dead(self) -> None:
        for worker in list(self._workers):
            if worker.process.poll() is not None:
                self._remove(worker)

    # -------------------------------------------------------------- traffic

    def _send(self, worker: _Worker, position: int, job: Job) -> None:
        worker.position = position
        worker.sent = time.monotonic()
        worker.deadline = worker.sent + self.timeout
        frame = pack_frame({"function": job.function, "arguments": job.arguments}, job.blob)
        # A worker that ended while idle shows when its answer does not come.
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(frame)
            worker.stdin.flush()

    def _wait(self, selector: selectors.BaseSelector) -> None:
        """Take in what the workers send, until the first deadline at the latest."""
        waited_for = [w for w in self._workers if w.position >= 0 or not w.ready]
        first = min(worker.deadline for worker in waited_for)
        for key, _ in selector.select(max(0.0, first - time.monotonic())):
            self._receive(key.data)

    def _receive(self, worker: _Worker) -> None:
        data = os.read(worker.stdout.fileno(), _READ_BYTES)
        if data:
            worker.buffer += data
        else:
            # End of the pipe: the process is ending, and its exit status says why.
            try:
                worker.process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        if not worker.ready and take_frame(worker.buffer) is not None:
            worker.ready = True

    def _take_outcome(self, worker: _Worker) -> Outcome | None:
        """How the job of a worker ended, or None if it has none or is still at it."""
        now = time.monotonic()
        if not worker.ready:
            if worker.process.poll() is not None or now > worker.deadline:
                reason = worker.stderr_tail() or "no message"
                self._remove(worker)
                raise RuntimeError(f"worker process did not start: {reason}")
            return None
        if worker.position < 0:
            return None
        seconds = now - worker.sent
        ended = worker.process.poll() is not None
        if ended:
            # It may have answered before it ended.
            while data := os.read(worker.stdout.fileno(), _READ_BYTES):
                worker.buffer += data
        frame = take_frame(worker.buffer)
        if frame is not None:
            message, blob = frame
            if "error" in message:
                return Outcome(
                    "error", message=message["error"], kind=message["kind"], seconds=seconds
                )
            worker.ends = message["last"]
            return Outcome("done", message["result"], blob, seconds=seconds)
        if ended:
            return Outcome("died", message=self._death_of(worker), seconds=seconds)
        if now > worker.deadline:
            message_text = f"no result after {self.timeout:g} s; the process was killed"
            return Outcome("timeout", message=message_text, seconds=seconds)
        return None

    @staticmethod
    def _death_of(worker: _Worker) -> str:
        reason = describe_exit(worker.process.returncode)
        tail = worker.stderr_tail()
        return f"the process {reason}" + (f": {tail}" if tail else "")
