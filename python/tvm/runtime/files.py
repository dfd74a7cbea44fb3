"""Files that survive whatever happens to the process that writes them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["FolderLock", "append_lines", "read_json", "remove_partials", "write_atomically"]

_LOCK_NAME = ".lock"
_PARTIAL_PREFIX = ".partial."


def write_atomically(
    path: str | os.PathLike[str], content: str | bytes | Callable[[Path], object]
) -> None:
    """Replace a file at once: readers see the old or the new content, never a part.

    Parameters
    ----------
    path : the file; its folder must exist.
    content : text, bytes, or a function that writes the file whose path it is given, which ends as
        `path` does.

    Raises
    ------
    OSError : it cannot be written; the old content is still there.
    """
    path = Path(path)
    # The end stays, because some writers choose the format by it.
    partial = path.with_name(f"{_PARTIAL_PREFIX}{path.name}")
    try:
        if callable(content):
            content(partial)
        else:
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        # Nobody asked for the partial file, and a write that fails names none.
        if isinstance(error, OSError) and error.filename in (None, str(partial), partial):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def remove_partials(folder: str | os.PathLike[str]) -> None:
    """Remove what a process left of files that it was writing when it was killed.

    To be called by who holds the folder, see `FolderLock`.
    """
    for partial in Path(folder).glob(f"{_PARTIAL_PREFIX}*"):
        with contextlib.suppress(OSError):
            partial.unlink()


def append_lines(path: str | os.PathLike[str], lines: Sequence[str]) -> None:
    """Append lines; they are with the operating system when the call returns.

    A line that another process left torn is ended first, so that the new ones are not lost with it.

    Raises
    ------
    OSError : they cannot be written; then none of them is in the file.
    """
    with open(path, "ab+", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        torn = False
        if before > 0:
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
        data = (("\n" if torn else "") + "".join(f"{line}\n" for line in lines)).encode()
        try:
            while data:
                data = data[file.write(data) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(before)
            raise OSError(error.errno, f"cannot append: {error.strerror}", str(path)) from error


def check_appendable(path: str | os.PathLike[str]) -> None:
    """Find out before the work whether its results can be appended to a file; none is made.

    Raises
    ------
    OSError : its folder does not exist, it is a folder itself, or it may not be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"{path}: there is no folder {path.parent}; make it, or name a file elsewhere"
        )
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"{path} may not be written; change its mode, or name another file")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file.

    Raises
    ------
    ValueError : it is not JSON; the message names file, line and column.
    """
    try:
        return json.loads(Path(path).read_bytes())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: column {error.colno}: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error


class FolderLock:
    """Holds a folder for this process, as a context manager; a process that ends lets go of it.

    Parameters
    ----------
    wait : until another process has let go of the folder, instead of raising.

    Raises
    ------
    BlockingIOError : another process holds the folder; the message names it.
    OSError : the folder cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], wait: bool = False) -> None:
        path = Path(folder) / _LOCK_NAME
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise BlockingIOError(
                errno.EWOULDBLOCK,
                f"in use by process {holder}: wait for it, or take another folder",
                str(folder),
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let go; more than once does no harm."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> FolderLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
