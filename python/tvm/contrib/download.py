"""Files from the network, kept where the next run finds them."""

from __future__ import annotations

import functools
import os
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tqdm.auto import tqdm

from tvm.runtime.files import write_atomically

__all__ = ["TEST_DATA_ROOT_PATH", "download", "download_testdata"]

TEST_DATA_ROOT_PATH = Path(
    os.environ.get("TEST_DATA_ROOT_PATH", Path.home() / ".tvm_test_data")
).expanduser()
"""Folder of `download_testdata`; the environment variable of the same name sets another."""

_SCHEMES = ("http", "https", "file")
_SECONDS = 60.0
_CHUNK = 1 << 20


def download(
    url: str,
    path: str | Path,
    overwrite: bool = False,
    size_compare: bool = False,
    retries: int = 3,
) -> None:
    """Fetch a file, unless it is there.

    It appears under its name only when it is whole.

    Parameters
    ----------
    url : of one of the schemes http, https, file.
    path : where the file is to be; its folder is made.
    overwrite : fetch even though there is one.
    size_compare : fetch if the one there has another size than the one at the address.
    retries : how often to try again after a failure.

    Raises
    ------
    ValueError : another scheme.
    OSError : the address cannot be read, or the file not written; the message names both.
    """
    path = Path(path)
    scheme = url.partition(":")[0].lower()
    if scheme not in _SCHEMES:
        raise ValueError(
            f"download: the address {url!r} has none of the schemes {', '.join(_SCHEMES)}"
        )
    there = path.is_file() and not overwrite
    if there and (not size_compare or _size_at(url) in (None, path.stat().st_size)):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(retries + 1):
        try:
            write_atomically(path, functools.partial(_fetch, url, path.name))
            return
        except OSError as error:
            if attempt == retries:
                raise OSError(f"download: {url} cannot be fetched to {path}: {error}") from error


def download_testdata(
    url: str,
    relpath: str,
    module: str | Sequence[str] | None = None,
    overwrite: bool = False,
) -> str:
    """Fetch a file into a folder of `TEST_DATA_ROOT_PATH`, unless it is there; its path.

    Parameters
    ----------
    relpath : name of the file.
    module : the folder, or folders inside one another.

    Raises
    ------
    ValueError, OSError : as `download`; ValueError also for a path outside of the folder.
    """
    folders = [module] if isinstance(module, str) else list(module or ())
    root = TEST_DATA_ROOT_PATH.resolve()
    path = root.joinpath(*folders, relpath).resolve()
    if root not in path.parents:
        raise ValueError(f"download_testdata: {path} is outside of {root}")
    download(url, path, overwrite, size_compare=False)
    return str(path)


def _fetch(url: str, name: str, to: Path) -> None:
    with urllib.request.urlopen(url, timeout=_SECONDS) as answer, to.open("wb") as file:
        size = int(answer.headers.get("Content-Length") or 0)
        # None: only where standard error is a terminal.
        with tqdm(total=size or None, desc=name, unit="B", unit_scale=True, disable=None) as bar:
            while part := answer.read(_CHUNK):
                file.write(part)
                bar.update(len(part))
        if size and file.tell() != size:
            raise OSError(f"{file.tell()} bytes came instead of {size}")


def _size_at(url: str) -> int | None:
    """Bytes of the file at an address, None if that is not to be learnt."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method="HEAD"), timeout=_SECONDS
        ) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None
