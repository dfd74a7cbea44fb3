"""Expressions of tensor programs, with Python's operators on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import tvm._ffi
from tvm.ir import FloatImm, IntImm, PrimExpr, Range
from tvm.ir.expr import ConstExpr
from tvm.ir.script_text import Scriptable
from tvm.runtime import Object

from . import _ffi_api

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "Broadcast",
    "BufferLoad",
    "Call",
    "Cast",
    "CommReducer",
    "Div",
    "ExprOp",
    "FloatImm",
    "FloorDiv",
    "FloorMod",
    "IntImm",
    "IterVar",
    "Let",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Not",
    "Or",
    "PrimExpr",
    "ProducerLoad",
    "Ramp",
    "Reduce",
    "Select",
    "Shuffle",
    "SizeVar",
    "StringImm",
    "Sub",
    "Var",
    "const",
    "convert",
]

_LARGEST_FLOAT32 = float(np.finfo("float32").max)


def const(value: bool | int | float, dtype: str | None = None) -> PrimExpr:
    """A constant; without `dtype` an int is int32, a float float32 and a bool bool.

    A scalar of NumPy keeps its type, and an int or a finite float beyond 32 bits gets 64. From
    2**63 on a constant of uint64 is a call of `tir.large_uint_imm`, no IntImm.

    Raises
    ------
    ValueError : the value does not fit the type.
    TypeError : the value has no counterpart in the type, such as 0.5 in int32.
    """
    if dtype is None:
        dtype = str(value.dtype) if isinstance(value, np.generic) else _default_dtype(value)
    if _is_int(value):
        if dtype == "uint64" and 2**63 <= int(value) < 2**64:
            high, low = divmod(int(value), 2**32)
            halves = [_ffi_api._const_int(half, "uint32") for half in (low, high)]
            return Call(dtype, "tir.large_uint_imm", halves)
        return _ffi_api._const_int(int(value), dtype)
    return _ffi_api._const_float(float(value), dtype)


def _default_dtype(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "bool"
    if _is_int(value):
        return "int32" if -(2**31) <= int(value) < 2**31 else "int64"
    finite = math.isfinite(value)
    return "float64" if finite and abs(float(value)) > _LARGEST_FLOAT32 else "float32"


def _is_int(value: Any) -> bool:
    # numpy's integers are no int, but say exactly which int they stand for.
    return not isinstance(value, float) and hasattr(value, "__index__")


def _is_number(value: Any) -> bool:
    return _is_int(value) or isinstance(value, float) or hasattr(value, "__float__")


def convert(value: Any) -> Any:
    """`value` as an expression: numbers become constants, text a StringImm."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, IterVar):
        return value.var
    if isinstance(value, str):
        return StringImm(value)
    if hasattr(value, "asobject"):
        # For example a slice of a tensor. A buffer stands for its memory among expressions.
        node = value.asobject()
        return node.data if hasattr(node, "access_ptr") else node
    if _is_number(value):
        # Other than `const`: an extent given by NumPy does not make indices 64 bits wide.
        return const(value, _default_dtype(value))
    if isinstance(value, list | tuple):
        return [convert(item) for item in value]
    return value


def _number_like(value: Any, other: PrimExpr) -> Any:
    """A Python number in the type of the expression it meets, anything else converted."""
    if isinstance(value, PrimExpr) or hasattr(value, "asobject") or not _is_number(value):
        return convert(value)
    dtype = str(other.dtype)
    if isinstance(value, bool):
        return const(value)
    if dtype.startswith("bool"):
        return const(value)
    if not _is_int(value) and not dtype.startswith(("float", "bfloat")):
        return const(value, "float32")
    if dtype == "int32" and _is_int(value):
        # Beyond 32 bits both become int64, as two expressions of these types do.
        dtype = _default_dtype(int(value))
    return const(value, dtype)


def _is_scalar_index(expr: PrimExpr) -> bool:
    return str(expr.dtype).startswith(("int", "uint", "bool"))


