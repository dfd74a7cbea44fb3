"""A server in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .program import Program, common_options
from .tls import TLS

__all__ = ["Server"]


class Server:
    """Serves sessions, each in a process of its own, until `terminate` or the end of this object.

    Parameters
    ----------
    host : address to listen on; any but this machine's own takes a secret.
    port, port_end : the first free port from `port` to below `port_end`.
    is_proxy : `host` and `port` are those of a proxy, at which the server waits for clients. The
        proxy registers it with the tracker.
    tracker_addr : host and port of a tracker, through which clients then come.
    key : kind of device that clients ask for.
    load_library : libraries to load first, paths with ":" between.
    custom_addr : address that the tracker tells clients.
    silent : the server's log is not shown.
    no_fork, reuse_addr : taken for the sake of programs written for TVM, and without effect: the
        server touches no device before its sessions, which are processes, and the port can be used
        again at once.
    server_init_callback : function of a module that the server can import, called first; such as
        one that registers functions.
    timeout : seconds that a session may last at most.
    allow : names of registered functions that clients may call besides those that measuring needs;
        a "*" at the end stands for any.
    open : let clients call every registered function.
    max_sessions : sessions at a time; further clients wait.
    work_dir : folder for the sessions' files; a temporary one if left out.
    secret_file : file of the secret that both ends know; the environment's if left out.
    tls : certificates, to be reached by TLS only.

    Attributes
    ----------
    host, port : where it is. proc : the process.

    Raises
    ------
    RPCError : it cannot listen there, or does not start. ValueError : options that do not fit.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        is_proxy: bool = False,
        tracker_addr: tuple[str, int] | None = None,
        key: str = "",
        load_library: str | None = None,
        custom_addr: str | None = None,
        silent: bool = False,
        no_fork: bool = False,
        server_init_callback: Callable[[], Any] | str | None = None,
        reuse_addr: bool = True,
        timeout: float | None = None,
        *,
        allow: Sequence[str] = (),
        open: bool = False,
        max_sessions: int = 1,
        work_dir: str | Path | None = None,
        secret_file: str | Path | None = None,
        tls: TLS | None = None,
    ) -> None:
        self.host, self.libs, self.custom_addr = host, [], custom_addr
        options = [*common_options(secret_file, tls), "--key", key]
        if is_proxy:
            options += ["--proxy", f"{host}:{port}"]
        else:
            options += ["--host", host, "--port", str(port), "--port-end", str(port_end)]
            if tracker_addr is not None:
                options += ["--tracker", f"{tracker_addr[0]}:{tracker_addr[1]}"]
        if custom_addr:
            options += ["--custom-addr", custom_addr]
        for library in (load_library or "").split(":"):
            if library:
                self.libs.append(library)
                options += ["--load-library", library]
        if server_init_callback is not None:
            options += ["--init", _name_of(server_init_callback)]
        if timeout is not None:
            options += ["--session-timeout", str(timeout)]
        for name in allow:
            options += ["--allow", name]
        options += ["--open"] if open else []
        options += ["--max-sessions", str(max_sessions)]
        options += [] if work_dir is None else ["--work-dir", str(work_dir)]
        self._program = Program("rpc_server", options, silent)
        self.proc = self._program.proc
        self.port: int = self._program.port

    def terminate(self) -> None:
        """End the server and its sessions."""
        self._program.terminate()


def _name_of(function: Callable[[], Any] | str) -> str:
    """``module:name`` of a function, which the server imports: nothing is pickled."""
    if isinstance(function, str):
        return function
    module = getattr(function, "__module__", "__main__")
    name = getattr(function, "__qualname__", "<unnamed>")
    if module == "__main__" or "<" in name:
        raise ValueError(
            f"Server: server_init_callback is a function of a module that the server can import, "
            f"or 'module:name'; {name} of {module} is neither"
        )
    return f"{module}:{name}"
