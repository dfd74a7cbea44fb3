"""The search spaces that targets register."""

from __future__ import annotations

from . import _ffi_api

__all__ = ["search_spaces"]


def search_spaces() -> list[tuple[str, str]]:
    """All search spaces as (name, target key), sorted: ``("ansor", "cpu")``, ...

    A target has the spaces of all its keys. Which one a tuner searches is its parameter
    `search_space`.
    """
    return [(str(name), str(key)) for name, key in _ffi_api.SearchSpaces()]
