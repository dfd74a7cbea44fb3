"""Tags given to all operations of a block."""

from __future__ import annotations

import pytest

from tvm import te


def add_one(A):
    return te.compute(A.shape, lambda i: A[i] + 1.0, name="B")


def test_operations_of_the_block_and_of_a_decorated_function_have_the_tag():
    A = te.placeholder((4,), name="A")
    with te.tag_scope(tag="elemwise"):
        inside = add_one(A)
    assert inside.op.tag == "elemwise"
    assert te.tag_scope("injective")(add_one)(A).op.tag == "injective"
    assert add_one(A).op.tag == ""


def test_two_tags_are_refused():
    with te.tag_scope("outer"):
        with pytest.raises(ValueError, match="inside of tag_scope 'outer'"), te.tag_scope("inner"):
            pass
        with pytest.raises(ValueError, match="compute B: tag 'own' inside of tag_scope 'outer'"):
            te.compute((4,), lambda i: i, name="B", tag="own")
