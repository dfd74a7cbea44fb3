"""Shapes and layouts of fragments."""

from __future__ import annotations

import pytest

import tvm
from testing_programs import apply
from tvm import tir


def program(layout="col_major", shape=(16, 16, 16), other=None):
    """A product of fragments, of which A is loaded twice."""
    ib = tir.ir_builder.create()
    names = (("a", "wmma.matrix_a"), ("b", "wmma.matrix_b"), ("c", "wmma.accumulator"))
    a, b, c = (
        ib.allocate("float16", 256, name=name, scope=scope)._buffer.data for name, scope in names
    )
    source = ib.allocate("float16", 256, name="s", scope="shared")._buffer.data

    def emit(name, *args):
        ib.emit(tir.Evaluate(tir.call_intrin("handle", f"tir.{name}", *args)))

    emit("tvm_fill_fragment", c, *shape, 0, 0.0)
    for each in ("row_major", other or "row_major"):
        emit("tvm_load_matrix_sync", a, *shape, 0, source, 16, each)
    emit("tvm_load_matrix_sync", b, 16, 16, 16, 0, source, 16, layout)
    emit("tvm_mma_sync", c, 0, a, 0, b, 0, c, 0)
    return tir.PrimFunc([], ib.get())


def attributes(func):
    found = {}
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda n: (
            found.update({(n.node.name, str(n.attr_key)): str(n.value.value)})
            if isinstance(n, tir.AttrStmt) and str(n.attr_key).startswith("fragment")
            else None
        ),
    )
    return found


def test_allocations_say_what_instructions_do():
    func = apply(tir.transform.InferFragment(), program())
    assert attributes(func) == {
        ("a", "fragment_shape"): "16, 16, 16",
        ("b", "fragment_shape"): "16, 16, 16",
        ("c", "fragment_shape"): "16, 16, 16",
        ("a", "fragment_layout"): "row_major",
        ("b", "fragment_layout"): "col_major",
    }


def test_other_functions_stay():
    func = tir.PrimFunc([], tir.Evaluate(1))
    assert apply(tir.transform.InferFragment(), func).body.same_as(func.body)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"other": "col_major"}, "fragment a has the layout row_major .* col_major in another"),
        ({"shape": (32, 8, 16)}, "shapes 16, 16, 16 and 32, 8, 16"),
    ],
)
def test_instructions_that_disagree_are_refused(arguments, message):
    with pytest.raises(tvm.error.ValueError, match=message):
        apply(tir.transform.InferFragment(), program(**arguments))
