"""How results are written: terms by their strides, or as rewriting by rules leaves them."""

import itertools

import pytest

import tvm
from tvm import te, tir

X, Y, Z = te.var("x"), te.var("y"), te.var("z")
B = te.var("b", "bool")
fld, flm = tir.floordiv, tir.floormod
tdiv, tmod = tir.truncdiv, tir.truncmod


def value(expr, x, y, z):
    """The number that an expression of x, y and z is."""
    given = dict(zip((X, Y, Z), (tir.const(v, "int32") for v in (x, y, z)), strict=True))
    return int(tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(expr, given)))


def check_values(before, after):
    for point in itertools.product((-7, -2, 0, 1, 5), repeat=3):
        assert value(before, *point) == value(after, *point), (before, after, point)


@pytest.mark.parametrize(
    "before, expected",
    [
        (X + Y * 8 + Z * 64, Z * 64 + Y * 8 + X),
        (Z - Y * 4 + X * 8, X * 8 + Z - Y * 4),
        (Y - (Y + X), X * (-1)),
        (10 - tir.max(X, Y), 10 - tir.max(X, Y)),
    ],
)
def test_large_strides_come_first(before, expected):
    after = tvm.arith.Analyzer().canonical_simplify(before)
    tvm.ir.assert_structural_equal(after, expected)
    tvm.ir.assert_structural_equal(tvm.arith.Analyzer().simplify(before), expected)
    assert tvm.arith.Analyzer().simplify(after).same_as(after)
    check_values(before, after)


@pytest.mark.parametrize(
    "before, expected",
    [
        (flm(X + Y * 360, 16), flm(X + Y * 8, 16)),
        (tir.max(X, Y * 2) + tir.min(X, Y * 2), X + Y * 2),
        (X * Y + X * 10, X * (Y + 10)),
        (X * Y - X, X * (Y + (-1))),
        (X - X * Y, X * (1 - Y)),
        (3 - (X + 5), (-2) - X),
        (Y - (Y + X), 0 - X),
        (tir.min(10 - X, 10 - Y), 10 - tir.max(X, Y)),
        (tir.max(X - Y, X - Z), X - tir.min(Y, Z)),
        (tir.min(X, Y) * tir.max(Y, X), X * Y),
        (tdiv(X * 2, 4), tdiv(X, 2)),
        (tmod(X * 6 + 3, 9) - tmod(X * 2 + 1, 3) * 3 + X, X),
        (
            tir.min(tir.Select(X < 0, Y, 0), tir.Select(X < 0, 1, Z)),
            tir.Select(X < 0, tir.min(Y, 1), tir.min(Z, 0)),
        ),
    ],
)
def test_rewriting_keeps_the_order_of_terms(before, expected):
    after = tvm.arith.Analyzer().rewrite_simplify(before)
    tvm.ir.assert_structural_equal(after, expected)
    check_values(before, after)
    check_values(before, tvm.arith.Analyzer().simplify(before))


def test_choices_of_conditions_are_conditions():
    simplify = tvm.arith.Analyzer().simplify
    true, false = tir.const(True, "bool"), tir.const(False, "bool")
    for before, expected in [
        (tir.if_then_else(B, true, false), B),
        (tir.if_then_else(B, false, true), tir.Not(B)),
        (tir.if_then_else(B, true, X < 3), tir.Or(B, X < 3)),
        (tir.if_then_else(B, X < 3, false), tir.And(B, X < 3)),
        (
            tir.if_then_else(X < 3, tir.if_then_else(Y < 3, 1, Z), Z),
            tir.if_then_else(tir.And(X < 3, Y < 3), 1, Z),
        ),
    ]:
        tvm.ir.assert_structural_equal(simplify(before), expected)


def test_what_a_choice_guards_stays_guarded():
    data = tir.decl_buffer((8,), "int32")
    for guarded in (tir.BufferLoad(data, [X]) < 3, fld(Y, X) < 3):
        choice = tir.if_then_else(X > 0, guarded, tir.const(False, "bool"))
        after = tvm.arith.Analyzer().simplify(choice)
        assert isinstance(after, tir.Call) and after.op.name == "tir.if_then_else"
        nested = tir.if_then_else(X > 0, tir.if_then_else(guarded, 1, Y), Y)
        after = tvm.arith.Analyzer().simplify(nested)
        assert isinstance(after, tir.Call) and isinstance(after.args[1], tir.Call)


@pytest.mark.parametrize(
    "number, bits, zeros", [(16, 32, 27), (0, 32, 32), (-1, 8, 0), (1, 64, 63)]
)
def test_leading_zeros_of_numbers(number, bits, zeros):
    found = tvm.arith.Analyzer().simplify(tir.clz(tir.IntImm(f"int{bits}", number)))
    assert int(found) == zeros


def test_digits_and_offsets_of_quotients_stay_as_they_are_written():
    x, y = te.var("x"), te.var("y")
    for written, form in [
        (x % 8 // 2, x % 8 // 2),
        (x // 2 % 4, x // 2 % 4),
        ((x % 8 // 2 + y) * 4 - y * 4, x % 8 // 2 * 4),
        ((x + 7) // 2 - y + 1, (x + 7) // 2 - y + 1),
        ((x + 7 - 2 * y) // 2 + 1, (x + 7) // 2 - y + 1),
        # What is shorter otherwise is not kept.
        ((x + 7) // 2 - 3, (x + 1) // 2),
        ((x + 7) // 2 - (x + 3) // 2, tir.const(2, "int32")),
        ((x + 8) // 2, x // 2 + 4),
    ]:
        tvm.ir.assert_structural_equal(tvm.arith.Analyzer().simplify(written), form)


@pytest.mark.parametrize("product", [X * Y, Y * X, Z * Y * X, Y * Z * X * Y, (X * Z) * Y], ids=str)
def test_factors_stay_in_the_order_in_which_they_were_first_multiplied(product):
    analyzer = tvm.arith.Analyzer()
    # Whatever variables were met before.
    analyzer.simplify(Y + Z + X + 1)
    tvm.ir.assert_structural_equal(analyzer.simplify(product + 1), product + 1)
    assert analyzer.can_prove_equal(X * Y, Y * X)


def test_products_of_the_same_factors_are_one():
    analyzer = tvm.arith.Analyzer()
    tvm.ir.assert_structural_equal(analyzer.simplify(Y * X + 1), Y * X + 1)
    tvm.ir.assert_structural_equal(analyzer.simplify(X * Y + 1), Y * X + 1)
    tvm.ir.assert_structural_equal(analyzer.simplify(X * Y - Y * X), tir.const(0, "int32"))
