"""The builder of programs: frames that are open while their contents are added."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import tvm._ffi
from tvm import error

__all__ = ["IRBuilder", "IRBuilderFrame"]

F = TypeVar("F", bound="IRBuilderFrame")

_name_fresh = tvm._ffi.get_global_func("script.ir_builder.Name")


class _Active(threading.local):
    def __init__(self) -> None:
        self.builders: list[IRBuilder] = []


_active = _Active()


class IRBuilderFrame:
    """A part of a program under way; a ``with`` opens it and puts the finished part in its place.

    Frames that reach to the end of the frame around are entered without a ``with``: they leave
    their end to that frame's callbacks.
    """

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []

    def __enter__(self) -> Any:
        IRBuilder.current().frames.append(self)
        return self.opened()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        frames = IRBuilder.current().frames
        if kind is not None:
            del frames[frames.index(self) :]
            return
        while self._callbacks:
            self._callbacks.pop()()
        frames.pop()
        self.closed()

    def opened(self) -> Any:
        """What the name after ``as`` stands for."""
        return None

    def closed(self) -> None:
        """Put what the frame describes into the frame around."""

    def rename(self, value: Any, name: str) -> bool:
        """Give a value of this frame its name, if the frame keeps names; whether it does."""
        return False

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call something before the frame ends; the last one added comes first."""
        self._callbacks.append(callback)

    def enter_to_end(self) -> Any:
        """Open the frame here, to end with the frame around."""
        around = IRBuilder.current().frames
        if not around:
            raise error.ValueError(
                "a statement that reaches to the end of its block stands in one; use `with`"
            )
        around[-1].add_callback(lambda: self.__exit__(None, None, None))
        return self.__enter__()


class IRBuilder:
    """Collects a program from calls of ``tvm.script.ir_builder.tir`` and its kin.

    >>> from tvm.script.ir_builder import IRBuilder, tir as T
    >>> with IRBuilder() as builder:
    ...     with T.prim_func():
    ...         T.evaluate(0)
    >>> builder.get()
    """

    def __init__(self) -> None:
        self.frames: list[IRBuilderFrame] = []
        self.result: Any = None
        # What indexing the name of an allocation reads: buffers by the pointer.
        self.memory_views: dict[Any, Any] = {}

    def __enter__(self) -> IRBuilder:
        if self.frames or self.result is not None:
            raise error.ValueError("IRBuilder: a builder makes one program; make another builder")
        _active.builders.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _active.builders.pop()

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder that is open on this thread.

        Raises
        ------
        ValueError : there is none.
        """
        if not _active.builders:
            raise error.ValueError(
                "no program is being built here; open `with IRBuilder():` around"
            )
        return _active.builders[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open on this thread."""
        return bool(_active.builders)

    def find(self, kind: type[F]) -> F | None:
        """The innermost open frame of a class."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        return None

    def get(self) -> Any:
        """The program.

        Raises
        ------
        ValueError : nothing was built.
        """
        if self.result is None:
            raise error.ValueError("IRBuilder: nothing was built so far")
        return self.result

    @staticmethod
    def name(name: str, value: Any) -> Any:
        """Give a name to what was just made; what has a name keeps it.

        Parameters
        ----------
        value : a variable, buffer or axis, or a sequence of them, numbered from 0.
        """
        if isinstance(value, list | tuple):
            for position, item in enumerate(value):
                IRBuilder.name(f"{name}_{position}", item)
        elif isinstance(value, tvm.runtime.Object):
            frames = IRBuilder.current().frames if IRBuilder.is_in_scope() else []
            if not any(frame.rename(value, name) for frame in reversed(frames)):
                _name_fresh(value, name)
        return value

    @staticmethod
    def name_many(names: list[str], values: list[Any]) -> list[Any]:
        """Give each of several values its name."""
        if len(names) != len(values):
            raise error.ValueError(f"{len(names)} names for {len(values)} values")
        return [IRBuilder.name(name, value) for name, value in zip(names, values)]
