"""The search spaces that targets register."""

from __future__ import annotations

from tvm.target import Target

from . import _ffi_api

__all__ = [
    "feature_names",
    "feature_version",
    "learned_feature_names",
    "search_spaces",
    "space_key",
]


def search_spaces() -> list[tuple[str, str]]:
    """All search spaces as (name, target key), sorted: ``("ansor", "cpu")``, ...

    A target has the spaces of all its keys. Which one a tuner searches is its parameter
    `search_space`.
    """
    return [(str(name), str(key)) for name, key in _ffi_api.SearchSpaces()]


def feature_names(target: str | Target, search_space: str = "felix") -> list[str]:
    """Columns of the features that a space extracts from lowered programs, in order.

    Raises
    ------
    ValueError : the target has no space of this name.
    """
    target = Target(target) if isinstance(target, str) else target
    return [str(name) for name in _ffi_api.FeatureNames(target, search_space)]


def learned_feature_names(target: str | Target, search_space: str = "felix") -> list[str]:
    """The first ones of `feature_names`, from which cost models learn.

    The others are for the bound of the machine alone (`tvm.felix.bound`).

    Raises
    ------
    ValueError : the target has no space of this name.
    """
    target = Target(target) if isinstance(target, str) else target
    count = int(_ffi_api.NumLearnedFeatures(target, search_space))
    return feature_names(target, search_space)[:count]


def feature_version() -> int:
    """Counts how often columns of `feature_names` came to mean something else under their names."""
    return int(_ffi_api.LoopFeatureVersion())


def space_key(target: Target, search_space: str) -> str:
    """The key of the target that its space of this name is registered for, such as "cpu".

    Raises
    ------
    ValueError : the target has no space of this name.
    """
    return str(_ffi_api.SearchSpaceKey(target, search_space))