class ExprOp:
    """Python's operators, building expressions with promotion and constant folding."""

    dtype: str

    def _binary(self, func: Any, other: Any) -> PrimExpr:
        this = convert(self)
        that = _number_like(other, this)
        if not isinstance(that, PrimExpr):
            return NotImplemented
        return func(this, that)

    def _swapped(self, func: Any, other: Any) -> PrimExpr:
        this = convert(self)
        that = _number_like(other, this)
        if not isinstance(that, PrimExpr):
            return NotImplemented
        return func(that, this)

    def __add__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpAdd, other)

    def __radd__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api._OpAdd, other)

    def __sub__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpSub, other)

    def __rsub__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api._OpSub, other)

    def __mul__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpMul, other)

    def __rmul__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api._OpMul, other)

    def __truediv__(self, other: Any) -> PrimExpr:
        return self._binary(_true_divide, other)

    def __rtruediv__(self, other: Any) -> PrimExpr:
        return self._swapped(_true_divide, other)

    def __floordiv__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpFloorDiv, other)

    def __rfloordiv__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api._OpFloorDiv, other)

    def __mod__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpFloorMod, other)

    def __rmod__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api._OpFloorMod, other)

    def __neg__(self) -> PrimExpr:
        return _ffi_api._OpNeg(convert(self))

    def __lshift__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api.left_shift, other)

    def __rlshift__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api.left_shift, other)

    def __rshift__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api.right_shift, other)

    def __rrshift__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api.right_shift, other)

    def __and__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api.bitwise_and, other)

    def __rand__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api.bitwise_and, other)

    def __or__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api.bitwise_or, other)

    def __ror__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api.bitwise_or, other)

    def __xor__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api.bitwise_xor, other)

    def __rxor__(self, other: Any) -> PrimExpr:
        return self._swapped(_ffi_api.bitwise_xor, other)

    def __invert__(self) -> PrimExpr:
        this = convert(self)
        if str(this.dtype).startswith("float"):
            raise TypeError(f"~ is for integers, got {this} of {this.dtype}")
        return _ffi_api.bitwise_not(this)

    def __lt__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpLT, other)

    def __le__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpLE, other)

    def __gt__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpGT, other)

    def __ge__(self, other: Any) -> PrimExpr:
        return self._binary(_ffi_api._OpGE, other)

    # == and != build expressions too. Containers need their truth value, which is identity: see
    # EQ and NE.
    def __eq__(self, other: object) -> Any:
        return self._compare(other, _ffi_api._OpEQ, True)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, _ffi_api._OpNE, False)

    def _compare(self, other: Any, func: Any, equal: bool) -> Any:
        this = convert(self)
        that = _number_like(other, this) if other is not None else None
        if not isinstance(that, PrimExpr):
            return NotImplemented
        if "handle" in (str(this.dtype), str(that.dtype)):
            return this.same_as(that) == equal
        return func(this, that)

    __hash__ = Object.__hash__

    def __bool__(self) -> bool:
        raise ValueError(
            f"{self} has no truth value before it runs; use tvm.tir.all, tvm.tir.any, "
            "tvm.tir.if_then_else or tvm.tir.Select"
        )

    __nonzero__ = __bool__

    def equal(self, other: Any) -> PrimExpr:
        """The expression self == other, also where Python would want a truth value."""
        return self._binary(_ffi_api._OpEQ, other)

    def astype(self, dtype: str) -> PrimExpr:
        """Conversion to `dtype`; the same object when the type is right."""
        return _ffi_api._cast(dtype, convert(self))


