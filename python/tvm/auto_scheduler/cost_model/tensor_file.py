"""Files of tensors and plain values, which may come from anywhere."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import torch

__all__ = ["load_tensors"]


def load_tensors(path: str | os.PathLike[str]) -> Any:
    """What `torch.save` wrote, on the processor: tensors, numbers, texts and containers of them.

    Nothing else is made of what the file says, and nothing of it is executed.

    Raises
    ------
    FileNotFoundError, IsADirectoryError : there is no such file.
    ValueError : it is damaged, or holds other objects.
    """
    # What is no file at all has an error of its own.
    with Path(path).open("rb"):
        pass
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
