"""Faults, injected into a small tuning run at random moments; what must hold after each.

``python tests/python/testing_faults.py --faults 1000`` runs them and prints a summary in its last
line. Each run is a process of its own, forked from this one, which has imported everything: so are
its workers, which otherwise run the code and speak the protocol of `tvm.runtime.workers`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import torch

import tvm
from testing_fleets import RayNodes, Tracked, children_of
from tvm import auto_scheduler
from tvm.auto_scheduler import measure_jobs
from tvm.auto_scheduler.measure_record import any_record_lines
from tvm.felix import tuning
from tvm.felix.console import run_command
from tvm.felix.network import Network
from tvm.runtime.workers import pool, serve

TRIALS = 4
# What a run takes at most, stopped workers included, where nothing else takes the processors.
LIMIT_SECONDS = 120.0


class ForkedProcess:
    """A worker, forked instead of started; as much of `subprocess.Popen` as the pool uses."""

    def __init__(self, command: list[str], stderr: Any, **_: Any) -> None:
        self.returncode: int | None = None
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.dup2(theirs_in, 0)
                os.dup2(theirs_out, 1)
                os.dup2(stderr.fileno(), 2)
                os.closerange(3, 256)
                serve.main(command[3:])
            os._exit(0)
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            time.sleep(0.002)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


# What the pool of workers takes from `subprocess`.
_FORKING = types.SimpleNamespace(
    Popen=ForkedProcess, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired
)


def bad_candidate(kind: str, arguments: dict[str, Any], blob: bytes) -> Any:
    """What runs in a worker in place of the candidate."""
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif kind == "hang":
        time.sleep(600)
    elif kind == "garbage":
        # All that it can reach of the protocol is standard output, which is not the pipe.
        os.write(1, bytes(range(256)) * 64)
        return measure_jobs.run(arguments, blob)
    elif kind == "exhausts memory":
        return {"error_no": 0, "costs": [float(len(bytearray(1 << 40)))]}, b""
    elif kind == "writes out of bounds":
        import ctypes

        ctypes.memset(1 << 12, 0, 1 << 20)
    return measure_jobs.run(arguments, blob)


@dataclass
class Run:
    """One process that tunes in a folder, and what it reported."""

    pid: int
    reports: Path
    errors: Path

    def workers(self) -> list[int]:
        return children_of(self.pid)

    def wait(self, limit: float) -> int | None:
        """Exit status as of a shell; None where it had to be killed.

        Of processors that have more to do than they can, a run gets a share:
        its seconds count by that share.
        """
        passed, before = 0.0, time.monotonic()
        while passed < limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return 128 - code if code < 0 else code
            time.sleep(0.01)
            now = time.monotonic()
            passed += (now - before) / max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            before = now
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def start(
    network: Network,
    base: Path,
    prepare: Callable[[], object] = lambda: None,
    machines: Tracked | RayNodes | None = None,
) -> Run:
    """Tune in `base/run` in a process of its own, after `prepare`; on `machines` or this one."""
    run = Run(0, base / "reported", base / "errors")
    run.pid = os.fork()
    if run.pid:
        return run
    status = 1
    try:
        os.setsid()
        errors = os.open(run.errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        reports = os.open(run.reports, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(errors, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", 0, closefd=False), write_through=True)
        tempfile.tempdir = str(base / "tmp")
        os.environ["TVM_FELIX_CACHE"] = str(base / "cache")
        pool.subprocess = _FORKING  # type: ignore[assignment]

        session = auto_scheduler.MeasureSession.__init__

        def reporting(self: Any, *args: Any, **options: Any) -> None:
            session(self, *args, **options)
            self.on_result.append(
                lambda c, r: os.write(reports, f"{c.record(r)}\n".encode()) and None
            )

        builder = auto_scheduler.LocalBuilder(timeout=4, n_parallel=1)
        runner = auto_scheduler.LocalRunner(timeout=3, number=1, repeat=2, min_repeat_ms=0)
        optimizer = tuning.Optimizer
        where: dict[str, Any] = {}
        if isinstance(machines, RayNodes):
            where = {"runner": "ray", "fleet": machines.address}

        def small(*args: Any, **options: Any) -> Any:
            if isinstance(machines, Tracked):
                options |= machines.parts(builder)
            elif machines is None:
                options |= {"runner": runner, "builder": builder}
            return optimizer(*args, **options)

        with (
            mock.patch.object(auto_scheduler.MeasureSession, "__init__", reporting),
            mock.patch.object(tuning, "Optimizer", small),
        ):
            prepare()
            status = run_command(
                lambda: tuning.tune(
                    network,
                    trials=TRIALS,
                    folder=base / "run",
                    winograd=False,
                    progress=False,
                    **where,
                )
            )
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def signalled(number: int, to_worker: bool) -> Callable[[Run, random.Random], None]:
    def inject(run: Run, rng: random.Random) -> None:
        targets = run.workers() if to_worker else [run.pid]
        if not targets:
            return
        target = rng.choice(targets)
        with contextlib.suppress(ProcessLookupError):
            os.kill(target, number)
            if number == signal.SIGSTOP:
                # Long enough for a worker's job to be late; a run that stands still goes on.
                time.sleep(0.3 if target == run.pid else 3.5)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(target, signal.SIGCONT)

    return inject


def nothing(run: Run, rng: random.Random) -> None:
    """The fault is in what the run was prepared with, or in its files."""


def limit_file_size(rng: random.Random) -> Callable[[], None]:
    size = rng.choice([0, 100, 1000, 3000, 20000, 500000])
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def limit_memory(rng: random.Random) -> Callable[[], None]:
    """No more memory than the run has by now and a little, for its workers too."""
    more = rng.choice([1, 16, 64, 256]) << 20

    def limit() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size = pages * resource.getpagesize() + more
        resource.setrlimit(resource.RLIMIT_AS, (size, size))

    return limit


def full_disk(rng: random.Random) -> Callable[[], None]:
    """No space, from a random write on, as `append_lines` and `write_atomically` see it."""
    left = [rng.randrange(8)]
    opened = open

    def full(path: Any, *args: Any, **options: Any) -> Any:
        mode = args[0] if args else options.get("mode", "r")
        if any(letter in mode for letter in "wa+") and "run" in Path(str(path)).parts:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return opened(path, *args, **options)

    return lambda: mock.patch("builtins.open", full).start()


def clock_set_back(rng: random.Random) -> Callable[[], None]:
    real, calls = time.time, [rng.randrange(10)]

    def earlier() -> float:
        calls[0] -= 1
        return real() - (1e8 if calls[0] < 0 else 0)

    return lambda: mock.patch("time.time", earlier).start()


def bad_candidates(rng: random.Random) -> Callable[[], None]:
    kind = rng.choice(["crash", "hang", "garbage", "exhausts memory", "writes out of bounds"])
    # One of the candidates; the library's schedule is measured first.
    position, count = rng.randrange(3), [0]
    send = pool.WorkerPool._send

    def sending(self: Any, worker: Any, number: int, job: Any) -> None:
        if job.function.endswith(":run"):
            count[0] += 1
            if count[0] == position + 1:
                job = pool.Job(f"testing_faults:{kind.replace(' ', '_')}", job.arguments, job.blob)
        send(self, worker, number, job)

    return lambda: mock.patch.object(pool.WorkerPool, "_send", sending).start()


def crash(arguments: dict[str, Any], blob: bytes) -> Any:
    return bad_candidate("crash", arguments, blob)


def hang(arguments: dict[str, Any], blob: bytes) -> Any:
    return bad_candidate("hang", arguments, blob)


def garbage(arguments: dict[str, Any], blob: bytes) -> Any:
    return bad_candidate("garbage", arguments, blob)


def exhausts_memory(arguments: dict[str, Any], blob: bytes) -> Any:
    return bad_candidate("exhausts memory", arguments, blob)


def writes_out_of_bounds(arguments: dict[str, Any], blob: bytes) -> Any:
    return bad_candidate("writes out of bounds", arguments, blob)


def cut_last_record(folder: Path, rng: random.Random) -> str:
    """The record that is lost with it, which was whole when it was reported."""
    path = folder / "records.json"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if not lines:
        return ""
    path.write_text("".join(lines[:-1]) + lines[-1][: rng.randrange(1, len(lines[-1]) - 1)])
    return lines[-1].rstrip("\n")


def damage_file(folder: Path, rng: random.Random) -> str:
    files = [folder / name for name in ("state.json", "cost_model.ckpt", "run.json")]
    files = [path for path in files if path.exists()]
    if files:
        path = rng.choice(files)
        data = bytearray(path.read_bytes())
        if rng.random() < 0.5:
            del data[rng.randrange(len(data)) :]
        for _ in range(8):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
    return ""


def read_only(folder: Path, rng: random.Random) -> str:
    folder.chmod(0o500)
    return ""


_SIGNALS = {
    f"{signal.Signals(number).name} to {who}": signalled(number, who == "a worker")
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP)
    for who in ("the run", "a worker")
}
_PREPARED = {
    "a limit of file sizes": limit_file_size,
    "a full disk": full_disk,
    "a limit of memory": limit_memory,
    "the clock set back": clock_set_back,
    "a bad candidate": bad_candidates,
}
_DAMAGES = {
    "the last record cut": cut_last_record,
    "a checkpoint damaged": damage_file,
    "a folder that is read-only": read_only,
}
_MACHINES: dict[str, tuple[type[Tracked | RayNodes], Callable[[Any, random.Random], None]]] = {
    "a tracker or server lost": (Tracked, Tracked.lose),
    "a tracker or server standing still": (Tracked, Tracked.stop),
    "a Ray node lost": (RayNodes, RayNodes.lose),
    "a Ray node standing still": (RayNodes, RayNodes.stop),
}
_NO_SPACE = ("a limit of file sizes", "a full disk")
RAY_FAULTS = [kind for kind, (machines, _) in _MACHINES.items() if machines is RayNodes]
FAULTS = [*_SIGNALS, *_PREPARED, *_DAMAGES, *_MACHINES]

# What runs measure through, of this process.
_machines: dict[type[Tracked | RayNodes], Tracked | RayNodes] = {}


def _machines_of(kind: str) -> Tracked | RayNodes | None:
    if kind not in _MACHINES:
        return None
    made = _MACHINES[kind][0]
    if made not in _machines:
        _machines[made] = made()
    return _machines[made]


_COUNTS = ("faults", "lost", "doubled", "left_over")


@dataclass
class Tally:
    """What came of the faults."""

    faults: int = 0
    lost: int = 0
    doubled: int = 0
    left_over: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.faults} faults, {self.lost} records lost, {self.doubled} doubled, "
            f"{self.left_over} processes or files left over, {len(self.problems)} other problems"
        )


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def _shared_memory() -> set[str]:
    return (
        {entry.name for entry in Path("/dev/shm").iterdir()} if Path("/dev/shm").is_dir() else set()
    )


def _alive(base: Path) -> list[int]:
    """Processes whose standard error or folder is one of the run's."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            with contextlib.suppress(OSError):
                environment = os.readlink(process / "fd" / "2")
                if (
                    environment.startswith(str(base))
                    or "deleted" in environment
                    and str(base) in environment
                ):
                    found.append(int(process.name))
    return found


