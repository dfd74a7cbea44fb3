"""C-like languages described by a table: the quickest way to a code generator for a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _ffi_api
from .target import Target

__all__ = ["CDialect"]


@dataclass(frozen=True)
class CDialect:
    """How a device's language differs from C.

    What a table cannot say (wide loads, special statements) takes a class derived from
    ``tvm::codegen::CodeGenC`` in C++, see ``include/tvm/codegen/codegen_c.h``.

    Attributes
    ----------
    name : name of the language in error messages.
    prelude : first lines of every file.
    function_prefix : what stands before a kernel's definition, such as ``"__kernel "``.
    pointer_prefix : what stands before a pointer parameter, such as ``"__global "``.
    scopes : memory scope ("shared", "local", or one of your own) to what stands before an
        allocation in it.
    thread_index : thread tag ("blockIdx.x", "threadIdx.x") to the expression of its index.
    barriers : memory scope to the statement that waits for all threads sharing it.
    intrinsics : name of a tir operator without "tir." to a function of the language.

    Examples
    --------
    >>> opencl = CDialect("opencl", function_prefix="__kernel ", pointer_prefix="__global ",
    ...                   scopes={"shared": "__local "},
    ...                   thread_index={"threadIdx.x": "get_local_id(0)"})
    """

    name: str
    prelude: str = ""
    function_prefix: str = ""
    pointer_prefix: str = ""
    scopes: Mapping[str, str] = field(default_factory=dict)
    thread_index: Mapping[str, str] = field(default_factory=dict)
    barriers: Mapping[str, str] = field(default_factory=dict)
    intrinsics: Mapping[str, str] = field(default_factory=dict)

    def print(self, mod: Any, target: Target) -> str:
        """Source text of all functions of a lowered IRModule.

        Raises
        ------
        ValueError : a function uses something the dialect has no spelling for.
        """
        texts = [self.name, self.prelude, self.function_prefix, self.pointer_prefix]
        tables = [self.scopes, self.thread_index, self.barriers, self.intrinsics]
        return str(_ffi_api.PrintCDialect(mod, target, texts, [dict(t) for t in tables]))
