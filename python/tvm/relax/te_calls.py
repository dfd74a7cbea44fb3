"""Calls of te functions from graphs: each becomes a kernel of the module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, te, tir
from tvm.ir import PrimExpr, RelayExpr

from .expr import Call, PrimValue, ShapeExpr, Tuple, Var
from .op import call_tir
from .struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

__all__ = ["gen_call_tir_inputs", "te_call", "te_tensor"]


def te_tensor(
    value: RelayExpr, tir_var_map: Mapping[tir.Var, PrimExpr], name: str = "rxplaceholder"
) -> te.Tensor:
    """The placeholder that stands for a graph value in a te computation.

    Parameters
    ----------
    tir_var_map : what stands for symbolic extents there.

    Raises
    ------
    ValueError : the shape or element type is unknown.
    """
    return _placeholder(value.struct_info, tir_var_map, name)


def _placeholder(info: StructInfo, values: Mapping[tir.Var, PrimExpr], name: str) -> te.Tensor:
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(f"relax: a te computation takes tensors, got {info}")
    shape = None if info.shape is None else info.shape.struct_info.values
    if shape is None or str(info.dtype) == "void":
        raise error.ValueError(f"relax: a te computation needs shape and element type, got {info}")
    return te.placeholder(
        [tir.stmt_functor.substitute(e, dict(values)) for e in shape], str(info.dtype), name
    )


class _Arguments:
    """Graph expressions among arguments as te sees them."""

    def __init__(self) -> None:
        self.inputs: list[te.Tensor] = []
        self.values: list[RelayExpr] = []
        # Extents are variables of the kernel's own, since functions share none.
        self.extents: dict[tir.Var, tir.Var] = {}

    def convert(self, arg: Any) -> Any:
        """The argument for te."""
        if isinstance(arg, ShapeExpr):
            return [self.scalar(v) for v in arg.values]
        if isinstance(arg, PrimValue):
            return self.scalar(arg.value)
        if isinstance(arg, Tuple):
            return [self.convert(item) for item in arg.fields]
        if isinstance(arg, RelayExpr) and not isinstance(arg, tir.PrimExpr):
            return self._graph_value(arg)
        if isinstance(arg, PrimExpr):
            return self.scalar(arg)
        if isinstance(arg, Mapping):
            return {key: self.convert(value) for key, value in arg.items()}
        if isinstance(arg, (list, tuple)) or (
            isinstance(arg, Sequence) and not isinstance(arg, str)
        ):
            return [self.convert(item) for item in arg]
        return arg

    def _graph_value(self, arg: RelayExpr) -> Any:
        info = arg.struct_info
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            return [self.scalar(v) for v in info.values]
        if isinstance(info, PrimStructInfo) and info.value is not None:
            return self.scalar(info.value)
        if isinstance(info, TupleStructInfo):
            raise error.TypeError(
                "relax: a te computation takes the fields of a tuple, not a variable that holds one"
            )
        position = len(self.inputs)
        if isinstance(arg, Var):
            name = str(arg.name_hint)
        else:
            name = chr(ord("A") + position) if position < 26 else f"input{position}"
        if isinstance(info, TensorStructInfo) and info.shape is not None:
            for extent in info.shape.struct_info.values or ():
                self.scalar(extent)
        tensor = te_tensor(arg, self.extents, name)
        self.inputs.append(tensor)
        self.values.append(arg)
        return tensor

    def scalar(self, expr: PrimExpr) -> PrimExpr:
        """A scalar in variables of the kernel."""
        for var in [expr] if isinstance(expr, tir.Var) else tir.analysis.undefined_vars(expr):
            if var not in self.extents:
                self.extents[var] = tir.Var(str(var.name), str(var.dtype))
        return tir.stmt_functor.substitute(expr, dict(self.extents))

    def outside(self, expr: Any) -> PrimExpr:
        """A scalar of the kernel in variables of the graph."""
        back = {new: old for old, new in self.extents.items()}
        if not isinstance(expr, PrimExpr):
            return tir.const(int(expr), "int64")
        new = tir.stmt_functor.substitute(expr, back)
        return tir.const(new.value, "int64") if isinstance(new, tir.IntImm) else new

    def unbound(self, shapes: Sequence[Sequence[Any]]) -> list[tir.Var]:
        """Variables that no extent of a buffer gives a value to."""
        bound = [e for shape in shapes for e in shape if isinstance(e, tir.Var)]
        return [new for new in self.extents.values() if not any(new.same_as(var) for var in bound)]


def gen_call_tir_inputs(
    func: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[tir.PrimFunc, Tuple, TensorStructInfo | list[TensorStructInfo], ShapeExpr | None]:
    """What `call_tir` needs to call a te function's kernel.

    Parameters
    ----------
    func, args, kwargs : as in :meth:`BlockBuilder.call_te`, without the name of the kernel.

    Returns
    -------
    The kernel; the tensors that it reads; what is known of its result, or of each of several; and
    the extents it must be told, None if those of the tensors say them all.
    """
    attrs = kwargs.pop("primfunc_attrs", None)
    given = _Arguments()
    positional = [given.convert(arg) for arg in args]
    named = {key: given.convert(value) for key, value in kwargs.items()}
    result = func(*positional, **named)
    single = isinstance(result, te.Tensor)
    outputs = [result] if single else list(result)
    free = given.unbound([t.shape for t in [*given.inputs, *outputs]])
    # Extents of graph values have 64 bits, and so have indices of the kernels.
    made = te.create_prim_func([*given.inputs, *outputs], index_dtype_override="int64")
    kernel = tir.PrimFunc(
        [*made.params, *free], made.body, made.ret_type, made.buffer_map, made.attrs
    ).without_attr("global_symbol")
    for key, value in (attrs or {}).items():
        kernel = kernel.without_attr(key) if value is None else kernel.with_attr(key, value)
    infos = [TensorStructInfo([given.outside(e) for e in t.shape], str(t.dtype)) for t in outputs]
    extents = ShapeExpr([given.outside(var) for var in free]) if free else None
    return kernel, Tuple(given.values), infos[0] if single else infos, extents


def te_call(
    builder: Any,
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    make_call: Callable[..., Call] = call_tir,
) -> Call:
    """The call of a te function's kernel, which is added to the builder's module.

    See :meth:`BlockBuilder.call_te`.

    Parameters
    ----------
    make_call : from the kernel's name and the rest of :func:`gen_call_tir_inputs` to the call.
    """
    settings = dict(kwargs)
    hint = settings.pop("primfunc_name_hint", None) or getattr(func, "__name__", "te_func")
    # Functions without a name are called "<lambda>", which no kernel can be.
    hint = re.sub(r"\W+", "_", str(hint)).strip("_") or "te_func"
    # Operands that have no name yet get one, as those of any call.
    operands = [
        builder.normalize_argument(builder.normalize(a)) if isinstance(a, RelayExpr) else a
        for a in args
    ]
    kernel, values, info, extents = gen_call_tir_inputs(func, *operands, **settings)
    return make_call(builder.add_func(kernel, hint), values, info, extents)