def _is_explained(kind: str, status: int | None, text: list[str], base: Path) -> bool:
    """Whether a run that did not end well says why in one line."""
    if any("Traceback" in line for line in text):
        return False
    if status in (0, 128 + signal.SIGKILL):
        return True
    if kind in _NO_SPACE and text:
        # What was measured is in the log where the file takes no more.
        return text[-1].startswith("error: ") and str(base) in text[-1]
    # Where no file may grow, not even that line can be written.
    return len(text) == 1 or kind in _NO_SPACE


def inject(network: Network, kind: str, seed: int, tally: Tally) -> None:
    """One fault: a run, the fault in it or in its files, and a run that goes on with the folder."""
    rng = random.Random(f"{kind} {seed}")
    base = Path(tempfile.mkdtemp(prefix="felix-faults-"))
    (base / "tmp").mkdir()
    folder, shared = base / "run", _shared_memory()
    tally.faults += 1

    def problem(text: str) -> None:
        tally.problems.append(f"{kind}, seed {seed}: {text}")

    try:
        # -- the run that the fault happens to
        prepare = _PREPARED[kind](rng) if kind in _PREPARED else lambda: None
        machines = _machines_of(kind)
        run = start(network, base, prepare, machines)
        if kind in _SIGNALS:
            time.sleep(rng.uniform(0.05, 2.5))
            _SIGNALS[kind](run, rng)
        elif kind in _DAMAGES:
            time.sleep(rng.uniform(0.3, 2.5))
            with contextlib.suppress(ProcessLookupError):
                os.kill(run.pid, signal.SIGKILL)
        elif machines is not None:
            # On Ray it takes seconds until something is built.
            time.sleep(rng.uniform(0.5, 8 if isinstance(machines, RayNodes) else 3))
            _MACHINES[kind][1](machines, rng)
        status = run.wait(LIMIT_SECONDS)
        if status is None:
            problem("the run did not end")
        text = _lines(run.errors)
        if not _is_explained(kind, status, text, base):
            problem(f"status {status}, {len(text)} lines of errors: {' | '.join(text)[-600:]}")
        tally.left_over += _left_over(
            base, shared, problem, after_kill=status == 128 + signal.SIGKILL
        )
        cut = ""
        if kind in _DAMAGES and folder.exists():
            cut = _DAMAGES[kind](folder, rng)
        # -- the run that goes on
        status, attempts = None, 0
        while status != 0 and attempts < 3:
            attempts += 1
            run = start(network, base, machines=machines)
            status = run.wait(LIMIT_SECONDS)
            if status == 0:
                break
            text = _lines(run.errors)
            if kind not in _DAMAGES or len(text) != 1 or str(folder) not in text[0]:
                problem(f"resumed with {status}: {' | '.join(text)[-600:]}")
                break
            # The message names the file; what the user does is to take it away.
            folder.chmod(0o700)
            for name in ("state.json", "cost_model.ckpt", "run.json"):
                if name in text[0]:
                    (folder / name).unlink()
        if status != 0:
            problem("the run could not be resumed")
        tally.left_over += _left_over(base, shared, problem)
        _count_records(folder, base, cut, tally, problem)
    finally:
        if folder.exists():
            folder.chmod(0o700)
        shutil.rmtree(base, ignore_errors=True)


