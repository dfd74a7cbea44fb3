"""Operators of numbers of a few bits, of sparse matrices, of random numbers and of gradients."""

import numpy as np
import pytest
import scipy.sparse
import torch

import tvm
from tvm import relay, topi


def run(expr, *inputs):
    """The arrays that an expression over `x0`, `x1`, ... gives."""
    params = [relay.var(f"x{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(inputs)]
    mod = tvm.IRModule.from_expr(relay.Function(params, expr(*params)))
    results = []
    for kind in ("graph", "vm"):
        out = relay.create_executor(kind, mod=mod, target="llvm").evaluate()(*inputs)
        parts = [out] if hasattr(out, "numpy") else list(out)
        results.append([part.numpy() for part in parts])
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)
    return results[0]


@pytest.mark.parametrize("width", (8, 16, 32, 64))
def test_bits_of_neighbours_become_words(width):
    x = np.random.default_rng(0).integers(0, 4, (3, 2 * width)).astype("uint8")
    (words,) = run(lambda x: relay.nn.bitpack(x, 2, 1, 1, f"uint{width}"), x)
    for bit in range(2):
        rows = ((x >> bit) & 1).reshape(3, 2, width).astype("object")
        expected = [[int("".join(map(str, w)), 2) for w in row] for row in rows]
        np.testing.assert_array_equal(words[:, bit], np.array(expected, f"uint{width}"))


@pytest.mark.parametrize("unipolar", (True, False))
@pytest.mark.parametrize("bits", ((1, 1), (2, 1), (3, 2)))
def test_dense_of_few_bits(unipolar, bits):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << bits[0], (5, 64)).astype("uint8")
    w = rng.integers(0, 1 << bits[1], (7, 64)).astype("uint8")
    signed = 2 * w.astype(int) - (1 << bits[1]) + 1 if unipolar else w.astype(int)
    (out,) = run(
        lambda x, w: relay.nn.bitserial_dense(
            x, w, data_bits=bits[0], weight_bits=bits[1], out_dtype="int32", unipolar=unipolar
        ),
        x, w,
    )  # fmt: skip
    np.testing.assert_array_equal(out, x.astype(int) @ signed.T)


@pytest.mark.parametrize("layout", ("NCHW", "NHWC"))
@pytest.mark.parametrize("packed", (True, False))
@pytest.mark.parametrize("unipolar", (True, False))
def test_convolutions_of_few_bits(layout, packed, unipolar):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, (1, 32, 7, 6)).astype("uint8")
    w = rng.integers(0, 2, (4, 32, 3, 3)).astype("uint8")
    given = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    kernel = w if layout == "NCHW" else w.transpose(2, 3, 1, 0)
    inner = 1 if layout == "NCHW" else 2

    def network(x, w):
        if packed:
            w = relay.nn.bitpack(w, 1, inner, 4, "uint16")
        return relay.nn.bitserial_conv2d(
            x, w, strides=(2, 1), padding=(1, 0, 2, 1), kernel_size=(3, 3), channels=4,
            activation_bits=2, weight_bits=1, data_layout=layout, pack_dtype="uint16",
            kernel_layout="OIHW" if layout == "NCHW" else "HWIO", unipolar=unipolar,
        )  # fmt: skip

    (out,) = run(network, np.ascontiguousarray(given), np.ascontiguousarray(kernel))
    weight = torch.tensor(2.0 * w - 1 if unipolar else w.astype(float))
    data = torch.nn.functional.pad(torch.tensor(x.astype(float)), (0, 1, 1, 2))
    expected = torch.nn.functional.conv2d(data, weight, stride=(2, 1)).numpy()
    if layout == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    assert out.dtype == "int16"
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda x, w: relay.nn.bitserial_dense(x, w, units=6), "units is 6, the weight has 7"),
        (
            lambda x, w: relay.nn.bitserial_conv2d(x, w, channels=5, kernel_size=(3, 2)),
            "channels is 5, the weight has 4",
        ),
        (
            lambda x, w: relay.nn.bitserial_conv2d(x, w, kernel_size=(3, 3)),
            r"kernel_size\[1\] is 3, the weight has 2",
        ),
        (
            lambda g, x: relay.nn.conv2d_backward_weight(g, x, channels=5, kernel_size=(3, 2)),
            "channels is 5, grad has 4",
        ),
        (
            lambda g, x: relay.nn.conv2d_backward_weight(g, x, kernel_size=(3, 3)),
            r"makes 4 columns of data \[1, 32, 7, 6\].* grad has 5",
        ),
        (
            lambda g, x: relay.nn.conv2d_backward_weight(g, x, groups=3, kernel_size=(3, 2)),
            "3 groups do not divide the 32 channels of data",
        ),
    ],
)
def test_sizes_that_tensors_do_not_have_are_refused(call, problem):
    if "bitserial_dense" in call.__code__.co_names:
        shapes = [(5, 64), (7, 64)]
    elif "bitserial_conv2d" in call.__code__.co_names:
        shapes = [(1, 32, 7, 6), (4, 32, 3, 2)]
    else:
        shapes = [(1, 4, 5, 5), (1, 32, 7, 6)]
    arrays = [np.zeros(shape, "uint8") for shape in shapes]
    with pytest.raises(ValueError, match=problem):
        run(call, *arrays)


