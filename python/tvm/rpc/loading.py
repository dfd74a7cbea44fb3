"""Modules from uploaded files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tvm.contrib.tar import untar
from tvm.runtime.linker import create_shared
from tvm.runtime.module import load_module

__all__ = ["link_archive", "load_uploaded"]


def load_uploaded(path: str) -> Any:
    """The module of a file; objects and archives of them are linked first."""
    return load_module(path)


def link_archive(path: str) -> str:
    """Link an object file or an archive of them; path of the library beside it."""
    library = f"{path}.so"
    if Path(path).suffix != ".tar":
        create_shared(library, [path])
        return library
    with tempfile.TemporaryDirectory() as folder:
        create_shared(library, untar(path, folder))
    return library
