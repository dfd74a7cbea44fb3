"""te.gradient, against differences of values and against PyTorch."""

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm import te, tir


def run(tensors, feeds):
    """Values of the last of `tensors`, the others being inputs."""
    schedule = te.create_schedule(tensors[-1].op)
    function = tvm.build(schedule, tensors, "llvm")
    result = tvm.nd.empty([int(extent) for extent in tensors[-1].shape], tensors[-1].dtype)
    function(*[tvm.nd.array(feed) for feed in feeds], result)
    return result.numpy()


def check(output, inputs, low=0.5, high=1.5, seed=0):
    """Gradients of a weighted sum of `output` against differences."""
    rng = np.random.default_rng(seed)
    feeds = [
        rng.uniform(low, high, [int(e) for e in tensor.shape]).astype("float32")
        for tensor in inputs
    ]
    head = te.placeholder(output.shape, output.dtype, name="head")
    weights = rng.uniform(-1, 1, [int(e) for e in output.shape]).astype("float32")
    forward = tvm.build(te.create_schedule(output.op), [*inputs, output], "llvm")

    def value(*values):
        result = tvm.nd.empty(weights.shape, output.dtype)
        forward(*[tvm.nd.array(v) for v in values], result)
        return float((result.numpy().astype("float64") * weights).sum())

    grads = [
        run([*inputs, head, grad], [*feeds, weights]) for grad in te.gradient(output, inputs, head)
    ]
    tvm.testing.check_numerical_grads(value, feeds, grads, atol=2e-2, rtol=5e-2)


A = te.placeholder((4, 5), name="A")
B = te.placeholder((5, 3), name="B")


@pytest.mark.parametrize(
    "function",
    [
        te.exp,
        te.log,
        te.sigmoid,
        te.tanh,
        te.sqrt,
        te.sin,
        te.atan,
        te.erf,
        lambda v: te.power(v, 3.0),
        lambda v: 1.0 / (v + 2.0) - v * v,
        lambda v: te.max(v, 1.0) * te.min(v, 0.9),
        lambda v: tir.Select(v > 1.0, v * 2.0, v * v),
        lambda v: v.astype("float64").astype("float32") + te.floor(v),
    ],
)
def test_functions_of_elements(function):
    check(te.compute((4, 5), lambda i, j: function(A[i, j])), [A])


@pytest.mark.parametrize(
    "read",
    [
        lambda i, j: A[j % 4, i] * A[j % 4, i],
        lambda i, j: A[i, j] + A[0, j] * A[i, 2],
        lambda i, j: A[i // 2, j // 2],
        lambda i, j: A[3 - i, j],
        lambda i, j: te.if_then_else(tir.all(i > 0, j < 4), A[i - 1, j + 1], 0.0),
    ],
)
def test_ways_of_reading(read):
    check(te.compute((4, 5), read), [A])


def test_products_of_matrices():
    k = te.reduce_axis((0, 5), "k")
    product = te.compute((4, 3), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))
    check(product, [A, B])


def test_sums_with_conditions_and_powers_of_reads():
    k = te.reduce_axis((0, 5), "k")
    check(te.compute((4,), lambda i: te.sum(A[i, k] * A[i, k], axis=k, where=k >= i)), [A])


def test_convolutions_with_strides_and_padding():
    x = te.placeholder((1, 2, 7, 7), name="x")
    w = te.placeholder((2, 2, 3, 3), name="w")
    padded = te.compute(
        (1, 2, 9, 9),
        lambda n, c, h, v: te.if_then_else(
            tir.all(h >= 1, h < 8, v >= 1, v < 8), x[n, c, h - 1, v - 1], 0.0
        ),
    )
    c, kh, kw = (te.reduce_axis((0, e)) for e in (2, 3, 3))
    out = te.compute(
        (1, 2, 4, 4),
        lambda n, o, h, v: te.sum(
            padded[n, c, h * 2 + kh, v * 2 + kw] * w[o, c, kh, kw], axis=[c, kh, kw]
        ),
    )
    check(out, [x, w])


@pytest.mark.parametrize("reduce", [te.max, te.min])
def test_other_reductions(reduce):
    k = te.reduce_axis((0, 5), "k")
    check(te.compute((4,), lambda i: reduce(A[i, k] * A[i, k], axis=k)), [A])


def test_products_with_a_zero_among_the_factors():
    product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t), name="prod")
    k = te.reduce_axis((0, 5), "k")
    out = te.compute((4,), lambda i: product(A[i, k], axis=k))
    (jacobian,) = te.gradient(out, [A])
    values = np.arange(20, dtype="float32").reshape(4, 5)
    found = run([A, jacobian], [values])
    expected = np.zeros((4, 4, 5), "float32")
    for i in range(4):
        for k_ in range(5):
            expected[i, i, k_] = np.prod(np.delete(values[i], k_))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_chains_and_several_readers():
    torch = pytest.importorskip("torch")
    k = te.reduce_axis((0, 5), "k")
    hidden = te.compute((4, 5), lambda i, j: te.tanh(A[i, j]))
    total = te.compute((4,), lambda i: te.sum(hidden[i, k] * A[i, k], axis=k))
    out = te.compute((4, 5), lambda i, j: te.exp(hidden[i, j]) / total[i])
    head = te.placeholder((4, 5), name="head")
    (grad,) = te.gradient(out, A, head)
    rng = np.random.default_rng(1)
    value, weights = (rng.uniform(0.5, 1.5, (4, 5)).astype("float32") for _ in range(2))
    x = torch.tensor(value, requires_grad=True)
    inner = torch.tanh(x)
    (torch.exp(inner) / (inner * x).sum(1, keepdim=True) * torch.tensor(weights)).sum().backward()
    np.testing.assert_allclose(
        run([A, head, grad], [value, weights]), x.grad.numpy(), rtol=1e-4, atol=1e-5
    )


def test_the_identity_is_the_head_unless_there_is_one():
    k = te.reduce_axis((0, 5), "k")
    out = te.compute((4, 3), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))
    jacobian = te.gradient(out, A)[0]
    assert [int(e) for e in jacobian.shape] == [4, 3, 4, 5]
    values = np.random.default_rng(0).random((5, 3)).astype("float32")
    expected = np.einsum("kj,ia->ijak", values, np.eye(4, dtype="float32"))
    np.testing.assert_allclose(run([B, jacobian], [values]), expected, rtol=1e-6)
    several = te.placeholder((2, 4, 3), name="several")
    assert [int(e) for e in te.gradient(out, [B], several)[0].shape] == [2, 5, 3]


def test_what_the_output_does_not_need_has_no_slope():
    other = te.placeholder((2,), name="other")
    out = te.compute((4, 5), lambda i, j: A[i, j] * 2.0)
    zero = te.gradient(out, [other])[0]
    assert [int(e) for e in zero.shape] == [4, 5, 2]
    assert not run([zero], []).any()


def test_what_cannot_be_differentiated_says_why():
    out = te.compute((4, 5), lambda i, j: A[i, j] * 2.0)
    with pytest.raises(ValueError, match="must end as that of the output"):
        te.gradient(out, [A], te.placeholder((4, 6)))
    opaque = te.extern((4, 5), [A], lambda ins, outs: tir.call_packed("x", ins[0], outs[0]))
    with pytest.raises(ValueError, match=r"no te\.compute"):
        te.gradient(opaque, [A])
    unknown = te.compute((4, 5), lambda i, j: tir.call_pure_extern("float32", "f", A[i, j]))
    with pytest.raises(ValueError, match="no derivative is known"):
        te.gradient(unknown, [A])
