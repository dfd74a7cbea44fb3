"""Compiling candidates."""

from typing import Any

from .builder import Builder, BuilderInput, BuilderResult, PyBuilder
from .local_builder import LocalBuilder


def create(kind: str = "local", *args: Any, **kwargs: Any) -> Builder:
    """A builder by name: "local".

    Raises
    ------
    ValueError : another name.
    """
    if kind != "local":
        raise ValueError(f"Builder.create: unknown kind {kind!r}; there is 'local'")
    return LocalBuilder(*args, **kwargs)


Builder.create = staticmethod(create)
