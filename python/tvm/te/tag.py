"""A tag for all operations made in a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["current_tag", "tag_scope"]

_SCOPE: ContextVar[str] = ContextVar("te.tag_scope", default="")


@contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Operations that are made inside and give no tag of their own get this one.

    Also a decorator of a function that makes operations.

    Raises
    ------
    ValueError : on entry, another scope is active; when an operation is made, it has its own tag.

    Examples
    --------
    >>> from tvm import te
    >>> A = te.placeholder((4,))
    >>> with te.tag_scope("elemwise"):
    ...     B = te.compute((4,), lambda i: A[i] + 1.0)
    >>> print(B.op.tag)
    elemwise
    """
    if _SCOPE.get():
        raise ValueError(f"tag_scope {tag!r}: inside of tag_scope {_SCOPE.get()!r}; end it first")
    token = _SCOPE.set(tag)
    try:
        yield
    finally:
        _SCOPE.reset(token)


def current_tag(own: str, where: str) -> str:
    """The tag of a new operation that was given `own`."""
    scope = _SCOPE.get()
    if own and scope:
        raise ValueError(f"{where}: tag {own!r} inside of tag_scope {scope!r}; give only one")
    return own or scope
