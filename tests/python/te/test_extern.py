"""Operations written as statements: several inputs and outputs, library calls, tir functions."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.error import ScheduleError


def run(outputs, inputs, *arrays):
    sch = te.create_schedule([outputs[0].op])
    func = tvm.build(sch, [*inputs, *outputs], target="llvm")
    results = [tvm.nd.array(np.zeros([int(e) for e in t.shape], str(t.dtype))) for t in outputs]
    func(*[tvm.nd.array(a) for a in arrays], *results)
    return [r.numpy() for r in results]


def test_what_a_function_writes_decides_on_its_outputs():
    buffers = [tir.decl_buffer((4,), name=name) for name in "abc"]
    a, b, c = buffers
    i = tir.Var("i", "int32")
    params = [tir.Var(f"{buffer.name}_handle", "handle") for buffer in buffers]

    def function(target, value):
        body = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(target, value, [i]))
        return tir.PrimFunc(params, body, buffer_map=dict(zip(params, buffers)))

    A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    x, y = np.arange(4, dtype="float32"), np.full(4, 2, "float32")
    for func, expected in [
        (function(c, a[i] - b[i]), x - y),
        (function(c, a[i] - b[i] + c[i]), x - y),
        (function(a, b[i] - c[i]), x - y),
    ]:
        (found,) = run([te.extern_primfunc([A, B], func)], [A, B], x, y)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"of which it writes \['c'\]; give a tensor"):
        te.extern_primfunc([A], function(c, a[i] - b[i]))


def test_two_inputs_and_two_outputs_of_different_shapes():
    n = 6
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), "int32", name="B")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        a, b = (ib.buffer_ptr(x) for x in ins)
        picked, total = (ib.buffer_ptr(x) for x in outs)
        total[0] = 0
        with ib.for_range(0, n, name="i") as i:
            picked[i] = a[b[i]]
            total[0] = total[0] + b[i]
        return ib.get()

    P, T = te.extern([(n,), (1,)], [A, B], body, name="gather", dtype=["float32", "int32"])
    a = np.arange(n, dtype="float32") * 2
    b = np.array([5, 0, 3, 3, 1, 2], "int32")
    picked, total = run([P, T], [A, B], a, b)
    np.testing.assert_array_equal(picked, a[b])
    assert total[0] == b.sum()


def test_extern_between_computes():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        src, dst = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 20, name="i") as i:
            dst[19 - i] = src[i]
        return ib.get()

    C = te.extern((4, 5), [B], body, name="flip")
    D = te.compute((4, 5), lambda i, j: C[i, j] * 2.0, name="D")
    a = np.random.default_rng(0).random((4, 5)).astype("float32")
    (d,) = run([D], [A], a)
    np.testing.assert_allclose(d, 2 * (a + 1).ravel()[::-1].reshape(4, 5), rtol=1e-6)


def test_function_of_tir_as_an_operation():
    n = 5
    X, Y = tir.decl_buffer((n,), name="X"), tir.decl_buffer((n,), name="Y")
    ib = tir.ir_builder.create()
    x, y = ib.buffer_ptr(X), ib.buffer_ptr(Y)
    with ib.for_range(0, n, name="i") as i:
        y[i] = x[n - 1 - i] * 3.0
    params = [tir.Var(name, "handle") for name in "xy"]
    func = tir.PrimFunc(params, ib.get(), buffer_map=dict(zip(params, [X, Y])))
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.extern_primfunc([B], func)
    (c,) = run([C], [A], np.arange(n, dtype="float32"))
    np.testing.assert_array_equal(c, 3 * np.arange(n, 0, -1))
    with pytest.raises(ValueError, match="2 inputs leave no output"):
        te.extern_primfunc([A, B], func)
    with pytest.raises(ValueError, match="tensor W has"):
        te.extern_primfunc([te.placeholder((n + 1,), name="W")], func)


def test_block_intrinsic_as_the_body_of_a_compute():
    m, n = 4, 8
    a = te.placeholder((m, n), name="a")
    b = te.placeholder((n,), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((m,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="c")
    scale = te.var("scale", "float32")
    block = tir.decl_buffer((m, n), name="a", offset_factor=1, strides=[te.var("row"), 1])

    def emit(ins, outs, scalars):
        (factor,) = scalars

        def code(first):
            ib = tir.ir_builder.create()
            rows, col, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(ins[1]), ib.buffer_ptr(outs[0])
            with ib.for_range(0, m, name="r") as r:
                if first:
                    out[r] = 0.0
                with ib.for_range(0, n, name="q") as q:
                    out[r] = out[r] + rows[r, q] * col[q] * factor
            return ib.get()

        return code(True), None, code(False)

    gemv = te.decl_tensor_intrin(c.op, emit, name="gemv", binds={a: block}, scalar_params=scale)
    A = te.placeholder((12, 24), name="A")
    B = te.placeholder((24,), name="B")
    ko = te.reduce_axis((0, 3), name="ko")
    C = te.compute(
        (3, m),
        lambda io: gemv(
            A[io * m : (io + 1) * m, ko * n : (ko + 1) * n],
            B[ko * n : (ko + 1) * n],
            reduce_axis=ko,
            scalar_inputs=te.const(2.0, "float32"),
        ),
        name="C",
    )
    assert [int(e) for e in C.shape] == [3, 4]
    assert len(C.op.axis) == 2
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 24)).astype("float32"), rng.normal(size=24).astype("float32")
    (result,) = run([C], [A, B], x, y)
    np.testing.assert_allclose(result.ravel(), 2 * (x @ y), rtol=1e-4, atol=1e-5)
    s = te.create_schedule(C.op)
    s[C].parallel(C.op.axis[0])
    cache = s.cache_read(B, "global", [C])
    s[cache].compute_at(s[C], C.op.axis[0])
    func = tvm.build(s, [A, B, C], target="llvm")
    out = tvm.nd.array(np.zeros((3, m), "float32"))
    func(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy().ravel(), 2 * (x @ y), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="axis 0 of the results of gemv has extent 4, the tensor"):
        te.compute((3, 5), lambda io: gemv(A[0:4, 0:8], B[0:8], scalar_inputs=[1.0]))
    with pytest.raises(ValueError, match="it takes 1 scalars, got 0"):
        te.compute((3, m), lambda io: gemv(A[0:4, 0:8], B[0:8]))


def test_packed_function_gets_buffers_as_arrays():
    seen = []

    @tvm.register_func("testing.te.scale_and_sum", override=True)
    def scale_and_sum(source, factor, scaled, total):
        seen.append((source.shape, str(source.dtype)))
        array = source.numpy()
        scaled.copyfrom(array * factor)
        total.copyfrom(array.sum(axis=1).astype("float64"))

    A = te.placeholder((3, 4), name="A")
    B = te.compute((3, 4), lambda i, j: A[i, j] + 1.0, name="B")
    S, T = te.extern(
        [(3, 4), (3,)],
        [B],
        lambda ins, outs: tir.call_packed("testing.te.scale_and_sum", ins[0], 2.5, *outs),
        dtype=["float32", "float64"],
    )
    a = np.random.default_rng(0).random((3, 4)).astype("float32")
    scaled, total = run([S, T], [A], a)
    np.testing.assert_allclose(scaled, (a + 1) * 2.5, rtol=1e-6)
    np.testing.assert_allclose(total, (a + 1).sum(axis=1), rtol=1e-6)
    assert seen == [((3, 4), "float32")]


def test_error_of_a_packed_function_arrives_as_it_is():
    @tvm.register_func("testing.te.fails", override=True)
    def fails(source, out):
        raise KeyError(f"no row {source.shape[0]}")

    A = te.placeholder((3,), name="A")
    B = te.extern((3,), [A], lambda ins, outs: tir.call_packed("testing.te.fails", ins[0], outs[0]))
    with pytest.raises(KeyError, match="no row 3"):
        run([B], [A], np.zeros(3, "float32"))


@pytest.mark.parametrize("how", ["data", "access_ptr", "packed"])
def test_a_pointer_to_a_padded_tensor_is_refused(how):
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")

    def body(ins, outs):
        if how == "packed":
            return tir.call_packed("copy", ins[0], outs[0])
        pointers = [outs[0].data, ins[0].data]
        if how == "access_ptr":
            pointers = [outs[0].access_ptr("w"), ins[0].access_ptr("r")]
        return tir.call_extern("int32", "memcpy", *pointers, 80)

    C = te.extern((4, 5), [B], body, name="C")
    s = te.create_schedule(C.op)
    tvm.lower(s, [A, C])
    s[B].storage_align(B.op.axis[0], 5, 0)
    tvm.lower(s, [A, C])
    s[B].storage_align(B.op.axis[0], 8, 0)
    with pytest.raises(ScheduleError, match="buffer B: storage_align gives axis 0 the stride 8"):
        tvm.lower(s, [A, C])


def test_elements_of_a_padded_tensor_may_be_read():
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")

    def body(ins, outs):
        ib = tir.ir_builder.create()
        source, result = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i, ib.for_range(0, 5) as j:
            result[i, j] = source[i, j] * 2.0
        return ib.get()

    C = te.extern((4, 5), [B], body, name="C")
    s = te.create_schedule(C.op)
    s[B].storage_align(B.op.axis[0], 8, 0)
    x, out = np.arange(20, dtype="float32").reshape(4, 5), tvm.nd.empty((4, 5))
    tvm.build(s, [A, C])(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), (x + 1) * 2)


@pytest.mark.parametrize("factor", [None, 8])
def test_a_buffer_with_strides_of_its_own_learns_those_of_its_tensor(factor):
    A = te.placeholder((4, 5), name="A")
    B = te.compute((4, 5), lambda i, j: A[i, j] + 1.0, name="B")
    view = tir.decl_buffer((4, 5), name="view", strides=[te.var("stride"), 1])

    def body(ins, outs):
        ib = tir.ir_builder.create()
        result = ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i, ib.for_range(0, 5) as j:
            result[i, j] = ins[0][i, j] + ins[0].strides[0].astype("float32")
        ib.emit(tir.call_extern("int32", "use", ins[0].data, ins[0].strides[0]))
        return ib.get()

    C = te.extern((4, 5), [B], body, name="C", in_buffers=[view])
    s = te.create_schedule(C.op)
    if factor:
        s[B].storage_align(B.op.axis[0], factor, 0)
    stride = factor or 5
    assert f'T.call_extern("int32", "use", B, {stride})' in str(tvm.lower(s, [A, C]))
    with pytest.raises(ValueError, match="buffer view of extern C declares strides or an offset"):
        te.create_prim_func([A, C])


def test_strides_that_the_tensor_does_not_have_are_refused():
    A = te.placeholder((4, 5), name="A")
    view = tir.decl_buffer((4, 5), name="view", strides=[6, 1])
    C = te.extern(
        (4, 5),
        [A],
        lambda ins, outs: tir.call_extern("int32", "use", ins[0].data),
        in_buffers=[view],
    )
    with pytest.raises(ScheduleError, match="declares stride 6, the region has 5"):
        tvm.lower(te.create_schedule(C.op), [A, C])


def test_a_single_buffer_needs_no_list():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    given = tir.decl_buffer((n,), name="A"), tir.decl_buffer((n,), name="B")

    def copy(ins, outs):
        assert (ins[0], outs[0]) == given
        i = te.var("i")
        return tir.For(i, 0, n, tir.ForKind.SERIAL, outs[0].vstore(i, ins[0].vload(i)))

    B = te.extern((n,), [A], copy, in_buffers=given[0], out_buffers=given[1])
    values, result = np.arange(5, dtype="float32"), tvm.nd.empty((5,))
    tvm.build(te.create_schedule(B.op), [A, B], "llvm")(tvm.nd.array(values), result)
    np.testing.assert_array_equal(result.numpy(), values)


def test_outputs_without_a_buffer_are_refused():
    A = te.placeholder((4,), name="A")
    with pytest.raises(ValueError, match="2 shapes but 1 buffers of outputs"):
        te.extern(
            [(4,), (4,)], [A], lambda ins, outs: tir.Evaluate(0), out_buffers=tir.decl_buffer((4,))
        )
