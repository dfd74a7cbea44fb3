"""Functions of blocks whose indices have one type, whatever that of the extents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir


def _types(func: tir.PrimFunc) -> set[str]:
    """Types of loops, block axes, extents and indices."""
    found: set[str] = set()

    def look(node: Any) -> None:
        if isinstance(node, tir.For):
            found.update(str(e.dtype) for e in (node.loop_var, node.min, node.extent))
        elif isinstance(node, tir.Block):
            found.update(str(axis.var.dtype) for axis in node.iter_vars)
            found.update(str(e.dtype) for b in node.alloc_buffers for e in b.shape)
        elif isinstance(node, tir.BufferLoad | tir.BufferStore):
            found.update(str(index.dtype) for index in node.indices)

    tir.stmt_functor.post_order_visit(func.body, look)
    found.update(str(e.dtype) for buffer in func.buffer_map.values() for e in buffer.shape)
    return found


def _tensors(n: Any) -> list[te.Tensor]:
    a = te.placeholder((n, 4), name="a")
    index = te.placeholder((n,), "int32", name="index")
    padded = te.compute(
        (n, 6),
        lambda i, j: tir.if_then_else(tir.all(j >= 1, j < 5), a[index[i], j - 1], 0.0),
        name="padded",
    )
    counted = te.compute(
        (n, 6), lambda i, j: i.astype("int32") * 6 + tir.Select(j > 2, j, 0), name="counted"
    )
    k = te.reduce_axis((0, 6), name="k")
    total = te.compute(
        (n,), lambda i: te.sum(padded[i, k] * counted[i, k].astype("float32"), axis=k), name="total"
    )
    return [a, index, counted, total]


@pytest.mark.parametrize("n", [3, te.var("n"), te.var("n", "int64")], ids=["3", "n", "wide"])
def test_every_index_is_wide_and_values_keep_their_types(n: Any) -> None:
    func = te.create_prim_func(_tensors(n), index_dtype_override="int64")
    assert _types(func) == {"int64"}
    assert [str(func.buffer_map[p].dtype) for p in func.params] == [
        *("float32", "int32", "int32", "float32")
    ]
    a = np.arange(12, dtype="float32").reshape(3, 4)
    index = np.array([2, 0, 1], "int32")
    given = [a, index, np.zeros((3, 6), "int32"), np.zeros(3, "float32")]
    arrays = [tvm.nd.array(array) for array in given]
    tvm.build(func, target="llvm")(*arrays)
    j = np.arange(6)
    counted = np.arange(3)[:, None] * 6 + np.where(j > 2, j, 0)
    np.testing.assert_array_equal(arrays[2].numpy(), counted)
    padded = np.pad(a[index], ((0, 0), (1, 1)))
    np.testing.assert_allclose(arrays[3].numpy(), (padded * counted).sum(1), rtol=1e-6)


def test_indices_become_narrow_where_everything_fits() -> None:
    a = te.placeholder((tir.const(8, "int64"),), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    func = te.create_prim_func([a, b], index_dtype_override="int32")
    assert _types(func) == {"int32"}


def test_indices_of_another_type_are_refused() -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    with pytest.raises(ValueError, match="indices are int32 or int64, not int16"):
        te.create_prim_func([a, b], index_dtype_override="int16")


def test_long_programs_of_bindings_are_no_deeper_than_short_ones():
    def straight(inputs: Any, outputs: Any) -> tir.Stmt:
        ib = tir.ir_builder.create()
        value = inputs[0].vload([0])
        for _ in range(1000):
            value = ib.let("x", value + 1.0)
        ib.emit(outputs[0].vstore([0], value))
        return ib.get()

    a = te.placeholder((1,), name="a")
    b = te.extern((1,), [a], straight, name="b", dtype="float32")
    func = te.create_prim_func([a, b], index_dtype_override="int64")
    result = tvm.nd.empty((1,))
    tvm.build(func, target="llvm")(tvm.nd.array(np.ones(1, "float32")), result)
    assert result.numpy()[0] == 1001
