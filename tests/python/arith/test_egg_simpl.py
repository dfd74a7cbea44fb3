"""The expression simplifier over its text language."""

from __future__ import annotations

import pytest

import tvm

LIMITS = (12, 3000, True)


def simplify(text):
    return str(tvm.get_global_func("arith.SimplifyExprStr")(text, *LIMITS))


def equivalent(left, right):
    return bool(tvm.get_global_func("arith.IsExprStrEquivalent")(left, right, *LIMITS))


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("(+ (+ (* (- a:k 1) b:k) (- b:k 1)) 1)", "(* a:k b:k)"),
        ("(// (* q:v (* a:k b:k)) a:k)", "(* q:v b:k)"),
        ("(min x:s x:s)", "x:s"),
        ("(>= x:s 1)", "1"),
    ],
)
def test_text_is_simplified(text, short):
    assert simplify(text) == short


def test_equivalence_is_decided_both_ways():
    assert equivalent("(* 2 (+ a b))", "(+ (* b 2) (* a 2))")
    assert not equivalent("(* 2 (+ a b))", "(+ a (* b 2))")


def test_malformed_text_is_a_value_error():
    with pytest.raises(ValueError, match="`foo` is not an operator"):
        simplify("(foo 1 2)")
    with pytest.raises(ValueError, match="node_limit must be >= 0, got -1"):
        tvm.get_global_func("arith.SimplifyExprStr")("a", 1, -1, False)
