"""Calls of what is no operator: tensor functions, functions of the runtime, closures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, PrimExpr, RelayExpr, VDevice
from tvm.runtime import Object

from ..dtensor import DTensorStructInfo
from ..expr import (
    Call,
    ExternFunc,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    const,
    dict_attrs,
)
from ..struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .base import known_call, make_call
from .registry import get_op, register_rule
from .rules import known_shape, number, opaque_tensor, same_as_operand, tensor, with_shape

__all__ = [
    "assert_op",
    "call_builtin_with_ctx",
    "call_dps_packed",
    "call_inplace_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "hint_on_device",
    "invoke_closure",
    "invoke_pure_closure",
    "make_closure",
    "null_value",
    "print",
    "shape_of",
    "shape_to_tensor",
    "tensor_to_shape",
    "to_vdevice",
]

Operands = RelayExpr | Sequence[RelayExpr]
Outputs = StructInfo | Sequence[StructInfo]


def _tuple(args: Operands) -> RelayExpr:
    if isinstance(args, RelayExpr):
        if isinstance(args, Tuple) or isinstance(args.struct_info, TupleStructInfo):
            return args
        return Tuple([args])
    return Tuple([_value(arg) for arg in args])


def _value(arg: Any) -> RelayExpr:
    """An operand: numbers become constants, and sequences of extents shapes."""
    if isinstance(arg, RelayExpr):
        return arg
    if isinstance(arg, PrimExpr):
        return PrimValue(arg)
    if isinstance(arg, (tuple, list)):
        if all(isinstance(v, (int, PrimExpr)) for v in arg) and arg:
            return ShapeExpr(list(arg))
        return Tuple([_value(v) for v in arg])
    if isinstance(arg, str):
        return StringImm(arg)
    return const(arg)


def _outputs(op: str, out_sinfo: Outputs) -> list[StructInfo]:
    infos: list[Any] = list(out_sinfo) if isinstance(out_sinfo, (list, tuple)) else [out_sinfo]
    if len(infos) == 1 and isinstance(infos[0], TupleStructInfo):
        infos = list(infos[0].fields)
    for info in infos:
        if not isinstance(info, (TensorStructInfo, TupleStructInfo, DTensorStructInfo)):
            raise error.TypeError(f"{op}: out_sinfo must describe tensors, got {info}")
    return infos


def _result(infos: Sequence[StructInfo]) -> StructInfo:
    return infos[0] if len(infos) == 1 else TupleStructInfo(list(infos))


def _destination(
    name: str,
    callee: RelayExpr,
    args: Operands,
    out_sinfo: Outputs,
    tir_vars: ShapeExpr | Sequence[Any] | None = None,
    **attrs: Any,
) -> Call:
    infos = _outputs(f"relax.{name}", out_sinfo)
    operands = [callee, _tuple(args)]
    if tir_vars is not None:
        operands.append(tir_vars if isinstance(tir_vars, ShapeExpr) else ShapeExpr(list(tir_vars)))
    result = _result(infos)
    return Call(get_op(name), operands, dict_attrs(attrs), [result], result)


def call_tir(
    gvar: GlobalVar,
    args: Operands,
    out_sinfo: Outputs,
    tir_vars: ShapeExpr | Sequence[Any] | None = None,
) -> Call:
    """Call of a tensor function of the module, which writes into outputs allocated for it.

    Parameters
    ----------
    gvar : name of a ``PrimFunc`` that takes the arguments, then the outputs, then ``tir_vars``.
    out_sinfo : the output, or several, which makes the result a tuple.
    tir_vars : symbolic extents that are parameters of the function.

    Raises
    ------
    TypeError : ``out_sinfo`` is not struct info of tensors.
    """
    return _destination("call_tir", gvar, args, out_sinfo, tir_vars)


def call_tir_with_grad(
    gvar: GlobalVar,
    args: Operands,
    out_sinfo: Outputs,
    te_grad_name: str,
    te_grad_kwargs: Mapping[str, Object] | None = None,
    tir_vars: ShapeExpr | Sequence[Any] | None = None,
) -> Call:
    """:func:`call_tir` of a function whose gradient is a registered te function."""
    return _destination(
        "call_tir_with_grad", gvar, args, out_sinfo, tir_vars, te_grad_name=te_grad_name,
        te_grad_kwargs=dict(te_grad_kwargs or {}),
    )  # fmt: skip


def call_tir_local_view(
    gvar: GlobalVar,
    args: Operands,
    out_sinfo: Outputs,
    tir_vars: ShapeExpr | Sequence[Any] | None = None,
) -> Call:
    """:func:`call_tir` of a function that each device runs on its own parts.

    Parameters
    ----------
    out_sinfo : the whole tensors that the results are parts of, as DTensorStructInfo.
    """
    return _destination("dist.call_tir_local_view", gvar, args, out_sinfo, tir_vars)


def call_tir_inplace(
    gvar: GlobalVar,
    args: Operands,
    inplace_indices: int | Sequence[int],
    out_sinfo: Outputs,
    tir_vars: ShapeExpr | Sequence[Any] | None = None,
) -> Call:
    """:func:`call_tir` of a function that writes outputs over arguments.

    Parameters
    ----------
    inplace_indices : for each output the argument that it is written over, or -1 for memory of its
        own.

    Raises
    ------
    ValueError : as many indices as outputs are needed, one of them not -1, none of them twice; an
        index stands for no argument, or for one of another shape or type.
    """
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    infos = _outputs("relax.call_tir_inplace", out_sinfo)
    operands = _tuple(args)
    _check_inplace(indices, infos, operands)
    return _destination(
        "call_tir_inplace", gvar, operands, infos, tir_vars, inplace_indices=indices
    )


def _check_inplace(indices: list[int], infos: list[StructInfo], operands: RelayExpr) -> None:
    where = "relax.call_tir_inplace"
    if len(indices) != len(infos):
        raise error.ValueError(f"{where}: {len(infos)} outputs, but {len(indices)} inplace_indices")
    if all(index == -1 for index in indices):
        raise error.ValueError(f"{where}: no output is written over an argument; use call_tir")
    known = operands.struct_info.fields if operands.struct_info is not None else None
    seen: set[int] = set()
    for index, info in zip(indices, infos):
        if index == -1:
            continue
        if index in seen:
            raise error.ValueError(f"{where}: argument {index} is written over twice")
        seen.add(index)
        if index < 0 or (known is not None and index >= len(known)):
            raise error.ValueError(f"{where}: there is no argument {index}")
        if known is not None and isinstance(known[index], TensorStructInfo):
            a, b = known_shape(known[index]), known_shape(info)
            if str(known[index].dtype) != str(info.dtype) or (
                a is not None and b is not None and known[index] != info
            ):
                raise error.ValueError(
                    f"{where}: argument {index} is {known[index]}, its output {info}"
                )


def call_dps_packed(func: str | RelayExpr, args: Operands, out_sinfo: Outputs) -> Call:
    """Call of a function by name, which writes into outputs allocated for it.

    Parameters
    ----------
    func : name of a ``PrimFunc`` of the module or else of a function of the runtime's registry;
        it takes the arguments, then the outputs.
    out_sinfo : the output, or several, which makes the result a tuple.

    Raises
    ------
    TypeError : ``out_sinfo`` is not struct info of tensors.
    """
    callee = ExternFunc(func) if isinstance(func, str) else func
    return _destination("call_dps_packed", callee, args, out_sinfo)


def call_builtin_with_ctx(
    func: str | RelayExpr, args: Operands, *, sinfo_args: Outputs | None = None
) -> Call:
    """Call of a function of the virtual machine, which gets the machine as its first argument."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    infos = _infos(sinfo_args)
    return Call(get_op("call_builtin_with_ctx"), [callee, _tuple(args)], None, infos,
                _given(infos))  # fmt: skip


