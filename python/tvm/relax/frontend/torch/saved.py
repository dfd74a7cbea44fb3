"""Programs and modules that PyTorch saved."""

from __future__ import annotations

import os
import warnings

import torch

from .export import quiet

__all__ = ["load_exported", "load_scripted"]


def load_exported(path: str | os.PathLike[str]) -> torch.export.ExportedProgram:
    """A program of ``torch.export.save``.

    Raises
    ------
    ValueError : the file is damaged or something else.
    """
    try:
        with quiet():
            return torch.export.load(path)
    except Exception as error:
        # The archive may fail in zip, JSON or pickle code; each has errors of its own.
        raise ValueError(f"{path} is no program saved by torch.export.save: {error}") from error


def load_scripted(path: str | os.PathLike[str]) -> torch.jit.ScriptModule:
    """A traced or scripted module of ``torch.jit.save``, in eval mode.

    Raises
    ------
    ValueError : the file is damaged or something else, such as weights alone.
    """
    try:
        with warnings.catch_warnings():
            # There are many such files, and torch.export cannot read them.
            warnings.simplefilter("ignore", FutureWarning)
            return torch.jit.load(path, map_location="cpu").eval()
    except RuntimeError as error:
        first = str(error).strip().splitlines()[0].split(". ")[0]
        raise ValueError(f"{path} is no module saved by torch.jit.save ({first})") from error
