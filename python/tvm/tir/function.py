"""Functions over buffers and scalars, and the instructions that compute some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import tvm._ffi
from tvm.ir import BaseFunc, FuncType, TupleType
from tvm.runtime import Object

from . import _ffi_api
from .buffer import Buffer
from .expr import Var, convert
from .index_map import IndexMap
from .statement import AttrStmt, LetStmt, Stmt
from .stmt_functor import ir_transform, substitute

__all__ = ["IndexMap", "PrimFunc", "TensorIntrin"]


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
                # Memory of a builder (`ib.pointer`) is its pointer.
                variables.append(convert(param))
        if isinstance(attrs, Mapping):
            attrs = tvm.ir.make_node("DictAttrs", dict=dict(attrs))
        self.__init_handle_by_constructor__(
            _ffi_api.PrimFunc, variables, body, ret_type, buffers, attrs
        )

    def specialize(self, param_map: Mapping[Var, Any]) -> PrimFunc:
        """The function for known values of parameters.

        Parameters
        ----------
        param_map : a value for a scalar parameter, which the result no longer has; or, for the
            parameter of a buffer, a buffer whose extents, strides and offset are the values of the
            variables that stand there. The buffer of another parameter shares its memory. For a
            pointer also an address, which is bound to a variable where a buffer is declared there.

        Raises
        ------
        ValueError : a key is no parameter, or a buffer contradicts the function or another value.

        Examples
        --------
        >>> import tvm
        >>> n = tvm.tir.Var("n", "int32")
        >>> A = tvm.tir.decl_buffer((n,), "float32", "A")
        >>> func = tvm.tir.PrimFunc([A], A.vstore([n - 1], 0.0))
        >>> func.specialize({func.params[0]: tvm.tir.decl_buffer((4,))}).body
        A[3] = 0.0
        """
        if not param_map:
            return self
        values: dict[Var, Any] = {}
        for param, given in param_map.items():
            if not any(param.same_as(own) for own in self.params):
                raise ValueError(f"specialize: {param} is no parameter; there are {self.params}")
            if isinstance(given, Buffer):
                if param not in self.buffer_map:
                    raise ValueError(f"specialize: parameter {param} is not that of a buffer")
                own = self.buffer_map[param]
                _match_buffer(values, own, given)
                others = [other.data for other in self.buffer_map.values()]
                if not own.same_as(given) and any(given.data.same_as(data) for data in others):
                    values[own.data] = given.data
            else:
                _match(values, param, convert(given), str(param))
        body = _with_pointers_bound(self.body, values)
        # Attributes take the buffers along, so that they are replaced as those in the body are.
        for buffer in reversed(list(self.buffer_map.values())):
            body = AttrStmt(buffer, "specialize", 0, body)
        body = _ffi_api.SubstituteAndFold(body, values)
        buffers = {}
        for param in self.buffer_map.keys():  # noqa: SIM118 - a Map, not a dict
            buffers[param] = body.node
            body = body.body
        params = [param for param in self.params if param not in values]
        return PrimFunc(params, body, self.ret_type, buffers, self.attrs)

    def with_body(self, new_body: Stmt, span: Any = None) -> PrimFunc:
        """The same function with another body."""
        buffers = dict(self.buffer_map)
        return PrimFunc(self.params, new_body, self.ret_type, buffers, self.attrs, span)

    @property
    def checked_type(self) -> FuncType:
        """The types of the parameters, and that of the result: an empty tuple for none."""
        result = TupleType([]) if self.ret_type is None else self.ret_type
        return FuncType([param.type_annotation for param in self.params], result)


def _with_pointers_bound(body: Stmt, values: Mapping[Var, Any]) -> Stmt:
    """Statements in which buffers declared at a given address have a variable for it."""
    for pointer, address in values.items():
        if str(pointer.dtype) != "handle" or isinstance(address, Var):
            continue

        def bind(declared: Any, pointer: Var = pointer, address: Any = address) -> Stmt | None:
            if not declared.buffer.data.same_as(pointer):
                return None
            fresh = Var(pointer.name, pointer.type_annotation)
            return LetStmt(fresh, address, substitute(declared, {pointer: fresh}))

        body = ir_transform(body, bind, None, ["tir.DeclBuffer"])
    return body


def _match_buffer(values: dict[Var, Any], own: Buffer, given: Buffer) -> None:
    """Take the variables of a buffer to have the values that another one has there."""
    if own.dtype != given.dtype or len(own.shape) != len(given.shape):
        raise ValueError(f"specialize: {given} does not fit {own}: dtype or axes differ")
    for axis, (mine, theirs) in enumerate(zip(own.shape, given.shape)):
        _match(values, mine, theirs, f"{own.name}.shape[{axis}]")
    if len(own.strides) == 0 and len(given.strides) == 0:
        strides: Any = []
    elif len(own.strides) != 0 and len(given.strides) != 0:
        strides = zip(own.strides, given.strides)
    else:
        raise ValueError(f"specialize: only one of {own} and {given} has strides")
    for axis, (mine, theirs) in enumerate(strides):
        _match(values, mine, theirs, f"{own.name}.strides[{axis}]")
    _match(values, own.elem_offset, given.elem_offset, f"{own.name}.elem_offset")


def _match(values: dict[Var, Any], own: Any, given: Any, what: str) -> None:
    if isinstance(own, Var) and own not in values:
        values[own] = given.astype(own.dtype)
        return
    expected = values.get(own, own)
    if not tvm.ir.structural_equal(expected, given.astype(expected.dtype)):
        raise ValueError(f"specialize: {what} is {expected}, got {given}")


@tvm._ffi.register_object("tir.TensorIntrin")
class TensorIntrin(Object):
    """A computation that a machine has an instruction for.

    Parameters
    ----------
    desc : takes buffers; one block that holds loops around computations of single elements.
    impl : takes the same buffers; one block that does it as the machine does.

    Raises
    ------
    ValueError : the two take different buffers, or are not one block each.
    """

    def __init__(self, desc: PrimFunc, impl: PrimFunc) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TensorIntrin, desc, impl)

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Make an intrinsic known to :meth:`tvm.tir.Schedule.tensorize`.

        Raises
        ------
        ValueError : the name is taken and `override` is False.
        """
        _ffi_api.TensorIntrinRegister(name, TensorIntrin(desc, impl), override)

    @overload
    @staticmethod
    def get(name: str) -> TensorIntrin: ...
    @overload
    @staticmethod
    def get(name: str, allow_missing: bool) -> TensorIntrin | None: ...
    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of that name.

        Raises
        ------
        ValueError : there is none and `allow_missing` is False; the message lists those there are.
        """
        return _ffi_api.TensorIntrinGet(name, allow_missing)