def _infos(sinfo_args: Outputs | None) -> list[StructInfo]:
    if sinfo_args is None:
        return []
    return [sinfo_args] if isinstance(sinfo_args, StructInfo) else list(sinfo_args)


def _given(infos: Sequence[StructInfo]) -> StructInfo:
    return _result(infos) if infos else ObjectStructInfo()


def call_pure_packed(func: str | RelayExpr, *args: RelayExpr, sinfo_args: Outputs) -> Call:
    """Call of a function of the runtime that is known to have no effects.

    Parameters
    ----------
    sinfo_args : what it gives.

    Raises
    ------
    ValueError : ``sinfo_args`` is empty.
    """
    callee = ExternFunc(func) if isinstance(func, str) else func
    infos = _infos(sinfo_args)
    if not infos:
        raise error.ValueError(
            "relax.call_pure_packed: say what the function gives, sinfo_args=[...]"
        )
    operands = [callee, *(_value(arg) for arg in args)]
    return Call(get_op("call_pure_packed"), operands, None, infos, _result(infos))


def call_inplace_packed(
    func: str | RelayExpr,
    *args: RelayExpr,
    inplace_indices: int | Sequence[int],
    sinfo_args: Outputs,
) -> Call:
    """Call of a function of the runtime that gives back arguments after writing over them.

    Parameters
    ----------
    inplace_indices : for each result the argument that it is, or -1 for a new value.
    """
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    callee = ExternFunc(func) if isinstance(func, str) else func
    infos = _infos(sinfo_args)
    return Call(
        get_op("call_inplace_packed"), [callee, *(_value(arg) for arg in args)],
        {"inplace_indices": indices}, infos, _result(infos),
    )  # fmt: skip


