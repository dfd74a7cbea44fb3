"""What the names of the dialects are to Python itself, which evaluates annotations."""

from __future__ import annotations

from typing import Any

from tvm import error

__all__ = ["Annotation", "construct"]


class Annotation:
    """The type of a parameter; Python evaluates it, the meaning is read from the text."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Annotation:
        return self

    def __getitem__(self, item: Any) -> Annotation:
        return self

    def __repr__(self) -> str:
        return self._name


def construct(name: str) -> Any:
    """A construct of the bodies of functions, which Python never runs."""

    def outside(*args: Any, **kwargs: Any) -> Any:
        raise error.TypeError(
            f"{name} is read from the text of a function under a decorator of tvm.script; it does "
            "nothing when Python runs it"
        )

    outside.__name__ = outside.__qualname__ = name
    return outside
