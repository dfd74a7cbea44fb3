"""How kernels of LegalizeOps are written: the indices of TVM's, and what they compute."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import relax, te, tir
from tvm.relax import op
from tvm.relax.transform.legalize_ops.digits import digits


def _legalized(make, *infos):
    builder = relax.BlockBuilder()
    params = [
        relax.Var(name, relax.TensorStructInfo(*info)) for name, info in zip("ABCDEFG", infos)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(*params))
        builder.emit_func_output(out)
    return relax.transform.LegalizeOps()(builder.get())


def _kernel(mod):
    (kernel,) = [f for f in mod.functions.values() if isinstance(f, tir.PrimFunc)]
    return kernel


def _stored(make, *infos):
    """What the last block of a kernel stores, as text."""
    values = []

    def look(node):
        if isinstance(node, tir.BufferStore):
            values.append(str(node.value))

    tir.stmt_functor.post_order_visit(_kernel(_legalized(make, *infos)).body, look)
    return values[-1].replace("T.int64", "").replace("v_", "").replace(" ", "")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_digits_are_the_position_in_the_other_shape(shape, data):
    # Factors of the element count in any order and grouping are another shape.
    left = int(np.prod(shape))
    other = []
    while left > 1:
        factor = data.draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0]))
        other.append(factor)
        left //= factor
    other += [1] * data.draw(st.integers(0, 2))
    indices = [tir.Var(f"i{k}", "int32") for k in range(len(shape))]
    places = [tir.convert(p) for p in digits(indices, shape, other)]
    for flat in range(int(np.prod(shape))):
        at = dict(zip(indices, (tir.const(int(i), "int32") for i in np.unravel_index(flat, shape))))
        found = [
            int(tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(p, at))) for p in places
        ]
        expected = np.unravel_index(flat, other) if other else ()
        assert found == [int(e) for e in expected]


@pytest.mark.parametrize(
    ("shape", "other", "expected"),
    [
        ((2, 3, 4), (24,), "A[ax0%(24)//(12),ax0%(12)//(4),ax0%(4)]"),
        (
            (1, 2, 3, 4),
            (8, 3),
            "A[(0),(ax0*(3)+ax1)%(24)//(12),(ax0*(3)+ax1)%(12)//(4),(ax0*(3)+ax1)%(4)]",
        ),
        ((24,), (2, 3, 4), "A[(ax0*(12)+ax1*(4)+ax2)%(24)]"),
    ],
)
def test_reshaped_elements_are_found_by_digits(shape, other, expected):
    assert _stored(lambda x: op.reshape(x, other), (shape, "float32")) == expected


def test_a_reshape_of_open_extents_divides_by_each():
    a, b, c = (tir.Var(name, "int64") for name in "abc")
    stored = _stored(op.flatten, ((a, b, c), "float32"))
    assert stored == "A[ax0//c//b%a,ax0//c%b,ax0%c]"


def test_concatenation_asks_for_the_last_tensor_first():
    infos = [((1, n, 3), "float32") for n in (2, 3, 4)]
    stored = _stored(lambda *xs: op.concat(xs, 1), *infos)
    assert stored == (
        "T.if_then_else((5)<=ax1,C[ax0,ax1-(5),ax2],"
        "T.if_then_else((2)<=ax1,B[ax0,ax1-(2),ax2],A[ax0,ax1,ax2]))"
    )


def test_a_product_is_one_block_over_its_operands():
    stored = _stored(op.matmul, ((4,), "float32"), ((2, 3, 4, 5), "float32"))
    assert stored == "matmul[ax0,ax1,ax2]+A[k]*B[ax0,ax1,k,ax2]"
    kernel = _kernel(_legalized(op.matmul, ((4, 5), "float32"), ((5, 6), "float32")))
    assert "layout_free_buffers" not in kernel.attrs


def test_comparisons_of_blocks_are_written_with_less():
    A = te.placeholder((4,), name="A")
    greater = te.compute((4,), lambda i: tir.Select(A[i] > 0.0, A[i], 0.0), name="B")
    less = te.compute((4,), lambda i: tir.Select(tir.const(0.0) < A[i], A[i], 0.0), name="B")
    tvm.ir.assert_structural_equal(
        te.create_prim_func([A, greater]), te.create_prim_func([A, less])
    )


def test_a_block_of_one_element_has_an_axis_of_one_step():
    A = te.placeholder((), name="A")
    B = te.compute((), lambda: A() + 1.0, name="B")
    block = te.create_prim_func([A, B]).body.block.body
    (axis,) = block.block.iter_vars
    assert int(axis.dom.extent) == 1
    assert [int(v) for v in block.iter_values] == [0]


@pytest.mark.parametrize(
    ("make", "expected", "shapes"),
    [
        (lambda x: op.reshape(x, (4, 15)), lambda x: x.reshape(4, 15), [(3, 4, 5)]),
        (lambda x: op.repeat(x, 3, 1), lambda x: x.repeat(3, 1), [(3, 4)]),
        (lambda x: op.repeat(x, 2), lambda x: x.repeat(2), [(3, 4)]),
        (lambda x: op.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), [(3, 4)]),
        (lambda x: op.flip(x, 1), lambda x: x[:, ::-1], [(3, 4)]),
        (lambda *x: op.concat(x, 1), lambda *x: np.concatenate(x, 1), [(2, 3), (2, 1), (2, 4)]),
        (lambda x, y: op.matmul(x, y), np.matmul, [(2, 1, 3, 4), (5, 4, 2)]),
        (lambda x, y: op.matmul(x, y), np.matmul, [(4,), (3, 4, 2)]),
        (lambda x, y: op.matmul(x, y), np.matmul, [(3, 4), (4,)]),
        (lambda x: op.collapse_sum_to(x, (2, 1)), lambda x: x.sum((0, 2))[:, None], [(3, 2, 3)]),
        (lambda x: op.triu(x, 1), lambda x: np.triu(x, 1), [(4, 5)]),
        (lambda x: op.tril(x, -2), lambda x: np.tril(x, -2), [(4, 5)]),
        (
            lambda x: op.nn.log_softmax(x, 1),
            lambda x: x - np.log(np.exp(x).sum(1, keepdims=True)),
            [(3, 4, 2)],
        ),
    ],
)
def test_kernels_compute_what_operators_say(make, expected, shapes):
    arrays = [np.random.default_rng(0).standard_normal(s).astype("float32") for s in shapes]
    mod = _legalized(make, *((s, "float32") for s in shapes))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](*map(tvm.nd.array, arrays)).numpy()
    np.testing.assert_allclose(result, expected(*arrays), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("padding", [0, (1, 2)])
def test_a_convolution_reads_a_copy_with_its_border(padding):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((2, 4, 7, 6)).astype("float32")
    w = np.random.default_rng(1).standard_normal((6, 2, 3, 3)).astype("float32")
    mod = _legalized(
        lambda a, b: op.nn.conv2d(a, b, strides=2, padding=padding, groups=2),
        (x.shape, "float32"),
        (w.shape, "float32"),
    )
    assert "pad_temp" in str(_kernel(mod))
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    result = vm["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
    expected = torch.conv2d(torch.tensor(x), torch.tensor(w), None, 2, padding, 1, 2)
    np.testing.assert_allclose(result, expected.numpy(), rtol=1e-4, atol=1e-4)


def test_shapes_that_variables_hold_are_seen():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
    with builder.function("main", [x]):
        shape = builder.emit(relax.ShapeExpr([6, 4]))
        builder.emit_func_output(builder.emit(op.reshape(x, shape)))
    mod = relax.transform.LegalizeOps()(builder.get())
    assert [var.name_hint for var in mod.functions if var.name_hint != "main"] == ["reshape"]


def test_a_function_returns_what_is_known_of_its_body():
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(op.exp(x)))
    func = builder.get()["main"]
    vague = relax.Function(
        func.params, func.body, relax.TensorStructInfo(dtype="float32"), func.is_pure, func.attrs
    )
    mod = relax.transform.Normalize()(tvm.IRModule({"main": vague}))
    tvm.ir.assert_structural_equal(mod["main"].ret_struct_info, x.struct_info)


def test_a_kernel_and_what_calls_it_are_made_apart():
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((4, n), "float32"))
    kernel, values, info, extents = relax.utils.gen_call_tir_inputs(
        lambda a: te.compute(a.shape, lambda i, j: a[i, j] * 2.0), x
    )
    assert isinstance(kernel, tir.PrimFunc)
    assert list(values.fields) == [x]
    tvm.ir.assert_structural_equal(info, x.struct_info)
    assert extents is None


def _blocks(make, *infos):
    """How many blocks the kernel of an operator has."""
    count = 0

    def look(node):
        nonlocal count
        count += isinstance(node, tir.BlockRealize)

    tir.stmt_functor.post_order_visit(_kernel(_legalized(make, *infos)).body, look)
    return count - 1


@pytest.mark.parametrize(
    ("make", "steps"),
    [(op.nn.silu, 2), (op.nn.gelu, 5), (op.nn.gelu_tanh, 9), (lambda x: op.mean(x, 1), 2)],
)
def test_kernels_for_schedules_have_a_block_for_each_step(make, steps):
    assert _blocks(make, ((2, 3), "float32")) == steps


def test_norms_and_losses_have_blocks_for_their_steps():
    vector, batch = ((4,), "float32"), ((2, 3, 4), "float32")
    assert _blocks(lambda x, w: op.nn.rms_norm(x, w, axes=[-1]), batch, vector) == 4
    statistics = [((3,), "float32")] * 4
    assert _blocks(lambda x, *v: op.nn.batch_norm(x, *v, axis=1), batch, *statistics) == 12
    scores, places, weights = ((5, 3), "float32"), ((5,), "int64"), ((3,), "float32")
    assert _blocks(op.nn.nll_loss, scores, places, weights) == 5


def test_a_mean_multiplies_by_what_it_would_divide_by():
    assert _stored(lambda x: op.mean(x, 1), ((2, 4), "float32")) == "T_sum[ax0]*T.float32(0.25)"


def test_take_trusts_its_indices():
    expected = "A[B[ax0],ax1]"
    assert _stored(lambda x, i: op.take(x, i, 0), ((5, 4), "float32"), ((3,), "int64")) == expected


@pytest.mark.parametrize(
    ("make", "answer"),
    [
        (op.nn.silu, torch.nn.functional.silu),
        (op.nn.gelu, torch.nn.functional.gelu),
        (op.nn.gelu_tanh, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        (op.asinh, torch.asinh),
        (op.atanh, torch.atanh),
        (op.acosh, torch.acosh),
        (op.rsqrt, torch.rsqrt),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_stepwise_kernels_compute_the_function(make, answer, dtype):
    low, high = {op.acosh: (1, 9), op.rsqrt: (0.1, 9)}.get(make, (-1, 1))
    x = np.random.default_rng(3).uniform(low, high, (5, 7)).astype(dtype)
    machine = relax.VirtualMachine(relax.build(_legalized(make, (x.shape, dtype)), "llvm"))
    expected = answer(torch.from_numpy(x.astype("float32"))).numpy()
    tolerance = 1e-5 if dtype == "float32" else 2e-3
    np.testing.assert_allclose(machine["main"](tvm.nd.array(x)).numpy(), expected, tolerance, 1e-6)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_transposed_convolutions_turn_the_weight_in_a_block(groups, stride):
    rng = np.random.default_rng(groups)
    x = rng.normal(size=(2, 4, 5, 6)).astype("float32")
    w = rng.normal(size=(4, 3, 3, 2)).astype("float32")
    more = (stride - 1, 0)
    mod = _legalized(
        lambda a, b: op.nn.conv2d_transpose(
            a, b, strides=(stride, stride), padding=(1, 0), output_padding=more, groups=groups
        ),
        (x.shape, "float32"),
        (w.shape, "float32"),
    )
    assert "kernel_transform" in str(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    expected = torch.nn.functional.conv_transpose2d(
        torch.from_numpy(x), torch.from_numpy(w), None, stride, (1, 0), more, groups
    )
    found = machine["main"](tvm.nd.array(x), tvm.nd.array(w)).numpy()
    np.testing.assert_allclose(found, expected.numpy(), 1e-4, 1e-5)
