"""Trackers, servers and Ray nodes that runs measure through, and that are lost or stand still.

Each starts on the first use, and again when it was lost, so that a harness can take many in turn.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tvm import auto_scheduler, rpc
from tvm.auto_scheduler import ProgramBuilder

# Later than the limit of a candidate, so that one of them is late.
_STOPPED_SECONDS = 3.5
_KEY = "faults"
_NODE_SECONDS = 120
_NODE_ATTEMPTS = 3


def children_of(process: int) -> list[int]:
    """The processes that a process has started."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def stop_for_a_while(processes: list[int]) -> None:
    """SIGSTOP, and SIGCONT after some seconds."""
    for number, seconds in ((signal.SIGSTOP, _STOPPED_SECONDS), (signal.SIGCONT, 0.0)):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        time.sleep(seconds)


class Tracked:
    """A tracker and a server of it, both of which keep their addresses."""

    def __init__(self) -> None:
        self._tracker = rpc.Tracker(port=0, silent=True)
        self._address = (self._tracker.host, self._tracker.port)
        self._server = self._new_server()

    def _new_server(self) -> rpc.Server:
        return rpc.Server(port=0, key=_KEY, tracker_addr=self._address, silent=True)

    def parts(self, builder: ProgramBuilder) -> dict[str, Any]:
        """Builder and runner of a search; to be made in the process that searches."""
        options = {"timeout": 3, "number": 1, "repeat": 2, "min_repeat_ms": 0}
        return {
            "builder": builder,
            "runner": auto_scheduler.RPCRunner(_KEY, *self._address, **options),
        }

    def lose(self, rng: random.Random) -> None:
        """Kill the tracker, the server or a session; what is lost starts again soon after."""
        lost = rng.choice(["tracker", "server", "session"])
        sessions = children_of(self._server.proc.pid)
        if lost == "session" and sessions:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(sessions), signal.SIGKILL)
            return
        part = self._tracker if lost == "tracker" else self._server
        part.proc.kill()
        part.proc.wait()
        time.sleep(rng.uniform(0, 1))
        if part is self._tracker:
            port = self._address[1]
            self._tracker = rpc.Tracker(port=port, port_end=port + 1, silent=True)
        else:
            self._server = self._new_server()

    def stop(self, rng: random.Random) -> None:
        """Let the tracker, the server or its sessions stand still."""
        server = self._server.proc.pid
        stop_for_a_while(
            rng.choice([[self._tracker.proc.pid], [server], children_of(server) or [server]])
        )

    def close(self) -> None:
        self._server.terminate()
        self._tracker.terminate()


class RayNodes:
    """A Ray cluster of a head without devices and two nodes, kept by a process of its own: Ray
    starts threads, beside which the harness could not fork."""

    def __init__(self) -> None:
        to_keeper, from_harness = os.pipe()
        from_keeper, to_harness = os.pipe()
        sys.stdout.flush()
        self._keeper = os.fork()
        if self._keeper == 0:
            os.close(from_harness)
            os.close(from_keeper)
            with contextlib.suppress(BaseException):
                # Neither its messages nor those of its nodes are the harness's.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(1, 2)
                _keep_cluster(to_keeper, to_harness)
            os._exit(0)
        os.close(to_keeper)
        os.close(to_harness)
        self._commands = os.fdopen(from_harness, "w", buffering=1)
        self._answers = os.fdopen(from_keeper)
        self.address = self._ask("address")

    def _ask(self, command: str) -> str:
        with contextlib.suppress(BrokenPipeError):
            print(command, file=self._commands)
        how, _, what = self._answers.readline().strip().partition(" ")
        if how != "done":
            raise RuntimeError(f"the Ray cluster: {command}: {what or 'its process has ended'}")
        return what

    def lose(self, rng: random.Random) -> None:
        """Kill a node, in whose place another one comes."""
        self._ask(f"lose {rng.randrange(2)}")

    def stop(self, rng: random.Random) -> None:
        """Let a node stand still."""
        self._ask(f"stop {rng.randrange(2)}")

    def close(self) -> None:
        self._commands.close()
        os.waitpid(self._keeper, 0)


def _keep_cluster(commands: int, answers: int) -> None:
    from ray.cluster_utils import Cluster

    # Workers of Ray find the package as this process does.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})

    def add() -> Any:
        for attempt in range(_NODE_ATTEMPTS):
            try:
                node = cluster.add_node(wait=False, num_cpus=1, resources={"tvm_device": 1})
                break
            except Exception:
                # Ray waits for half a minute, which busy machines are late for.
                if attempt + 1 == _NODE_ATTEMPTS:
                    raise
        cluster.wait_for_nodes(_NODE_SECONDS)
        return node

    def perform(command: str, which: int) -> None:
        if command == "lose":
            cluster.remove_node(nodes[which], allow_graceful=False)
            nodes[which] = add()
        elif command == "stop":
            raylets = [info.process.pid for info in nodes[which].all_processes["raylet"]]
            stop_for_a_while([p for r in raylets for p in [r, *children_of(r)]])

    try:
        nodes = [add(), add()]
        with os.fdopen(commands) as asked, os.fdopen(answers, "w", buffering=1) as answer:
            for line in asked:
                command, *which = line.split()
                try:
                    perform(command, *map(int, which or ["0"]))
                    print("done", cluster.address, file=answer)
                except Exception as error:
                    print("failed", repr(error).replace("\n", " "), file=answer)
    finally:
        cluster.shutdown()
