"""Functions on expressions: math, conditions, division, calls of intrinsics, reductions."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import reduce as _fold
from typing import Any

import tvm._ffi
from tvm.ir import IntImm, Op, PrimExpr
from tvm.ir.base import with_span
from tvm.runtime import DataType
from tvm.target.llvm_intrinsics import llvm_get_intrinsic_name, llvm_lookup_intrinsic_id

from . import _ffi_api
from .buffer import Buffer
from .expr import (
    BufferLoad,
    Call,
    CommReducer,
    IterVar,
    Reduce,
    Select,
    StringImm,
    Var,
    _number_like,
    _operands,
    const,
    convert,
)

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "address_of",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "call_cpacked",
    "call_cpacked_lowered",
    "call_extern",
    "call_intrin",
    "call_llvm_intrin",
    "call_llvm_pure_intrin",
    "call_packed",
    "call_packed_lowered",
    "call_pure_extern",
    "call_tir",
    "cast",
    "ceil",
    "ceildiv",
    "clz",
    "comm_reducer",
    "copysign",
    "cos",
    "cosh",
    "div",
    "erf",
    "exp",
    "exp10",
    "exp2",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fmod",
    "hypot",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "infinity",
    "isfinite",
    "isinf",
    "isnan",
    "isnullptr",
    "ldexp",
    "left_shift",
    "likely",
    "llvm_lookup_intrinsic_id",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "max_value",
    "min",
    "min_value",
    "multiply",
    "nearbyint",
    "nextafter",
    "popcount",
    "pow",
    "power",
    "q_multiply_shift",
    "q_multiply_shift_per_axis",
    "reinterpret",
    "ret",
    "right_shift",
    "round",
    "rsqrt",
    "shift_left",
    "shift_right",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "trace",
    "trunc",
    "truncdiv",
    "truncmod",
]


@with_span
def call_intrin(dtype: str, func_name: str | Op, *args: Any, span: Any = None) -> Call:
    """Call of the intrinsic `func_name`, such as "tir.exp".

    Raises
    ------
    ValueError : there is no such intrinsic.
    """
    return Call(dtype, func_name, args)


@with_span
def call_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> Call:
    """Call of the C function `func_name` of the linked program."""
    return Call(dtype, "tir.call_extern", [StringImm(func_name), *args])


def call_tir(global_var: tvm.ir.GlobalVar, *args: Any) -> Call:
    """Call of another function of the module for its effect, without a result."""
    return Call("void", global_var, list(args))


@with_span
def call_pure_extern(dtype: str, func_name: str, *args: Any, span: Any = None) -> Call:
    """Call of a C function that only computes its result."""
    return Call(dtype, "tir.call_pure_extern", [StringImm(func_name), *args])


# Intrinsics whose short name is the whole one; those of others end in the type they are for.
_LLVM_WITHOUT_TYPE = ("llvm.readcyclecounter", "llvm.readsteadycounter", "llvm.trap")


def _llvm_arguments(
    dtype: str, name: str | StringImm | int | IntImm, args: Sequence[Any]
) -> list[Any]:
    """Full name and arguments of an LLVM intrinsic."""
    if isinstance(name, StringImm):
        name = str(name.value)
    elif not isinstance(name, str):
        name = llvm_get_intrinsic_name(int(name))
    first = args[0] if args else None
    # Where TVM asks for the number of arguments that make the signature; LLVM knows it.
    if isinstance(first, IntImm) and first.dtype == "uint32" and 0 <= first.value < len(args):
        args = args[1:]
    result = DataType(dtype)
    short = name.count(".") == 1 and name not in _LLVM_WITHOUT_TYPE
    if short and result.kind in ("int", "uint", "bool", "float"):
        element = f"f{result.bits}" if result.kind == "float" else f"i{result.bits}"
        name += f".v{result.lanes}{element}" if result.lanes > 1 else f".{element}"
    return [StringImm(name), *args]


@with_span
def call_llvm_pure_intrin(
    dtype: str, name: str | StringImm | int | IntImm, *args: Any, span: Any = None
) -> Call:
    """Call of an LLVM intrinsic without effects.

    Parameters
    ----------
    dtype : of the result.
    name : "llvm.fma", which is taken for the type of the result, or in full "llvm.fma.v8f32"; or
        its number, see `llvm_lookup_intrinsic_id`.
    args : its arguments. A first one of type uint32 that counts others, as TVM asks for, is left
        out.
    """
    return Call(dtype, "tir.call_llvm_pure_intrin", _llvm_arguments(dtype, name, args))


@with_span
def call_llvm_intrin(
    dtype: str, name: str | StringImm | int | IntImm, *args: Any, span: Any = None
) -> Call:
    """The same of an LLVM intrinsic that may read or write memory."""
    return Call(dtype, "tir.call_llvm_intrin", _llvm_arguments(dtype, name, args))


@with_span
def call_packed(func_name: str, *args: Any, span: Any = None) -> Call:
    """Call of the global function `func_name`; the result is an int32.

    Arguments are numbers, text, handles, and buffers, which arrive as arrays during the call.
    """
    arguments = [_as_array(arg) if isinstance(arg, Buffer) else arg for arg in args]
    return Call("int32", "tir.tvm_call_packed", [StringImm(func_name), *arguments])


@with_span
def call_cpacked(func_name: str, *args: Any, span: Any = None) -> Call:
    """Call of the C function `func_name` of the linked program, which takes what a packed function
    takes: ``int func_name(const TVMAny* args, int32_t count, TVMAny* ret)``.

    The same as `call_packed`, without the table of global functions; other functions of the module
    that have this calling convention can be called by their symbol.
    """
    arguments = [_as_array(arg) if isinstance(arg, Buffer) else arg for arg in args]
    return Call("int32", "tir.tvm_call_cpacked", [StringImm(func_name), *arguments])


@with_span
def call_cpacked_lowered(*args: Any, span: Any = None) -> Call:
    """`call_cpacked` of arguments that are in an array already, see `call_packed_lowered`."""
    name, *rest = args
    text = StringImm(name) if isinstance(name, str) else name
    return Call("int32", "tir.tvm_call_cpacked_lowered", [text, *rest])


@with_span
def call_packed_lowered(*args: Any, span: Any = None) -> Call:
    """Call of a packed function whose arguments are in an array already.

    Parameters
    ----------
    args : name of the function, the array (`tvm_stack_alloca`), and the first argument and the one
        beyond the last in it, which receives the result.
    """
    name, *rest = args
    text = StringImm(name) if isinstance(name, str) else name
    return Call("int32", "tir.tvm_call_packed_lowered", [text, *rest])


def _as_array(buffer: Buffer) -> Call:
    """A buffer as an array for the time of a call."""
    shape = Call("handle", "tir.tvm_stack_make_shape", list(buffer.shape))
    strides = (
        Call("handle", "tir.tvm_stack_make_shape", list(buffer.strides))
        if len(buffer.strides)
        else const(0)
    )
    kind = const(0, buffer.dtype)
    arguments = [buffer.data, shape, strides, len(buffer.shape), kind, buffer.elem_offset]
    return Call("handle", "tir.tvm_stack_make_array", arguments)


def trace(args: Sequence[Any], trace_action: str = "tvm.default_trace_action") -> Call:
    """The last of several values, shown to a global function when it is computed.

    Parameters
    ----------
    args : numbers; the last one is the value of the expression.
    trace_action : gets them all. What it returns, unless None, takes the place of the value.

    Raises
    ------
    TypeError : `args` is no list. ValueError : it is empty.
    """
    if not isinstance(args, list | tuple):
        raise TypeError(f"trace: args is a list of expressions, got {type(args).__name__}")
    if not args:
        raise ValueError("trace: there is no value to trace")
    values = [convert(arg) for arg in args]
    names = [StringImm("runtime.Trace"), StringImm(trace_action)]
    return Call(values[-1].dtype, "tir.tvm_call_packed", [*names, *values])


@with_span
def ret(val: Any, span: Any = None) -> Call:
    """Leave the function with `val`."""
    val = convert(val)
    return Call(val.dtype, "tir.ret", [val])


def exp(x: Any) -> PrimExpr:
    """e to the power x; x is floating point."""
    return _ffi_api.exp(convert(x))


def exp2(x: Any) -> PrimExpr:
    """2 to the power x."""
    return _ffi_api.exp2(convert(x))


def exp10(x: Any) -> PrimExpr:
    """10 to the power x."""
    return _ffi_api.exp10(convert(x))


def erf(x: Any) -> PrimExpr:
    """Gauss error function."""
    return _ffi_api.erf(convert(x))


def tanh(x: Any) -> PrimExpr:
    """Hyperbolic tangent."""
    return _ffi_api.tanh(convert(x))


def sigmoid(x: Any) -> PrimExpr:
    """1 / (1 + exp(-x))."""
    return _ffi_api.sigmoid(convert(x))


def log(x: Any) -> PrimExpr:
    """Natural logarithm."""
    return _ffi_api.log(convert(x))


def log2(x: Any) -> PrimExpr:
    """Logarithm to base 2."""
    return _ffi_api.log2(convert(x))


def log10(x: Any) -> PrimExpr:
    """Logarithm to base 10."""
    return _ffi_api.log10(convert(x))


def log1p(x: Any) -> PrimExpr:
    """log(1 + x), accurate near zero."""
    return _ffi_api.log1p(convert(x))


def sqrt(x: Any) -> PrimExpr:
    """Square root."""
    return _ffi_api.sqrt(convert(x))


def rsqrt(x: Any) -> PrimExpr:
    """1 / sqrt(x)."""
    return _ffi_api.rsqrt(convert(x))


def cos(x: Any) -> PrimExpr:
    """Cosine."""
    return _ffi_api.cos(convert(x))


def sin(x: Any) -> PrimExpr:
    """Sine."""
    return _ffi_api.sin(convert(x))


def tan(x: Any) -> PrimExpr:
    """Tangent."""
    return _ffi_api.tan(convert(x))


def acos(x: Any) -> PrimExpr:
    """Arc cosine."""
    return _ffi_api.acos(convert(x))


def asin(x: Any) -> PrimExpr:
    """Arc sine."""
    return _ffi_api.asin(convert(x))


def atan(x: Any) -> PrimExpr:
    """Arc tangent."""
    return _ffi_api.atan(convert(x))


def atan2(y: Any, x: Any) -> PrimExpr:
    """Angle of the point (x, y)."""
    return _ffi_api.atan2(*_operands(y, x))


def cosh(x: Any) -> PrimExpr:
    """Hyperbolic cosine."""
    return _ffi_api.cosh(convert(x))


def sinh(x: Any) -> PrimExpr:
    """Hyperbolic sine."""
    return _ffi_api.sinh(convert(x))


def acosh(x: Any) -> PrimExpr:
    """Inverse hyperbolic cosine."""
    return _ffi_api.acosh(convert(x))


def asinh(x: Any) -> PrimExpr:
    """Inverse hyperbolic sine."""
    return _ffi_api.asinh(convert(x))


def atanh(x: Any) -> PrimExpr:
    """Inverse hyperbolic tangent."""
    return _ffi_api.atanh(convert(x))


@with_span
def floor(x: Any, span: Any = None) -> PrimExpr:
    """Largest whole number that is not above x; an integer stays as it is."""
    return _ffi_api.floor(convert(x))


@with_span
def ceil(x: Any, span: Any = None) -> PrimExpr:
    """Smallest whole number that is not below x."""
    return _ffi_api.ceil(convert(x))


@with_span
def trunc(x: Any, span: Any = None) -> PrimExpr:
    """x without its fraction."""
    return _ffi_api.trunc(convert(x))


@with_span
def round(x: Any, span: Any = None) -> PrimExpr:
    """Nearest whole number, halves away from zero."""
    return _ffi_api.round(convert(x))


@with_span
def nearbyint(x: Any, span: Any = None) -> PrimExpr:
    """Nearest whole number, halves to even."""
    return _ffi_api.nearbyint(convert(x))


@with_span
def abs(x: Any, span: Any = None) -> PrimExpr:
    """Absolute value."""
    return _ffi_api.abs(convert(x))


@with_span
def isnan(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is not a number; False for integers."""
    return _ffi_api.isnan(convert(x))


