"""A proxy in a process of its own."""

from __future__ import annotations

from pathlib import Path

from .program import Program, common_options
from .tls import TLS

__all__ = ["Proxy"]


class Proxy:
    """Brings clients to servers that come to it, until `terminate` or the end of this object.

    Parameters
    ----------
    host : address to listen on; any but this machine's own takes a secret.
    port, port_end : the first free port from `port` to below `port_end`.
    timeout_client : seconds that a client waits for a server.
    tracker_addr : host and port of a tracker to register the servers with.
    silent : the proxy's log is not shown.
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
        port: int = 9091,
        port_end: int = 9199,
        timeout_client: float = 600,
        tracker_addr: tuple[str, int] | None = None,
        silent: bool = False,
        *,
        secret_file: str | Path | None = None,
        tls: TLS | None = None,
    ) -> None:
        self.host = host
        options = [*common_options(secret_file, tls), "--host", host]
        options += ["--port", str(port), "--port-end", str(port_end)]
        options += ["--timeout-client", str(timeout_client)]
        if tracker_addr is not None:
            options += ["--tracker", f"{tracker_addr[0]}:{tracker_addr[1]}"]
        self._program = Program("rpc_proxy", options, silent)
        self.proc = self._program.proc
        self.port: int = self._program.port

    def terminate(self) -> None:
        """End the proxy and the sessions that go through it."""
        self._program.terminate()