def make_closure(func: RelayExpr, args: Operands) -> Call:
    """A function with its first arguments already given."""
    return known_call(Call(get_op("make_closure"), [func, _tuple(args)]))


def invoke_closure(closure: RelayExpr, args: Operands, sinfo_args: Outputs) -> Call:
    """Call of a closure with the arguments that are left."""
    infos = _infos(sinfo_args)
    return Call(get_op("invoke_closure"), [closure, _tuple(args)], None, infos, _given(infos))


def invoke_pure_closure(closure: RelayExpr, args: Operands, sinfo_args: Outputs) -> Call:
    """:func:`invoke_closure` of a function without effects."""
    infos = _infos(sinfo_args)
    return Call(get_op("invoke_pure_closure"), [closure, _tuple(args)], None, infos, _given(infos))


def null_value() -> Call:
    """A null object."""
    return make_call("null_value")


def print(*values: Any, format: str | RelayExpr = "") -> Call:
    """Print values when it runs.

    Parameters
    ----------
    format : text with ``{}`` for each value; the values alone by default.
    """
    text = StringImm(format) if isinstance(format, str) else format
    return make_call("print", text, *(_value(value) for value in values))


def assert_op(
    condition: RelayExpr | PrimExpr | bool,
    format_args: Any = None,
    format: str | RelayExpr = "",
) -> Call:
    """Raise an AssertionError when it runs, unless the condition holds.

    Parameters
    ----------
    format_args : values for the text of the error.
    format : its text, with ``{}`` for each value.
    """
    if isinstance(condition, (bool, PrimExpr)):
        condition = PrimValue(condition)
    given = [] if format_args is None else (
        list(format_args) if isinstance(format_args, (tuple, list)) else [format_args]
    )  # fmt: skip
    text = StringImm(format) if isinstance(format, str) else format
    return make_call("assert_op", condition, text, *(_value(value) for value in given))


def shape_of(expr: RelayExpr) -> Call:
    """The shape of a tensor."""
    return make_call("shape_of", expr)


def tensor_to_shape(expr: RelayExpr) -> Call:
    """The shape that a tensor of int64 of one dimension holds."""
    return make_call("tensor_to_shape", expr)


def shape_to_tensor(expr: RelayExpr) -> Call:
    """A shape as a tensor of int64 of one dimension."""
    return make_call("shape_to_tensor", expr)


def to_vdevice(data: RelayExpr, dst_vdevice: VDevice | str) -> Call:
    """A copy of a tensor on another device."""
    return make_call("to_vdevice", data, dst_vdevice=_vdevice(dst_vdevice))