def _true_divide(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    if _is_scalar_index(a) and _is_scalar_index(b):
        raise RuntimeError(
            f"{a} / {b}: dividing integers is ambiguous; use // (floor), tvm.tir.truncdiv (C), or "
            "astype('float32') first"
        )
    return _ffi_api._OpDiv(a, b)


def _install_operators() -> None:
    # Literals and base classes live under this package; giving the one base class the operators
    # gives them to every expression, whichever package registers it.
    for name, member in vars(ExprOp).items():
        if name in ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__"):
            continue
        setattr(PrimExpr, name, member)


_install_operators()


class PrimExprWithOp(PrimExpr):
    """Base of the expressions of this package."""

    __hash__ = Object.__hash__


@tvm._ffi.register_object("tir.Var")
class Var(PrimExprWithOp):
    """A variable; identity is the object, not the name.

    Parameters
    ----------
    name : text to print.
    dtype : "int32", or a Type such as a pointer type.
    """

    def __init__(self, name: str, dtype: Any = "int32", span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Var, name, dtype)

    @property
    def name(self) -> str:
        """The name it prints as."""
        return self.name_hint


@tvm._ffi.register_object("tir.SizeVar")
class SizeVar(Var):
    """An integer variable that is at least one.

    Parameters
    ----------
    kind : 0 shape variable, 1 schedule knob, 2 shorthand, 3 quotient, 4 other.
    """

    SHAPE, KNOB, SHORTHAND, QUOTIENT, OTHER = range(5)

    def __init__(self, name: str, dtype: str = "int32", span: Any = None, kind: int = 4) -> None:
        self.__init_handle_by_constructor__(_ffi_api.SizeVar, name, dtype, kind)


@tvm._ffi.register_object("tir.IterVar")
class IterVar(ExprOp, Object, Scriptable):
    """An axis: a variable, its domain and its iteration type. Used as an index it is its variable.

    Parameters
    ----------
    dom : Range, or (min, end) pair, or None.
    var : Var, or the name of a new one.
    iter_type : one of DataPar, ThreadIndex, CommReduce, Ordered, DimInfo (opaque), Unrolled,
        Vectorized, Parallelized, Tensorized.
    """

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    DimInfo = 4
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8

    def __init__(
        self, dom: Any, var: Any, iter_type: int, thread_tag: str = "", span: Any = None
    ) -> None:
        if dom is not None and not isinstance(dom, Range):
            if not isinstance(dom, list | tuple) or len(dom) != 2:
                raise TypeError(f"IterVar: dom must be a Range or a (min, end) pair, got {dom!r}")
            dom = Range(dom[0], dom[1])
        if not isinstance(var, Var):
            var = Var(str(var), dom.extent.dtype if dom is not None else "int32")
        self.__init_handle_by_constructor__(_ffi_api.IterVar, dom, var, iter_type, thread_tag)

    def __getattr__(self, name: str) -> Any:
        if name == "for_type":
            raise AttributeError(
                "IterVar has no for_type: iter_type is the kind of the axis, and the marks of a "
                "schedule are in stage.iter_var_attrs[axis].iter_type"
            )
        return super().__getattribute__(name)

    @property
    def dtype(self) -> str:  # type: ignore[override]
        """Type of the axis's variable."""
        return self.var.dtype

    # An axis is a key of schedules' tables, so == is identity and not an expression.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Object) and self.same_as(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = Object.__hash__


@tvm._ffi.register_object("tir.StringImm")
class StringImm(ConstExpr):
    """Text as an argument of a call."""

    def __init__(self, value: str, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.StringImm, value)

    # A text is what it says.
    def __eq__(self, other: object) -> bool:
        if isinstance(other, StringImm):
            return self.value == other.value
        return isinstance(other, str) and self.value == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)


@tvm._ffi.register_object("tir.Cast")
class Cast(PrimExprWithOp):
    """Conversion to `dtype`; float to integer truncates."""

    def __init__(self, dtype: str, value: Any, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Cast, dtype, convert(value))


class BinaryOpExpr(PrimExprWithOp):
    """Base of operators with operands `a` and `b` of one type, which they do not convert."""

    _make: str

    def __init__(self, a: Any, b: Any, span: Any = None) -> None:
        a, b = _operands(a, b)
        self.__init_handle_by_constructor__(getattr(_ffi_api, self._make), a, b)


