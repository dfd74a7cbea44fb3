"""A tracker with a server on this machine, for tests of runners."""

from __future__ import annotations

from tvm.rpc import Server, Tracker, device_is_there

__all__ = ["LocalRPC"]


class LocalRPC:
    """A tracker and a server, which end with the ``with`` or with this object.

    Parameters
    ----------
    tracker_key : kind of device that the server is.
    silent : their logs are not shown.

    Attributes
    ----------
    tracker_host, tracker_port, tracker_key : what an `RPCConfig` takes.
    """

    def __init__(self, tracker_key: str = "key", silent: bool = True) -> None:
        self.tracker = Tracker(port=0, silent=silent)
        self.tracker_host, self.tracker_port = self.tracker.host, self.tracker.port
        self.tracker_key = tracker_key
        self.server = Server(
            port=0,
            key=tracker_key,
            tracker_addr=(self.tracker_host, self.tracker_port),
            silent=silent,
        )
        device_is_there(tracker_key, self.tracker_host, self.tracker_port, seconds=10)

    def __enter__(self) -> LocalRPC:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.terminate()
        self.tracker.terminate()
