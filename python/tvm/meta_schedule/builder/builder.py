"""Compiling candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from tvm.ir import IRModule
from tvm.target import Target

from ..utils import Named

__all__ = ["Builder", "BuilderInput", "BuilderResult", "PyBuilder"]


class BuilderInput:
    """A module to compile: `mod`, `target`, and `params`, constant arrays by name."""

    def __init__(
        self, mod: IRModule, target: Target, params: Mapping[str, Any] | None = None
    ) -> None:
        self.mod = mod
        self.target = target
        self.params = None if params is None else dict(params)


class BuilderResult:
    """The library that was made, `artifact_path`, or why there is none, `error_msg`."""

    def __init__(self, artifact_path: str | None, error_msg: str | None) -> None:
        self.artifact_path = artifact_path
        self.error_msg = error_msg


class Builder(Named):
    """Base of builders, which define `build`."""

    # The function `create` of the package, which knows the kinds.
    create: ClassVar[Callable[..., Any]]

    def prepare(self) -> None:
        """Get ready, without waiting for it, while the first candidates are looked for."""

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """One result an input, failures included."""
        raise TypeError(f"{type(self).__name__} does not define build")


class PyBuilder(Builder):
    """Base of builders that users define."""
