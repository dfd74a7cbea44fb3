"""A tracker in a process of its own."""

from __future__ import annotations

from pathlib import Path

from .program import Program, common_options
from .tls import TLS

__all__ = ["Tracker"]


class Tracker:
    """Gives servers to clients until `terminate` or the end of this object.

    Parameters
    ----------
    host : address to listen on; any but this machine's own takes a secret.
    port, port_end : the first free port from `port` to below `port_end`.
    silent : the tracker's log is not shown.
    secret_file : file of the secret that all know; the environment's if left out.
    tls : certificates, to be reached by TLS only.

    Attributes
    ----------
    host, port : where it is. proc : the process.

    Raises
    ------
    RPCError : it cannot listen there, or does not start.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        *,
        secret_file: str | Path | None = None,
        tls: TLS | None = None,
    ) -> None:
        self.host = host
        options = [*common_options(secret_file, tls), "--host", host]
        options += ["--port", str(port), "--port-end", str(port_end)]
        self._program = Program("rpc_tracker", options, silent)
        self.proc = self._program.proc
        self.port: int = self._program.port

    def terminate(self) -> None:
        """End the tracker; sessions go on, and servers come back to the next one."""
        self._program.terminate()
