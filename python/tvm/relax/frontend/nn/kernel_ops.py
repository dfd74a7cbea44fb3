"""Operators that call kernels and functions of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ... import op as _op
from ...block_builder import BlockBuilder
from ...expr import PrimValue, ShapeExpr, StringImm, Tuple
from .tensor import Tensor, wrap_nested

__all__ = [
    "extern",
    "runtime_operand",
    "tensor_expr_op",
    "tensor_ir_inplace_op",
    "tensor_ir_op",
]


def _open_builder(what: str) -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise error.RuntimeError(f"nn.{what}: only while a network is traced")
    return builder


def tensor_expr_op(
    tensor_expr_func: Callable[..., Any],
    name_hint: str,
    args: Sequence[Any],
    *,
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """What a function over te tensors computes, as one kernel.

    Parameters
    ----------
    tensor_expr_func : from te tensors, and what else `args` has, to te tensors.
    name_hint : name of the kernel.
    args : tensors, which become te tensors, and other values, which are passed on.
    attrs : attributes of the kernel.
    """
    values = [arg._expr if isinstance(arg, Tensor) else arg for arg in args]
    call = _open_builder("tensor_expr_op").call_te(
        tensor_expr_func, *values, primfunc_name_hint=name_hint, primfunc_attrs=attrs
    )
    return wrap_nested(call, name_hint)


def _kernel_operands(args: Any) -> tuple[list[RelayExpr], list[tir.PrimExpr]]:
    tensors: list[RelayExpr] = []
    sizes: list[tir.PrimExpr] = []
    for arg in args if isinstance(args, tuple | list) else [args]:
        if isinstance(arg, Tensor):
            tensors.append(arg._expr)
        elif isinstance(arg, tir.PrimExpr):
            sizes.append(arg)
        elif isinstance(arg, ShapeExpr):
            sizes += list(arg.values)
        else:
            raise error.TypeError(
                f"nn: a kernel takes tensors, and expressions as sizes, got {type(arg)}"
            )
    return tensors, sizes


def _infos(out: Any) -> Any:
    return out._expr.struct_info if isinstance(out, Tensor) else [t._expr.struct_info for t in out]


def tensor_ir_op(func: tir.PrimFunc, name_hint: str, args: Any, out: Any) -> Any:
    """Call a kernel.

    Parameters
    ----------
    name_hint : name of the kernel in the module.
    args : tensors; expressions among them become the kernel's sizes.
    out : tensors like its results, such as :meth:`Tensor.placeholder`.
    """
    tensors, sizes = _kernel_operands(args)
    gvar = _open_builder("tensor_ir_op").add_func(func, name_hint)
    return wrap_nested(_op.call_tir(gvar, tensors, _infos(out), sizes or None), name_hint)


def tensor_ir_inplace_op(
    func: tir.PrimFunc, name_hint: str, args: Any, inplace_indices: int | Sequence[int], out: Any
) -> Any:
    """Call a kernel whose results may lie where its arguments are.

    Parameters
    ----------
    inplace_indices : for each result the position of that argument, or -1.
    args, name_hint, out : as of :func:`tensor_ir_op`.
    """
    tensors, sizes = _kernel_operands(args)
    gvar = _open_builder("tensor_ir_inplace_op").add_func(func, name_hint)
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    return wrap_nested(
        _op.call_tir_inplace(gvar, tensors, places, _infos(out), sizes or None), name_hint
    )


def runtime_operand(arg: Any, float_dtype: str = "float64") -> RelayExpr:
    """A value as an argument of a function of the runtime."""
    if isinstance(arg, Tensor):
        return arg._expr
    if isinstance(arg, int):
        return PrimValue(tir.IntImm("int64", arg))
    if isinstance(arg, float):
        return PrimValue(tir.FloatImm(float_dtype, arg))
    if isinstance(arg, str):
        return StringImm(arg)
    if isinstance(arg, tir.PrimExpr):
        return PrimValue(arg)
    if isinstance(arg, tuple | list):
        return Tuple([runtime_operand(item, float_dtype) for item in arg])
    raise error.TypeError(f"nn: a function of the runtime does not take {type(arg)}")


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """Call a registered function, which writes its results into the last arguments.

    Parameters
    ----------
    name : of the function, see ``tvm.register_func``.
    args : tensors, numbers, texts, expressions, and tuples of these.
    out : tensors like its results.
    """
    return wrap_nested(_op.call_dps_packed(name, runtime_operand(list(args)), _infos(out)), name)