def _left_over(
    base: Path, shared: set[str], problem: Callable[[str], None], after_kill: bool = False
) -> int:
    deadline = time.monotonic() + 5
    while (alive := _alive(base)) and time.monotonic() < deadline:
        time.sleep(0.02)  # the kernel is ending them
    for pid in alive:
        problem(f"process {pid} is left over")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    left = [] if after_kill else [*base.rglob(".partial.*"), *(base / "tmp").iterdir()]
    # Other programs of the machine may use shared memory; ours is named.
    left += [Path("/dev/shm") / name for name in _shared_memory() - shared if "tvm" in name]
    for path in left:
        problem(f"{path} is left over")
    return len(alive) + len(left)


def _count_records(
    folder: Path, base: Path, cut: str, tally: Tally, problem: Callable[[str], None]
) -> None:
    path = folder / "records.json"
    recorded = Counter(line for _, line in any_record_lines(path)) if path.exists() else Counter()
    reported = Counter(_lines(base / "reported"))
    lost = [line for line in reported if line not in recorded and line != cut]
    doubled = sum(recorded.values()) - len(recorded)
    programs = Counter(json.dumps(json.loads(line)["i"]) for line in recorded)
    doubled += sum(programs.values()) - len(programs)
    tally.lost += len(lost)
    tally.doubled += doubled
    if lost or doubled:
        problem(f"{len(lost)} lost, {doubled} doubled")
    if len(recorded) != TRIALS:
        problem(f"{len(recorded)} records instead of {TRIALS}")
    store = auto_scheduler.RecordStore(base / "cache" / "records.db")
    kept = sum(kernel.n_measured for kernel in store.kernels())
    store.close()
    if kept != TRIALS and not cut:
        problem(f"the machine's store has {kept} records instead of {TRIALS}")


