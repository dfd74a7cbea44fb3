"""Passes for pipelines of one's own: compaction, hoisting, constants, vectors, overcompute."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import apply, lines, loop
from testing_tir import run_prim_func
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform


def same(func, expected):
    tvm.ir.assert_structural_equal(func.body, expected.body)


def compacted(func, **options):
    mod = tvm.IRModule.from_expr(func.with_attr("global_symbol", "main"))
    mod = transform.CompactBufferAllocation(**options)(mod)
    return transform.Simplify()(mod)["main"]


def test_loops_of_one_iteration_do_not_tell_places_apart():
    @T.prim_func
    def before(A: T.Buffer((32, 16), "float32"), C: T.Buffer((32, 16), "float32")):
        for i in T.thread_binding(32, thread="threadIdx.x"):
            for z in T.thread_binding(1, thread="threadIdx.z"):
                with T.block():
                    T.reads(A[i, 0:16])
                    T.writes(C[i, 0:16])
                    B = T.alloc_buffer((32, 16), scope="local")
                    for j in range(16):
                        B[i, j] = A[i, j] + 1.0
                    for j in range(16):
                        C[i, j] = B[i + z * 8, 15 - j]

    (buffer,) = compacted(before).body.block.body.body.body.block.alloc_buffers
    assert [int(extent) for extent in buffer.shape] == [1, 16]


def test_operands_of_a_tensorized_sum_are_allocated_in_its_loop():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), C: T.Buffer((1,), "float32")):
        B = T.alloc_buffer((64,))
        D = T.alloc_buffer((1,))
        with T.block("start"):
            D[0] = T.float32(0)
        for k in range(8):
            for j in range(8):
                with T.block("B"):
                    v = T.axis.spatial(64, k * 8 + j)
                    B[v] = A[v] * 2.0
            with T.block("sum"):
                vk = T.axis.reduce(8, k)
                T.reads(D[0], B[vk * 8 : vk * 8 + 8])
                T.writes(D[0])
                part = T.match_buffer(B[vk * 8 : vk * 8 + 8], (8,), offset_factor=1)
                total = T.match_buffer(D[0], (), offset_factor=1)
                for j in range(8):
                    total[()] = total[()] + part[j]
        with T.block("end"):
            C[0] = D[0]

    mod = tvm.IRModule.from_expr(before.with_attr("global_symbol", "main"))
    planned = transform.PlanAndUpdateBufferAllocationLocation()(mod)
    text = planned.script()
    # The sum lives through all iterations, a part of the operand through one.
    assert text.index("D = T.alloc_buffer") < text.index("for k in range(8)")
    assert text.index("B = T.alloc_buffer") > text.index("for k in range(8)")
    a, c = np.random.default_rng(0).random(64, "float32"), tvm.nd.empty((1,))
    tvm.build(mod, target="llvm")(tvm.nd.array(a), c)
    np.testing.assert_allclose(c.numpy(), [2 * a.sum()], rtol=1e-5)


@pytest.mark.parametrize("lowered", [False, True])
def test_a_buffer_is_as_large_as_what_is_touched_of_it(lowered):
    @T.prim_func
    def before(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
        for i in range(8):
            with T.block():
                T.reads(A[i, 0:16])
                T.writes(C[i, 0:16])
                B = T.alloc_buffer((8, 16))
                for j in range(4, 12):
                    if j < 10:
                        B[i, j] = A[i, j] + 1.0
                for j in range(6, 9):
                    C[i, j] = B[i, j]

    if lowered:
        before = transform.LowerOpaqueBlock()(tvm.IRModule({"main": before}))["main"]
    func = compacted(before)
    shapes = []
    tir.stmt_functor.post_order_visit(
        func.body,
        lambda node: (
            shapes.append([int(extent) for extent in node.buffer.shape])
            if isinstance(node, tir.BufferStore) and node.buffer.name == "B"
            else None
        ),
    )
    assert shapes == [[1, 6]]
    x, out = np.random.default_rng(0).random((8, 16)).astype("float32"), np.zeros((8, 16))
    out = out.astype("float32")
    run_prim_func(transform.LowerOpaqueBlock()(tvm.IRModule({"main": func}))["main"], x, out)
    np.testing.assert_array_equal(out[:, 6:9], x[:, 6:9] + 1)


def test_blocks_buffers_become_allocations_with_the_gaps_of_their_strides():
    @T.prim_func
    def before(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4, 16), "float32")):
        with T.block():
            T.reads(A[0:4, 0:16])
            T.writes(C[0:4, 0:16])
            B = T.alloc_buffer((4, 16), strides=(17, 1))
            D = T.alloc_buffer((16,))
            for i in range(4):
                for j in range(16):
                    B[i, j] = A[i, j]
                for j in range(16):
                    D[j] = B[i, j] * 2.0
                for j in range(16):
                    C[i, j] = D[j]

    @T.prim_func
    def expected(A: T.Buffer((4, 16), "float32"), C: T.Buffer((4, 16), "float32")):
        b = T.allocate([4, 17], "float32")
        B = T.decl_buffer((4, 16), data=b, strides=(17, 1))
        d = T.allocate([16], "float32")
        D = T.decl_buffer((16,), data=d)
        for i in range(4):
            for j in range(16):
                B[i, j] = A[i, j]
            for j in range(16):
                D[j] = B[i, j] * 2.0
            for j in range(16):
                C[i, j] = D[j]

    after = transform.LowerOpaqueBlock()(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(
        after.with_attr("global_symbol", "main"), expected.with_attr("global_symbol", "main")
    )


@pytest.mark.parametrize("lowered", [False, True])
def test_aligned_buffers_are_strided_before_or_after_their_blocks_are_gone(lowered):
    @T.prim_func
    def before(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
        for i in range(8):
            with T.block():
                T.reads(A[i, 0:16])
                T.writes(C[i, 0:16])
                B = T.alloc_buffer((8, 16))
                with T.block():
                    T.reads(A[i, 0:16])
                    T.writes(B[i, 0:16])
                    T.block_attr({"buffer_dim_align": [[0, 0, 32, 8]]})
                    for j in range(16):
                        B[i, j] = A[i, j]
                for j in range(16):
                    C[i, j] = B[i, 15 - j]

    mod = tvm.IRModule({"main": before})
    passes = [transform.CompactBufferAllocation(), transform.LowerOpaqueBlock()]
    mod = tvm.transform.Sequential(passes[::-1] if lowered else passes)(mod)
    buffers = []
    tir.stmt_functor.post_order_visit(
        mod["main"].body,
        lambda node: buffers.append(node.buffer) if isinstance(node, tir.DeclBuffer) else None,
    )
    (buffer,) = buffers
    assert [int(n) for n in buffer.shape] == [1, 16]
    assert [int(n) for n in buffer.strides] == [40, 1]
    x = np.random.default_rng(0).random((8, 16)).astype("float32")
    out = np.zeros_like(x)
    run_prim_func(mod["main"], x, out)
    np.testing.assert_array_equal(out, x[:, ::-1])


def test_loops_of_one_iteration_go_with_the_blocks_unless_they_are_annotated():
    @T.prim_func
    def before(A: T.Buffer((4, 4), "float32")):
        for i in range(1):
            for j in T.serial(1, annotations={"kept": 1}):
                for k in T.vectorized(2, 3):
                    A[i + k, j] = 0.0

    @T.prim_func
    def expected(A: T.Buffer((4, 4), "float32")):
        for _ in T.serial(1, annotations={"kept": 1}):
            A[2, 0] = 0.0

    lower = tvm.transform.Sequential([transform.LowerOpaqueBlock(), transform.Simplify()])
    after = lower(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(
        after.with_attr("global_symbol", "main"), expected.with_attr("global_symbol", "main")
    )


def test_pragmas_become_attributes_in_the_order_of_their_names():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32")):
        for i in T.serial(16, annotations={"pragma_3": 0.0, "pragma_1": "text", "pragma_2": 1}):
            A[i] = 0.0

    statement = transform.LowerOpaqueBlock()(tvm.IRModule({"main": before}))["main"].body
    found = []
    while isinstance(statement, tir.AttrStmt):
        found.append((str(statement.attr_key), statement.value.value))
        statement = statement.body
    assert found == [("pragma_1", "text"), ("pragma_2", 1), ("pragma_3", 0.0)]
    assert not len(statement.annotations)


def test_a_view_that_declares_what_its_region_has_not_is_refused():
    def lowered(**declared):
        a = tir.decl_buffer((64, 64), name="A")
        view = tir.decl_buffer((16, 8), name="view", **declared)
        source = tir.BufferRegion(a, [tvm.ir.Range(16, 32), tvm.ir.Range(8, 16)])
        use = tir.Evaluate(tir.call_extern("int32", "f", view.data, view.elem_offset))
        block = tir.Block(
            [], [source], [], "B", use, match_buffers=[tir.MatchBufferRegion(view, source)]
        )
        func = tir.PrimFunc([a], tir.BlockRealize([], True, block))
        mod = transform.LowerMatchBuffer()(tvm.IRModule({"main": func}))
        return mod["main"].body.block.body.value

    row, column = tir.Var("row", "int32"), tir.Var("column", "int32")
    call = lowered(strides=[row, column], elem_offset=tir.Var("offset", "int32"))
    assert int(call.args[2]) == 16 * 64 + 8
    with pytest.raises(ValueError, match="declares the stride 1, the region has 64"):
        lowered(strides=[row, row], elem_offset=tir.Var("offset", "int32"))
    with pytest.raises(ValueError, match="declares the stride 32, the region has 64"):
        lowered(strides=[32, 1], elem_offset=tir.Var("offset", "int32"))
    with pytest.raises(ValueError, match="declares the offset 0, the region has 1032"):
        lowered(strides=[row, column])
    with pytest.raises(ValueError, match="declares offset_factor 16, the region begins at"):
        lowered(strides=[row, column], elem_offset=tir.Var("offset", "int32"), offset_factor=16)


def test_a_buffer_whose_pointer_is_passed_on_keeps_its_size():
    @T.prim_func
    def func(C: T.Buffer((16,), "float32")):
        with T.block():
            T.reads()
            T.writes(C[0:4])
            B = T.alloc_buffer((16,))
            T.evaluate(T.call_extern("int32", "fill", B.data))
            for j in range(4):
                C[j] = B[j]

    same(compacted(func), transform.Simplify()(tvm.IRModule({"main": func}))["main"])


def test_a_buffer_that_is_declared_too_small_grows_only_if_asked():
    @T.prim_func
    def func(C: T.Buffer((16,), "float32")):
        with T.block():
            T.reads()
            T.writes(C[0:16])
            B = T.alloc_buffer((10,))
            for j in range(12):
                B[j] = 1.0
            for j in range(16):
                C[j] = B[0]

    assert int(compacted(func).body.block.alloc_buffers[0].shape[0]) == 10
    grown = compacted(func, is_strict=False)
    assert int(grown.body.block.alloc_buffers[0].shape[0]) == 12


def branching(beside):
    a = tir.decl_buffer((64,), name="A")

    def inner(i, j):
        test = tir.IfThenElse(i < 3, tir.BufferStore(a, 1.0, [i * 8 + j]), None)
        return tir.SeqStmt([test, tir.BufferStore(a, 2.0, [j])]) if beside else test

    return tir.PrimFunc([a], loop(8, lambda i: loop(8, lambda j: inner(i, j), name="j")))


def test_tests_leave_loops_that_hold_nothing_else():
    func = apply(transform.HoistIfThenElse(), branching(beside=False))
    assert [line.strip() for line in lines(func)[:3]] == [
        "for i in range(8):",
        "if i < 3:",
        "for j in range(8):",
    ]
    kept = branching(beside=True)
    assert apply(transform.HoistIfThenElse(), kept).body.same_as(kept.body)
    assert not apply(transform.UnswitchLoops(), kept).body.same_as(kept.body)


@pytest.mark.parametrize("hoist", [transform.HoistIfThenElse, transform.HoistExpression])
def test_a_loop_that_is_written_twice_has_variables_of_its_own(hoist):
    a = tir.decl_buffer((64,), name="A")

    def inner(i, j):
        return tir.IfThenElse(
            i < 3, tir.BufferStore(a, 1.0, [i * 8 + j]), tir.BufferStore(a, 2.0, [i * 8 + j])
        )

    whole = tir.PrimFunc([a], loop(8, lambda i: loop(8, lambda j: inner(i, j), name="j")))
    func = apply(hoist(), whole)
    branch = func.body.body
    assert not branch.then_case.loop_var.same_as(branch.else_case.loop_var)
    assert tir.analysis.verify_ssa(func)
    filled = tvm.nd.array(np.zeros(64, "float32"))
    tvm.build(func, target="llvm")(filled)
    assert filled.numpy().tolist() == [1.0] * 24 + [2.0] * 40


def test_hoisting_refuses_an_unknown_option():
    with (
        tvm.transform.PassContext(config={"tir.HoistIfThenElse": {"everywhere": True}}),
        pytest.raises(ValueError, match="has no option everywhere"),
    ):
        apply(transform.HoistIfThenElse(), branching(beside=False))


def test_hoisting_refuses_an_axis_with_two_extents():
    data = tir.decl_buffer((64,), name="data")
    tx = tir.IterVar(None, "tx", tir.IterVar.ThreadIndex, "threadIdx.x")
    store = tir.IfThenElse(tx.var < 3, tir.BufferStore(data, tir.const(1.0, "float32"), [tx.var]))
    inner = tir.AttrStmt(tx, "thread_extent", 33, store)
    outer = tir.AttrStmt(tx, "thread_extent", 32, loop(4, lambda i: inner))
    message = r"threadIdx.x \(tx\) is launched with 32 threads, and inside of that with 33"
    with pytest.raises(ValueError, match=message):
        apply(transform.HoistIfThenElse(), tir.PrimFunc([data], outer))
    # One after the other they are two launches.
    apply(transform.HoistIfThenElse(), tir.PrimFunc([data], tir.SeqStmt([inner, inner])))


def test_constants_move_to_their_module_once():
    data = tvm.nd.array(np.arange(4, dtype="float32"))

    def func(name):
        a, k = tir.decl_buffer((4,), name="A"), tir.decl_buffer((4,), name="K")
        body = loop(4, lambda i: tir.BufferStore(a, k[i], [i]))
        const = tir.AllocateConst(k.data, "float32", [4], data, body)
        return tir.PrimFunc([a], const).with_attr("global_symbol", name)

    before = tvm.IRModule({"f": func("f"), "g": func("g")})
    mod = transform.ExtractPrimFuncConstants()(before)
    assert len(mod.attrs["constants"]) == 1
    np.testing.assert_array_equal(mod.attrs["constants"][0].numpy(), data.numpy())
    for name in "fg":
        assert mod[name].body.data is None
        assert int(mod[name].body.irmod_storage_idx) == 0
        assert before[name].body.data is not None
    assert transform.ExtractPrimFuncConstants()(mod).same_as(mod)


def test_digits_of_an_index_get_one_form():
    i, a = tir.Var("i", "int32"), tir.decl_buffer((4,), name="A")
    func = tir.PrimFunc([i, a], tir.BufferStore(a, 1.0, [i % 32 // 8]))
    assert lines(apply(transform.RenormalizeSplitPattern(), func)) == [
        "A[i // 8 % 4] = T.float32(1.0)"
    ]
    kept = tir.PrimFunc([i, a], tir.BufferStore(a, 1.0, [i % 30 // 8]))
    assert apply(transform.RenormalizeSplitPattern(), kept).body.same_as(kept.body)


def test_memory_that_is_accessed_in_vectors_holds_vectors():
    @T.prim_func
    def before(A: T.Buffer((16,), "float32"), B: T.Buffer((4,), "float32")):
        data = T.allocate([16], "float32")
        local = T.Buffer((16,), "float32", data=data)
        for i in range(4):
            local[i * 4 : i * 4 + 4] = T.Broadcast(A[i], 4)
        for i in range(4):
            B[i] = local[i * 4] + local[i * 4 + 3]

    func = apply(transform.PointerValueTypeRewrite(), before)
    allocate = func.body
    assert (allocate.dtype, int(allocate.extents[0])) == ("float32x4", 4)
    assert [str(func.buffer_map[p].dtype) for p in func.params] == ["float32", "float32"]
    x, out = np.arange(16, dtype="float32"), np.zeros(4, "float32")
    run_prim_func(func, x, out)
    np.testing.assert_array_equal(out, 2 * x[:4])


def test_memory_that_is_accessed_otherwise_keeps_its_elements():
    @T.prim_func
    def unaligned(A: T.Buffer((17,), "float32")):
        for i in range(4):
            A[i * 4 + 1 : i * 4 + 5] = T.Broadcast(T.float32(1), 4)

    @T.prim_func
    def stored(A: T.Buffer((16,), "float32")):
        for i in range(4):
            A[i * 4 : i * 4 + 4] = T.Broadcast(T.float32(1), 4)
        A[3] = 2.0

    for func in (unaligned, stored):
        assert apply(transform.PointerValueTypeRewrite(), func).body.same_as(func.body)


def overcompute(func, use_dataflow_analysis=False):
    option = {"use_dataflow_analysis": use_dataflow_analysis}
    with tvm.transform.PassContext(config={"tir.ReduceBranchingThroughOvercompute": option}):
        return apply(transform.ReduceBranchingThroughOvercompute(), func)


def test_a_branch_whose_outcome_is_known_to_be_there_is_always_taken():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if i < 14:
                B[i] = A[i] * 5
            else:
                B[i] = 0

    after = overcompute(func, True)
    assert "if" not in "\n".join(lines(after))
    x, out = np.arange(16, dtype="int32"), np.full(16, 7, "int32")
    x[14:] = 0
    run_prim_func(transform.RemoveAssume()(tvm.IRModule({"main": after}))["main"], x, out)
    np.testing.assert_array_equal(out, 5 * x)
    # Without what the elements hold, both branches may differ.
    assert overcompute(func).body.same_as(func.body)


def test_branches_with_loops_are_compared_as_well():
    @T.prim_func
    def func(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")):
        for i, j in T.grid(8, 4):
            T.evaluate(T.assume(i < 6 or A[i, j] == 0))
        for i in range(8):
            if i < 6:
                for j in range(4):
                    B[i, j] = A[i, j] * 5
            else:
                for j in range(4):
                    B[i, j] = 0

    assert "if" not in "\n".join(lines(overcompute(func, True)))


def test_branches_that_differ_stay():
    @T.prim_func
    def func(B: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 14:
                B[i] = 1

    assert overcompute(func, True).body.same_as(func.body)


def test_a_branch_that_would_read_outside_of_a_buffer_stays():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), W: T.Buffer((14,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        for i in range(16):
            if i < 14:
                B[i] = A[i] * W[i]
            else:
                B[i] = 0

    assert overcompute(func, True).body.same_as(func.body)


def test_what_is_assumed_of_elements_that_are_written_is_not_believed():
    @T.prim_func
    def func(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(16):
            T.evaluate(T.assume(i < 14 or A[i] == 0))
        A[15] = 3
        for i in range(16):
            if i < 14:
                B[i] = A[i] * 5
            else:
                B[i] = 0

    assert overcompute(func, True).body.same_as(func.body)


@T.prim_func
def packed_rows(A: T.Buffer((60,), "float32"), C: T.Buffer((60,), "float32")):
    for i in range(4):
        with T.block("outer"):
            B = T.alloc_buffer((4, 16), "float32")
            for j in range(15):
                with T.block("fill"):
                    B[(i * 15 + j) // 15, (i * 15 + j) % 15] = A[i * 15 + j]
            for j, k in T.grid(4, 4):
                with T.block("use"):
                    T.where(j * 4 + k < 15)
                    C[i * 15 + j * 4 + k] = B[(i * 15 + j * 4 + k) // 15, (i * 15 + j * 4 + k) % 15]


@T.prim_func
def bounded_sum(C: T.Buffer((8, 60), "float32")):
    for i in range(8):
        with T.block("outer"):
            B = T.alloc_buffer((512, 128), "float32")
            for j, k in T.grid(8, 8):
                with T.block("fill"):
                    T.where(j * 8 + k < 60)
                    B[i * 64 + j * 8 + k, (j * 8 + k) // 4] = 1.0
            for j in range(60):
                with T.block("use"):
                    C[i, j] = B[i * 64 + j, j // 4]


@pytest.mark.parametrize(
    ("func", "shape"), [(packed_rows, (1, 15)), (bounded_sum, (60, 15))], ids=["packed", "sum"]
)
def test_conditions_on_sums_of_loops_make_buffers_smaller(func, shape):
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    after = transform.CompactBufferAllocation()(mod)
    found = []

    def visit(node):
        if isinstance(node, tir.Block):
            found.extend(node.alloc_buffers)

    tir.stmt_functor.post_order_visit(after["main"].body, visit)
    (buffer,) = found
    assert tuple(int(extent) for extent in buffer.shape) == shape
    arrays = [
        np.random.default_rng(0).random([int(n) for n in func.buffer_map[p].shape], "float32")
        for p in func.params
    ]
    results = []
    for program in (mod, after):
        given = [tvm.nd.array(a) for a in arrays]
        tvm.build(program, target="llvm")(*given)
        results.append(given[-1].numpy())
    np.testing.assert_array_equal(*results)


def test_the_basic_variant_leaves_tests_of_threads_inside():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        for i in range(4):
            if tx < 3:
                A[tx] = A[tx] + T.cast(i, "float32")

    config = {"tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}
    mod = tvm.IRModule({"main": func})

    def begins_with(variant):
        with tvm.transform.PassContext(config=config):
            body = transform.HoistIfThenElse(variant)(mod)["main"].body
        return type(body.body)

    assert begins_with(None) is tir.IfThenElse
    assert begins_with("basic") is tir.For
    with pytest.raises(ValueError, match='the variant is "basic" or None'):
        transform.HoistIfThenElse("all")
