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
            tir.Select(X < 0, tir.min(Y, 1), tir.min(0, Z)),
        ),
    ],
)
def test_rewriting_keeps_the_order_of_terms(before, expected):
    after = tvm.arith.Analyzer().rewrite_simplify(before)
    tvm.ir.assert_structural_equal(after, expected)
    check_values(before, after)
    check_values(before, tvm.arith.Analyzer().simplify(before))


@pytest.mark.parametrize(
    "before, expected",
    [
        (tir.min(X, Y) - X, tir.min(0, Y - X)),
        (tir.max(X, Y) - X, tir.max(0, Y - X)),
        (X - tir.min(X, Y), tir.max(0, X - Y)),
        (X - tir.max(X + Y, 0), tir.min(0 - Y, X)),
        (tir.min(Z, X + Y) - X, tir.min(Z - X, Y)),
        (tir.max(2 - X * 4, 0) + X * 4, tir.max(X * 4, 2)),
        (fld(tir.min(X, Y * 4), 2), tir.min(fld(X, 2), Y * 2)),
        (tir.min(3 - X, 2), 3 - tir.max(X, 1)),
        (tir.max(10 - X, 5), 10 - tir.min(X, 5)),
        (tir.min(X * (-2), 4), tir.max(X, -2) * (-2)),
        (tir.max(fld(X, 10), fld(Y, 10)), fld(tir.max(X, Y), 10)),
        (tir.min(fld(X, -10), fld(Y, -10)), fld(tir.max(X, Y), -10)),
        (tir.min(tir.min(X, Y), tir.min(Z, Y)), tir.min(tir.min(X, Z), Y)),
        (fld(flm(X, 2) + 7, 2) + fld(X, 2), fld(X + 7, 2)),
        (fld(X + 10, 3) - fld(X, 3), fld(flm(X, 3) + 10, 3)),
        (fld(X + 4, 3) - fld(X + 5, 3), fld(flm(X + 2, 3) + (-1), 3)),
        ((X - Y) * (-2), (Y - X) * 2),
        (flm(X * 9600, 6400), flm(X * 3200, 6400)),
        (X - tdiv(X, 3) * 3, tmod(X, 3)),
        (tdiv(X, 3) * 3 - X, 0 - tmod(X, 3)),
        (tdiv(X, 2) < 3, X < 6),
        (tir.LT(tdiv(X, 2), -1), tir.LT(X, -3)),
        (tir.LT(2, tdiv(X, 2)), tir.LT(5, X)),
        (tir.LT(-2, tdiv(X, 2)), tir.LT(-4, X)),
        (tir.LT(tdiv(X, 4) * 4, X), tir.LT(0, tmod(X, 4))),
        (tir.LT(tdiv(X + 2, 4) * 4, X - Y), tir.LT(Y, tmod(X + 2, 4) + (-2))),
        (tdiv(X, 6) * 6 + tmod(tdiv(X, 3), 2) * 3 + tmod(X, 3), X),
        (tir.min(X - Z, Y) + Z, tir.min(X, Y + Z)),
        (Z * 2 + tir.min(X, Y - Z * 2), tir.min(X + Z * 2, Y)),
        (tir.min(Y, tir.min(X, Y)), tir.min(X, Y)),
        (tir.max(tir.max(X, Y), Y), tir.max(X, Y)),
        (tir.min(tir.max(X, Y), tir.max(Z, X)), tir.max(tir.min(Y, Z), X)),
        (tir.max(tir.min(Y, X), tir.min(X, Z)), tir.min(tir.max(Y, Z), X)),
        (tir.min(5, X), tir.min(5, X)),
        (tir.min(tdiv(X, 3), tdiv(Y, 3)), tdiv(tir.min(X, Y), 3)),
        (tir.max(X * -3, Y * -3), tir.min(X, Y) * -3),
        (X - fld(X + Y, 4) * 4, flm(X + Y, 4) - Y),
        (fld(X + Y, 4) * 4 - X, Y - flm(X + Y, 4)),
        (X - fld(X - Y, 4) * 4, flm(X - Y, 4) + Y),
        (fld(X - Y, 4) * 4 - X, 0 - flm(X - Y, 4) - Y),
        (X * 3 - fld(X + Y, 4) * 12, (flm(X + Y, 4) - Y) * 3),
        (fld(X - Y, 4) * 12 - X * 3, (flm(X - Y, 4) + Y) * -3),
        (fld(X * 4 - 1, 12), fld(X * 4 + (-1), 12)),
        (fld(X * 4 + 9, 12), fld(X * 4 + 9, 12)),
        (fld(X * 4 + 15, 12), fld(X, 3) + 1),
        (tdiv(X, 3) >= 0, tir.LE(-2, X)),
        (tdiv(X, 2) > 1, tir.LT(3, X)),
        (fld(X, 4) * 4 < X + Y, tir.LT(0, flm(X, 4) + Y)),
        (fld(X + 2, 4) * 4 >= X + Y, flm(X + 2, 4) + Y <= 2),
        (fld(X, 4) * 4 >= X - Y, flm(X, 4) <= Y),
    ],
)
def test_rules_keep_operands_where_they_were(before, expected):
    after = tvm.arith.Analyzer().rewrite_simplify(before)
    tvm.ir.assert_structural_equal(after, expected)
    check_values(before, after)


