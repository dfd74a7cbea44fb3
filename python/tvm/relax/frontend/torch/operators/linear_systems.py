"""Inverses, determinants, triangular factors and systems of linear equations.

Where PyTorch raises an error, of matrices without an inverse, a compiled program goes on: with
infinities and NaN, and with the `info` that the operators ending in `_ex` give. Determinants and
solutions come without factors: whether they are of the transposed matrix PyTorch leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import TupleGetItem, const

from ..arguments import Arguments, converter

__all__: list[str] = []


def _turned(a: Arguments, matrices: RelayExpr) -> RelayExpr:
    rank = int(matrices.struct_info.ndim)
    return a.emit(op.permute_dims(matrices, [*range(rank - 2), rank - 1, rank - 2]))


def _broadcast(
    a: Arguments, operands: Sequence[RelayExpr], batch: Sequence[Any]
) -> list[RelayExpr]:
    """The matrices, each with the dimensions in front that the result has."""
    shapes = [list(operand.struct_info.shape.values)[-2:] for operand in operands]
    return [
        a.emit(op.broadcast_to(operand, [*batch, *shape]))
        for operand, shape in zip(operands, shapes)
    ]


def _identity(a: Arguments, like: RelayExpr) -> RelayExpr:
    shape = list(like.struct_info.shape.values)
    eye = a.emit(op.eye(int(shape[-1]), dtype=str(like.struct_info.dtype)))
    return a.emit(op.broadcast_to(eye, shape))


def _diagonal(a: Arguments, matrices: RelayExpr) -> RelayExpr:
    rank = int(matrices.struct_info.ndim)
    return a.call("diagonal", matrices, offset=0, axis1=rank - 2, axis2=rank - 1)


def _solved(
    a: Arguments, lu: RelayExpr, pivots: RelayExpr, right: RelayExpr, batch: Sequence[Any]
) -> RelayExpr:
    """The solutions for factors and right sides that have some of the dimensions in front."""
    lu, right = _broadcast(a, [lu, right], batch)
    count = pivots.struct_info.shape.values[-1]
    pivots = a.emit(op.broadcast_to(pivots, [*batch, count]))
    return a.call("linalg.lu_solve", lu, pivots, right)


class _Factors:
    """What `lu_factor` makes of a tensor."""

    def __init__(self, a: Arguments, matrices: RelayExpr) -> None:
        self._a = a
        both = a.call("linalg.lu_factor", matrices)
        self.lu, self.pivots = a.emit(TupleGetItem(both, 0)), a.emit(TupleGetItem(both, 1))

    @property
    def diagonal(self) -> RelayExpr:
        return _diagonal(self._a, self.lu)

    @property
    def sign(self) -> RelayExpr:
        """Of the order of the rows: minus one for an odd number of swaps."""
        a, dtype = self._a, str(self.lu.struct_info.dtype)
        count = int(self.pivots.struct_info.shape.values[-1])
        own = a.emit(op.arange(1, count + 1, 1, "int32"))
        ones = a.emit(op.ones_like(self.pivots))
        swaps = a.call("where", a.call("equal", self.pivots, own), ones, a.emit(op.negative(ones)))
        return a.emit(op.prod(a.cast(swaps, dtype), [-1]))

    @property
    def info(self) -> RelayExpr:
        """The first place of a zero on the diagonal, counted from one; zero where there is none."""
        zero = const(0, str(self.lu.struct_info.dtype))
        return _first_place(self._a, self._a.call("equal", self.diagonal, zero))

    def solve(self, right: RelayExpr) -> RelayExpr:
        return self._a.call("linalg.lu_solve", self.lu, self.pivots, right)


def _first_place(a: Arguments, found: RelayExpr) -> RelayExpr:
    """Of the last dimension, counted from one; zero where nothing was found."""
    *batch, count = list(found.struct_info.shape.values)
    if not int(count):
        return a.tensor(0, batch, "int32")
    numbers = a.cast(found, "int32")
    falling = a.emit(op.arange(int(count), 0, -1, "int32"))
    # The largest of what falls is the first one.
    place = a.emit(op.max(a.emit(op.multiply(numbers, falling)), [-1]))
    missing = a.call("equal", place, const(0, "int32"))
    rest = a.emit(op.subtract(const(int(count) + 1, "int32"), place))
    return a.call("where", missing, a.emit(op.zeros_like(place)), rest)


@converter("linalg_lu_factor_ex.default")
def _lu_factor(a: Arguments) -> list[RelayExpr]:
    a.refuse_unless(bool(a["pivot"]), "without pivots")
    factors = _Factors(a, a["A"])
    return [factors.lu, factors.pivots, factors.info]


@converter("linalg_lu_solve.default")
def _lu_solve(a: Arguments) -> RelayExpr:
    a.refuse_unless(a["left"] and not a["adjoint"], "from the right, or of the transposed matrix")
    return _solved(a, a["LU"], a["pivots"], a["B"], a.result_shape[:-2])


@converter("_linalg_det.default")
def _det(a: Arguments) -> list[RelayExpr | None]:
    factors = _Factors(a, a["A"])
    size = a.emit(op.prod(factors.diagonal, [-1]))
    return [a.emit(op.multiply(size, factors.sign)), None, None]


@converter("_linalg_slogdet.default")
def _slogdet(a: Arguments) -> list[RelayExpr | None]:
    factors = _Factors(a, a["A"])
    diagonal = factors.diagonal
    signs = a.emit(op.prod(a.call("sign", diagonal), [-1]))
    sizes = a.emit(op.log(a.emit(op.abs(diagonal))))
    total = a.emit(op.sum(sizes, [-1]))
    return [a.emit(op.multiply(signs, factors.sign)), total, None, None]


@converter("linalg_inv_ex.default")
def _inverse(a: Arguments) -> list[RelayExpr]:
    factors = _Factors(a, a["A"])
    return [factors.solve(_identity(a, a["A"])), factors.info]


@converter("inverse.default")
def _plain_inverse(a: Arguments) -> RelayExpr:
    return _Factors(a, a["self"]).solve(_identity(a, a["self"]))


@converter("_linalg_solve_ex.default")
def _solve(a: Arguments) -> list[RelayExpr | None]:
    left, right, shape = a["A"], a["B"], a.result_shape
    # A vector for each matrix, where all dimensions but the last are those of the matrices.
    is_vector = a.rank("B") == 1 or (
        a.rank("B") == a.rank("A") - 1 and tuple(a.shape("B")) == tuple(a.shape("A")[:-1])
    )
    if is_vector:
        right = a.emit(op.expand_dims(right, -1))
    elif not a["left"]:
        left, right = _turned(a, left), _turned(a, right)
    factors = _Factors(a, left)
    batch = shape[: len(shape) - (1 if is_vector else 2)]
    value = _solved(a, factors.lu, factors.pivots, right, batch)
    if is_vector:
        value = a.emit(op.reshape(value, list(shape)))
    elif not a["left"]:
        value = _turned(a, value)
    return [value, None, None, factors.info]


@converter("linalg_cholesky_ex.default")
def _cholesky_with_info(a: Arguments) -> list[RelayExpr]:
    factor = _cholesky_factor(a)
    positive = a.call("greater", _diagonal(a, factor), const(0, a.dtype("self")))
    return [factor, _first_place(a, a.call("logical_not", positive))]


def _cholesky_factor(a: Arguments) -> RelayExpr:
    """Of the triangle that is to be read."""
    if not a["upper"]:
        return a.call("linalg.cholesky", a["self"])
    return _turned(a, a.call("linalg.cholesky", _turned(a, a["self"])))


def _triangular(
    a: Arguments, left: RelayExpr, right: RelayExpr, upper: bool, has_ones: bool = False
) -> RelayExpr:
    return a.call("linalg.solve_triangular", left, right, upper=upper, unitriangular=has_ones)


@converter("linalg_solve_triangular.default")
def _solve_triangular(a: Arguments) -> RelayExpr:
    left, right = _broadcast(a, [a["self"], a["B"]], a.result_shape[:-2])
    upper, has_ones = bool(a["upper"]), bool(a["unitriangular"])
    if a["left"]:
        return _triangular(a, left, right, upper, has_ones)
    return _turned(a, _triangular(a, _turned(a, left), _turned(a, right), not upper, has_ones))


@converter("triangular_solve.default")
def _older_solve_triangular(a: Arguments) -> list[RelayExpr]:
    left, right = _broadcast(a, [a["A"], a["self"]], a.result_shape[:-2])
    upper = bool(a["upper"])
    if a["transpose"]:
        left, upper = _turned(a, left), not upper
    return [_triangular(a, left, right, upper, bool(a["unitriangular"])), a["A"]]


def _solve_by_cholesky(a: Arguments, factor: RelayExpr, right: RelayExpr, upper: bool) -> RelayExpr:
    """Of the product of a triangular factor and its transpose."""
    lower, above = (_turned(a, factor), factor) if upper else (factor, _turned(a, factor))
    return _triangular(a, above, _triangular(a, lower, right, upper=False), upper=True)


@converter("cholesky_solve.default")
def _cholesky_solve(a: Arguments) -> RelayExpr:
    factor, right = _broadcast(a, [a["input2"], a["self"]], a.result_shape[:-2])
    return _solve_by_cholesky(a, factor, right, bool(a["upper"]))


@converter("cholesky_inverse.default")
def _cholesky_inverse(a: Arguments) -> RelayExpr:
    return _solve_by_cholesky(a, a["self"], _identity(a, a["self"]), bool(a["upper"]))


@converter("_linalg_check_errors.default")
def _check_errors(a: Arguments) -> RelayExpr:
    """Nothing: see above."""
    return a["info"]
