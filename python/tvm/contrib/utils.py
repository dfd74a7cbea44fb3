"""Temporary folders, locks on files, and programs of the system."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import weakref
from pathlib import Path

__all__ = ["FileLock", "TempDirectory", "filelock", "tempdir", "which"]


class TempDirectory:
    """A folder that is removed with everything in it when nobody refers to this object any more.

    Parameters
    ----------
    custom_path : the folder to make, instead of one with a new name; its parents must exist.
    keep_for_debug : leave the folder there, until `remove` is called.
    """

    def __init__(
        self, custom_path: str | Path | None = None, keep_for_debug: bool | None = None
    ) -> None:
        if custom_path is None:
            self.temp_dir = tempfile.mkdtemp()
        else:
            Path(custom_path).mkdir()
            self.temp_dir = str(custom_path)
        if not keep_for_debug:
            weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> str:
        """The folder's path."""
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """Path of a file of that name in the folder; the file need not exist."""
        return str(Path(self.temp_dir, name))

    def listdir(self) -> list[str]:
        """Names of the files in the folder, sorted."""
        return sorted(entry.name for entry in Path(self.temp_dir).iterdir())

    def remove(self) -> None:
        """Remove the folder now."""
        shutil.rmtree(self.temp_dir, ignore_errors=True)

    def __truediv__(self, name: str) -> Path:
        return Path(self.temp_dir) / name

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *unused: object) -> None:
        self.remove()


class FileLock:
    """Exclusive use of a file between processes, until `release`.

    Parameters
    ----------
    path : a file, which is made if there is none and stays.
    """

    def __init__(self, path: str | Path) -> None:
        self.lock_file = Path(path).open("a")  # noqa: SIM115 - release() closes it
        fcntl.flock(self.lock_file, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let others in; nothing to do a second time."""
        self.lock_file.close()

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *unused: object) -> None:
        self.release()


def filelock(path: str | Path) -> FileLock:
    """A lock on a file, which this call waits for."""
    return FileLock(path)


def which(exec_name: str) -> str | None:
    """Where the program of a name is, looking through the folders of PATH; None if nowhere."""
    return shutil.which(exec_name)


def tempdir(
    custom_path: str | Path | None = None, keep_for_debug: bool | None = None
) -> TempDirectory:
    """A new temporary folder; see `TempDirectory`."""
    return TempDirectory(custom_path, keep_for_debug)
