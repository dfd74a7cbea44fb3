"""Fourier transforms that take and give complex numbers as the pairs that programs hold."""

from __future__ import annotations

from typing import Any

from tvm import topi
from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Tuple, TupleGetItem, Var, const
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["PairFourier"]


_OF_ROWS = frozenset(f"relax.fourier.{name}" for name in ("fft_rows", "rfft_halves", "rfft_rows"))
# Vectors of every processor have a divisor of as many lanes.
_COLUMNS = 16


class _Pairer(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        # Operands of `rfft_halves`, by what gives its results.
        self._halves: dict[RelayExpr, list[RelayExpr]] = {}

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        name = _name(value)
        if name == "relax.fourier.rfft_rows":
            return self._by_halves(value)
        if name == "relax.concat":
            return self._as_pairs(value) or value
        return value

    def _by_halves(self, call: Any) -> RelayExpr:
        """The transform of real numbers by that of half as many complex ones."""
        data, _, factors = call.args
        shape = settled_shape(data)
        if shape is None or shape[1] % 2 or not isinstance(factors, Constant):
            return call
        n, dtype = shape[1], str(data.struct_info.dtype)
        split = topi.fft_split(n // 2)
        if split is None or int(op.attrs_of(call)["count"]) != n // 2 + 1:
            return call
        # The first factor of all is one, times the scale of the transform.
        scale = float(factors.data.numpy()[0, 0, 0])
        tables = [*topi.fft_tables(*split, -1, scale / 2), topi.rfft_turns(n)]
        operands = [data, *(const(table, dtype) for table in tables)]
        # First steps that fill no vectors cost more than half of the elements saves.
        value = call if split[0] % _COLUMNS else op.fourier.rfft_halves(*operands)
        self._halves[value] = operands
        return value

    def _as_pairs(self, call: Any) -> RelayExpr | None:
        """What joins the parts of a transform into pairs, as the transform that gives pairs."""
        parts = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
        shape = settled_shape(call)
        last = int(op.attrs_of(call)["axis"]) % len(shape) if shape else 0
        if len(parts) != 2 or shape is None or last != len(shape) - 1 or shape[-1] != 2:
            return None
        transforms = [self._part(part, k) for k, part in enumerate(parts)]
        if transforms[0] is None or transforms[0] is not transforms[1]:
            return None
        transform = transforms[0]
        operands = self._halves.get(transform)
        if operands is not None:
            return op.reshape(self.emit(op.fourier.rfft_pairs(*operands)), shape)
        pairs = None
        if _name(transform) == "relax.fourier.fft_rows":
            pairs = self._given_pairs(transform)
        if pairs is None:
            return None
        settings, given = op.attrs_of(transform), settled_shape(transform.args[0])
        assert given is not None
        rows = self.emit(op.reshape(pairs, (given[0], 2 * given[1])))
        count, sign = int(settings["count"]), int(settings["sign"])
        matrix, factors = transform.args[2:]
        both = op.fourier.fft_pairs(rows, matrix, factors, count, sign)
        return op.reshape(self.emit(both), shape)

    def _value(self, value: RelayExpr) -> RelayExpr | None:
        """What a variable is bound to, behind views."""
        bound = self.values.get(value) if isinstance(value, Var) else None
        while _name(bound) == "relax.reshape":
            assert isinstance(bound, Call)
            bound = self.values.get(bound.args[0])
        return bound

    def _part(self, value: RelayExpr, k: int) -> Any:
        """The transform of rows whose k-th part a value is."""
        item = self._value(value)
        if not isinstance(item, TupleGetItem) or int(item.index) != k:
            return None
        transform = self._value(item.tuple_value)
        return transform if _name(transform) in _OF_ROWS else None

    def _given_pairs(self, transform: Any) -> RelayExpr | None:
        """The pairs whose parts a transform of complex numbers takes."""
        found: list[Any] = []
        for k, part in enumerate(transform.args[:2]):
            cut = self._value(part)
            if not isinstance(cut, Call) or _name(cut) != "relax.strided_slice":
                return None
            source, settings = cut.args[0], op.attrs_of(cut)
            shape = settled_shape(source)
            if shape is None or shape[-1] != 2:
                return None
            axes, begin = ([int(v) for v in settings[key]] for key in ("axes", "begin"))
            if axes != [len(shape) - 1] or begin != [k] or settled_shape(cut) != (*shape[:-1], 1):
                return None
            found.append(source)
        return found[0] if found[0].same_as(found[1]) else None


def _name(value: Any) -> str:
    return str(getattr(value.op, "name", "")) if isinstance(value, Call) else ""


@graph_pass("PairFourier")
def PairFourier(mod: IRModule) -> IRModule:
    """The module with transforms of rows on pairs, where their parts come from and go into pairs.

    Complex inputs and results of a program are pairs in a last dimension; taking them apart and
    joining them takes longer than the transform. The first half of the transform of an even number
    of real ones is that of half as many complex ones, which neighbours are. What takes a single
    part reads the transform of parts, as before. Gradients are made before.
    """
    return map_functions(mod, lambda func: _Pairer(func).run())