def test_words_must_fill_dimensions():
    with pytest.raises(ValueError, match="words of 32 bits do not divide 33 elements"):
        topi.nn.bitpack(tvm.te.placeholder((2, 33), "uint8"), 1, 1, 1, "uint32")
    with pytest.raises(ValueError, match="pack_type must be one of"):
        topi.nn.bitpack(tvm.te.placeholder((2, 32), "uint8"), 1, 1, 1, "int32")


def matrix(rows, columns, kind="csr", density=0.3):
    made = scipy.sparse.random(rows, columns, density, "csr", "float32", random_state=3)
    return made if kind == "csr" else scipy.sparse.bsr_matrix(made, blocksize=(2, 4))


def test_sums_with_sparse_matrices():
    x, s = np.random.default_rng(0).random((9, 7), "float32"), matrix(9, 7)
    (out,) = run(lambda x: relay.nn.sparse_add(x, s), x)
    np.testing.assert_allclose(out, x + s.toarray(), rtol=1e-6)


def test_transposes_of_sparse_matrices():
    s = matrix(8, 8)
    data, indices, indptr = run(lambda: relay.nn.sparse_transpose(s).astuple())
    transposed = scipy.sparse.csr_matrix((data, indices, indptr), (8, 8))
    np.testing.assert_array_equal(transposed.toarray(), s.toarray().T)


@pytest.mark.parametrize("kind", ("csr", "bsr"))
@pytest.mark.parametrize("layout", ("NHWC", "NCHW"))
@pytest.mark.parametrize("size", (1, 3))
def test_convolutions_with_sparse_weights(kind, layout, size):
    weight = matrix(6, size * size * 8, kind)
    x = np.random.default_rng(0).random((1, 8, 5, 6), "float32")
    given = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    (out,) = run(lambda x: relay.nn.sparse_conv2d(x, weight, layout, size), given)
    dense = weight.toarray().reshape(6, size, size, 8).transpose(0, 3, 1, 2)
    expected = torch.nn.functional.conv2d(
        torch.tensor(x), torch.tensor(dense.copy()), padding=size // 2
    ).numpy()
    if layout == "NHWC":
        expected = expected.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


def reference_threefry(key, count):
    """Twenty rounds on four words, with integers of Python."""
    full = (1 << 64) - 1
    rotations = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
    scheduled = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(a + b) & full for a, b in zip(count, key)]
    for step in range(20):
        for (p, q), bits in zip(
            ((0, 1), (2, 3)) if step % 2 == 0 else ((0, 3), (2, 1)), rotations[step % 8]
        ):
            x[p] = (x[p] + x[q]) & full
            x[q] = ((x[q] << bits | x[q] >> (64 - bits)) & full) ^ x[p]
        if step % 4 == 3:
            turn = step // 4 + 1
            x = [(v + scheduled[(turn + i) % 5]) & full for i, v in enumerate(x)]
            x[3] = (x[3] + turn) & full
    return x


# The first of them is the known answer that the authors publish.
assert reference_threefry([0] * 4, [0] * 4)[0] == 0x09218EBDE6C85537


def test_words_of_keys():
    seed = (5 << 192) + (1 << 64) - 3
    key = relay.random.threefry_key(seed)
    first, words = run(lambda: relay.random.threefry_generate(key, (3, 5)).astuple())
    k = [seed >> 64 * i & (1 << 64) - 1 for i in range(4)]
    expected = [w for n in range(4) for w in reference_threefry(k, [0, 0, 0, n])][:15]
    np.testing.assert_array_equal(words.reshape(-1), np.array(expected, "uint64"))
    _, more = run(lambda k: relay.random.threefry_generate(k, (4,)).astuple(), first)
    np.testing.assert_array_equal(more, np.array(reference_threefry(k, [0, 0, 0, 4]), "uint64"))
    with pytest.raises(ValueError, match="0 to 256 bits"):
        relay.random.threefry_key(-1)


