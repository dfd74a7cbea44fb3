"""How candidates are timed."""

from __future__ import annotations

import os
from typing import NamedTuple

from tvm import error, rpc

__all__ = ["EvaluatorConfig", "RPCConfig"]


class EvaluatorConfig(NamedTuple):
    """Options of the clock.

    Attributes
    ----------
    number : calls in a repeat, at least.
    repeat : repeats, each giving one value.
    min_repeat_ms : a repeat is at least this long.
    enable_cpu_cache_flush : evict the caches before each repeat.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False


class RPCConfig(NamedTuple):
    """Where devices are to be had.

    Attributes
    ----------
    tracker_host, tracker_port, tracker_key : tracker and kind of device; from the environment's
        ``TVM_TRACKER_HOST``, ``TVM_TRACKER_PORT`` and ``TVM_TRACKER_KEY`` where None.
    session_priority : requests of a higher one are served first.
    session_timeout_sec : that a session may last.
    """

    tracker_host: str | None = None
    tracker_port: int | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    @staticmethod
    def _normalized(config: RPCConfig | None) -> RPCConfig:
        """With what the environment says filled in, and complete.

        Raises
        ------
        ValueError : something is named neither here nor there.
        """
        config = config or RPCConfig()
        names = {
            "tracker_host": "TVM_TRACKER_HOST",
            "tracker_port": "TVM_TRACKER_PORT",
            "tracker_key": "TVM_TRACKER_KEY",
        }
        found = {}
        for field, variable in names.items():
            value = getattr(config, field)
            if value is None:
                value = os.environ.get(variable)
            if not value:
                raise ValueError(f"RPCConfig: {field} is missing; give it, or set {variable}")
            found[field] = value
        return config._replace(**{**found, "tracker_port": int(found["tracker_port"])})

    def connect_tracker(self) -> rpc.TrackerSession:
        """A connection to the tracker; RPCError if it is not there."""
        assert self.tracker_host is not None and self.tracker_port is not None
        return rpc.connect_tracker(self.tracker_host, self.tracker_port)

    def connect_server(self) -> rpc.RPCSession:
        """A session with a device; RPCError if there is none."""
        assert self.tracker_key is not None
        return self.connect_tracker().request(
            self.tracker_key,
            priority=self.session_priority,
            session_timeout=self.session_timeout_sec,
        )

    def count_num_servers(self, allow_missing: bool = True) -> int:
        """Servers of the key, busy ones too.

        Raises
        ------
        RPCError : there is none, unless that is allowed.
        """
        servers = self.connect_tracker().summary()["server_info"]
        count = sum(server["key"] == f"server:{self.tracker_key}" for server in servers)
        if not count and not allow_missing:
            raise error.RPCError(
                f"RPCConfig: the tracker has no server of key {self.tracker_key!r}"
            )
        return count
