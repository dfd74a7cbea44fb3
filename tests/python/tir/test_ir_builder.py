"""Statements written with the builder, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir


def run(shape, emit, *arrays, dtype="float32"):
    """The result of a function whose body `emit(ib, inputs, output)` writes."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]

    def body(ins, outs):
        ib = tir.ir_builder.create()
        emit(ib, [ib.buffer_ptr(b) for b in ins], ib.buffer_ptr(outs[0]))
        return ib.get()

    out = te.extern(shape, tensors, body, name="out", dtype=dtype)
    func = tvm.build(te.create_schedule(out.op), [*tensors, out], target="llvm")
    result = tvm.nd.array(np.zeros(shape, dtype))
    func(*[tvm.nd.array(a) for a in arrays], result)
    return result.numpy()


def test_loops_and_branches_compute():
    def emit(ib, ins, out):
        (x,) = ins
        with ib.for_range(0, 8, name="i") as i:
            with ib.if_scope(tir.all(i % 2 == 0, x[i] > 0.25)):
                out[i] = x[i] * 2.0
            with ib.else_scope():
                out[i] = 0.0

    x = np.linspace(0, 1, 8).astype("float32")
    wanted = np.where((np.arange(8) % 2 == 0) & (x > 0.25), 2 * x, 0)
    np.testing.assert_allclose(run((8,), emit, x), wanted)


def test_allocation_and_flat_index_of_a_matrix():
    def emit(ib, ins, out):
        (x,) = ins
        total = ib.allocate("float32", 1, name="total")
        total[0] = 0.0
        with ib.for_range(0, 12, name="i", kind="unroll") as i:
            total[0] = total[0] + x[i]
        with ib.for_range(0, 3, name="r", kind="parallel") as r, ib.for_range(0, 4, name="c") as c:
            out[r, c] = x[r, c] / total[0]

    x = np.random.default_rng(0).random((3, 4)).astype("float32")
    np.testing.assert_allclose(run((3, 4), emit, x), x / x.sum(), rtol=1e-5)


def test_while_loop_runs_until_its_condition_fails():
    def emit(ib, ins, out):
        (x,) = ins
        count = ib.allocate("int32", (1,), name="count", scope="local")
        count[0] = 0
        out[0] = 0.0
        with ib.while_loop(tir.all(count[0] < 8, out[0] < 10.0)):
            out[0] = out[0] + x[count[0]]
            count[0] = count[0] + 1

    assert run((1,), emit, np.full(8, 4, "float32"))[0] == 12


def test_loop_starts_where_it_is_told_and_let_names_a_value():
    def emit(ib, ins, out):
        with ib.for_range(0, 6, name="i") as i:
            out[i] = -1
        with ib.for_range(2, 5, name="i") as i:
            square = ib.let("square", i * i)
            out[i] = square

    np.testing.assert_array_equal(run((6,), emit, dtype="int32"), [-1, -1, 4, 9, 16, -1])


def test_vector_kind_becomes_one_store():
    ib = tir.ir_builder.create()
    A = ib.buffer_ptr(tir.decl_buffer((8,), name="A"))
    with ib.for_range(0, 8, kind="vectorize") as i:
        A[i] = 1.0
    assert isinstance(ib.get(), tir.For)


def test_attribute_covers_what_follows_and_scopes_end_it():
    ib = tir.ir_builder.create()
    A = ib.buffer_ptr(tir.decl_buffer((2,), name="A"))
    with ib.new_scope():
        ib.scope_attr("here", "pragma_note", 1)
        A[0] = 1.0
    A[1] = 2.0
    stmt = ib.get()
    assert isinstance(stmt, tir.SeqStmt)
    assert stmt[0].attr_key == "pragma_note"
    assert isinstance(stmt[1], tir.BufferStore)


def test_nothing_emitted_is_the_empty_statement():
    ib = tir.ir_builder.create()
    assert isinstance(ib.get(), tir.Evaluate)


def test_pointer_and_shape_of_a_view():
    ib = tir.ir_builder.create()
    buffer = tir.decl_buffer((12,), name="B")
    view = ib.buffer_ptr(buffer, shape=(3, 4))
    view[1, 2] = 5.0
    assert ib.get().buffer.data.same_as(buffer.data)
    assert tir.call_extern("int32", "f", view).args[1].same_as(buffer.data)
    assert tir.PrimFunc([view], tir.Evaluate(0)).params[0].same_as(buffer.data)
    assert view.asobject().access_ptr("r").args[1].same_as(buffer.data)
    assert ib.pointer("int32").dtype == "int32"


def test_wrong_use_is_refused():
    ib = tir.ir_builder.create()
    A = ib.buffer_ptr(tir.decl_buffer((2, 2, 2), name="A"))
    with pytest.raises(ValueError, match="else_scope: must follow an if_scope directly"):
        ib.else_scope()
    with pytest.raises(ValueError, match="buffer A has 3 axes, got 2 indices"):
        A[0, 1]
    with pytest.raises(ValueError, match="for_range: kind must be one of"):
        ib.for_range(0, 3, kind="reversed")
    with pytest.raises(TypeError, match="emit: expected a statement or a call, got str"):
        ib.emit("x")
    with pytest.raises(TypeError, match="store to A of float32: .* dtype int32; convert it"):
        A[0, 0, 0] = tir.const(1, "int32")
    with ib.for_range(0, 2), pytest.raises(ValueError, match="get: a block is still open"):
        ib.get()
    strided = tir.decl_buffer((2, 2), name="S", strides=[4, 1])
    with pytest.raises(ValueError, match="buffer_ptr: S has strides"):
        ib.buffer_ptr(strided, shape=(4,))
    with pytest.raises(ValueError, match="axis_separators"):
        ib.allocate("float32", (2, 2), axis_separators=[1])