@pytest.mark.parametrize(
    "before, expected",
    [
        (tdiv(tdiv(X, 2) + 1, 3), tdiv(X + 2, 6)),
        (tdiv(X * 4 + Y, 2), X * 2 + tdiv(Y, 2)),
        (tdiv(tir.max(X * 6, Y), 2), tir.max(X * 3, tdiv(Y, 2))),
        (tmod(X * 10 + Y, -2), tmod(Y, 2)),
        (tdiv(X + Y, X), tdiv(Y, X) + 1),
        (tdiv(X * Z + Y, Z), X + tdiv(Y, Z)),
        (fld(X * Z + Y, Z), X + fld(Y, Z)),
        (tdiv(X * Y, Y), X),
    ],
)
def test_quotients_towards_zero_stay_such(before, expected):
    analyzer = tvm.arith.Analyzer()
    with analyzer.constraint_scope(tir.all(X >= 0, Y >= 0, Z >= 0)):
        after = analyzer.rewrite_simplify(before)
        tvm.ir.assert_structural_equal(after, expected)
        analyzer.simplify(before)
    for point in itertools.product((1, 2, 5, 13), repeat=3):
        assert value(before, *point) == value(after, *point), (before, after, point)


@pytest.mark.parametrize(
    "expr",
    [
        tdiv(X, 1000000) < 10000,
        tir.LT(10000, tdiv(X, 1000000)),
        tir.min(-2000000000 - X, 2000000000),
        tir.max(X * 1000000, 3) * 4000,
    ],
)
def test_forms_whose_numbers_have_no_room_are_not_taken(expr):
    after = tvm.arith.Analyzer().rewrite_simplify(expr)
    numbers = []
    tir.stmt_functor.post_order_visit(
        after, lambda node: numbers.append(node) if isinstance(node, tir.IntImm) else None
    )
    assert all(-(2**31) <= number.value < 2**31 for number in numbers)
    for x in (-2000, -1, 0):
        assert value(expr, x, 0, 0) == value(after, x, 0, 0)


def test_quotients_of_negative_lanes_are_left_alone():
    lanes = tdiv(tir.Ramp(X, 4, 4), tir.Broadcast(2, 4))
    analyzer = tvm.arith.Analyzer()
    tvm.ir.assert_structural_equal(analyzer.rewrite_simplify(lanes), lanes)
    with analyzer.constraint_scope(X >= 0):
        # -1 / 2 and 3 / 2 are 0 and 1, two steps apart for numbers above zero alone.
        after = analyzer.rewrite_simplify(lanes)
    assert isinstance(after, tir.Ramp)


def test_canonical_sums_add_before_they_subtract():
    analyzer = tvm.arith.Analyzer()
    after = analyzer.canonical_simplify(Y + X * 3 - X * 5 + 1 + Y)
    tvm.ir.assert_structural_equal(after, Y * 2 + 1 - X * 2)
    assert str(analyzer.simplify(Y + X * 3 - X * 5 + 1 + Y)) == "y * 2 - x * 2 + 1"


def test_bounds_of_quotients_and_shifts():
    analyzer = tvm.arith.Analyzer()
    for var, low, high in [(X, -9, 4), (Y, -2, 1), (Z, 0, 3)]:
        analyzer.update(var, tvm.arith.ConstIntBound(low, high))
    for expr, low, high in [
        (fld(X, Y), -9, 9),
        (tdiv(X, Y), -9, 9),
        (tdiv(X, Z), -9, 4),
        (tir.shift_left(tir.const(1, "int32"), Z), 1, 8),
    ]:
        bound = analyzer.const_int_bound(expr)
        assert (bound.min_value, bound.max_value) == (low, high), expr


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
