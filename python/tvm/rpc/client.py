"""Sessions with servers, and asking trackers for them."""

from __future__ import annotations

import logging
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tvm._ffi
from tvm import error
from tvm.runtime import Device, Module, Object

from . import _ffi_api
from .base import load_secret
from .connection import open_connection, receive_message, send_message
from .loading import link_archive, load_uploaded
from .tls import TLS

__all__ = [
    "LocalSession",
    "PopenSession",
    "RPCObjectRef",
    "RPCSession",
    "TrackerSession",
    "connect",
    "connect_tracker",
    "device_is_there",
]

Result = TypeVar("Result")
_LOG = logging.getLogger("tvm.rpc")
# Until a server is reached and lets one in.
CONNECT_SECONDS = 60.0
# A request that waits longer says what it waits for.
_NOTICE_SECONDS = 5.0
_POLL_SECONDS = 0.05


@tvm._ffi.register_func("rpc.HandleSignals")
def _handle_signals() -> None:
    """Called when a signal interrupts a wait: running it lets Python raise KeyboardInterrupt."""


@tvm._ffi.register_object("rpc.Session")
class _Session(Object):
    """The session in C++."""


@tvm._ffi.register_object("rpc.RemoteModule")
class RemoteModule(Module):
    """A module of another process. Its functions run there, and are timed there."""

    def _preprocess_function(self, given: str | Callable[..., Any]) -> Any:
        # By its name it is called there, before each repeat, without a message.
        if not isinstance(given, str):
            return given
        return _ffi_api.GetFunction(_ffi_api.SessionOf(self), given) if given else None

    def import_module(self, module: Module) -> None:
        """Add a module of the same session; raises as that of Module."""
        _ffi_api.GetFunction(_ffi_api.SessionOf(self), "runtime.ModuleImport")(self, module)


@tvm._ffi.register_object("runtime.RPCObjectRef")
class RPCObjectRef(Object):
    """An object of another process, to be passed back to functions there."""

    @property
    def type_key(self) -> str:
        return "runtime.RPCObjectRef"

    def __repr__(self) -> str:
        return f"RPCObjectRef({_ffi_api.ObjectKind(self)})"


class RemoteDevice(Device):
    """A device of a session, which stays open as long as this is held."""

    __slots__ = ("_rpc_sess",)

    def __init__(self, session: RPCSession, masked: Device) -> None:
        super().__init__(masked.device_type, masked.device_id)
        object.__setattr__(self, "_rpc_sess", session)


