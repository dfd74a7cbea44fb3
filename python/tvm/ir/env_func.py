"""Global functions that stand in programs."""

from __future__ import annotations

from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = ["EnvFunc"]


@tvm._ffi.register_object("EnvFunc")
class EnvFunc(Object):
    """A function of the registry as a part of a program; equal to others of its name.

    >>> import tvm
    >>> add_one = tvm.register_func("doc.add_one", lambda x: x + 1)
    >>> tvm.ir.EnvFunc.get("doc.add_one")(2)
    3
    """

    @staticmethod
    def get(name: str) -> EnvFunc:
        """The registered function `name`.

        Raises
        ------
        ValueError : there is none.
        """
        return _ffi_api.EnvFunc(name)

    @property
    def func(self) -> Any:
        """The function that is registered under the name now."""
        return tvm._ffi.get_global_func(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)
