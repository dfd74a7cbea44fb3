"""Object files in an archive, to be linked where they are loaded."""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["tar", "untar"]


def tar(output: str | Path, files: Sequence[str | Path]) -> None:
    """Pack files into an archive, each under its name without folders.

    Raises
    ------
    ValueError : two files have one name.
    """
    names = [Path(file).name for file in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"tar: {', '.join(twice)} would be in {output} twice; rename one")
    with tarfile.open(output, "w") as archive:
        for file, name in zip(files, names):
            archive.add(file, arcname=name)


def untar(tar_file: str | Path, directory: str | Path) -> list[Path]:
    """Unpack an archive into a folder; returns the paths of its files, sorted.

    Raises
    ------
    ValueError : the file is no archive, or would write outside of the folder.
    """
    try:
        with tarfile.open(tar_file) as archive:
            members = archive.getmembers()
            for member in members:
                target = Path(directory, member.name).resolve()
                if not member.isfile() or Path(directory).resolve() not in target.parents:
                    raise ValueError(f"untar: {tar_file} has the entry {member.name}; not a file")
            archive.extractall(directory)
    except tarfile.TarError as error:
        raise ValueError(f"untar: {tar_file} is no archive: {error}") from error
    return sorted(Path(directory, member.name) for member in members)
