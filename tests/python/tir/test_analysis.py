"""Analyses of expressions and functions."""

from __future__ import annotations

import pytest

import tvm
from tvm import te, tir
from tvm.script import tir as T
from tvm.tir import analysis


def test_deep_equality_compares_trees_but_not_variables():
    i, other = tir.Var("i"), tir.Var("i")
    assert analysis.expr_deep_equal(i * 4 + 1, i * 4 + 1)
    assert not analysis.expr_deep_equal(i * 4 + 1, other * 4 + 1)
    assert not analysis.expr_deep_equal(i * 4, i * 4 + 0 * i + 1)
    a = tir.decl_buffer((8,), name="A")
    assert analysis.expr_deep_equal(a[i], a[i])


def test_undefined_variables_come_in_order_of_use():
    i, n, m = tir.Var("i"), tir.Var("n"), tir.Var("m")
    a = tir.decl_buffer((8,), "int32", name="A")
    stmt = tir.For(i, 0, n, 0, tir.BufferStore(a, m + i, [i]))
    names = [var.name for var in analysis.undefined_vars(stmt)]
    assert names == ["n", "A", "m"]
    assert [v.name for v in analysis.undefined_vars(stmt, [n, a.data])] == ["m"]


@pytest.mark.parametrize(
    ("expr", "effect"),
    [
        (tir.Var("i") + 1, analysis.CallEffectKind.Pure),
        (tir.exp(tir.Var("x", "float32")), analysis.CallEffectKind.Pure),
        (tir.decl_buffer((4,))[0], analysis.CallEffectKind.ReadState),
        (tir.call_extern("int32", "f", 1), analysis.CallEffectKind.UpdateState),
    ],
)
def test_effects_are_the_strongest_inside(expr, effect):
    assert analysis.side_effect(expr) == effect


def test_nodes_are_counted_at_each_use():
    i = tir.Var("i")
    shared = i + 1
    assert analysis.count_nodes(shared * shared) == 7


def test_ssa_refuses_a_variable_bound_twice():
    i = tir.Var("i")
    a = tir.decl_buffer((8,), name="A")
    loop = tir.For(i, 0, 8, 0, tir.BufferStore(a, 0.0, [i]))
    assert analysis.verify_ssa(tir.PrimFunc([a], loop))
    assert not analysis.verify_ssa(tir.PrimFunc([a], tir.SeqStmt([loop, loop])))


def test_well_formedness_names_the_unbound_variable():
    i = tir.Var("i")
    a = tir.decl_buffer((8,), name="A")
    func = tir.PrimFunc([a], tir.BufferStore(a, 0.0, [i]))
    assert not analysis.verify_well_formed(func, assert_mode=False)
    with pytest.raises(ValueError, match="variable i is used but not bound there"):
        analysis.verify_well_formed(func)


def allocation(name, extent, body, dtype="float32"):
    data = tir.decl_buffer((extent,), dtype, name=name).data
    return tir.Allocate(data, dtype, [extent], True, body)


def test_workspace_is_the_most_that_is_alive_together():
    nothing = tir.Evaluate(0)
    inner = tir.SeqStmt([allocation("B", 5, nothing), allocation("C", 3, nothing, "float64")])
    func = tir.PrimFunc([], allocation("A", 10, inner))
    assert analysis.calculate_workspace_bytes(func) == 4 * 10 + 8 * 3
    assert analysis.calculate_workspace_bytes(func, 16) == 48 + 32
    with pytest.raises(ValueError, match="alignment must be > 0, got 0"):
        analysis.calculate_workspace_bytes(func, 0)
    n = tir.Var("n")
    assert analysis.calculate_workspace_bytes(tir.PrimFunc([n], allocation("D", n, nothing))) == 0


