"""Files of tensors and plain values, which may come from anywhere."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch

__all__ = ["load_tensors"]


def load_tensors(path: str | os.PathLike[str], checksums: bool = False) -> Any:
    """What `torch.save` wrote, on the processor: tensors, numbers, texts and containers of them.

    Nothing else is made of what the file says, and nothing of it is executed.

    Parameters
    ----------
    checksums : compare the content with the checksums beside it, which torch writes unless told
        otherwise (`torch.serialization.set_crc32_options`) and does not look at.

    Raises
    ------
    FileNotFoundError, IsADirectoryError : there is no such file.
    ValueError : it is damaged, or holds other objects.
    """
    # What is no file at all has an error of its own.
    with Path(path).open("rb"):
        pass
    if checksums and _differs_from_checksums(path):
        raise ValueError(f"{path} is damaged: its checksums do not match")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:
        # Torch's text names no file, and ends with advice to read it without its safety.
        raise ValueError(
            f"{path}: no file of tensors and plain values: damaged, of another kind, or with "
            "objects that would have to be executed"
        ) from error


def _differs_from_checksums(path: str | os.PathLike[str]) -> bool:
    """Whether an archive that can be opened has other content than was written into it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is not None
    except zipfile.BadZipFile:
        return False  # no archive: torch says what it is
    except (NotImplementedError, RuntimeError, EOFError, ValueError, zlib.error):
        return True
