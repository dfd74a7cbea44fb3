"""Expressions as tapes and tapes as expressions."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import tir
from tvm.felix import _ffi_api
from tvm.felix.tape import Tape, TapeOp

A, B = tir.SizeVar("a", "int32"), tir.SizeVar("b", "int32")


def to_tape(*exprs) -> Tape:
    return _ffi_api.ExprsToTape(list(exprs))


def test_common_subexpressions_are_stored_once():
    tape = to_tape((A + B) * (A + B), (B + A) * 3)
    codes = tape.ops.numpy().tolist()
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
    again = to_tape(*_ffi_api.TapeToExprs(tape, variables))
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


def test_a_tape_of_other_variables_is_refused():
    with pytest.raises(ValueError, match="the tape has 2 variables, got 1"):
        _ffi_api.TapeToExprs(to_tape(A + B), [A])
