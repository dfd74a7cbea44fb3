"""relax.utils.args_converter: values of Python as graph expressions."""

from __future__ import annotations

import pytest

from tvm import relax
from tvm.relax import Expr, PrimValue, ShapeExpr, StringImm, Tuple
from tvm.relax.utils import args_converter


def test_named_parameters_become_expressions():
    @args_converter.to_expr("a", "c")
    def show(a, b, c=None):
        return a, b, c

    a, b, c = show(1, 2)
    assert isinstance(a, PrimValue) and b == 2 and c is None
    assert isinstance(show((1, 2), 0)[0], ShapeExpr)
    assert isinstance(show(a="x", b=0, c=("x", 1))[2], Tuple)


def test_lists_and_further_arguments_are_converted_item_by_item():
    @args_converter.convert(args_to_expr=["rest"], args_to_list_expr=["some"])
    def show(some, *rest):
        return some, rest

    some, rest = show(["a", 1], "b", 2.0)
    assert isinstance(some, list) and isinstance(some[0], StringImm)
    assert [type(item) for item in rest] == [StringImm, PrimValue]
    with pytest.raises(TypeError, match="show: argument some: it must be a list or tuple, got int"):
        show(3)
    with pytest.raises(TypeError, match="show: argument rest: .*set is no graph value"):
        show([], {1})


def test_annotations_say_what_to_convert():
    @args_converter.auto
    def show(a: Expr, b: Expr | None, c: list[Expr], d: int, e: list[Expr] | None = None):
        return a, b, c, d, e

    x = relax.Var("x", relax.ObjectStructInfo())
    a, b, c, d, e = show(x, None, [1, "t"], 4, (2,))
    assert a is x and b is None and d == 4
    assert [type(item) for item in c] == [PrimValue, StringImm] and isinstance(e[0], PrimValue)


def test_names_that_are_no_parameters_are_refused():
    with pytest.raises(ValueError, match="show has no parameter z; it has a"):

        @args_converter.to_list_expr("z")
        def show(a):
            return a
