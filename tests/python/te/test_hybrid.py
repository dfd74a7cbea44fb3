"""Loop programs: the same numbers in Python and after compilation, and what they may hold."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import ScheduleError
from tvm.te import _ffi_api

# Names of the language have no definition in Python.
# ruff: noqa: F821


@te.hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


def random(*shape, dtype="float32"):
    rng = np.random.default_rng(sum(shape))
    return (rng.normal(size=shape) * 4).astype(dtype)


def compiled(program, *arrays, schedule=None, extra=()):
    """Results of the program after compilation."""
    tensors = [te.placeholder(a.shape, str(a.dtype), name=f"x{k}") for k, a in enumerate(arrays)]
    made = program(*tensors, *extra)
    outputs = list(made) if isinstance(made, list) else [made]
    sch = te.create_schedule([t.op for t in outputs])
    if schedule is not None:
        schedule(sch, outputs[0])
    func = tvm.build(sch, [*tensors, *outputs], target="llvm")
    results = [tvm.nd.array(np.full([int(e) for e in t.shape], 77, str(t.dtype))) for t in outputs]
    func(*[tvm.nd.array(a) for a in arrays], *results)
    return [r.numpy() for r in results]


def check(program, *arrays, schedule=None, extra=()):
    wanted = program(*arrays, *extra)
    wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
    for result, expected in zip(compiled(program, *arrays, schedule=schedule, extra=extra), wanted):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_outer_product_is_numpys_both_ways():
    a, b = random(9), random(7)
    np.testing.assert_allclose(outer_product(a, b), np.outer(a, b), rtol=1e-6)
    np.testing.assert_allclose(compiled(outer_product, a, b)[0], np.outer(a, b), rtol=1e-6)


def schedules():
    def split(s, c):
        i, j = c.op.axis
        s[c].split(i, 4)
        s[c].split(j, nparts=2)

    def fuse(s, c):
        s[c].parallel(s[c].fuse(*c.op.axis))

    def reorder(s, c):
        i, j = c.op.axis
        jo, ji = s[c].split(j, 4)
        io, ii = s[c].split(i, 2)
        s[c].reorder(jo, io, ji, ii)
        s[c].unroll(ii)

    def vectorize(s, c):
        _, j = c.op.axis
        _, ji = s[c].split(j, 4)
        s[c].vectorize(ji)

    return [split, fuse, reorder, vectorize]


@pytest.mark.parametrize("schedule", schedules(), ids=lambda f: f.__name__)
def test_loops_can_be_scheduled(schedule):
    check(outer_product, random(9), random(8), schedule=schedule)


def test_axes_are_the_loops_of_the_program():
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    c = outer_product(a, b)
    assert [axis.var.name for axis in c.op.axis] == ["i", "j"]
    assert c.op.name == "outer_product"
    assert list(c.op.input_tensors) == [a, b]


@te.hybrid.script
def statistics(a):
    total = output_tensor((1,), a.dtype)
    largest = output_tensor((1,), a.dtype)
    total[0] = 0.0
    largest[0] = a[0]
    for i in serial(0, a.shape[0]):
        x = a[i]
        if x > largest[0]:
            largest[0] = x
        total[0] += x
    return total, largest


def test_several_outputs_branches_and_scalar_variables():
    check(statistics, random(11))


@te.hybrid.script
def running(a, scale):
    out = output_tensor(a.shape, "float32")
    buffer = allocate((a.shape[1],), "float32", "local")
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            buffer[j] = (buffer[j] if i > 0 else 0.0) + a[i, j] * scale
            out[i, j] = sqrt(abs(buffer[j])) if 0 < j < 3 else max(buffer[j], 0.5)
    return out


def test_memory_conditions_and_math():
    check(running, random(5, 6), extra=(2.0,))


@te.hybrid.script
def triangle(a):
    out = output_tensor(a.shape, a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i][j] = 0.0
        for j in range(i, a.shape[1]):
            out[i][j] = exp(-abs(a[i][j]))
    return out


def test_extent_that_depends_on_an_outer_loop():
    check(triangle, random(6, 6))
    check(triangle, random(6, 6), schedule=lambda s, c: s[c].split(c.op.axis[2], 4))
    with pytest.raises(ScheduleError, match="its extent depends on loop i|holds other statements"):
        compiled(
            triangle,
            random(6, 6),
            schedule=lambda s, c: s[c].reorder(c.op.axis[2], c.op.axis[0]),
        )


WEIGHTS = (1.0, -2.0, 1.0)


def test_closures_constants_and_loops_that_are_written_out():
    factor = 3

    @te.hybrid.script
    def stencil(a):
        n = a.shape[0] - 2
        out = output_tensor((n,), a.dtype)
        for i in parallel(n):
            total = 0.0
            for k in const_range(3):
                if k != 1:
                    total = total + a[i + k] * WEIGHTS[k]
                else:
                    total -= a[i + k] * 2.0
            out[i] = total * float32(factor)
        return out

    x = random(12)
    np.testing.assert_allclose(
        compiled(stencil, x)[0], 3 * (x[:-2] - 2 * x[1:-1] + x[2:]), rtol=1e-5, atol=1e-5
    )
    check(stencil, x)


def test_list_of_tensors():
    @te.hybrid.script
    def add_all(parts):
        out = output_tensor(parts[0].shape, "float32")
        for i in range(parts[0].shape[0]):
            total = 0.0
            for k in const_range(len(parts)):
                total += parts[k][i]
            out[i] = total
        return out

    tensors = [te.placeholder((5,), name=f"p{k}") for k in range(3)]
    out = add_all(tensors)
    func = tvm.build(te.create_schedule(out.op), [*tensors, out], target="llvm")
    arrays = [np.full(5, k + 1, "float32") for k in range(3)]
    result = tvm.nd.array(np.zeros(5, "float32"))
    func(*[tvm.nd.array(a) for a in arrays], result)
    np.testing.assert_array_equal(result.numpy(), np.full(5, 6))
    np.testing.assert_array_equal(add_all(arrays), np.full(5, 6))


def test_symbolic_extents():
    n = te.var("n")
    a = te.placeholder((n,), name="a")
    b = te.placeholder((n,), name="b")
    c = outer_product(a, b)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[1], 4)
    func = tvm.build(s, [a, b, c], target="llvm")
    for size in (3, 8):
        x, y = random(size), random(size)
        result = tvm.nd.array(np.zeros((size, size), "float32"))
        func(tvm.nd.array(x), tvm.nd.array(y), result)
        np.testing.assert_allclose(result.numpy(), np.outer(x, y), rtol=1e-6)


def test_symbolic_number_as_argument():
    @te.hybrid.script
    def first(a, count):
        out = output_tensor((count,), a.dtype)
        for i in range(count):
            out[i] = a[i]
        return out

    n = te.var("n")
    a = te.placeholder((n + 2,), name="a")
    out = first(a, n)
    func = tvm.build(te.create_schedule(out.op), [a, out], target="llvm")
    result = tvm.nd.array(np.zeros(4, "float32"))
    func(tvm.nd.array(np.arange(6, dtype="float32")), result)
    np.testing.assert_array_equal(result.numpy(), [0, 1, 2, 3])


def test_producers_attach_to_loops_and_readers_follow():
    A = te.placeholder((6,), name="A")
    twice = te.compute((6,), lambda i: A[i] * 2.0, name="twice")
    product = outer_product(twice, A)
    out = te.compute((6, 6), lambda i, j: product[i, j] + 1.0, name="out")
    s = te.create_schedule(out.op)
    s[twice].compute_at(s[product], product.op.axis[0])
    func = tvm.build(s, [A, out], target="llvm")
    x = random(6)
    result = tvm.nd.array(np.zeros((6, 6), "float32"))
    func(tvm.nd.array(x), result)
    np.testing.assert_allclose(result.numpy(), 2 * np.outer(x, x) + 1, rtol=1e-5)


def test_thread_loops_become_launch_attributes():
    @te.hybrid.script
    def double(a):
        out = output_tensor(a.shape, a.dtype)
        for b in bind("blockIdx.x", 4):
            for t in bind("threadIdx.x", 8):
                out[b * 8 + t] = a[b * 8 + t] * 2.0
        return out

    a = random(32)
    np.testing.assert_allclose(double(a), 2 * a)
    t = te.placeholder((32,), name="t")
    out = double(t)
    text = str(tvm.lower(te.create_schedule(out.op), [t, out], simple_mode=True))
    assert text.count('"thread_extent"') == 2


def bad_programs():
    def has_while(a):
        b = output_tensor((1,), "float32")
        while a[0] > 0:
            b[0] = 1.0
        return b

    def writes_input_of_a_list(a):
        b = output_tensor((1,), "float32")
        c = (a, b)
        c[0][0] = 1.0
        return b

    def leaves_block(a):
        b = output_tensor((1,), "float32")
        for i in range(3):
            x = a[i]
        b[0] = x
        return b

    def unknown_name(a):
        b = output_tensor((1,), "float32")
        b[0] = nowhere
        return b

    def unknown_function(a):
        b = output_tensor((1,), "float32")
        b[0] = print(a[0])
        return b

    def no_return(a):
        b = output_tensor((1,), "float32")
        b[0] = a[0]

    def forgotten(a):
        b = output_tensor((1,), "float32")
        c = output_tensor((1,), "float32")
        c[0] = a[0]
        return b

    def wrong_type(a):
        b = output_tensor((1,), "int32")
        b[0] = a[0]
        return b

    def stepped(a):
        b = output_tensor((8,), "float32")
        for i in range(0, 8, 2):
            b[i] = a[i]
        return b

    def early(a):
        b = output_tensor((8,), "float32")
        for i in range(8):
            if a[i] > 0:
                return b
        return b

    return [
        (has_while, "while loops are not a part of the language"),
        (writes_input_of_a_list, "a is an input; write to an output_tensor"),
        (leaves_block, "x is used outside of the block that assigns it first"),
        (unknown_name, "name nowhere is not defined"),
        (unknown_function, "function print is not a part of the language"),
        (no_return, "no return at the end"),
        (forgotten, r"output tensors \['c'\] are not returned"),
        (wrong_type, "store to b of int32: .* dtype float32; convert it"),
        (stepped, "a step is always 1"),
        (early, "return must be the last statement"),
    ]


@pytest.mark.parametrize(("program", "message"), bad_programs(), ids=lambda p: str(p)[:12])
def test_what_the_language_does_not_have_is_refused_with_its_line(program, message):
    a = te.placeholder((8,), name="a")
    with pytest.raises(ValueError, match=rf"test_hybrid.py:\d+: {program.__name__}: .*{message}"):
        te.hybrid.script(program)(a)


def test_fusing_loops_that_hold_more_is_refused():
    with pytest.raises(ScheduleError, match="the first loop must hold the second one and nothing"):
        compiled(
            triangle, random(6, 6), schedule=lambda s, c: s[c].fuse(c.op.axis[0], c.op.axis[1])
        )


def test_schedule_written_as_a_program_computes_the_same(tmp_path):
    A = te.placeholder((8, 12), name="A")
    B = te.compute((8, 12), lambda i, j: te.exp(A[i, j]) * 0.5, name="B")
    k = te.reduce_axis((0, 12), name="k")
    C = te.compute((8,), lambda i: te.sum(B[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], 3)
    s[B].compute_at(s[C], ii)
    s[C].parallel(io)
    module = te.hybrid.build(s, [A], [C], name="rows")
    a = random(8, 12)
    wanted = (np.exp(a) * 0.5).sum(axis=1)
    np.testing.assert_allclose(module(a), wanted, rtol=1e-4)
    module.save(tmp_path / "rows")
    loaded = te.hybrid.HybridModule(name="rows")
    with pytest.raises(ValueError, match="hybrid module rows is empty"):
        loaded(a)
    loaded.load(tmp_path / "rows.py")
    assert loaded.get_source() == module.get_source()
    np.testing.assert_allclose(loaded(a), wanted, rtol=1e-4)
    # The text is a program of the language: it compiles.
    np.testing.assert_allclose(compiled(loaded, a)[0], wanted, rtol=1e-4)


def test_memory_of_a_program_is_written_too():
    @te.hybrid.script
    def sums(a, b):
        c = output_tensor(a.shape, a.dtype)
        for i in const_range(3):
            d = b[i]
            d += 1
            c[i] = a[i] + d
        return c

    A, B = te.placeholder((3,), "int32", name="A"), te.placeholder((3,), "int32", name="B")
    out = sums(A, B)
    module = te.hybrid.build(te.create_schedule(out.op), [A, B], [out])
    assert "allocate((1,), " in module.get_source()
    a, b = np.arange(3, dtype="int32"), np.full(3, 5, "int32")
    np.testing.assert_array_equal(module(a, b), a + 6)


def test_a_program_of_symbolic_extents_is_written_too():
    n = te.var("n")
    A = te.placeholder((n, 4), name="A")
    scale = te.var("scale")
    B = te.compute((n, 4), lambda i, j: A[i, j] * scale, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 3)
    module = te.hybrid.build(s, [A, scale], [B])
    assert "output_tensor((A.shape[0], 4,), " in module.get_source()
    a = random(5, 4)
    np.testing.assert_allclose(module(a, 3), a * 3, rtol=1e-6)
    out = module(A, scale)
    func = tvm.build(te.create_schedule(out.op), [A, scale, out], target="llvm")
    result = tvm.nd.empty((5, 4))
    func(tvm.nd.array(a), 3, result)
    np.testing.assert_allclose(result.numpy(), a * 3, rtol=1e-6)
    # An extent may be given as well.
    given = te.hybrid.build(s, [n, A, scale], [B])
    assert "output_tensor((n, 4,), " in given.get_source()
    np.testing.assert_allclose(given(5, a, 3), a * 3, rtol=1e-6)


def test_schedule_without_words_is_refused():
    A = te.placeholder((4,), "int32", name="A")
    B = te.compute((4,), lambda i: te.truncdiv(A[i], 3), name="B")
    with pytest.raises(ValueError, match="no words for the expression"):
        te.hybrid.build(te.create_schedule(B.op), [A], [B])


def test_a_program_calls_functions_that_make_tensors():
    def doubled(x):
        return te.compute(x.shape, lambda i: x[i] * 2) if isinstance(x, te.Tensor) else x * 2

    @te.hybrid.script
    def products(a, b):
        c = outer_product(a, b)
        d = doubled(a)
        e = output_tensor(c.shape, c.dtype)
        for i in const_range(len(a)):
            for j in range(len(b)):
                e[i, j] = c[i, j] + d[i]
        return e

    check(products, random(3), random(5))


def test_a_program_called_with_memory_becomes_a_part_of_the_program():
    @te.hybrid.script
    def program(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            b[i] = a[i] + 1.0
        c = outer_product(a, b)
        for i in range(a.shape[0]):
            b[i] = c[i, i] * 2.0
        return b

    check(program, random(5))
    tensor = program(te.placeholder((5,), name="a"))
    # The loops of the other program can be scheduled like those of this one.
    assert [axis.var.name for axis in tensor.op.axis] == ["i", "i", "j", "i"]
    assert [str(t.op.name) for t in tensor.op.input_tensors] == ["a"]


def test_memory_of_a_program_goes_to_programs_only():
    def tripled(x):
        return te.compute(x.shape, lambda i: x[i] * 3.0)

    @te.hybrid.script
    def program(a):
        b = output_tensor(a.shape, a.dtype)
        c = tripled(b)
        b[0] = c[0]
        return b

    with pytest.raises(ValueError, match="tripled takes memory .* only another loop program"):
        program(te.placeholder((3,)))


def test_elements_of_an_input_are_assigned_in_a_copy():
    @te.hybrid.script
    def smoothed(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(1, a.shape[0]):
            a[i] = (a[i] + a[i - 1]) * 0.5
        for i in range(a.shape[0]):
            b[i] = a[i]
        return b

    x = random(7)
    given = x.copy()
    wanted = smoothed(x)
    np.testing.assert_array_equal(x, given)
    assert not np.array_equal(wanted, x)
    tensor = te.placeholder((7,), name="a")
    out = smoothed(tensor)
    # Another reader of the tensor sees what it was.
    both = te.compute((7,), lambda i: out[i] + tensor[i])
    func = tvm.build(te.create_schedule(both.op), [tensor, both], target="llvm")
    arg, result = tvm.nd.array(given), tvm.nd.empty((7,))
    func(arg, result)
    np.testing.assert_allclose(result.numpy(), wanted + given, rtol=1e-6)
    np.testing.assert_array_equal(arg.numpy(), given)


def test_the_body_is_a_program_over_tensors():
    @te.hybrid.script
    def means(a):
        out = output_tensor((a.shape[0],), a.dtype)
        for i in range(a.shape[0]):
            assert a[i, 0] > 0.0, "expected something positive"
            total = 0.0
            for j in range(3):
                total += a[i, j]
            out[i] = total / 3.0
        return out

    a = te.placeholder((4, 3), name="a")
    op = means(a).op
    loop = op.body
    assert isinstance(loop, tir.For)
    check_first, realize = loop.body
    assert isinstance(check_first, tir.AssertStmt)
    assert check_first.message.value == "expected something positive"
    assert isinstance(check_first.condition.a, tir.ProducerLoad)
    assert check_first.condition.a.producer == a
    assert isinstance(realize, tir.ProducerRealize)
    assert str(realize.producer.op.name) == "total"
    assert realize.storage_scope == "local"
    assert [int(bound.extent) for bound in realize.bounds] == [1]
    start, sums, store = realize.body
    assert isinstance(start, tir.ProducerStore)
    assert isinstance(sums, tir.For)
    assert store.producer == op.outputs[0]
    assert store.indices[0].same_as(loop.loop_var)
    assert str(store).startswith("out[i] = ")
    assert 'T.ProducerRealize(total[0:1], T.bool(True), "local")' in str(realize)


def test_an_assertion_of_a_program_is_checked():
    @te.hybrid.script
    def roots(a):
        b = output_tensor(a.shape, a.dtype)
        for i in range(a.shape[0]):
            assert a[i] >= 0.0, "a root of something negative"
            b[i] = sqrt(a[i])
        return b

    tensor = te.placeholder((4,), name="a")
    out = roots(tensor)
    schedule = te.create_schedule(out.op)
    func = tvm.build(schedule, [tensor, out], target="llvm")
    result = tvm.nd.empty((4,))
    func(tvm.nd.array(np.full(4, 9, "float32")), result)
    np.testing.assert_array_equal(result.numpy(), np.full(4, 3))
    with pytest.raises(tvm.error.TVMError, match="a root of something negative"):
        func(tvm.nd.array(np.full(4, -1, "float32")), result)
    text = te.hybrid.build(schedule, [tensor], [out]).get_source()
    assert "'a root of something negative'" in text


def test_readers_of_a_copy_follow():
    a, b = te.placeholder((5,), name="a"), te.placeholder((4,), name="b")
    c = outer_product(a, b)
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "local", [c.op])
    assert copy in list(s[c].op.input_tensors)
    func = tvm.build(s, [a, b, c], target="llvm")
    x, y = random(5), random(4)
    result = tvm.nd.empty((5, 4))
    func(tvm.nd.array(x), tvm.nd.array(y), result)
    np.testing.assert_allclose(result.numpy(), np.outer(x, y), rtol=1e-6)


def test_a_body_that_accesses_other_tensors_is_refused():
    a, b, c = (te.placeholder((4,), name=name) for name in "abc")
    i = tir.Var("i", "int32")

    def hybrid(body):
        return _ffi_api.HybridOp("f", "", {}, [a], [b], tir.For(i, 0, 4, 0, body))

    assert [str(axis.var.name) for axis in hybrid(tir.ProducerStore(b, a[i], [i])).axis] == ["i"]
    with pytest.raises(ValueError, match="hybrid f: c is read but is neither an input nor"):
        hybrid(tir.ProducerStore(b, c[i], [i]))
    with pytest.raises(ValueError, match="hybrid f: a is written but is no output"):
        hybrid(tir.ProducerStore(a, 0, [i]))
    whole = [tvm.ir.Range(0, 4)]
    hybrid(tir.ProducerRealize(c, whole, True, tir.ProducerStore(c, 0, [i])))


def test_stores_to_tensors_are_nodes_like_others():
    a = te.placeholder((4, 2), name="a")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    store = tir.ProducerStore(a, a[i, j] + 1.0, [i, j])
    again = tir.ProducerStore(a, a[j, i] + 1.0, [j, i])
    realize = tir.ProducerRealize(
        a, [tvm.ir.Range(0, 4), tvm.ir.Range(0, 2)], i < j, store, "local"
    )
    assert tvm.ir.structural_equal(store, again, map_free_vars=True)
    assert not tvm.ir.structural_equal(store, again)
    assert tvm.ir.structural_equal(tvm.ir.load_json(tvm.ir.save_json(realize)), realize, True)
    seen = []
    tir.stmt_functor.post_order_visit(realize, lambda node: seen.append(type(node)))
    assert seen.count(tir.Var) == 2
    assert seen[-2:] == [tir.ProducerStore, tir.ProducerRealize]
    moved = tir.stmt_functor.substitute(realize, {i: tir.const(3)})
    assert str(moved.body) == "a[3, j] = a[3, j] + T.float32(1.0)"
    with pytest.raises(ValueError, match="a has 2 axes but got 1 indices"):
        tir.ProducerStore(a, 1.0, [i])
    with pytest.raises(TypeError, match="a takes float32, got i of int32"):
        tir.ProducerStore(a, i, [i, j])
    with pytest.raises(ValueError, match="a has 2 axes but got 1 bounds"):
        tir.ProducerRealize(a, [tvm.ir.Range(0, 4)], True, store)
    with pytest.raises(tvm.error.TVMError, match="only te may hold one"):
        tir.analysis.verify_well_formed(tir.PrimFunc([], store))


def test_the_most_threads_are_those_of_the_current_target():
    @te.hybrid.script
    def filled(a):
        b = output_tensor(a.shape, "int32")
        for i in range(a.shape[0]):
            b[i] = max_num_threads(True)
        return b

    with tvm.target.Target("cuda"):
        check_body = filled(te.placeholder((3,))).op.body
        np.testing.assert_array_equal(filled(np.zeros(3)), np.full(3, 1024))
    assert int(check_body.body.value) == 1024
    with pytest.raises(ValueError, match="max_num_threads: no target is current"):
        filled(te.placeholder((3,)))


def test_values_are_converted_to_every_width():
    @te.hybrid.script
    def widths(a):
        b = output_tensor(a.shape, "uint64")
        for i in range(a.shape[0]):
            b[i] = uint64(uint16(a[i])) + uint64(uint32(i))
        return b

    check(widths, np.arange(5, dtype="int32"))