def matmul():
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((6, 5), name="B")
    k = te.reduce_axis((0, 6), name="k")
    C = te.compute((4, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def test_flops_of_a_matrix_product_are_two_per_multiply_add():
    A, B, C = matmul()
    s = te.create_schedule(C.op)
    flops = 2.0 * 4 * 5 * 6
    assert analysis.estimate_tir_flops(te.create_prim_func([A, B, C])) == flops
    assert analysis.estimate_tir_flops(tvm.lower(s, [A, B, C])) == flops
    s[C].vectorize(s[C].split(C.op.axis[1], 4)[1])
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[C].unroll(C.op.reduce_axis[0])
    assert analysis.estimate_tir_flops(tvm.lower(s, [A, B, C])["main"].body) >= flops


def test_flops_of_a_branch_are_those_of_its_longer_side():
    a = tir.decl_buffer((8,), name="a")
    i = tir.Var("i")
    short, long = tir.BufferStore(a, a[i] + 1.0, [i]), tir.BufferStore(a, a[i] * 2.0 - 3.0, [i])
    branch = tir.IfThenElse(i < 3, short, long)
    assert analysis.estimate_tir_flops(tir.For(i, 0, 8, 0, branch)) == 16
    with pytest.raises(ValueError, match="loop i has the unbounded extent n"):
        analysis.estimate_tir_flops(tir.For(i, 0, tir.Var("n"), 0, branch))


def test_the_place_of_all_accesses_of_a_buffer():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda p, q: A[p, q] + 1.0, name="B")
    C = te.compute((4, 5), lambda i, j: B[i, j] * B[i, 0], name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    func = tvm.driver.form_irmodule(s, [A, C])["main"]
    places = {
        buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(func).items()
    }
    loops = {}
    tir.stmt_functor.post_order_visit(
        func, lambda n: loops.update({n.loop_var.name: n}) if isinstance(n, tir.For) else None
    )
    assert {name: place.loop_var.name for name, place in places.items()} == {
        "A": "q",
        "B": "i",
        "C": "j",
    }
    assert places["B"].same_as(loops["i"])


def test_a_pointer_that_is_passed_on_is_an_access():
    a = tir.decl_buffer((8,), name="a")
    i = tir.Var("i")
    read = tir.For(i, 0, 8, 0, tir.Evaluate(a[i]))
    passed = tir.Evaluate(tir.call_extern("int32", "use", a.data))
    assert analysis.detect_buffer_access_lca(tir.PrimFunc([a], read))[a].same_as(read)
    both = tir.PrimFunc([a], tir.SeqStmt([read, passed]))
    assert analysis.detect_buffer_access_lca(both)[a] is None
    blocks = te.create_prim_func(list(matmul()))
    [place] = {p for b, p in analysis.detect_buffer_access_lca(blocks).items() if b.name == "C"}
    assert place.name_hint == "C"


def test_global_buffers_are_held_by_the_launch():
    @T.prim_func
    def func(A: T.Buffer((4, 8), "float32")):
        B = T.alloc_buffer((4, 8), "float32", scope="local")
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in range(8):
                with T.block("copy"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj]

    lca = tir.analysis.detect_buffer_access_lca(func)
    blocks = func.body.block.body
    assert lca[func.buffer_map[func.params[0]]].same_as(blocks)
    assert lca[func.body.block.alloc_buffers[0]].same_as(blocks.body.body.block)


def test_pure_functions_only_read_and_return():
    @T.prim_func
    def pure(A: T.Buffer((4,), "float32")) -> T.float32:
        B = T.decl_buffer((4,), "float32")
        for i in range(4):
            B[i] = T.exp(A[i])
        T.ret(B[0] + B[3])

    @T.prim_func
    def writes(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)

    @T.prim_func
    def calls(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_extern("int32", "flush"))

    assert analysis.is_pure_function(pure)
    assert analysis.assert_pure_function(pure)
    assert not analysis.is_pure_function(writes)
    with pytest.raises(ValueError, match="stores to buffer A"):
        analysis.assert_pure_function(writes)
    with pytest.raises(ValueError, match="calls tir.call_extern"):
        analysis.assert_pure_function(calls)


def test_accesses_outside_of_buffers_are_refused():
    @T.prim_func
    def inside(A: T.Buffer((4,), "float32"), n: T.int32):
        for i in range(8):
            if i < 4:
                A[i] = A[n]

    @T.prim_func
    def outside(A: T.Buffer((4,), "float32")):
        for i in range(3):
            A[i] = A[i + 4]

    mod = tvm.IRModule({"main": inside})
    assert analysis.OOBChecker()(mod).same_as(mod)
    with pytest.raises(tvm.tir.ScheduleError, match=r"main: index .* of buffer A is outside"):
        analysis.OOBChecker()(tvm.IRModule({"main": outside}))


def test_out_of_bounds_in_one_iteration_is_out_of_bounds():
    @T.prim_func
    def beyond_the_end(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32")):
        for i in range(3):
            B[i, 0] = A[i, 2]

    @T.prim_func
    def before_the_start(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[3 - vi - 1]

    @T.prim_func
    def guarded(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i, j in T.grid(5, 3):
            with T.block("B"):
                T.where(i < 4)
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi] = T.if_then_else(vi + vj < 4, A[vi + vj], A[0])

    for func in (beyond_the_end, before_the_start):
        with pytest.raises(tvm.tir.ScheduleError, match="of buffer A is outside"):
            analysis.OOBChecker()(tvm.IRModule({"main": func}))
    mod = tvm.IRModule({"main": guarded})
    assert analysis.OOBChecker()(mod).same_as(mod)


def test_allocated_bytes_are_counted_by_scope():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        with T.decl_buffer((64,), "int8", scope="shared") as B:
            B[0] = T.int8(1)
            with T.decl_buffer((8,), "float32", scope="shared") as C:
                C[0] = A[0]
        with T.decl_buffer((16,), "int16") as D:
            D[0] = T.int16(1)

    sizes = {"shared": 96, "global": 32}
    assert analysis.calculate_allocated_bytes(func) == {"main": sizes}
    assert analysis.calculate_allocated_bytes(tvm.IRModule({"f": func})) == {"f": sizes}


def test_regions_of_views_are_those_of_what_they_show():
    @T.prim_func
    def func(A: T.Buffer((8, 8, 4), "float32"), B: T.Buffer((8, 16), "float32")):
        for i in range(8):
            with T.block("rows"):
                vi = T.axis.spatial(8, i)
                row = T.match_buffer(A[vi, 0:8, 0:4], (8, 4), offset_factor=1)
                part = T.match_buffer(B[vi, 4:12], (8,), offset_factor=1)
                for j in range(4):
                    part[j * 2] = row[j + 2, 1] + row[0, 3]

    block = func.body.block.body.body.block
    vi = block.iter_vars[0].var
    (read,), (written,), _ = tir.analysis.get_block_access_region(block)
    assert read.buffer.same_as(func.buffer_map[func.params[0]])
    ranges = [(r.min, int(r.extent)) for r in read.region]
    assert ranges[0][0].same_as(vi)
    assert [(int(low), extent) for low, extent in ranges[1:]] == [(0, 6), (1, 3)]
    assert written.buffer.same_as(func.buffer_map[func.params[1]])
    assert (int(written.region[1].min), int(written.region[1].extent)) == (4, 7)


def test_a_sum_that_a_block_inside_begins_anew_is_not_read():
    @T.prim_func
    def func(A: T.Buffer((64, 8), "float32"), B: T.Buffer((64,), "float32")):
        for io in range(8):
            with T.block("rows"):
                vo = T.axis.spatial(8, io)
                for i, k in T.grid(8, 8):
                    with T.block("sum"):
                        vi = T.axis.spatial(64, vo * 8 + i)
                        vk = T.axis.reduce(8, k)
                        with T.init():
                            B[vi] = 0.0
                        B[vi] = B[vi] + A[vi, vk]

    rows = func.body.block.body.body.block
    assert [str(region.buffer.name) for region in rows.reads] == ["A"]
    assert [str(region.buffer.name) for region in rows.writes] == ["B"]
    assert int(rows.writes[0].region[0].extent) == 8


def test_regions_of_blocks_inside_are_what_they_declare():
    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), B: T.Buffer((8,), "float32")):
        for _ in range(1):
            with T.block("both"):
                for i in range(8):
                    with T.block("wide"):
                        vi = T.axis.spatial(8, i)
                        T.reads(A[vi : vi + 9])
                        T.writes(B[vi])
                        B[vi] = A[vi] + 1.0
                B[0] = A[3]

    both = func.body.block.body.body.block
    (read,), (written,) = both.reads, both.writes
    assert (int(read.region[0].min), int(read.region[0].extent)) == (0, 16)
    assert (int(written.region[0].min), int(written.region[0].extent)) == (0, 8)


def test_regions_of_calls_inside_are_what_their_blocks_declare():
    @T.prim_func
    def func(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32")):
        for i in range(8):
            with T.block("row"):
                vi = T.axis.spatial(8, i)
                cache = T.alloc_buffer((16,), "float32")
                with T.block("copy"):
                    T.reads(A[vi, 0:16])
                    T.writes(cache[0:16])
                    T.evaluate(T.call_extern("int32", "copy", cache.data, A.data, vi))
                for j in range(16):
                    with T.block("use"):
                        vj = T.axis.spatial(16, j)
                        B[vi, vj] = cache[vj]

    block = func.body.block.body.body.block
    # Nobody outside sees the memory of the block.
    assert [r.buffer.name for r in block.reads] == ["A"]
    assert [int(r.extent) for r in block.reads[0].region] == [1, 16]
    assert [r.buffer.name for r in block.writes] == ["B"]


def test_memory_that_moves_into_a_block_leaves_what_it_declares():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        B = T.alloc_buffer((8,), "float32")
        for i in range(8):
            with T.block("outer"):
                vi = T.axis.spatial(8, i)
                with T.block("inner"):
                    B[vi] = A[vi]
                    C[vi] = B[vi]

    mod = tvm.IRModule({"main": func})
    after = tir.transform.PlanAndUpdateBufferAllocationLocation()(mod)["main"]
    outer = after.body.block.body.body.block
    inner = outer.body.block
    assert [buffer.name for buffer in inner.alloc_buffers] == ["B"]
    for block in (outer, inner):
        assert [r.buffer.name for r in block.reads] == ["A"]
        assert [r.buffer.name for r in block.writes] == ["C"]


def test_dependences_between_blocks_are_known_without_a_schedule():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((8,), lambda i: B[i] * 2.0, name="C")
    func = te.create_prim_func([A, C])
    for given in (func, tvm.IRModule({"main": func})):
        info = tir.BlockDependenceInfo(given)
        first, second = (info.get_sref(loop.body.block) for loop in func.body.block.body)
        scope = info.get_block_scope(info.get_sref(func.body.block))
        (found,) = scope.get_deps_by_src(first)
        assert found.dst.same_as(second)
        assert [dep.src.stmt.name_hint for dep in scope.get_deps_by_dst(second)] == ["B"]
    assert info.get_sref(te.create_prim_func([A, B]).body.block) is None


def test_a_block_with_variables_uses_no_loop_around_it():
    @T.prim_func(check_well_formed=False)
    def mixed(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("copy"):
                vi = T.axis.spatial(4, i)
                B[i] = A[vi]

    @T.prim_func
    def opaque(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("copy"):
                B[i] = A[i]

    assert analysis.verify_well_formed(opaque)
    with pytest.raises(ValueError, match="loop variable i is used in block copy, which has var"):
        analysis.verify_well_formed(mixed)
    with pytest.raises(tvm.error.DiagnosticError, match="loop variable i is used in block copy"):
        tvm.script.from_source(mixed.script(), check_well_formed=True)


def test_a_variable_is_bound_once():
    i = tir.Var("i", "int32")
    loop = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(i))
    func = tir.PrimFunc([], tir.SeqStmt([loop, loop]))
    assert not analysis.verify_well_formed(func, assert_mode=False)
    with pytest.raises(ValueError, match="a variable is bound twice"):
        analysis.verify_well_formed(func)


def test_the_domain_of_a_blocks_variable_may_depend_on_a_loop():
    @T.prim_func
    def triangle(A: T.Buffer((8, 8), "float32")):
        for i in range(8):
            for j in range(i):
                with T.block("fill"):
                    vi = T.axis.spatial(8, i)
                    vj = T.axis.spatial(i, j)
                    A[vi, vj] = T.float32(1)

    assert analysis.verify_well_formed(triangle)
