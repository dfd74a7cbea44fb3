"""Attributes of neighbours become one around them."""

from __future__ import annotations

import tvm
from tvm import tir
from tvm.tir import transform

KEY = "part"
A = tir.decl_buffer((16,), "int32", "A")
UNITS = [tir.Var(name, "int32") for name in ("first", "second")]


def store(at, unit=None, value=None):
    statement = tir.BufferStore(A, 1, [at])
    if unit is None:
        return statement
    return tir.AttrStmt(UNITS[unit], KEY, tir.const(0) if value is None else value, statement)


def attr(unit, body):
    return tir.AttrStmt(UNITS[unit], KEY, tir.const(0), body)


def loop(body, name="i"):
    var = tir.Var(name, "int32")
    return tir.For(var, 0, 4, tir.ForKind.SERIAL, body(var))


def lifted(body, key=KEY):
    func = tir.PrimFunc([A, *UNITS], body)
    return transform.LiftAttrScope(key)(tvm.IRModule({"main": func}))["main"].body


def same(body, expected):
    tvm.ir.assert_structural_equal(lifted(body), expected)


def test_neighbours_share_one_attribute():
    same(
        tir.SeqStmt([store(0, 0), store(1, 0)]),
        attr(0, tir.SeqStmt([store(0), store(1)])),
    )


def test_groups_of_neighbours_have_one_attribute_each():
    same(
        tir.SeqStmt([store(0, 0), store(1, 0), store(2, 1), store(3), store(4, 0)]),
        tir.SeqStmt(
            [
                attr(0, tir.SeqStmt([store(0), store(1)])),
                store(2, 1),
                store(3),
                store(4, 0),
            ]
        ),
    )


def test_attributes_move_out_of_loops_and_branches():
    condition = UNITS[0] < 3
    same(
        loop(lambda i: tir.IfThenElse(condition, store(i, 0), store(i + 1, 0))),
        attr(0, loop(lambda i: tir.IfThenElse(condition, store(i), store(i + 1)))),
    )
    same(
        tir.IfThenElse(condition, store(0, 0), store(1, 1)),
        tir.IfThenElse(condition, store(0, 0), store(1, 1)),
    )


def test_attributes_stay_where_their_variables_are():
    same(loop(lambda i: store(i, 0, i)), loop(lambda i: store(i, 0, i)))


def test_attributes_stay_inside_of_allocations():
    data = tir.Var("m", tvm.ir.PointerType(tvm.ir.PrimType("int32")))

    def program(body):
        return tir.Allocate(data, "int32", [4], tir.const(True, "bool"), body)

    same(
        program(tir.SeqStmt([store(0, 0), store(1, 0)])),
        program(attr(0, tir.SeqStmt([store(0), store(1)]))),
    )


def test_other_attributes_are_left_alone():
    body = tir.SeqStmt([store(0, 0), store(1, 0)])
    tvm.ir.assert_structural_equal(lifted(body, "another"), body)
