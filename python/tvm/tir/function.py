"""Functions over buffers and scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.ir import BaseFunc

from . import _ffi_api
from .buffer import Buffer
from .expr import Var
from .stmt import Stmt

__all__ = ["PrimFunc"]


@tvm._ffi.register_object("tir.PrimFunc")
class PrimFunc(BaseFunc):
    """A function whose body is a statement.

    Parameters
    ----------
    params : variables, or buffers, each of which gets a handle parameter of its name.
    ret_type : type of the result; None for no result.
    buffer_map : buffers of the handle parameters.
    attrs : DictAttrs or None.
    """

    def __init__(
        self,
        params: Sequence[Var | Buffer],
        body: Stmt,
        ret_type: Any = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Any = None,
        span: Any = None,
    ) -> None:
        buffers = dict(buffer_map or {})
        variables = []
        for param in params:
            if isinstance(param, Buffer):
                handle = Var(param.name, "handle")
                buffers[handle] = param
                variables.append(handle)
            else:
                variables.append(param)
        if isinstance(attrs, Mapping):
            attrs = tvm.ir.make_node("DictAttrs", dict=dict(attrs))
        self.__init_handle_by_constructor__(
            _ffi_api.PrimFunc, variables, body, ret_type, buffers, attrs
        )

    def with_body(self, body: Stmt) -> PrimFunc:
        """The same function with another body."""
        return PrimFunc(self.params, body, self.ret_type, dict(self.buffer_map), self.attrs)
