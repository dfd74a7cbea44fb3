"""Runs PrimFuncs without a code generator, by translating them to Python.

Every stage of lowering can be run, from loop nests over multi-dimensional buffers to flat,
vectorised code. Memory that a program allocates starts as NaN (or an odd integer), accesses out of
bounds raise, so reading what was never written shows in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm import tir

__all__ = ["StepLimitError", "evaluate", "run_prim_func", "source_of"]

_SCALAR_BINARY = {
    tir.Add: "({a} + {b})",
    tir.Sub: "({a} - {b})",
    tir.Mul: "({a} * {b})",
    tir.FloorDiv: "({a} // {b})",
    tir.FloorMod: "({a} % {b})",
    tir.EQ: "({a} == {b})",
    tir.NE: "({a} != {b})",
    tir.LT: "({a} < {b})",
    tir.LE: "({a} <= {b})",
    tir.GT: "({a} > {b})",
    tir.GE: "({a} >= {b})",
    tir.Min: "_min({a}, {b})",
    tir.Max: "_max({a}, {b})",
    tir.And: "_and({a}, {b})",
    tir.Or: "_or({a}, {b})",
    tir.Div: "_div({a}, {b})",
    tir.Mod: "_mod({a}, {b})",
}


def _is_array(*values: Any) -> bool:
    return any(isinstance(v, np.ndarray) for v in values)


def _div(a: Any, b: Any) -> Any:
    if _is_array(a, b):
        return a / b if np.asarray(a).dtype.kind == "f" else np.trunc(a / b).astype(a.dtype)
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b if b else math.copysign(math.inf, a) if a else math.nan


def _mod(a: Any, b: Any) -> Any:
    return a - _div(a, b) * b


def _cast(value: Any, dtype: str) -> Any:
    scalar = dtype.split("x")[0]
    if isinstance(value, np.ndarray):
        return value.astype(scalar)
    if scalar.startswith(("int", "uint")):
        return int(value)
    return bool(value) if scalar == "bool" else float(np.dtype(scalar).type(value))


_HELPERS: dict[str, Any] = {
    "np": np,
    "math": math,
    "_div": _div,
    "_mod": _mod,
    "_cast": _cast,
    "_min": lambda a, b: np.minimum(a, b) if _is_array(a, b) else min(a, b),
    "_max": lambda a, b: np.maximum(a, b) if _is_array(a, b) else max(a, b),
    # Both operands are evaluated before the call, as the program may do: both have to be safe.
    "_and": lambda a, b: np.logical_and(a, b) if _is_array(a, b) else (a and b),
    "_or": lambda a, b: np.logical_or(a, b) if _is_array(a, b) else (a or b),
    "_not": lambda a: np.logical_not(a) if _is_array(a) else not a,
    "_select": lambda c, a, b: np.where(c, a, b) if _is_array(c, a, b) else (a if c else b),
}

# Functions whose NumPy name differs; any other is looked up in NumPy under its own name.
_CALLS = {
    "fabs": "np.abs",
    "pow": "np.power",
    "asin": "np.arcsin",
    "acos": "np.arccos",
    "atan": "np.arctan",
    "atan2": "np.arctan2",
    "nearbyint": "np.rint",
    "shift_left": "np.left_shift",
    "shift_right": "np.right_shift",
    "bitwise_not": "np.invert",
    "rsqrt": "_rsqrt",
    "sigmoid": "_sigmoid",
    "exp10": "_exp10",
    "erf": "_erf",
    "round": "_round",
    "fma": "_fma",
}

_HELPERS.update(
    _rsqrt=lambda x: 1 / np.sqrt(x),
    _sigmoid=lambda x: 1 / (1 + np.exp(-x)),
    _exp10=lambda x: np.power(10.0, x),
    _erf=np.vectorize(math.erf, otypes=[float]),
    _round=lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    _fma=lambda x, y, z: x * y + z,
)


class StepLimitError(Exception):
    """The program did more stores than it was allowed to."""


class _Memory:
    """Elements of a buffer; bounds that start elsewhere than at zero are shifted."""

    # Stores the running program may still do; one counter for all memory.
    stores = [0]

    def __init__(self, array: np.ndarray, start: tuple[int, ...] = ()) -> None:
        self.array = array
        self.start = start

    def position(self, indices: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.start:
            indices = tuple(i - s for i, s in zip(indices, self.start))
        if len(indices) == 1 and self.array.ndim != 1:
            # A flat access of a parameter.
            self.array = self.array.reshape(-1)
        for index, extent in zip(indices, self.array.shape):
            inside = (
                0 <= index < extent
                if isinstance(index, int)
                else index.min() >= 0 and index.max() < extent
            )
            if not inside:
                raise IndexError(f"index {indices} outside of {self.array.shape}")
        return indices

    def load(self, lanes: int, *indices: Any) -> Any:
        place = self.position(_widen(lanes, indices))
        value = self.array[place]
        return value if isinstance(value, np.ndarray) else value.item()

    def store(self, lanes: int, value: Any, *indices: Any) -> None:
        self.stores[0] -= 1
        if self.stores[0] < 0:
            raise StepLimitError
        place = self.position(_widen(lanes, indices))
        self.array[place] = value


def _widen(lanes: int, indices: tuple[Any, ...]) -> tuple[Any, ...]:
    """Indices of the scalars of one element of a buffer whose elements are vectors."""
    if lanes == 1:
        return indices
    (index,) = indices
    return (index * lanes + np.arange(lanes),)


def _allocate(dtype: str, extents: tuple[int, ...], start: tuple[int, ...] = ()) -> _Memory:
    scalar, _, lanes = dtype.partition("x")
    shape = (math.prod(extents) * int(lanes),) if lanes else extents
    fill = np.nan if scalar.startswith("float") else -123
    return _Memory(np.full(shape, fill).astype(scalar), start)


_HELPERS["_allocate"] = _allocate


def _lanes(buffer: Any) -> int:
    return int(str(buffer.dtype).partition("x")[2] or 1)


class _Translator:
    def __init__(self) -> None:
        self.names: dict[Any, str] = {}
        self.lines: list[str] = []

    def name(self, var: Any) -> str:
        key = var.__hash__(), str(getattr(var, "name_hint", ""))
        if key not in self.names:
            self.names[key] = f"v{len(self.names)}"
        return self.names[key]

    def memory(self, buffer: Any) -> str:
        return "m" + self.name(buffer.data)

    def place(self, access: Any) -> str:
        buffer = access.buffer
        if len(buffer.strides) > 0:
            return f", {self.expr(buffer.offset_of(list(access.indices))[-1])}"
        return "".join(f", {self.expr(e)}" for e in access.indices) or ", 0"

    def expr(self, e: Any) -> str:
        kind = type(e)
        if kind in _SCALAR_BINARY:
            return _SCALAR_BINARY[kind].format(a=self.expr(e.a), b=self.expr(e.b))
        if isinstance(e, tir.Var):
            return self.name(e)
        if isinstance(e, tir.IntImm):
            return str(bool(e.value)) if str(e.dtype) == "bool" else f"({e.value})"
        if isinstance(e, tir.FloatImm):
            value = float(e.value)
            return f"({value!r})" if math.isfinite(value) else f"float('{value}')"
        if isinstance(e, tir.Cast):
            return f"_cast({self.expr(e.value)}, '{e.dtype}')"
        if isinstance(e, tir.Not):
            return f"_not({self.expr(e.a)})"
        if isinstance(e, tir.Select):
            parts = (e.condition, e.true_value, e.false_value)
            return f"_select({', '.join(self.expr(p) for p in parts)})"
        if isinstance(e, tir.BufferLoad):
            return f"{self.memory(e.buffer)}.load({_lanes(e.buffer)}{self.place(e)})"
        if isinstance(e, tir.Ramp):
            return f"({self.expr(e.base)} + {self.expr(e.stride)} * np.arange({e.lanes}))"
        if isinstance(e, tir.Broadcast):
            return f"np.full({e.lanes}, {self.expr(e.value)})"
        if isinstance(e, tir.Let):
            return f"(lambda {self.name(e.var)}: {self.expr(e.body)})({self.expr(e.value)})"
        if isinstance(e, tir.Shuffle):
            vectors = ", ".join(f"np.atleast_1d({self.expr(v)})" for v in e.vectors)
            picks = ", ".join(self.expr(i) for i in e.indices)
            picked = f"np.concatenate([{vectors}])[[{picks}]]"
            return picked if len(e.indices) > 1 else f"{picked}.item()"
        if isinstance(e, tir.Call):
            return self.call(e)
        raise TypeError(f"testing_tir: no translation of {kind.__name__}: {e}")

    def call(self, e: Any) -> str:
        op, args = str(e.op.name), [self.expr(a) for a in e.args]
        if op == "tir.likely":
            return args[0]
        if op == "tir.if_then_else":
            return f"({args[1]} if {args[0]} else {args[2]})"
        name = op.removeprefix("tir.")
        if name in _CALLS or hasattr(np, name):
            return f"{_CALLS.get(name, f'np.{name}')}({', '.join(args)})"
        raise TypeError(f"testing_tir: no translation of call {op}")

    def emit(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def stmt(self, s: Any, depth: int) -> None:
        if isinstance(s, tir.SeqStmt):
            for item in s.seq:
                self.stmt(item, depth)
        elif isinstance(s, tir.For):
            low, extent = self.expr(s.min), self.expr(s.extent)
            self.emit(depth, f"for {self.name(s.loop_var)} in range({low}, {low} + {extent}):")
            self.stmt(s.body, depth + 1)
        elif isinstance(s, tir.BufferStore):
            target = self.memory(s.buffer)
            value = self.expr(s.value)
            self.emit(depth, f"{target}.store({_lanes(s.buffer)}, {value}{self.place(s)})")
        elif isinstance(s, tir.BufferRealize):
            extents = "".join(f"{self.expr(b.extent)}, " for b in s.bounds)
            start = "".join(f"{self.expr(b.min)}, " for b in s.bounds)
            self.emit(
                depth,
                f"{self.memory(s.buffer)} = _allocate('{s.buffer.dtype}', ({extents}), ({start}))",
            )
            self.stmt(s.body, depth)
        elif isinstance(s, tir.Allocate):
            extents = "".join(f"{self.expr(n)}, " for n in s.extents)
            # A buffer of these axes keeps them; anything else goes by places in the whole.
            axes = isinstance(s.body, tir.DeclBuffer) and not len(s.body.buffer.strides)
            shape = f"({extents})" if axes else f"(math.prod(({extents})),)"
            self.emit(depth, f"m{self.name(s.buffer_var)} = _allocate('{s.dtype}', {shape})")
            self.stmt(s.body, depth)
        elif isinstance(s, tir.DeclBuffer):
            self.stmt(s.body, depth)
        elif isinstance(s, tir.IfThenElse):
            self.emit(depth, f"if {self.expr(s.condition)}:")
            self.stmt(s.then_case, depth + 1)
            if s.else_case is not None:
                self.emit(depth, "else:")
                self.stmt(s.else_case, depth + 1)
        elif isinstance(s, tir.LetStmt):
            self.emit(depth, f"{self.name(s.var)} = {self.expr(s.value)}")
            self.stmt(s.body, depth)
        elif isinstance(s, tir.AttrStmt):
            if str(s.attr_key) in ("thread_extent", "virtual_thread"):
                var = self.name(s.node.var)
                self.emit(depth, f"for {var} in range({self.expr(s.value)}):")
                self.stmt(s.body, depth + 1)
            else:
                self.stmt(s.body, depth)
        elif isinstance(s, tir.AssertStmt):
            self.emit(depth, f"assert {self.expr(s.condition)}")
            self.stmt(s.body, depth)
        elif isinstance(s, tir.While):
            self.emit(depth, f"while {self.expr(s.condition)}:")
            self.stmt(s.body, depth + 1)
        elif isinstance(s, tir.Prefetch):
            self.emit(depth, "pass")
        elif isinstance(s, tir.Evaluate):
            prefetch = isinstance(s.value, tir.Call) and s.value.op.name == "tir.prefetch"
            self.emit(depth, "pass" if prefetch else self.expr(s.value))
        else:
            raise TypeError(f"testing_tir: no translation of {type(s).__name__}")


def _translate(func: tir.PrimFunc) -> tuple[str, list[bool]]:
    translator = _Translator()
    params, is_buffer = [], []
    for param in func.params:
        buffer = func.buffer_map.get(param) if param in func.buffer_map else None
        is_buffer.append(buffer is not None)
        params.append(translator.name(param) if buffer is None else translator.memory(buffer))
        if buffer is None:
            continue
        for axis, extent in enumerate(buffer.shape):
            if isinstance(extent, tir.Var):
                line = f"{translator.name(extent)} = {params[-1]}.array.shape[{axis}]"
                translator.emit(1, line)
    translator.stmt(func.body, 1)
    head = f"def program({', '.join(params)}):\n"
    return head + "\n".join(translator.lines) + "\n", is_buffer


def source_of(func: tir.PrimFunc) -> str:
    """The Python program that stands for ``func``, for looking at."""
    return _translate(func)[0]


def run_prim_func(func: tir.PrimFunc, *args: Any, max_stores: int = 10**9) -> None:
    """Run ``func``; arrays are contiguous NumPy arrays, which it reads and writes in place.

    Raises
    ------
    IndexError : an access outside of a buffer. TypeError : a node without a translation.
    StepLimitError : more than ``max_stores`` stores.
    """
    source, is_buffer = _translate(func)
    if len(args) != len(is_buffer):
        raise ValueError(f"the function takes {len(is_buffer)} arguments, got {len(args)}")
    scope = dict(_HELPERS)
    exec(compile(source, "<tir>", "exec"), scope)
    program: Callable[..., None] = scope["program"]
    _Memory.stores[0] = max_stores
    program(*(_Memory(a) if b else a for a, b in zip(args, is_buffer)))


def evaluate(expr: Any, **values: Any) -> Any:
    """Value of an expression whose variables have, by name, the given values."""
    translator = _Translator()
    text = translator.expr(expr)
    scope = dict(_HELPERS)
    for (_, hint), name in translator.names.items():
        scope[name] = values[hint]
    return eval(text, scope)
