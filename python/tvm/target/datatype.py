"""Element types that users define: numbers of some bits, with operations in functions of theirs.

A type is registered under a name and a code, and is written ``custom[name]bits``. Builds hold its
values as unsigned integers, and ask a function registered here for each operator: what it is by
other means, usually the call of an external function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm._ffi
from tvm import error
from tvm.ir import FloatImm, Op, PrimExpr
from tvm.ir.base import make_node
from tvm.runtime import DataType

__all__ = [
    "create_lower_func",
    "create_min_lower_func",
    "get_type_code",
    "get_type_name",
    "get_type_registered",
    "lower_call_pure_extern",
    "lower_ite",
    "register",
    "register_min_func",
    "register_op",
]

_Lowering = Callable[[Any], PrimExpr]


def register(type_name: str, type_code: int) -> None:
    """Give a type its name and its code, 129 to 255.

    Raises
    ------
    ValueError : the code is out of range, or the name or the code is taken.
    """
    tvm._ffi.get_global_func("runtime._datatype_register")(type_name, type_code)


def get_type_name(type_code: int) -> str:
    """The name of a registered type."""
    return str(tvm._ffi.get_global_func("runtime._datatype_get_type_name")(type_code))


def get_type_code(type_name: str) -> int:
    """The code of a registered type."""
    return int(tvm._ffi.get_global_func("runtime._datatype_get_type_code")(type_name))


def get_type_registered(type_code: int) -> bool:
    """Whether a type has this code."""
    return bool(tvm._ffi.get_global_func("runtime._datatype_get_type_registered")(type_code))


def register_op(
    lower_func: _Lowering,
    op_name: str,
    target: str,
    src_type_name: str,
    dest_type_name: str | None = None,
    intrinsic_name: str | None = None,
) -> None:
    """Say what an operator of a type is on a target.

    Parameters
    ----------
    lower_func : takes the operator, operands already lowered, and gives an expression without the
        type; `create_lower_func` makes such functions.
    op_name : class of the expression: "Add", "Cast", "FloatImm", "Call", ...
    target : name of the target kind.
    src_type_name : the type; of a cast the type of the operand, where "float", "int" and "uint" are
        those of the machine.
    dest_type_name : of a cast, the type of the result.
    intrinsic_name : of a call, the name of the operator, such as "tir.exp".

    Raises
    ------
    ValueError : a cast without the type of its result, or a call without the name of its operator.
    """
    if op_name == "Cast" and dest_type_name is None:
        raise error.ValueError("datatype.register_op: a Cast needs dest_type_name")
    if op_name == "Call" and intrinsic_name is None:
        raise error.ValueError("datatype.register_op: a Call needs intrinsic_name")
    parts = [op_name]
    if op_name == "Cast":
        parts += [str(dest_type_name), src_type_name]
    elif op_name == "Call":
        parts += ["intrin", str(intrinsic_name), src_type_name]
    else:
        parts.append(src_type_name)
    name = ".".join(["tvm.datatype.lower", target, *parts])
    tvm._ffi.register_func(name, lower_func, override=True)
    # From now on builds look for such types.
    make = tvm._ffi.get_global_func("tir.transform.LowerCustomDatatypes")
    tvm._ffi.register_func("tvm.datatype.lowering", make, override=True)


def register_min_func(func: Callable[[int], PrimExpr], type_name: str) -> None:
    """Say what the least number of a type is, for maxima.

    Parameters
    ----------
    func : gives it for a number of bits; `create_min_lower_func` makes such functions.
    """
    tvm._ffi.register_func(f"tvm.datatype.min.{type_name}", func, override=True)


def create_min_lower_func(
    extern_func_map: Mapping[int, str], type_name: str
) -> Callable[[int], PrimExpr]:
    """The least number of a type as a call of an external function without arguments.

    Parameters
    ----------
    extern_func_map : names of functions by bits.
    """

    def least(num_bits: int) -> PrimExpr:
        if num_bits not in extern_func_map:
            raise error.ValueError(
                f"datatype: no function gives the least custom[{type_name}]{num_bits}; name one "
                f"for {num_bits} bits"
            )
        return _call(f"custom[{type_name}]{num_bits}", str(extern_func_map[num_bits]), [])

    return least


def create_lower_func(extern_func_map: Mapping[Any, str]) -> _Lowering:
    """Operators as calls of external functions.

    Parameters
    ----------
    extern_func_map : names of functions by bits of the type; of a cast by pairs of the bits of the
        operand and of the result.
    """

    def lower(op: Any) -> PrimExpr:
        dtype = DataType(str(op.dtype))
        kind = type(op).__name__
        key: Any = dtype.bits
        if kind == "Cast":
            key = (DataType(str(op.value.dtype)).bits, dtype.bits)
        if key not in extern_func_map:
            raise error.ValueError(
                f"datatype: no external function is named for {kind} of {key} bits; those named "
                f"are for {list(extern_func_map)}"
            )
        if kind in ("Cast", "FloatImm"):
            value = op.value if kind == "Cast" else FloatImm("float32", float(op.value))
            arguments = [value]
        elif kind == "Call":
            arguments = list(op.args)
        else:
            arguments = [op.a, op.b]
        return _call(_held_as(dtype), str(extern_func_map[key]), arguments)

    return lower


def lower_ite(op: Any) -> PrimExpr:
    """``if_then_else`` of a type, which chooses one of two integers that hold its values."""
    return make_node("tir.Call", dtype=_held_as(DataType(str(op.dtype))), op=op.op, args=op.args)


def lower_call_pure_extern(op: Any) -> PrimExpr:
    """A call of an external function that gives a value of a type: the integer that holds it."""
    return lower_ite(op)


def _held_as(dtype: DataType) -> str:
    """The type of what holds values: the type itself unless it is a user's."""
    if not dtype.kind.startswith("custom"):
        return str(dtype)
    return f"uint{dtype.bits}" + (f"x{dtype.lanes}" if dtype.lanes > 1 else "")


def _call(dtype: str, name: str, arguments: list[Any]) -> PrimExpr:
    text = make_node("tir.StringImm", value=name)
    extern = Op.get("tir.call_pure_extern")
    return make_node("tir.Call", dtype=dtype, op=extern, args=[text, *arguments])