def hint_on_device(
    data: RelayExpr, dst_vdevice: Any = None, device_type: int | None = None, index: int = 0
) -> Call:
    """The tensor, of which passes are told on which device it had better live.

    Parameters
    ----------
    dst_vdevice : a VDevice or a Device; in its place may stand the next two.
    device_type, index : the number of a kind of devices, and of one among them.
    """
    if dst_vdevice is None:
        if device_type is None:
            raise error.ValueError("relax.hint_on_device: give a device, or its type and index")
        return make_call("hint_on_device", data, device_type=int(device_type), index=int(index))
    if isinstance(dst_vdevice, (VDevice, str)):
        return make_call("hint_on_device", data, dst_vdevice=_vdevice(dst_vdevice))
    return make_call(
        "hint_on_device", data, device_type=int(dst_vdevice.device_type),
        index=int(dst_vdevice.device_id),
    )  # fmt: skip


def _vdevice(device: VDevice | str) -> VDevice:
    if isinstance(device, VDevice):
        return device
    return TensorStructInfo([], "float32", device).vdevice


def _declared(call: Call) -> StructInfo:
    return _given(list(call.sinfo_args))


def _nothing(call: Call) -> StructInfo:
    return TupleStructInfo([])


def _any(call: Call) -> StructInfo:
    return ObjectStructInfo()


def _assert_op(call: Call) -> StructInfo:
    if not call.args:
        raise error.TypeError("relax.assert_op: the condition is missing")
    info = call.args[0].struct_info
    if isinstance(info, TensorStructInfo):
        if info.ndim not in (-1, 0):
            raise error.ValueError(f"relax.assert_op: the condition has {info.ndim} dimensions")
    elif not isinstance(info, PrimStructInfo):
        raise error.TypeError(f"relax.assert_op: the condition must be a bool, got {info}")
    if str(info.dtype) not in ("bool", "void"):
        raise error.TypeError(f"relax.assert_op: the condition must be a bool, got {info.dtype}")
    if len(call.args) > 1 and not isinstance(call.args[1], StringImm):
        raise error.TypeError("relax.assert_op: the text of the error must be a StringImm")
    return TupleStructInfo([])


def _print(call: Call) -> StructInfo:
    if not call.args or not isinstance(call.args[0], StringImm):
        raise error.TypeError("relax.print: the first operand is the format, a StringImm")
    return TupleStructInfo([])


def _shape_of(call: Call) -> StructInfo:
    info = tensor(call, 0)
    shape = known_shape(info)
    return ShapeStructInfo(ndim=info.ndim) if shape is None else ShapeStructInfo(shape)


def _tensor_to_shape(call: Call) -> StructInfo:
    info = tensor(call, 0)
    shape = known_shape(info)
    if info.ndim not in (-1, 1):
        raise error.ValueError(f"relax.tensor_to_shape: {info.ndim} dimensions instead of 1")
    count = None if shape is None else number(shape[0])
    return ShapeStructInfo(ndim=-1 if count is None else count)


def _shape_to_tensor(call: Call) -> StructInfo:
    info = call.args[0].struct_info
    if not isinstance(info, ShapeStructInfo):
        raise error.TypeError(f"relax.shape_to_tensor: takes a shape, got {info}")
    return opaque_tensor("int64", 1) if info.ndim == -1 else with_shape([info.ndim], "int64")


def _to_vdevice(call: Call) -> StructInfo:
    return same_as_operand(tensor(call, 0), vdevice=call.attrs["dst_vdevice"])


def _hint_on_device(call: Call) -> StructInfo:
    return tensor(call, 0)


for _op in ("call_tir", "call_tir_with_grad", "call_tir_inplace", "call_dps_packed",
            "call_pure_packed", "call_inplace_packed", "invoke_pure_closure",
            "dist.call_tir_local_view"):  # fmt: skip
    register_rule(_op, _declared)
for _op in ("call_builtin_with_ctx", "invoke_closure"):
    register_rule(_op, _declared, pure=False)
register_rule("make_closure", _any)
register_rule("null_value", _any)
register_rule("print", _print, pure=False)
register_rule("assert_op", _assert_op, pure=False)
register_rule("shape_of", _shape_of)
register_rule("tensor_to_shape", _tensor_to_shape)
register_rule("shape_to_tensor", _shape_to_tensor)
register_rule("to_vdevice", _to_vdevice)
register_rule("hint_on_device", _hint_on_device)