class CmpExpr(BinaryOpExpr):
    """Base of comparisons."""


class LogicalExpr(PrimExprWithOp):
    """Base of the operators on conditions."""


def _operands(a: Any, b: Any) -> tuple[PrimExpr, PrimExpr]:
    if _is_number(a) and not isinstance(a, PrimExpr) and isinstance(b, PrimExpr):
        a = _number_like(a, b)
    a = convert(a)
    return a, _number_like(b, a)


@tvm._ffi.register_object("tir.Add")
class Add(BinaryOpExpr):
    """a + b."""

    _make = "Add"


@tvm._ffi.register_object("tir.Sub")
class Sub(BinaryOpExpr):
    """a - b."""

    _make = "Sub"


@tvm._ffi.register_object("tir.Mul")
class Mul(BinaryOpExpr):
    """a * b."""

    _make = "Mul"


@tvm._ffi.register_object("tir.Div")
class Div(BinaryOpExpr):
    """a / b; integers round toward zero."""

    _make = "Div"


@tvm._ffi.register_object("tir.Mod")
class Mod(BinaryOpExpr):
    """Remainder of Div; the sign follows `a`."""

    _make = "Mod"


@tvm._ffi.register_object("tir.FloorDiv")
class FloorDiv(BinaryOpExpr):
    """a // b, rounding toward minus infinity."""

    _make = "FloorDiv"


@tvm._ffi.register_object("tir.FloorMod")
class FloorMod(BinaryOpExpr):
    """Remainder of FloorDiv; the sign follows `b`."""

    _make = "FloorMod"


@tvm._ffi.register_object("tir.Min")
class Min(BinaryOpExpr):
    """The smaller operand; NaN where one is."""

    _make = "Min"


@tvm._ffi.register_object("tir.Max")
class Max(BinaryOpExpr):
    """The larger operand; NaN where one is."""

    _make = "Max"


@tvm._ffi.register_object("tir.EQ")
class EQ(CmpExpr):
    """a == b. Its truth value says whether `a` and `b` are the same object."""

    _make = "EQ"

    def __bool__(self) -> bool:
        return self.a.same_as(self.b)


@tvm._ffi.register_object("tir.NE")
class NE(CmpExpr):
    """a != b. Its truth value says whether `a` and `b` are different objects."""

    _make = "NE"

    def __bool__(self) -> bool:
        return not self.a.same_as(self.b)


@tvm._ffi.register_object("tir.LT")
class LT(CmpExpr):
    """a < b."""

    _make = "LT"


@tvm._ffi.register_object("tir.LE")
class LE(CmpExpr):
    """a <= b."""

    _make = "LE"


@tvm._ffi.register_object("tir.GT")
class GT(CmpExpr):
    """a > b."""

    _make = "GT"


@tvm._ffi.register_object("tir.GE")
class GE(CmpExpr):
    """a >= b."""

    _make = "GE"


@tvm._ffi.register_object("tir.And")
class And(BinaryOpExpr, LogicalExpr):
    """Both conditions hold; both are evaluated."""

    _make = "And"


@tvm._ffi.register_object("tir.Or")
class Or(BinaryOpExpr, LogicalExpr):
    """At least one condition holds; both are evaluated."""

    _make = "Or"


@tvm._ffi.register_object("tir.Not")
class Not(LogicalExpr):
    """The condition does not hold."""

    def __init__(self, a: Any, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Not, convert(a))


@tvm._ffi.register_object("tir.Select")
class Select(PrimExprWithOp):
    """One of two values; both are evaluated, so both must be safe. See if_then_else."""

    def __init__(self, condition: Any, true_value: Any, false_value: Any, span: Any = None) -> None:
        true_value, false_value = _operands(true_value, false_value)
        self.__init_handle_by_constructor__(
            _ffi_api.Select, convert(condition), true_value, false_value
        )


