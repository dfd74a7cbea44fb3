"""Blocks: construction, text, equality and lowering."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import floats, loop
from tvm import te, tir
from tvm.ir import Range, structural_equal


def copy_block(n=16):
    """A function of one block that copies A to B, and its parts."""
    a, b = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")
    vi = tir.IterVar(Range(0, n), tir.Var("vi", "int32"), tir.IterVar.DataPar)
    point = [Range.from_min_extent(vi.var, 1)]
    block = tir.Block(
        [vi],
        [tir.BufferRegion(a, point)],
        [tir.BufferRegion(b, point)],
        "copy",
        tir.BufferStore(b, a[vi.var], [vi.var]),
    )
    nest = loop(n, lambda i: tir.BlockRealize([i], True, block))
    root = tir.BlockRealize([], True, tir.Block([], [], [], "root", nest))
    return tir.PrimFunc([a, b], root)


def test_blocks_print_as_script():
    text = repr(copy_block()).split("\n", 2)[2]
    assert text.split("\n") == [
        '    # with T.block("root"):',
        "    for i in range(16):",
        '        with T.block("copy"):',
        "            vi = T.axis.spatial(16, i)",
        "            T.reads(A[vi])",
        "            T.writes(B[vi])",
        "            B[vi] = A[vi]",
    ]


def test_equality_looks_through_the_names_of_block_variables():
    assert structural_equal(copy_block(), copy_block())
    assert not structural_equal(copy_block(16), copy_block(17))


def test_substitution_reaches_regions():
    n = tir.Var("n", "int32")
    a = tir.decl_buffer((8,), name="A")
    block = tir.Block(
        [],
        [tir.BufferRegion(a, [Range.from_min_extent(n, 2)])],
        [],
        "b",
        tir.Evaluate(tir.call_extern("int32", "f", n)),
    )
    after = tir.stmt_functor.substitute(block, {n: 3})
    assert "A[3:5]" in str(after)


def test_a_wrong_number_of_values_is_refused():
    block = copy_block().body.block.body.body.block
    with pytest.raises(ValueError, match="has 1 variables but is given 2 values"):
        tir.BlockRealize([1, 2], True, block)


def test_a_view_of_other_extents_is_refused():
    a, view = tir.decl_buffer((8, 8), name="A"), tir.decl_buffer((4,), name="V")
    region = tir.BufferRegion(a, [Range(2, 3), Range(0, 8)])
    with pytest.raises(ValueError, match="axis 1 of the region of A has the extent 8"):
        tir.MatchBufferRegion(view, region)


def test_a_region_of_other_rank_is_refused():
    with pytest.raises(ValueError, match="buffer A has 2 axes"):
        tir.BufferRegion(tir.decl_buffer((8, 8), name="A"), [Range(0, 8)])


def test_access_regions_are_found():
    block = copy_block().body.block.body.body.block
    reads, writes, opaque = tir.analysis.get_block_access_region(block)
    assert opaque == []
    assert [str(r) for r in reads] == ["A[vi]"]
    assert [str(r) for r in writes] == ["B[vi]"]


def test_what_is_accessed_by_pointer_counts_as_a_whole():
    A, B = (tir.decl_buffer((8,), "float32", name) for name in "AB")
    call = tir.Evaluate(tir.call_extern("int32", "fill", A.data))
    block = tir.Block([], [], [], "b", tir.SeqStmt([call, B.vstore([2], A.vload([3]))]))
    pointers = {buffer.data: buffer for buffer in (A, B)}
    reads, writes, opaque = tir.analysis.get_block_access_region(block, pointers)
    assert list(map(str, (*reads, *writes, *opaque))) == ["A[3]", "B[2]", "A[0:8]"]
    reads, writes = tir.analysis.get_block_read_write_region(block, pointers)
    assert list(map(str, reads)) == ["A[0:8]"]
    assert list(map(str, writes)) == ["B[2]", "A[0:8]"]


def run(func, *arrays):
    given = [tvm.nd.array(a) for a in arrays]
    tvm.build(func, target="llvm")(*given)
    return given[-1].numpy()


def test_a_block_runs_compiled():
    values = floats(16)
    np.testing.assert_array_equal(run(copy_block(), values, np.zeros(16, "float32")), values)


def test_a_predicate_guards_its_block():
    func = copy_block()
    realize = func.body.block.body.body
    loop_var = func.body.block.body.loop_var
    guarded = tir.BlockRealize(realize.iter_values, loop_var < 5, realize.block)
    body = tir.For(loop_var, 0, 16, 0, guarded)
    root = tir.BlockRealize([], True, tir.Block([], [], [], "root", body))
    func = tir.PrimFunc(func.params, root, func.ret_type, func.buffer_map)
    assert "T.where(i < 5)" in str(func)
    values = floats(16)
    out = run(func, values, np.zeros(16, "float32"))
    np.testing.assert_array_equal(out, np.where(np.arange(16) < 5, values, 0))


def test_a_view_is_an_access_of_what_it_views():
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((8,), name="B")
    stride = tir.Var("s", "int32")
    view = tir.decl_buffer((8,), name="V", strides=[stride])
    match = tir.MatchBufferRegion(view, tir.BufferRegion(a, [Range(2, 3), Range(0, 8)]))
    body = loop(8, lambda i: tir.BufferStore(b, view[i] * 2.0, [i]))
    block = tir.Block([], [], [], "row", body, match_buffers=[match])
    func = tir.PrimFunc([a, b], tir.BlockRealize([], True, block))
    assert "V = T.match_buffer(A[2, 0:8], (8,)" in str(func)
    values = floats(4, 8)
    np.testing.assert_array_equal(run(func, values, np.zeros(8, "float32")), values[2] * 2)


def test_a_buffer_moves_to_the_loop_that_needs_it_and_shrinks():
    """T[i, j] is used only inside of the loop over i, one row at a time."""
    a, b, t = (tir.decl_buffer((6, 8), name=name) for name in "ABT")

    def row(i):
        fill = loop(8, lambda j: tir.BufferStore(t, a[i, j] + 1.0, [i, j]), name="j")
        use = loop(8, lambda j: tir.BufferStore(b, t[i, 7 - j], [i, j]), name="j")
        return tir.SeqStmt([fill, use])

    root = tir.Block([], [], [], "root", loop(6, row), alloc_buffers=[t])
    func = tir.PrimFunc([a, b], tir.BlockRealize([], True, root)).with_attr("global_symbol", "main")
    mod = tvm.IRModule({"main": func})
    passes = [
        tir.transform.PlanAndUpdateBufferAllocationLocation(),
        tir.transform.CompactBufferAllocation(),
        tir.transform.LowerOpaqueBlock(),
    ]
    text = str(tvm.transform.Sequential(passes)(mod)["main"].body)
    assert text.index("for i in range(6)") < text.index("T.allocate([1, 8]")
    values = floats(6, 8)
    np.testing.assert_array_equal(
        run(func, values, np.zeros((6, 8), "float32")), values[:, ::-1] + 1
    )


def after(pass_, func):
    func = func.with_attr("global_symbol", "main")
    return str(pass_(tvm.IRModule({"main": func}))["main"].body)


def test_an_init_becomes_a_test_for_the_first_trip_of_the_reduction():
    a, total = tir.decl_buffer((8,), name="A"), tir.decl_buffer((1,), name="S")
    k = tir.IterVar(Range(0, 8), tir.Var("vk", "int32"), tir.IterVar.CommReduce)
    update = tir.BufferStore(total, total[0] + a[k.var], [0])
    block = tir.Block([k], [], [], "sum", update, init=tir.BufferStore(total, 0.0, [0]))
    nest = loop(8, lambda i: tir.BlockRealize([i], True, block))
    func = tir.PrimFunc([a, total], tir.BlockRealize([], True, tir.Block([], [], [], "r", nest)))
    text = after(tir.transform.LowerInitBlock(), func)
    assert "T.init" in str(func)
    assert "T.init" not in text
    assert (
        text.index("if vk == 0:")
        < text.index("S[0] = T.float32(0.0)")
        < text.index("S[0] = S[0] + A[vk]")
    )
    with pytest.raises(ValueError, match="still has an init; run LowerInitBlock before"):
        after(tir.transform.ConvertBlocksToOpaque(), func)
    values = floats(8)
    np.testing.assert_allclose(run(func, values, np.ones(1, "float32")), [values.sum()], rtol=1e-5)


def test_an_opaque_block_has_no_variables():
    text = after(tir.transform.ConvertBlocksToOpaque(), copy_block())
    assert "T.axis" not in text
    assert "B[i] = A[i]" in text


def test_a_view_is_replaced_by_what_it_views():
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((8,), name="B")
    view = tir.decl_buffer((8,), name="V", strides=[tir.Var("s", "int32")])
    match = tir.MatchBufferRegion(view, tir.BufferRegion(a, [Range(2, 3), Range(0, 8)]))
    body = loop(8, lambda i: tir.BufferStore(b, view[i], [i]))
    block = tir.Block([], [], [], "row", body, match_buffers=[match])
    text = after(
        tir.transform.LowerMatchBuffer(), tir.PrimFunc([a, b], tir.BlockRealize([], True, block))
    )
    assert "match_buffer" not in text
    assert "B[i] = A[2, i]" in text


def test_lowering_a_schedule_runs_no_block_pass():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    assert not any("Block" in str(p.info.name) for p in tvm.driver.lower_passes())
    assert "T.block" not in str(tvm.lower(te.create_schedule(B.op), [A, B]))
