"""Programs of RPC as processes of this one: how they start, and say that they run."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm import error
from tvm.runtime import system_lib_path
from tvm.runtime.exit_status import describe_exit
from tvm.runtime.workers import child_environment

from .tls import TLS

__all__ = ["Program", "common_options", "native_server"]

_STARTUP_SECONDS = 120.0
_END_SECONDS = 5.0


def common_options(secret_file: str | Path | None, tls: TLS | None) -> list[str]:
    """Command line of what all programs take."""
    options = [] if secret_file is None else ["--secret-file", str(secret_file)]
    for name, value in (
        ("--tls-certificate", tls and tls.certificate),
        ("--tls-key", tls and tls.key),
        ("--tls-authority", tls and tls.authority),
    ):
        if value:
            options += [name, str(value)]
    return options


def native_server() -> Path:
    """Path of ``tvm_rpc_server``, the server that needs no Python.

    Raises
    ------
    RPCError : this installation has none.
    """
    library = system_lib_path().resolve()
    places = [library.parent / "tvm_rpc_server", library.parents[1] / "bin" / "tvm_rpc_server"]
    for place in places:
        if place.is_file():
            return place
    listed = ", ".join(map(str, places))
    raise error.RPCError(f"rpc: tvm_rpc_server is in none of {listed}; install the package again")


class Program:
    """``python -m tvm.exec.<name>``, which ends with this object.

    Parameters
    ----------
    options : its command line.
    silent : its log is not shown.

    Attributes
    ----------
    proc : the process. port : where it listens.

    Raises
    ------
    RPCError : it does not start; the message has its last line.
    """

    def __init__(self, name: str, options: Sequence[str], silent: bool) -> None:
        self._name = name
        read, write = os.pipe()
        try:
            self.proc = subprocess.Popen(
                [
                    *(sys.executable, "-m", f"tvm.exec.{name}", *options),
                    *("--ready-fd", str(write), "--parent", str(os.getpid())),
                ],
                pass_fds=[write],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if silent else None,
                stderr=subprocess.DEVNULL if silent else None,
                env=child_environment(),
            )
        finally:
            os.close(write)
        with os.fdopen(read, "rb") as stream:
            ready = self._wait_for(stream)
        if "error" in ready:
            self.proc.wait()
            raise error.RPCError(str(ready["error"]))
        self.port: int = ready["port"]

    def _wait_for(self, stream: Any) -> dict[str, Any]:
        deadline = time.monotonic() + _STARTUP_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while not selector.select(max(0.0, deadline - time.monotonic())):
                if time.monotonic() > deadline:
                    self.proc.kill()
                    self.proc.wait()
                    raise error.RPCError(f"{self._name}: not ready after {_STARTUP_SECONDS:g} s")
        line = stream.readline()
        if not line:
            how = describe_exit(self.proc.wait())
            raise error.RPCError(f"{self._name}: the process {how} before it was ready")
        ready: dict[str, Any] = json.loads(line)
        return ready

    def terminate(self) -> None:
        """End the process and its sessions."""
        if self.proc.poll() is not None:
            return
        self.proc.terminate()
        try:
            self.proc.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()

    def __del__(self) -> None:
        if hasattr(self, "proc"):
            self.terminate()