@tvm._ffi.register_object("tir.BufferLoad")
class BufferLoad(PrimExprWithOp):
    """Element of a buffer."""

    def __init__(self, buffer: Any, indices: Sequence[Any], span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.BufferLoad, buffer, convert(list(indices)))


@tvm._ffi.register_object("tir.ProducerLoad")
class ProducerLoad(PrimExprWithOp):
    """Element of a tensor."""

    def __init__(self, producer: Any, indices: Sequence[Any], span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ProducerLoad, producer, convert(list(indices)))


@tvm._ffi.register_object("tir.Ramp")
class Ramp(PrimExprWithOp):
    """The vector [base, base + stride, ..., base + (lanes - 1) * stride].

    `lanes` is a number, or a multiple of ``vscale()`` for a scalable vector.
    """

    def __init__(self, base: Any, stride: Any, lanes: Any, span: Any = None) -> None:
        base, stride = _operands(base, stride)
        self.__init_handle_by_constructor__(_ffi_api.Ramp, base, stride, convert(lanes))

    @property
    def lanes(self) -> PrimExpr:
        """Number of lanes: a constant, or ``vscale() * n``."""
        return _ffi_api.LaneCount(self)


@tvm._ffi.register_object("tir.Broadcast")
class Broadcast(PrimExprWithOp):
    """A scalar in every lane; `lanes` is a number, or a multiple of ``vscale()``."""

    def __init__(self, value: Any, lanes: Any, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Broadcast, convert(value), convert(lanes))

    @property
    def lanes(self) -> PrimExpr:
        """Number of lanes: a constant, or ``vscale() * n``."""
        return _ffi_api.LaneCount(self)


@tvm._ffi.register_object("tir.Let")
class Let(PrimExprWithOp):
    """`body` with `var` standing for `value`."""

    def __init__(self, var: Var, value: Any, body: Any, span: Any = None) -> None:
        value = _number_like(value, var)
        self.__init_handle_by_constructor__(_ffi_api.Let, var, value, convert(body))


@tvm._ffi.register_object("tir.Call")
class Call(PrimExprWithOp):
    """Call of an Op (or its name) or of a function of the module (a GlobalVar)."""

    def __init__(self, dtype: str, op: Any, args: Sequence[Any], span: Any = None) -> None:
        if isinstance(op, str):
            op = tvm.ir.Op.get(op)
        self.__init_handle_by_constructor__(_ffi_api.Call, dtype, op, convert(list(args)))


@tvm._ffi.register_object("tir.Shuffle")
class Shuffle(PrimExprWithOp):
    """Lanes of the concatenated `vectors` picked by constant `indices`."""

    def __init__(self, vectors: Sequence[Any], indices: Sequence[Any], span: Any = None) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Shuffle, convert(list(vectors)), convert(list(indices))
        )


@tvm._ffi.register_object("tir.CommReducer")
class CommReducer(Object, Scriptable):
    """A commutative, associative operator on tuples: `result` over `lhs` and `rhs`."""

    def __init__(
        self,
        lhs: Sequence[Var],
        rhs: Sequence[Var],
        result: Sequence[Any],
        identity_element: Sequence[Any],
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.CommReducer,
            list(lhs),
            list(rhs),
            convert(list(result)),
            convert(list(identity_element)),
        )

    def __call__(self, a: Sequence[Any], b: Sequence[Any]) -> list[PrimExpr]:
        """The operator applied to two tuples of values."""
        return list(_ffi_api.CommReducerCombine(self, convert(list(a)), convert(list(b))))


@tvm._ffi.register_object("tir.Reduce")
class Reduce(PrimExprWithOp):
    """Element `value_index` of `src` combined over the axes `rdom` where `condition` holds."""

    def __init__(
        self,
        combiner: CommReducer,
        src: Sequence[Any],
        rdom: Sequence[IterVar],
        condition: Any,
        value_index: int,
        init: Sequence[Any] | None = None,
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Reduce,
            combiner,
            convert(list(src)),
            list(rdom),
            convert(condition),
            value_index,
            convert(list(init or [])),
        )