def warm_network() -> Network:
    """A network of one kernel, imported, with everything loaded that a run needs."""
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = os.environ["TVM_NUM_THREADS"] = "1"
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU())
    network = Network(model, (torch.ones(8, 64),))
    assert network.mod is not None and tvm.target.Target("llvm").with_machine()
    return network


def drawn_kinds(ray: bool) -> list[str]:
    """Kinds in the order in which they are drawn; those on Ray, of which one takes a minute, less
    often than the others."""
    others = [kind for kind in FAULTS if kind not in RAY_FAULTS]
    return others * 4 + RAY_FAULTS if ray else others


def inject_all(network: Network, numbers: Sequence[int], kinds: Sequence[str]) -> Tally:
    """Faults of some kinds in turn."""
    tally, begin = Tally(), time.monotonic()
    for number in numbers:
        before = len(tally.problems)
        inject(network, kinds[number % len(kinds)], number, tally)
        for text in tally.problems[before:]:
            print(text, flush=True)
        if tally.faults % 25 == 0:
            print(f"{tally} after {time.monotonic() - begin:.0f} s", flush=True)
    for machines in _machines.values():
        machines.close()
    return tally


def main(arguments: list[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=FAULTS)
    parser.add_argument("--no-ray", action="store_true", help="leave out what takes a Ray cluster")
    parser.add_argument("--jobs", type=int, default=1, help="faults at a time")
    options = parser.parse_args(arguments)
    numbers = range(options.seed, options.seed + options.faults)
    kinds = [options.kind] if options.kind else drawn_kinds(ray=not options.no_ray)
    network = warm_network()
    tallies, processes = [], []
    for job in range(options.jobs):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            tally = inject_all(network, numbers[job :: options.jobs], kinds)
            with os.fdopen(writer, "w") as answer:
                json.dump(asdict(tally), answer)
            os._exit(0)
        os.close(writer)
        processes.append((pid, reader))
    for pid, reader in processes:
        with os.fdopen(reader) as answer:
            tallies.append(Tally(**json.load(answer)))
        os.waitpid(pid, 0)
    tally = Tally(
        *(sum(getattr(t, name) for t in tallies) for name in _COUNTS),
        [text for t in tallies for text in t.problems],
    )
    print(tally)
    return int(bool(tally.lost or tally.doubled or tally.left_over or tally.problems))


if __name__ == "__main__":
    # Workers find the functions above by this name.
    sys.modules["testing_faults"] = sys.modules["__main__"]
    sys.exit(main())