class RPCSession:
    """What a server lets one do. Get one from `connect` or `TrackerSession.request`.

    The session ends when nothing of it is held any more, with `close`, or at the end of a ``with``.
    Every method raises `RPCError` if the session has ended, and what the other end raises.

    Parameters
    ----------
    sess : the session in C++.
    log : write a line for each function and module asked for.
    """

    def __init__(self, sess: Any, log: bool = False) -> None:
        self._sess = sess
        self._log = log
        self._remote_funcs: dict[str, Any] = {}

    def __enter__(self) -> RPCSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "ended" if _ffi_api.IsClosed(self._sess) else "open"
        return f"RPCSession({_ffi_api.Peer(self._sess)}, {state})"

    def close(self) -> None:
        """End the session; what it holds at the other end is dropped."""
        _ffi_api.Close(self._sess)

    @property
    def closed(self) -> bool:
        """Whether the session has ended, as far as this end knows."""
        return bool(_ffi_api.IsClosed(self._sess))

    def set_time_limit(self, seconds: float) -> None:
        """Let a call take this long from now on, 0 for any time; one that takes longer ends the
        session with an RPCSessionTimeoutError."""
        _ffi_api.SetTimeLimit(self._sess, float(seconds))

    # ------------------------------------------------------------ functions

    def get_function(self, name: str) -> Any:
        """A function of the server by its registered name.

        Raises
        ------
        AttributeError : there is none. RPCError : the server does not let it be called.
        """
        if self._log:
            _LOG.info("%s: get_function %s", _ffi_api.Peer(self._sess), name)
        return _ffi_api.GetFunction(self._sess, name)

    def _call(self, name: str, *args: Any) -> Any:
        if name not in self._remote_funcs:
            self._remote_funcs[name] = self.get_function(f"tvm.rpc.server.{name}")
        return self._remote_funcs[name](*args)

    def system_lib(self) -> Any:
        """The functions that are linked into the server, as a module."""
        return self.get_function("runtime.SystemLib")()

    def load_module(self, path: str) -> Any:
        """The module of a file of the session.

        Raises
        ------
        ValueError : there is no such file, or the server cannot load it.
        """
        if self._log:
            _LOG.info("%s: load_module %s", _ffi_api.Peer(self._sess), path)
        return self._call("load_module", path)

    # ------------------------------------------------------------ files

    def upload(self, data: bytes | bytearray | str | Path, target: str | None = None) -> None:
        """Put a file into the session's folder.

        Parameters
        ----------
        data : its bytes, or the path of a file of this machine.
        target : its name; that of the file if left out.

        Raises
        ------
        ValueError : bytes without a name, or a name that leads out of the folder.
        """
        if isinstance(data, (bytes, bytearray)):
            if not target:
                raise ValueError("upload: bytes need a target, the name of the file")
            content = bytes(data)
        else:
            content = Path(data).read_bytes()
            target = target or Path(data).name
        self._call("upload", target, content)

    def download(self, path: str) -> bytearray:
        """The bytes of a file of the session."""
        return bytearray(self._call("download", path))

    def download_linked_module(self, path: str) -> bytearray:
        """The bytes of a shared library, linked by the server from an archive that was uploaded."""
        return bytearray(self._call("download_linked_module", path))

    def remove(self, path: str) -> None:
        """Remove a file of the session, if there is one."""
        self._call("remove", path)

    def listdir(self, path: str = "") -> list[str]:
        """Names of the files in a folder of the session, its own if left out."""
        return [str(name) for name in self._call("listdir", path)]

    # ------------------------------------------------------------ devices

    def device(self, dev_type: int | str, dev_id: int = 0) -> Device:
        """A device of the server, by its kind and number."""
        kind = Device(dev_type, dev_id)
        masked = _ffi_api.DeviceOf(self._sess, kind.device_type, kind.device_id)
        return RemoteDevice(self, masked)

    def cpu(self, dev_id: int = 0) -> Device:
        return self.device("cpu", dev_id)

    def cuda(self, dev_id: int = 0) -> Device:
        return self.device("cuda", dev_id)

    def cl(self, dev_id: int = 0) -> Device:
        return self.device("opencl", dev_id)

    def vulkan(self, dev_id: int = 0) -> Device:
        return self.device("vulkan", dev_id)

    def metal(self, dev_id: int = 0) -> Device:
        return self.device("metal", dev_id)

    def rocm(self, dev_id: int = 0) -> Device:
        return self.device("rocm", dev_id)

    def ext_dev(self, dev_id: int = 0) -> Device:
        return self.device("ext_dev", dev_id)


