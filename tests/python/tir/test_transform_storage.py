"""Flattening of buffers, sharing of allocations, width of indices."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_programs import PARALLEL, SERIAL, apply, lines, loop
from testing_tir import run_prim_func
from tvm import te, tir
from tvm.driver.build_module import schedule_to_module
from tvm.tir import transform


def test_parameters_flatten_row_major():
    a, b = tir.decl_buffer((4, 8), name="A"), tir.decl_buffer((8, 4), name="B")
    body = loop(4, lambda i: loop(8, lambda j: tir.BufferStore(b, a[i, j], [j, i]), name="j"))
    assert lines(apply(transform.StorageFlatten(), tir.PrimFunc([a, b], body)))[2].strip() == (
        "B[j * 4 + i] = A[i * 8 + j]"
    )


def test_strides_and_offset_of_a_parameter_are_respected():
    a = tir.decl_buffer((4, 8), name="A", strides=(16, 2), elem_offset=tir.SizeVar("o"))
    b = tir.decl_buffer((1,), name="B")
    i, j = tir.Var("i"), tir.Var("j")
    func = tir.PrimFunc([a, b, i, j], tir.BufferStore(b, a[i, j], [0]))
    assert lines(apply(transform.StorageFlatten(), func)) == ["B[0] = A[o + i * 16 + j * 2]"]


def realize(buffer, bounds, body):
    return tir.BufferRealize(buffer, [tvm.ir.Range(*b) for b in bounds], True, body)


def test_realize_becomes_an_allocation_of_its_bounds():
    t, b = tir.decl_buffer((32, 32), name="T", scope="local"), tir.decl_buffer((4,), name="B")
    i = tir.Var("i")
    body = tir.SeqStmt([tir.BufferStore(t, 1.0, [i + 8, 3]), tir.BufferStore(b, t[i + 8, 3], [i])])
    func = tir.PrimFunc([b, i], realize(t, [(8, 12), (2, 5)], body))
    assert lines(apply(transform.StorageFlatten(), func)) == [
        'T = T.allocate([12], "float32", "local")',
        "T[(i + 8 - 8) * 3 + 1] = T.float32(1.0)",
        "B[i] = T[(i + 8 - 8) * 3 + 1]",
    ]


def test_storage_alignment_pads_the_stride():
    t, b = tir.decl_buffer((4, 30), name="T"), tir.decl_buffer((1,), name="B")
    i, j = tir.Var("i"), tir.Var("j")
    inner = tir.SeqStmt([tir.BufferStore(t, 1.0, [i, j]), tir.BufferStore(b, t[i, j], [0])])
    rule = tir.Call("handle", "te.storage_align", [0, 32, 4])
    body = tir.AttrStmt(t, "storage_alignment", rule, realize(t, [(0, 4), (0, 30)], inner))
    text = lines(apply(transform.StorageFlatten(), tir.PrimFunc([b, i, j], body)))
    assert text[0] == 'T = T.allocate([144], "float32", "global")'
    assert text[1] == "T[i * 36 + j] = T.float32(1.0)"


def test_cache_line_must_be_a_power_of_two():
    with pytest.raises(ValueError, match="must be a power of two, got 48"):
        transform.StorageFlatten(48)


def scratch(name, size, body):
    """`body` with a one-dimensional allocation; it gets the buffer."""
    buffer = tir.decl_buffer((size,), name=name)
    return tir.Allocate(buffer.data, "float32", [size], True, body(buffer))


def fill_and_read(t, out, at):
    return tir.SeqStmt([tir.BufferStore(t, float(at), [0]), tir.BufferStore(out, t[0], [at])])


def allocations(func):
    found = []
    tir.stmt_functor.post_order_visit(
        func, lambda node: found.append(node) if isinstance(node, tir.Allocate) else None
    )
    return found


def test_allocations_that_do_not_live_together_share_memory():
    out = tir.decl_buffer((4,), name="B")
    parts = [scratch(f"T{k}", 16 + k, lambda t, k=k: fill_and_read(t, out, k)) for k in range(3)]
    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], tir.SeqStmt(parts)))
    assert [int(op.extents[0]) for op in allocations(func)] == [18]
    result = np.zeros(4, "float32")
    run_prim_func(func, result)
    assert result.tolist() == [0, 1, 2, 0]


def test_allocations_alive_at_once_stay_apart():
    out = tir.decl_buffer((4,), name="B")

    def both(t):
        return scratch(
            "U",
            8,
            lambda u: tir.SeqStmt(
                [
                    tir.BufferStore(t, 1.0, [0]),
                    tir.BufferStore(u, 2.0, [0]),
                    tir.BufferStore(out, t[0] + u[0], [0]),
                ]
            ),
        )

    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], scratch("T", 8, both)))
    assert len(allocations(func)) == 2


def test_value_carried_around_a_loop_keeps_its_memory():
    out = tir.decl_buffer((8,), name="B")

    def carried(t):
        def trip(i):
            use = scratch("U", 4, lambda u: fill_and_read(u, out, 7))
            return tir.SeqStmt([tir.BufferStore(out, t[0], [i]), use])

        return tir.SeqStmt([tir.BufferStore(t, 5.0, [0]), loop(4, trip)])

    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], scratch("T", 4, carried)))
    assert len(allocations(func)) == 2
    result = np.zeros(8, "float32")
    run_prim_func(func, result)
    assert result[:4].tolist() == [5, 5, 5, 5]


def test_allocation_leaves_serial_loops_but_not_parallel_ones():
    out = tir.decl_buffer((4,), name="B")

    def inner(_):
        return scratch("T", 4, lambda t: fill_and_read(t, out, 0))

    serial = apply(transform.StorageRewrite(), tir.PrimFunc([out], loop(4, inner, SERIAL)))
    assert isinstance(serial.body, tir.Allocate)
    parallel = apply(transform.StorageRewrite(), tir.PrimFunc([out], loop(4, inner, PARALLEL)))
    assert isinstance(parallel.body, tir.For)
    assert isinstance(parallel.body.body, tir.Allocate)


def test_memory_used_by_parallel_threads_is_not_shared_while_they_run():
    out = tir.decl_buffer((8,), name="B")

    def shared(t):
        def thread(i):
            use = scratch("U", 4, lambda u: fill_and_read(u, out, 1))
            return tir.SeqStmt([use, tir.BufferStore(out, t[0], [i])])

        after = scratch("V", 4, lambda v: fill_and_read(v, out, 2))
        return tir.SeqStmt([tir.BufferStore(t, 5.0, [0]), loop(4, thread, PARALLEL), after])

    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], scratch("T", 4, shared)))
    # V takes over the memory of T, U belongs to the threads.
    assert sorted(str(op.buffer_var) for op in allocations(func)) == ["T", "U"]


def test_indices_become_64_bits_wide_and_values_keep_their_type():
    n = tir.SizeVar("n")
    a, b = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), "int32", name="B")
    body = loop(n, lambda i: tir.BufferStore(b, i * 2 + tir.Cast("int32", a[i + 1]), [i // 2]))
    func = apply(transform.WidenIndex(), tir.PrimFunc([a, b], body))
    assert str(func.body.loop_var.dtype) == "int64"
    assert str(func.body.body.indices[0].dtype) == "int64"
    assert str(func.body.body.value.dtype) == "int32"
    assert 'T.Cast("int64", n)' in str(func)


def test_widening_keeps_the_result():
    a, b = tir.decl_buffer((16,), "int32", name="A"), tir.decl_buffer((16,), "int32", name="B")

    def body(i):
        return tir.BufferStore(b, tir.Select(i < 8, a[15 - i], i * i), [(i + 3) % 16])

    func = tir.PrimFunc([a, b], loop(16, body))
    values = np.arange(16, dtype="int32")
    before, after = np.zeros(16, "int32"), np.zeros(16, "int32")
    run_prim_func(func, values, before)
    run_prim_func(apply(transform.WidenIndex(), func), values, after)
    assert before.tolist() == after.tolist()


def chain(stages, scope=None):
    """`stages` element-wise computations in a row over (m, n), as a flat program."""
    m, n = te.var("m"), te.var("n")
    x = y = te.placeholder((m, n), name="X")
    made = []
    for k in range(stages):
        y = te.compute((m, n), lambda i, j, y=y, k=k: y[i, j] * 2.0 + float(k), name=f"Y{k}")
        made.append(y)
    s = te.create_schedule(y.op)
    for stage in made[:-1] if scope else []:
        s[stage].set_scope(scope)
    mod = schedule_to_module(s, [x, y])
    flatten = [transform.StorageFlatten(64), transform.Simplify()]
    return tvm.transform.Sequential([*flatten, transform.StorageRewrite()])(mod)


def test_memory_whose_elements_are_read_where_they_are_made_is_written_in_place():
    mod = chain(5)
    assert len(allocations(mod["main"])) == 1
    data = np.arange(12, dtype="float32").reshape(3, 4)
    result = tvm.nd.empty((3, 4))
    tvm.build(mod, target="llvm")(tvm.nd.array(data), result)
    expected = data
    for k in range(5):
        expected = expected * 2 + k
    np.testing.assert_allclose(result.numpy(), expected)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda t, i, r: t[7 - i], id="other element"),
        pytest.param(lambda t, i, r: t[i] + t[0], id="element of its own and another one"),
        pytest.param(lambda t, i, r: t[i] + tir.Cast("float32", r), id="several times"),
        pytest.param(
            lambda t, i, r: tir.call_extern("float32", "f", tir.address_of(t[i])), id="pointer"
        ),
    ],
)
def test_memory_that_is_read_again_is_not_written_in_place(value):
    out = tir.decl_buffer((8,), name="B")

    def both(t):
        def second(u):
            def fill(i):
                return loop(2, lambda r: tir.BufferStore(u, value(t, i, r), [i]), name="r")

            write = loop(8, lambda i: tir.BufferStore(t, 1.0, [i]))
            read = loop(8, lambda i: tir.BufferStore(out, u[i], [i]))
            return tir.SeqStmt([write, loop(8, fill), read])

        return scratch("U", 8, second)

    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], scratch("T", 8, both)))
    assert len(allocations(func)) == 2


def test_memory_of_a_special_scope_is_one_allocation():
    body = tir.ir_builder.create()
    with body.for_range(0, 8, name="i") as i:
        a = body.allocate("float32", 8, name="a", scope="local.buf")
        a[i] = 1.0
        b = body.allocate("int16", 9, name="b", scope="local.buf")
        b[i] = tir.Cast("int16", a[i])
        a[i] = tir.Cast("float32", b[i])
    mod = tvm.IRModule.from_expr(tir.PrimFunc([], body.get()))
    assert lines(transform.StorageRewrite()(mod)["main"]) == [
        # 8 float32 and 9 int16, rounded up to words.
        'a = T.allocate([13], "float32", "local.buf")',
        "for i in range(8):",
        "    a[i] = T.float32(1.0)",
        '    b[i + 16] = T.Cast("int16", a[i])',
        '    a[i] = T.Cast("float32", b[i + 16])',
    ]


def test_memory_of_a_special_scope_has_a_limit():
    scope, info = "local.tiny", {"unit_bits": 8, "max_num_bits": 256, "max_simd_bits": 128}
    tvm.register_func(
        f"tvm.info.mem.{scope}",
        lambda: tvm.ir.make_node("MemoryInfo", head_address=None, **info),
        override=True,
    )

    def program(size):
        body = tir.ir_builder.create()
        a = body.allocate("float32", size, name="a", scope=scope)
        b = body.allocate("float32", size, name="b", scope=scope)
        with body.for_range(0, size, name="i") as i:
            a[i], b[i] = 1.0, 2.0
        with body.for_range(0, size, name="i") as i:
            a[i] += b[i]
        return tvm.IRModule.from_expr(tir.PrimFunc([], body.get()))

    (fits,) = allocations(transform.StorageRewrite()(program(3))["main"])
    assert int(fits.extents[0]) == 8
    with pytest.raises(
        ValueError, match="local.tiny: 512 bits are in use at once, .* there are 25"
    ):
        transform.StorageRewrite()(program(5))


def test_memory_whose_size_a_loop_knows_stays_in_it():
    out = tir.decl_buffer((4,), name="B")

    def trip(i):
        t = tir.decl_buffer((i + 1,), name="T")
        return tir.Allocate(t.data, "float32", [i + 1], True, fill_and_read(t, out, 0))

    func = apply(transform.StorageRewrite(), tir.PrimFunc([out], loop(4, trip)))
    assert isinstance(func.body, tir.For)
    assert len(allocations(func)) == 1