def test_counts_of_keys_carry():
    key = np.array([1, 2, 3, 4, 0, 0, 7, 2**64 - 1, 1 << 63, 0], "uint64")
    following, words = run(lambda k: relay.random.threefry_generate(k, (8,)).astuple(), key)
    expected = reference_threefry([1, 2, 3, 4], [0, 0, 7, 2**64 - 1])
    expected += reference_threefry([1, 2, 3, 4], [0, 0, 8, 0])
    np.testing.assert_array_equal(words, np.array(expected, "uint64"))
    np.testing.assert_array_equal(following[4:8], np.array([0, 0, 8, 1], "uint64"))


def test_halves_of_keys_differ():
    key = relay.random.threefry_key(7)
    left, right = run(lambda: relay.random.threefry_split(key).astuple())
    assert len({tuple(left), tuple(right), tuple(key.data.numpy())}) == 3
    again, _ = run(lambda: relay.random.threefry_split(key).astuple())
    np.testing.assert_array_equal(left, again)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_distributions(dtype):
    key = relay.random.threefry_key(1)
    _, flat = run(lambda: relay.random.uniform(key, (200, 100), dtype, -1.0, 3.0).astuple())
    assert flat.dtype == dtype and flat.min() >= -1 and flat.max() < 3
    assert abs(flat.mean() - 1) < 0.03 and abs(flat.std() - 4 / 12**0.5) < 0.03
    _, bell = run(lambda: relay.random.normal(key, (200, 100), dtype, 2.0, 3.0).astuple())
    assert abs(bell.mean() - 2) < 0.07 and abs(bell.std() - 3) < 0.07
    assert abs((np.abs(bell - 2) < 3).mean() - 0.6827) < 0.02


def test_categories():
    key = relay.random.threefry_key(1)
    weights = np.array([[1, 2, 7, 0], [0, 0, 0, 4]], "float32")
    _, drawn = run(lambda w: relay.random.multinomial(key, w, 20000).astuple(), weights)
    shares = [np.bincount(row, minlength=4) / 20000 for row in drawn]
    np.testing.assert_allclose(shares, [[0.1, 0.2, 0.7, 0], [0, 0, 0, 1]], atol=0.02)


@pytest.mark.parametrize("groups", (1, 2))
def test_gradients_of_convolutions_for_weights(groups):
    rng = np.random.default_rng(0)
    x = rng.random((2, 4, 9, 8), "float32")
    w = torch.zeros(6, 4 // groups, 3, 2, requires_grad=True)
    out = torch.nn.functional.conv2d(
        torch.tensor(x), w, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=groups
    )
    g = rng.random(out.shape, "float32")
    out.backward(torch.tensor(g))
    (found,) = run(
        lambda g, x: relay.nn.conv2d_backward_weight(
            g, x, (2, 1), (1, 0), (1, 2), groups, kernel_size=(3, 2)
        ),
        g, x,
    )  # fmt: skip
    np.testing.assert_allclose(found, w.grad.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ("max", "avg"))
def test_gradients_of_pools(kind):
    rng = np.random.default_rng(0)
    data = torch.tensor(rng.random((1, 3, 8, 8), "float32"), requires_grad=True)
    pool = torch.nn.functional.max_pool2d if kind == "max" else torch.nn.functional.avg_pool2d
    out = pool(data, 3, 2, 1)
    g = rng.random(out.shape, "float32")
    out.backward(torch.tensor(g))
    more = {"count_include_pad": True} if kind == "avg" else {}
    (found,) = run(
        lambda g, x: getattr(relay.nn, f"{kind}_pool2d_grad")(g, x, (3, 3), (2, 2), (1, 1), **more),
        g, data.detach().numpy(),
    )  # fmt: skip
    np.testing.assert_allclose(found, data.grad.numpy(), rtol=1e-5)
    (found,) = run(
        lambda g, x: getattr(relay.nn, f"{kind}_pool2d_grad")(
            g, x, (3, 3), (2, 2), (1, 1), out_layout="NHWC", **more
        ),
        g.transpose(0, 2, 3, 1), data.detach().numpy(),
    )  # fmt: skip
    np.testing.assert_allclose(found, data.grad.numpy(), rtol=1e-5)


def sparse_weight(rows, columns, seed=0):
    """A weight of blocks (2, 4), of which one third is not zero."""
    rng = np.random.default_rng(seed)
    kept = np.arange(rows * columns // 8).reshape(rows // 2, columns // 4) % 3 == 0
    return (rng.random((rows, columns)) * np.kron(kept, np.ones((2, 4)))).astype("float32")


def values(func, params, x):
    mod = tvm.IRModule.from_expr(relay.build_module.bind_params_by_name(func, params))
    mod = relay.transform.InferType()(mod)
    return relay.create_executor("graph", mod=mod, target="llvm").evaluate()(x).numpy()


def test_dense_layers_with_sparse_weights():
    x, w = relay.var("x", shape=(3, 16)), relay.var("w", shape=(8, 16))
    v = relay.var("v", shape=(4, 8))
    func = relay.Function([x, w, v], relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), v))
    data = np.random.default_rng(0).random((3, 16), "float32")
    params = {
        "w": tvm.nd.array(sparse_weight(8, 16)),
        "v": tvm.nd.array(np.ones((4, 8), "float32")),
    }
    expected = values(func, params, data)
    found, changed = relay.data_dep_optimization.bsr_dense.convert(func, dict(params), (2, 4), 0.5)
    assert set(changed) == {"w.data", "w.indices", "w.indptr", "v"}
    assert [str(p.name_hint) for p in found.params] == ["x", "w.data", "w.indices", "w.indptr", "v"]
    assert "nn.sparse_dense" in str(found)
    np.testing.assert_allclose(values(found, changed, data), expected, rtol=1e-5)