class LocalSession(RPCSession):
    """A session with this process, for programs that are written for either."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tvm_rpc_")
        super().__init__(_ffi_api.LocalSession(self._folder.name, load_uploaded, link_archive))

    def load_module(self, path: str) -> Any:
        """The module of a file of the session, or under an absolute path of any file of this
        machine, since the session is this process.

        Raises
        ------
        ValueError : there is no such file, or it cannot be loaded.
        """
        if Path(path).is_absolute():
            self.upload(path)
            path = Path(path).name
        return super().load_module(path)


class PopenSession(RPCSession):
    """A session with a program that serves one over its standard input.

    Parameters
    ----------
    binary : path of the program, or its bytes; such as ``tvm_rpc_server``, started with
        ``--session``.

    Raises
    ------
    RPCError : it cannot be started.
    """

    def __init__(self, binary: str | Path | bytes | bytearray) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tvm_rpc_")
        program = Path(self._folder.name, "server")
        if isinstance(binary, (bytes, bytearray)):
            program.write_bytes(binary)
            program.chmod(0o700)
        else:
            program = Path(binary)
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [str(program.absolute()), "--session", self._folder.name], stdin=theirs.fileno()
                )
            except OSError as reason:
                ours.close()
                raise error.RPCError(f"PopenSession: cannot start {program}: {reason}") from None
        super().__init__(_ffi_api.SessionOver(ours.detach(), f"the program {program.name}"))

    def close(self) -> None:
        super().close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __del__(self) -> None:
        if hasattr(self, "_sess"):
            self.close()


def connect(
    url: str,
    port: int,
    key: str = "",
    session_timeout: float = 0,
    session_constructor_args: Sequence[Any] | None = None,
    enable_logging: bool = False,
    *,
    connect_timeout: float = CONNECT_SECONDS,
    secret_file: str | Path | None = None,
    tls: TLS | None = None,
) -> RPCSession:
    """A session with a server, or with a server behind a proxy.

    Parameters
    ----------
    url, port : of the server.
    key : kind of device that it must be; any if empty.
    session_timeout : seconds after which the server ends the session; 0 for never.
    session_constructor_args : ``["rpc.Connect", url, port, key]`` to go on from there to a server
        that only that one can reach.
    enable_logging : write a line for each function and module asked for, to the logger "tvm.rpc".
    connect_timeout : seconds until the server must have been reached and free.
    secret_file : file of the secret that both ends know; the environment's if left out.
    tls : certificates, if the server wants TLS.

    Raises
    ------
    RPCError : the server is not there or refuses. RPCSessionTimeoutError : it is busy.
    """
    session = _ffi_api.Connect(
        url,
        int(port),
        key,
        float(connect_timeout),
        float(session_timeout),
        list(session_constructor_args or ()),
        load_secret(secret_file),
        None if tls is None else tls.in_a_thread(),
    )
    return RPCSession(session, enable_logging)


class TrackerSession:
    """A connection to a tracker, which gives out its servers. Get one from `connect_tracker`."""

    def __init__(
        self,
        addr: tuple[str, int],
        *,
        secret_file: str | Path | None = None,
        tls: TLS | None = None,
    ) -> None:
        self._address = addr
        self._secret_file, self._tls = secret_file, tls
        self._lock = threading.Lock()
        self._connection = self._connect(CONNECT_SECONDS)

    def _connect(self, seconds: float) -> socket.socket:
        secure = None if self._tls is None else self._tls.in_a_thread()
        secret = load_secret(self._secret_file)
        connection, _ = open_connection(*self._address, {"role": "client"}, seconds, secret, secure)
        return connection

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    def _ask(self, message: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        """One question and its answer; over a new connection if the old one broke meanwhile."""
        with self._lock:
            for attempt in range(2):
                try:
                    if attempt:
                        self._connection.close()
                        self._connection = self._connect(
                            CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
                        )
                    self._connection.settimeout(timeout)
                    send_message(self._connection, message)
                    answer = receive_message(self._connection)
                    break
                except TimeoutError:
                    # The answer may still come, and would be taken for another one's.
                    self._connection.close()
                    raise
                except (OSError, EOFError):
                    continue
            else:
                host, port = self._address
                raise error.RPCError(
                    f"rpc: the tracker at {host}:{port} is gone; start it again, servers come back "
                    "by themselves"
                )
        if "error" in answer:
            raise error.RPCError(f"rpc: the tracker refused: {answer['error']}")
        return answer

    def summary(self, timeout: float = CONNECT_SECONDS) -> dict[str, Any]:
        """What the tracker knows, within `timeout` seconds.

        ``queue_info``: for each key how many servers are ``free`` and how many requests are
        ``pending``; ``server_info``: ``key`` and ``addr`` of every server.

        Raises
        ------
        RPCSessionTimeoutError : the tracker stands still. RPCError : it is gone.
        """
        try:
            summary: dict[str, Any] = self._ask({"op": "summary"}, timeout)["summary"]
        except TimeoutError:
            host, port = self._address
            raise error.RPCSessionTimeoutError(
                f"rpc: the tracker at {host}:{port} does not answer within {timeout:g} s; is its "
                "process stopped? start it again, servers come back by themselves"
            ) from None
        return summary

    def text_summary(self) -> str:
        """The summary as two tables."""
        summary = self.summary()
        lines = [f"{'server':<28} key"]
        for server in summary["server_info"]:
            host, port = server["addr"]
            lines.append(f"{f'{host}:{port}':<28} {server['key'].partition(':')[2]}")
        lines += ["", f"{'key':<28} total  free  pending"]
        for key, queue in sorted(summary["queue_info"].items()):
            total = sum(s["key"] == f"server:{key}" for s in summary["server_info"])
            lines.append(f"{key:<28} {total:5d} {queue['free']:5d} {queue['pending']:8d}")
        return "\n".join(lines) + "\n"

    def request(
        self,
        key: str,
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 5,
        session_constructor_args: Sequence[Any] | None = None,
        *,
        request_timeout: float | None = None,
    ) -> RPCSession:
        """A session with a free server, waiting until there is one.

        Parameters
        ----------
        key : kind of device.
        priority : requests of a higher one are served first.
        session_timeout, session_constructor_args : as of `connect`.
        max_retry : servers to try that are gone when they are reached.
        request_timeout : seconds to wait for a server; for ever if left out. After five it is
            logged what is waited for.

        Raises
        ------
        RPCSessionTimeoutError : no server became free in time. RPCError : the tracker is gone, or
            no server that it named could be reached.
        """
        last: BaseException | None = None
        deadline = None if request_timeout is None else time.monotonic() + request_timeout
        for _ in range(max(max_retry, 1)):
            left = None if deadline is None else max(deadline - time.monotonic(), 0.001)
            notice = threading.Timer(_NOTICE_SECONDS, self._say_that_it_waits, [key])
            notice.daemon = True
            notice.start()
            try:
                message = {"op": "request", "key": key, "priority": int(priority)}
                found = self._ask(message, left)
            except TimeoutError:
                raise error.RPCSessionTimeoutError(
                    self._nobody(key, f"became free within {request_timeout:g} s")
                ) from None
            finally:
                notice.cancel()
            try:
                return connect(
                    found["host"],
                    found["port"],
                    found["match"],
                    session_timeout,
                    session_constructor_args,
                    secret_file=self._secret_file,
                    tls=self._tls,
                )
            except error.RPCError as reason:
                last = reason
        raise error.RPCError(
            f"rpc: none of {max_retry} servers that the tracker named for {key!r} could be used; "
            f"the last one: {last}"
        )

    def _say_that_it_waits(self, key: str) -> None:
        # The connection is taken by the question.
        try:
            asking = TrackerSession(self._address, secret_file=self._secret_file, tls=self._tls)
        except error.RPCError:
            return
        text = asking._nobody(key, f"is free for {_NOTICE_SECONDS:g} s")
        asking.close()
        _LOG.warning("%s; going on to wait (request_timeout limits it)", text)

    def _nobody(self, key: str, what: str) -> str:
        text = f"rpc: no server of key {key!r} {what}"
        try:
            servers = self.summary(_NOTICE_SECONDS)["server_info"]
        except error.RPCError:
            return f"{text}; the tracker does not say why: it is gone or stands still"
        same = sum(server["key"] == f"server:{key}" for server in servers)
        if same:
            return f"{text}; {same} of that key are there and busy: wait longer, or raise priority"
        known = ", ".join(sorted({s["key"].partition(":")[2] for s in servers})) or "none"
        host, port = self._address
        return (
            f"{text}; none is registered under it (keys there: {known}); start one with "
            f"python -m tvm.exec.rpc_server --tracker {host}:{port} --key {key}"
        )

    def request_and_run(
        self,
        key: str,
        func: Callable[[RPCSession], Result],
        priority: int = 1,
        session_timeout: float = 0,
        max_retry: int = 2,
    ) -> Result:
        """Call a function with a session, on another server if the session breaks.

        Raises
        ------
        RPCError : it broke `max_retry` times.
        """
        last: BaseException | None = None
        for _ in range(max_retry):
            try:
                session = self.request(key, priority, session_timeout)
                return func(session)
            except error.RPCError as reason:
                last = reason
        raise error.RPCError(f"rpc: {max_retry} sessions on {key!r} broke; the last one: {last}")


def connect_tracker(
    url: str,
    port: int,
    *,
    secret_file: str | Path | None = None,
    tls: TLS | None = None,
) -> TrackerSession:
    """Connect to a tracker.

    Raises
    ------
    RPCError : it is not there or refuses.
    """
    return TrackerSession((url, int(port)), secret_file=secret_file, tls=tls)


def device_is_there(key: str, url: str, port: int, *, seconds: float) -> bool:
    """Whether a tracker has a server of a key, free or not, waiting for the first one to come.

    Raises
    ------
    RPCError : the tracker is not there or refuses.
    """
    tracker = connect_tracker(url, port)
    deadline = time.monotonic() + seconds
    while True:
        names = {server["key"] for server in tracker.summary()["server_info"]}
        if f"server:{key}" in names:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
