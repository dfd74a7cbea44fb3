"""Expressions as tapes and tapes as expressions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.felix import _ffi_api
from tvm.felix.tape import Tape, TapeOp, TapeVar

A, B = tir.SizeVar("a", "int32"), tir.SizeVar("b", "int32")


def to_tape(*exprs) -> Tape:
    ops, args, payload, roots, names, lower, upper, integer = _ffi_api.ExprsToTape(list(exprs))
    variables = [
        TapeVar(str(n), bool(i), float(low), float(high))
        for n, low, high, i in zip(names, lower.numpy(), upper.numpy(), integer.numpy())
    ]
    return Tape(ops.numpy(), args.numpy(), payload.numpy(), roots.numpy(), tuple(variables))


def to_exprs(tape: Tape, variables):
    arrays = [tape.ops, tape.args, tape.payload, tape.roots]
    return list(_ffi_api.TapeToExprs(*[tvm.nd.array(a) for a in arrays], variables))


def test_common_subexpressions_are_stored_once():
    tape = to_tape((A + B) * (A + B), (B + A) * 3)
    codes = [TapeOp(op) for op in tape.ops]
    assert codes.count(TapeOp.ADD) == 1
    assert codes.count(TapeOp.VAR) == 2


def test_a_size_is_an_integer_of_at_least_one():
    (variable,) = to_tape(A * 2).variables
    assert (variable.name, variable.is_integer, variable.lower) == ("a", True, 1.0)


@pytest.mark.parametrize(
    "expr",
    [
        tir.floordiv(A * 7 + B, 5) + tir.floormod(B, 3),
        tir.Select(tir.LT(A, B), A * A, B - A),
        tir.min(A, B) + tir.max(A, 4),
        tir.log(A.astype("float64")) + tir.sqrt(B.astype("float64")),
        tir.Select(tir.And(A >= 3, tir.Not(tir.EQ(A, B))), A, B),
    ],
)
def test_expressions_survive_the_way_to_a_tape_and_back(expr):
    tape = to_tape(expr)
    variables = [A if v.name == "a" else B for v in tape.variables]
    again = to_tape(*to_exprs(tape, variables))
    points = np.array([[a, b] for a in range(1, 8) for b in range(1, 8)], dtype=np.float64)
    swap = [v.name for v in tape.variables] == [v.name for v in again.variables]
    other = points if swap else points[:, ::-1]
    np.testing.assert_allclose(tape.forward(points), again.forward(other), rtol=1e-12)


def test_constants_fold():
    tape = to_tape(tir.IntImm("int32", 3) * A * 0 + 7)
    assert len(tape) == 1 and tape.forward(np.zeros((1, len(tape.variables))))[0, 0] == 7


def test_what_tapes_do_not_have_is_refused_by_name():
    buffer = tir.decl_buffer((4,), "float32", name="data")
    with pytest.raises(ValueError, match="BufferLoad"):
        to_tape(tir.BufferLoad(buffer, [A]))


def test_a_tape_that_reads_ahead_is_refused():
    ops = tvm.nd.array(np.array([TapeOp.EXP], np.uint8))
    args = tvm.nd.array(np.array([[0, -1, -1]], np.int32))
    payload = tvm.nd.array(np.zeros(1, np.int64))
    roots = tvm.nd.array(np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="entry 0 reads entry 0"):
        _ffi_api.TapeToExprs(ops, args, payload, roots, [])
