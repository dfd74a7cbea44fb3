"""What the programs of RPC share: keys, the secret, and addresses."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Container
from pathlib import Path

from tvm import error
from tvm.runtime.device import RPC_SESS_MASK

__all__ = [
    "RPC_SESS_MASK",
    "load_secret",
    "parse_address",
    "random_key",
    "split_random_key",
]

# Below this a secret can be guessed from one recorded connection.
_LEAST_SECRET_BYTES = 16


def random_key(prefix: str, cmap: Container[str] | None = None) -> str:
    """A name that nobody guesses, for one assignment of a device of the kind `prefix`.

    Parameters
    ----------
    cmap : names that are taken.
    """
    while True:
        key = f"{prefix}:{secrets.token_hex(16)}"
        if cmap is None or key not in cmap:
            return key


def split_random_key(key: str) -> tuple[str, str]:
    """The kind of device that a key of `random_key` is for, and its random part."""
    prefix, _, suffix = key.rpartition(":")
    return prefix, suffix


def load_secret(secret_file: str | Path | None = None) -> str:
    """The secret that both ends of a connection know; empty if there is none.

    It is in the file given, else in that of the environment's ``TVM_RPC_SECRET_FILE``, else in
    ``TVM_RPC_SECRET`` itself.

    Raises
    ------
    RPCError : the file cannot be read, others may read it, or the secret is too short.
    """
    name = secret_file or os.environ.get("TVM_RPC_SECRET_FILE")
    if name:
        path = Path(name)
        if path.is_dir():
            raise error.RPCError(f"rpc: {path} is a folder; name the file in it with the secret")
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise error.RPCError(
                    f"rpc: others may read the secret in {path}; run chmod 600 {path}"
                )
            text = path.read_text().strip()
        except OSError as reason:
            raise error.RPCError(f"rpc: the secret's file cannot be read: {reason}") from None
        except UnicodeDecodeError:
            raise error.RPCError(
                f"rpc: the secret in {path} is no text; put that of `openssl rand -hex 32` there"
            ) from None
    else:
        text = os.environ.get("TVM_RPC_SECRET", "").strip()
        if not text:
            return ""
    if len(text.encode()) < _LEAST_SECRET_BYTES:
        raise error.RPCError(
            f"rpc: the secret has {len(text.encode())} bytes; take at least {_LEAST_SECRET_BYTES}, "
            "such as those of `openssl rand -hex 32`"
        )
    return text


def parse_address(text: str, what: str) -> tuple[str, int]:
    """Host and port of ``host:port``.

    Raises
    ------
    ValueError : it has another form; `what` names it in the message.
    """
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{what}: expected HOST:PORT, got {text!r}")
    return host.strip("[]"), int(port)
