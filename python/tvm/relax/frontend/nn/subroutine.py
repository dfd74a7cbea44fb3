"""Modules whose ``forward`` becomes a function of its own."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from tvm import error, tir
from tvm.ir import GlobalVar, RelayExpr, structural_equal, structural_hash

from ...block_builder import BlockBuilder
from ...expr import Call, Tuple, Var
from ...struct_info import StructInfo, TupleStructInfo
from ...struct_info_relations import definable_tir_vars_in_struct_info, erase_to_well_defined
from .tensor import Tensor

__all__ = ["SubroutineMixin"]

# Functions written so far: for each builder, what they take, their names, and whether they give a
# tensor.
_MADE: WeakKeyDictionary[BlockBuilder, dict[Any, list[tuple[StructInfo, GlobalVar, bool]]]] = (
    WeakKeyDictionary()
)


def _snake_case(name: str) -> str:
    """``RMSNormLayer`` as ``rms_norm_layer``."""
    words = re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+|\d+", name)
    return "_".join(word.lower() for word in words)


class SubroutineMixin:
    """Writes ``forward`` of classes with ``define_subroutine = True`` once, and calls it.

    Modules of a class whose inputs and parameters are alike share the function.
    """

    define_subroutine: bool = False
    _is_subroutine: ClassVar[str] = "_is_subroutine"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        forward = cls.__dict__.get("forward")
        if forward is not None and not getattr(forward, cls._is_subroutine, False):
            wrapped = _dispatching(forward)
            setattr(wrapped, cls._is_subroutine, True)
            cls.forward = wrapped  # type: ignore[attr-defined]


def _dispatching(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.define_subroutine:
            return forward(self, *args, **kwargs)
        builder = BlockBuilder.current()
        if builder is None:
            raise error.RuntimeError(
                f"nn: {type(self).__name__} has define_subroutine, so it can only be called while "
                "a network is traced"
            )
        bound = inspect.signature(forward).bind(self, *args, **kwargs).arguments
        inputs = {name: _as_expr(builder, value) for name, value in list(bound.items())[1:]}
        subroutine, gives_tensor = _subroutine_of(self, builder, forward, inputs)
        operands = [*map(_unwrapped, inputs.values()), *map(_unwrapped, self.parameters())]
        call = Call(subroutine, operands)
        if not gives_tensor:
            return call
        return Tensor(_expr=builder.emit(call, f"{subroutine.name_hint}_output"))

    return apply


def _unwrapped(value: Any) -> RelayExpr:
    return value._expr if isinstance(value, Tensor) else value


def _as_expr(builder: BlockBuilder, value: Any) -> Any:
    if isinstance(value, tuple):
        value = Tuple([_unwrapped(_as_expr(builder, field)) for field in value])
    if isinstance(value, RelayExpr) and value.struct_info is None:
        return builder.emit(value)
    return value


def _info_of(value: Any) -> StructInfo:
    info = getattr(_unwrapped(value), "struct_info", None)
    if info is None:
        raise error.TypeError(f"nn: a subroutine cannot take {value!r}")
    return info


def _subroutine_of(
    module: Any, builder: BlockBuilder, forward: Callable[..., Any], inputs: dict[str, Any]
) -> tuple[GlobalVar, bool]:
    """The function of a module's ``forward`` for such inputs, and whether it gives a tensor."""
    parameters = list(module.parameters())
    infos = [_info_of(value) for value in inputs.values()]
    known = TupleStructInfo([*infos, *(p._expr.struct_info for p in parameters)])
    in_dataflow = builder.current_block_is_dataflow()
    made = _MADE.setdefault(builder, {})
    key = (forward, in_dataflow, structural_hash(known, map_free_vars=True))
    for other, gvar, gives_tensor in made.get(key, []):
        if structural_equal(other, known, map_free_vars=True):
            return gvar, gives_tensor
    # Symbolic extents and parameters belong to the calling function, so this one gets its own.
    extents = {
        var: tir.Var(var.name, var.dtype)
        for info in known.fields
        for var in definable_tir_vars_in_struct_info(info)
    }
    own = [erase_to_well_defined(info, extents) for info in known.fields]
    formal = [Var(name, info) for name, info in zip(inputs, own)]
    weights = [
        Var(parameter._expr.name_hint, info)
        for parameter, info in zip(parameters, own[len(inputs) :])
    ]
    received = [
        Tensor(_expr=var) if isinstance(value, Tensor) else var
        for var, value in zip(formal, inputs.values())
    ]
    outside = [parameter._expr for parameter in parameters]
    for parameter, weight in zip(parameters, weights):
        parameter._expr = weight
    try:
        name = _snake_case(type(module).__name__)
        with builder.function(name, [*formal, *weights], private=True):
            with builder.dataflow() if in_dataflow else nullcontext():
                result = forward(module, *received)
                gives_tensor = isinstance(result, Tensor)
                output = _unwrapped(result)
                if in_dataflow:
                    output = builder.emit_output(output)
            gvar = builder.emit_func_output(output)
    finally:
        for parameter, expr in zip(parameters, outside):
            parameter._expr = expr
    made.setdefault(key, []).append((known, gvar, gives_tensor))
    return gvar, gives_tensor
