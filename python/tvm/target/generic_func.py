"""Functions that have a version for each family of targets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import PackedFunc

from .target import Target

__all__ = [
    "GenericFunc",
    "generic_func",
    "get_native_generic_func",
    "override_native_generic_func",
]


class GenericFunc:
    """A function with versions by the keys of targets; the present target's first key decides.

    Without a target, or one whose keys have no version, the default is called.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._default: Callable[..., Any] | None = None
        self._by_key: dict[str, Callable[..., Any]] = {}

    def set_default(self, func: Callable[..., Any], allow_override: bool = False) -> GenericFunc:
        """The version for all other targets.

        Raises
        ------
        ValueError : there is one, and `allow_override` is not given.
        """
        if self._default is not None and not allow_override:
            raise ValueError(f"{self.name}: there is a default; pass allow_override=True")
        self._default = func
        return self

    def register(
        self,
        func: Callable[..., Any],
        key_list: str | Sequence[str],
        allow_override: bool = False,
    ) -> GenericFunc:
        """The version for targets that have one of these keys.

        Raises
        ------
        ValueError : a key has a version, and `allow_override` is not given.
        """
        for key in [key_list] if isinstance(key_list, str) else key_list:
            if key in self._by_key and not allow_override:
                raise ValueError(
                    f'{self.name}: there is a version for "{key}"; pass allow_override=True'
                )
            self._by_key[str(key)] = func
        return self

    def chosen(self) -> Callable[..., Any]:
        """The version for the present target.

        Raises
        ------
        ValueError : there is neither a version nor a default.
        """
        target = Target.current()
        for key in () if target is None else target.keys:
            if str(key) in self._by_key:
                return self._by_key[str(key)]
        if self._default is None:
            known = ", ".join(sorted(self._by_key))
            raise ValueError(f"{self.name}: no version for {target}; there are {known}")
        return self._default

    def get_packed_func(self) -> PackedFunc:
        """The function as one that crosses into C++; it chooses when it is made."""
        return tvm.runtime.convert(self.chosen())

    def __call__(self, *args: Any) -> Any:
        return self.chosen()(*args)


_native: dict[str, GenericFunc] = {}


def get_native_generic_func(name: str) -> GenericFunc:
    """The function of a name, a new one if there is none."""
    return _native.setdefault(name, GenericFunc(name))


def _registering(func: Callable[..., Any], generic: GenericFunc) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any) -> Any:
        return generic(*args)

    def register(
        keys: str | Sequence[str], func: Callable[..., Any] | None = None, override: bool = False
    ) -> Any:
        def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
            generic.register(inner, keys, override)
            return inner

        return decorate if func is None else decorate(func)

    call.fdefault = func  # type: ignore[attr-defined]
    call.register = register  # type: ignore[attr-defined]
    call.generic_func_node = generic  # type: ignore[attr-defined]
    call.get_packed_func = generic.get_packed_func  # type: ignore[attr-defined]
    return call


def generic_func(fdefault: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the default version of a function; ``name.register(keys)`` decorates others.

    >>> @generic_func
    ... def tile(): return 8
    >>> @tile.register(["cuda", "gpu"])
    ... def tile_gpu(): return 32
    """
    generic = GenericFunc(fdefault.__name__).set_default(fdefault)
    return _registering(fdefault, generic)


def override_native_generic_func(func_name: str) -> Callable[..., Any]:
    """Decorator: the default version of the function of a name, known to others by it."""

    def decorate(fdefault: Callable[..., Any]) -> Callable[..., Any]:
        generic = get_native_generic_func(func_name)
        generic.set_default(fdefault, allow_override=True)
        return _registering(fdefault, generic)

    return decorate