@pytest.mark.parametrize("layout,kernel_layout", (("NHWC", "HWIO"), ("NCHW", "OIHW")))
@pytest.mark.parametrize("size", (1, 3))
@pytest.mark.parametrize("constant", (True, False))
def test_convolutions_get_sparse_weights(layout, kernel_layout, size, constant):
    dense = sparse_weight(8, size * size * 4).reshape(8, size, size, 4)
    weight = np.ascontiguousarray(dense.transpose(["OHWI".index(axis) for axis in kernel_layout]))
    shape = (1, 6, 5, 4) if layout == "NHWC" else (1, 4, 6, 5)
    x, w = relay.var("x", shape=shape), relay.var("w", shape=weight.shape)
    conv = relay.nn.conv2d(
        x, w, padding=size // 2, channels=8, kernel_size=size, data_layout=layout,
        kernel_layout=kernel_layout,
    )  # fmt: skip
    func = relay.Function([x, w], relay.nn.relu(conv))
    func = relay.transform.InferType()(tvm.IRModule.from_expr(func))["main"]
    data = np.random.default_rng(1).random(shape, "float32")
    params = {"w": tvm.nd.array(weight)}
    expected = values(func, params, data)
    change = relay.data_dep_optimization.bsr_conv2d
    if constant:
        found, changed = change.convert2(func, dict(params), layout, size, (2, 4), 0.2)
    else:
        found, changed = change.convert(func, dict(params), (2, 4), 0.2, layout, size)
    assert "nn.sparse_conv2d" in str(found)
    np.testing.assert_allclose(values(found, changed, data), expected, rtol=1e-4, atol=1e-5)


def test_weights_are_stored_transposed():
    x, w = relay.var("x", shape=(3, 16)), relay.var("w", shape=(16, 8))
    func = relay.Function([x, w], relay.nn.dense(x, relay.transpose(w, [1, 0])))
    data = np.random.default_rng(0).random((3, 16), "float32")
    params = {"w": tvm.nd.array(sparse_weight(16, 8))}
    expected = values(func, params, data)
    found, changed = relay.data_dep_optimization.simplify_fc_transpose.convert(func, dict(params))
    assert set(changed) == {"w.T"} and "transpose" not in str(found)
    np.testing.assert_allclose(values(found, changed, data), expected, rtol=1e-5)


def test_as_many_shapes_as_names():
    with pytest.raises(ValueError, match="1 names, but 2 shapes"):
        relay.transform.DenseToSparse(["w"], [[1, 2, 4, 3, 2], [1]])


def test_products_of_open_sizes_have_a_type():
    m, k = tvm.te.size_var("m"), tvm.te.size_var("k")
    x, w = relay.var("x", shape=(m, k), dtype="int16"), relay.var("w", shape=(32, k), dtype="int16")
    typed = relay.testing.run_infer_type(relay.nn.bitserial_dense(x, w, units=32))
    assert typed.checked_type == relay.TensorType((m, 32), "int16")