@with_span
def isfinite(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is neither infinite nor NaN; True for integers."""
    return _within_range(convert(x), finite=True)


@with_span
def isinf(x: Any, span: Any = None) -> PrimExpr:
    """Whether x is an infinity of either sign; False for integers."""
    return _within_range(convert(x), finite=False)


def _within_range(x: PrimExpr, finite: bool) -> PrimExpr:
    dtype = str(x.dtype)
    if not dtype.startswith(("float", "bfloat")):
        lanes = dtype.partition("x")[2]
        return const(finite, f"boolx{lanes}" if lanes else "bool")
    # Both comparisons with NaN are false.
    bound = max_value(dtype)
    return abs(x) <= bound if finite else abs(x) > bound


def clz(x: Any) -> PrimExpr:
    """Number of zero bits of an integer before its first set one, as int32."""
    return _ffi_api.clz(convert(x))


def popcount(x: Any) -> PrimExpr:
    """Number of set bits of an integer."""
    return _ffi_api.popcount(convert(x))


@with_span
def pow(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """x to the power y."""
    return _ffi_api._OpPow(*_operands(x, y))


power = pow


def fmod(x: Any, y: Any) -> PrimExpr:
    """Remainder of x / y with the sign of x."""
    return _ffi_api.fmod(*_operands(x, y))


def fma(x: Any, y: Any, z: Any) -> PrimExpr:
    """x * y + z, rounded once; targets without an instruction for it call a library function."""
    x, y = _operands(x, y)
    return _ffi_api.fma(x, y, _number_like(z, x))


_HALVES = ("float16", "bfloat16")


def _library_call(name: str, x: Any, *others: Any) -> PrimExpr:
    """A call of a function of C's mathematical library, which has one for each floating type.

    Numbers of 16 bits are computed in float32 and rounded.
    """
    if str(x.dtype) in _HALVES:
        wide = [o.astype("float32") if str(o.dtype) in _HALVES else o for o in (x, *others)]
        return _library_call(name, *wide).astype(str(x.dtype))
    suffix = {"float32": "f", "float64": ""}.get(str(x.dtype))
    if suffix is None:
        raise TypeError(f"{name}: computed of floating-point numbers, got {x} of {x.dtype}")
    return call_pure_extern(x.dtype, name + suffix, x, *others)


def nextafter(x1: Any, x2: Any) -> PrimExpr:
    """The number next to x1 in the direction of x2."""
    x1, x2 = _operands(x1, x2)
    if str(x1.dtype) not in _HALVES:
        return _library_call("nextafter", x1, x2)
    # Without their sign, patterns of 16 bits are in the order of the numbers.
    sign = 0x8000
    pattern = reinterpret("uint16", x1).astype("int32")
    place = Select(pattern >= sign, sign - pattern, pattern)
    moved = place + Select(x1 < x2, 1, 0) - Select(x2 < x1, 1, 0)
    negative = any(moved < 0, all(moved == 0, x1 < const(0, x1.dtype)))
    stepped = Select(negative, sign - moved, moved).astype("uint16")
    result = Select(x1 == x2, x2, reinterpret(x1.dtype, stepped))
    return Select(any(isnan(x1), isnan(x2)), x1 + x2, result)


def copysign(x1: Any, x2: Any) -> PrimExpr:
    """x1 with the sign of x2."""
    return _library_call("copysign", *_operands(x1, x2))


def hypot(x1: Any, x2: Any) -> PrimExpr:
    """The square root of x1 * x1 + x2 * x2, without overflow in between."""
    return _library_call("hypot", *_operands(x1, x2))


def ldexp(x1: Any, x2: Any) -> PrimExpr:
    """x1 times 2 to the power x2, an int32."""
    return _library_call("ldexp", convert(x1), convert(x2))


def q_multiply_shift(x: Any, y: Any, q: Any, s: Any) -> PrimExpr:
    """``x * y * 2**(s - q)`` of int32 numbers, rounded to the nearest integer, halves up.

    Parameters
    ----------
    y : a number with `q` bits behind its point.
    s : bits to shift by, to the left where it is positive.
    """
    x = convert(x)
    return Call(x.dtype, "tir.q_multiply_shift", [x, *map(convert, (y, q, s))])


def q_multiply_shift_per_axis(
    x: Any, y: Any, ls: Any, rs: Any, q: Any, is_lshift_required: Any, is_rshift_required: Any
) -> PrimExpr:
    """``(x << ls) * y * 2**(-q - rs)``, rounded to the nearest integer, halves up.

    Parameters
    ----------
    is_lshift_required, is_rshift_required : constants; without them, `ls` and `rs` count as 0.
    """
    x = convert(x)
    flags = [const(bool(flag), "bool") for flag in (is_lshift_required, is_rshift_required)]
    return Call(
        x.dtype, "tir.q_multiply_shift_per_axis", [x, *map(convert, (y, ls, rs, q)), *flags]
    )


@with_span
def cast(src: Any, dtype: str, span: Any = None) -> PrimExpr:
    """`src` as `dtype`; the same object when the type is right."""
    return convert(src).astype(dtype)


@with_span
def add(lhs: Any, rhs: Any, span: Any = None) -> PrimExpr:
    """lhs + rhs, numbers taking the type of the other operand."""
    return _ffi_api._OpAdd(*_operands(lhs, rhs))


@with_span
def subtract(lhs: Any, rhs: Any, span: Any = None) -> PrimExpr:
    """lhs - rhs."""
    return _ffi_api._OpSub(*_operands(lhs, rhs))


@with_span
def multiply(lhs: Any, rhs: Any, span: Any = None) -> PrimExpr:
    """lhs * rhs."""
    return _ffi_api._OpMul(*_operands(lhs, rhs))


@with_span
def left_shift(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """x shifted left by y bits."""
    return _ffi_api.left_shift(*_operands(x, y))


@with_span
def right_shift(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """x shifted right by y bits; the sign is kept."""
    return _ffi_api.right_shift(*_operands(x, y))


shift_left = left_shift
shift_right = right_shift


@with_span
def bitwise_and(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """Bits set in both."""
    return _ffi_api.bitwise_and(*_operands(x, y))


@with_span
def bitwise_or(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """Bits set in either."""
    return _ffi_api.bitwise_or(*_operands(x, y))


@with_span
def bitwise_xor(x: Any, y: Any, span: Any = None) -> PrimExpr:
    """Bits set in one only."""
    return _ffi_api.bitwise_xor(*_operands(x, y))


@with_span
def bitwise_not(x: Any, span: Any = None) -> PrimExpr:
    """All bits flipped."""
    return _ffi_api.bitwise_not(convert(x))


@with_span
def address_of(buffer_load: BufferLoad, span: Any = None) -> PrimExpr:
    """Pointer to the element that `buffer_load` reads, for calls of C functions."""
    if not isinstance(buffer_load, BufferLoad):
        raise TypeError(
            f"address_of: expected a BufferLoad such as B[i], got {type(buffer_load).__name__}"
        )
    return Call("handle", "tir.address_of", [buffer_load])


@with_span
def isnullptr(x: Any, span: Any = None) -> PrimExpr:
    """Whether a handle is null."""
    return Call("bool", "tir.isnullptr", [convert(x)])


@with_span
def reinterpret(dtype: str, value: Any, span: Any = None) -> PrimExpr:
    """The bits of `value` as another type of the same size."""
    return _ffi_api.reinterpret(dtype, convert(value))


@with_span
def if_then_else(cond: Any, t: Any, f: Any, span: Any = None) -> PrimExpr:
    """`t` if `cond` else `f`; only the chosen one is evaluated. The condition is a scalar."""
    t, f = _operands(t, f)
    return _ffi_api._OpIfThenElse(convert(cond), t, f)


@with_span
def likely(cond: Any, span: Any = None) -> PrimExpr:
    """`cond`, marked as nearly always true."""
    return _ffi_api.likely(convert(cond))


@with_span
def div(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Division of the language C: toward zero for integers."""
    return _ffi_api._OpDiv(*_operands(a, b))


@with_span
def truncdiv(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Integer division toward zero."""
    return _ffi_api._OpTruncDiv(*_operands(a, b))


@with_span
def truncmod(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Remainder of truncdiv; the sign follows `a`."""
    return _ffi_api._OpTruncMod(*_operands(a, b))


@with_span
def floordiv(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Integer division toward minus infinity."""
    return _ffi_api._OpFloorDiv(*_operands(a, b))


@with_span
def floormod(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Remainder of floordiv; the sign follows `b`."""
    return _ffi_api._OpFloorMod(*_operands(a, b))


@with_span
def ceildiv(lhs: Any, rhs: Any, span: Any = None) -> PrimExpr:
    """Integer division toward plus infinity."""
    return _ffi_api._OpCeilDiv(*_operands(lhs, rhs))


@with_span
def indexdiv(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Division of an index: floordiv."""
    return _ffi_api._OpIndexDiv(*_operands(a, b))


@with_span
def indexmod(a: Any, b: Any, span: Any = None) -> PrimExpr:
    """Remainder of an index: floormod."""
    return _ffi_api._OpIndexMod(*_operands(a, b))


@with_span
def all(*args: Any, span: Any = None) -> PrimExpr:
    """Whether all conditions hold; all are evaluated.

    Raises
    ------
    ValueError : no condition is given.
    """
    if not args:
        raise ValueError("all: give at least one condition")
    return _fold(_ffi_api._OpAnd, [convert(arg) for arg in args])


@with_span
def any(*args: Any, span: Any = None) -> PrimExpr:
    """Whether at least one condition holds; all are evaluated.

    Raises
    ------
    ValueError : no condition is given.
    """
    if not args:
        raise ValueError("any: give at least one condition")
    return _fold(_ffi_api._OpOr, [convert(arg) for arg in args])


@with_span
def max_value(dtype: str, span: Any = None) -> PrimExpr:
    """Largest finite value of a type."""
    return _ffi_api.max_value(dtype)


@with_span
def min_value(dtype: str, span: Any = None) -> PrimExpr:
    """Smallest finite value of a type."""
    parts = DataType(str(dtype))
    if parts.kind.startswith("custom"):
        name = parts.kind[len("custom[") : -1]
        return tvm.get_global_func(f"tvm.datatype.min.{name}")(parts.bits)
    return _ffi_api.min_value(dtype)


@with_span
def infinity(dtype: str, span: Any = None) -> PrimExpr:
    """Positive infinity of a floating point type."""
    return _ffi_api.infinity(dtype)


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """A reduction by a commutative, associative operator.

    Parameters
    ----------
    fcombine : maps two values, or two tuples of values, to one.
    fidentity : maps the dtype (one each for tuples) to the value that changes nothing.

    Returns
    -------
    A function ``reduce(expr, axis, where=None, init=None)``: `expr` is an expression or a tuple of
    them, `axis` one reduction axis or several. A tuple gives a list with one Reduce a value.
    Applied to plain values, ``reduce(a, b)``, it combines them.
    """

    def combiner_of(dtypes: Sequence[str], is_tuple: bool) -> CommReducer:
        lhs = [Var(f"x{i}" if is_tuple else "x", dtype) for i, dtype in enumerate(dtypes)]
        rhs = [Var(f"y{i}" if is_tuple else "y", dtype) for i, dtype in enumerate(dtypes)]
        if is_tuple:
            result = list(fcombine(lhs, rhs))
            identity = list(fidentity(*dtypes))
        else:
            result = [fcombine(lhs[0], rhs[0])]
            identity = [fidentity(dtypes[0])]
        if len(result) != len(dtypes) or len(identity) != len(dtypes):
            raise ValueError(
                f"{name}: {len(dtypes)} values are reduced, fcombine gives {len(result)} and "
                f"fidentity {len(identity)}"
            )
        values = [_number_like(v, x) for v, x in zip(result, lhs)]
        start = [_number_like(v, x) for v, x in zip(identity, lhs)]
        return CommReducer(lhs, rhs, values, start)

    def over_axes(expr: Any, axis: Any, where: Any, init: Any) -> Any:
        is_tuple = isinstance(expr, tuple | list)
        source = [convert(e) for e in (expr if is_tuple else [expr])]
        axes = list(axis) if not isinstance(axis, IterVar) else [axis]
        combiner = combiner_of([e.dtype for e in source], is_tuple)
        where = const(True) if where is None else convert(where)
        starts: list[Any] = []
        if init is not None:
            starts = list(init) if isinstance(init, tuple | list) else [init]
            starts = [_number_like(v, e) for v, e in zip(starts, source)]
        outputs = [Reduce(combiner, source, axes, where, i, starts) for i in range(len(source))]
        return outputs if is_tuple else outputs[0]

    def reducer(expr: Any, axis: Any, where: Any = None, init: Any = None, *args: Any) -> Any:
        if isinstance(axis, IterVar) or (
            isinstance(axis, Sequence | tvm.ir.Array)
            and len(axis) > 0
            and builtins.all(isinstance(iv, IterVar) for iv in axis)
        ):
            if args:
                raise TypeError(f"{name}(expr, axis): unexpected positional arguments {args}")
            return over_axes(expr, axis, where, init)
        # Applied to values, the places of `where` and `init` hold further ones.
        more = [value for value in (where, init) if value is not None]
        return _fold(fcombine, (expr, axis, *more, *args))

    reducer.__name__ = name
    reducer.__doc__ = f"Reduction `{name}` over axes; see :func:`tvm.tir.comm_reducer`."
    return reducer


sum = comm_reducer(lambda x, y: x + y, lambda t: const(0, t), name="sum")
min = comm_reducer(lambda x, y: _ffi_api._OpMin(*_operands(x, y)), max_value, name="min")
max = comm_reducer(lambda x, y: _ffi_api._OpMax(*_operands(x, y)), min_value, name="max")
