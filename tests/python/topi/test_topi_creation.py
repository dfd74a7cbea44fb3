"""Tensors made of numbers and positions, and products of tensors, against NumPy and PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
X = random_array(RNG, 2, 4, 5)
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16"])
def test_full_and_its_like_equal_numpy(dtype):
    x = random_array(RNG, 2, 3, dtype=dtype)
    for fn, number in ((topi.zeros_like, 0), (topi.ones_like, 1)):
        np.testing.assert_array_equal(evaluate(fn, x), np.full_like(x, number))
    np.testing.assert_array_equal(
        evaluate(lambda: topi.full((2, 3), dtype, 1)), np.ones((2, 3), dtype)
    )
    np.testing.assert_array_equal(evaluate(lambda: topi.zeros((2,), dtype)), np.zeros(2, dtype))
    np.testing.assert_array_equal(evaluate(lambda: topi.ones((2,), dtype)), np.ones(2, dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("args", [(5,), (2, 9), (2, 9, 3), (9, 2, -2), (-3, 4, 2)])
def test_arange_equals_numpy(args, dtype):
    np.testing.assert_array_equal(
        evaluate(lambda: topi.arange(*args, dtype=dtype)), np.arange(*args, dtype=dtype)
    )


def test_arange_of_fractions():
    np.testing.assert_allclose(
        evaluate(lambda: topi.arange(0.5, 2.0, 0.25)), np.arange(0.5, 2.0, 0.25), rtol=1e-6
    )


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_meshgrid_equals_numpy(indexing):
    arrays = [random_array(RNG, n) for n in (2, 3, 4)]
    out = evaluate(lambda *t: topi.meshgrid(t, indexing), *arrays)
    for ours, theirs in zip(out, np.meshgrid(*arrays, indexing=indexing)):
        np.testing.assert_array_equal(ours, theirs)


def test_elemwise_sum_adds_all():
    out = evaluate(lambda *t: topi.elemwise_sum(t), X, X + 1, X * 2)
    np.testing.assert_allclose(out, 4 * X + 1, **TOLERANCE)


@pytest.mark.parametrize("symbolic", [(), (2, 5)])
def test_shape_and_size_are_known_when_the_program_runs(symbolic):
    out = evaluate(lambda t: [topi.shape(t, "int64"), topi.ndarray_size(t)], X, symbolic=symbolic)
    np.testing.assert_array_equal(out[0], X.shape)
    assert out[1] == X.size


@pytest.mark.parametrize("as_tensor", [False, True])
def test_unravel_index_equals_numpy(as_tensor):
    positions, shape = RNG.integers(0, 60, (2, 7)).astype("int64"), np.array([3, 4, 5], "int64")
    expected = np.stack(np.unravel_index(positions, shape))
    if as_tensor:
        out = evaluate(topi.unravel_index, positions, shape)
    else:
        out = evaluate(lambda t: topi.unravel_index(t, (3, 4, 5)), positions)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_triangles_equal_numpy(k):
    np.testing.assert_array_equal(evaluate(lambda t: topi.tril(t, k), X), np.tril(X, k))
    np.testing.assert_array_equal(evaluate(lambda t: topi.triu(t, k), X), np.triu(X, k))
    diagonal = np.array(k, "int64")
    np.testing.assert_array_equal(
        evaluate(lambda t, d: topi.trilu(t, d, True), X, diagonal), np.triu(X, k)
    )


@pytest.mark.parametrize("k", [-3, -1, 0, 2, 4])
def test_matrix_set_diag_replaces_one_diagonal(k):
    length = min(4 + min(k, 0), 5 - max(k, 0))
    diagonal = random_array(RNG, 2, length)
    expected = X.copy()
    for n in range(length):
        expected[:, n - min(k, 0), n + max(k, 0)] = diagonal[:, n]
    out = evaluate(lambda t, d: topi.matrix_set_diag(t, d, k), X, diagonal)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [(-1, 2), (-3, -2), (1, 4), (0, 0)])
def test_matrix_set_diag_aligns_the_diagonals_of_a_band(k, align):
    lengths = {d: min(4 + min(d, 0), 5 - max(d, 0)) for d in range(k[0], k[1] + 1)}
    longest = max(lengths.values())
    diagonal = random_array(RNG, 2, len(lengths), longest)
    above, below = align.split("_")
    expected = X.copy()
    for d, length in lengths.items():
        right = (d >= 0 and above == "RIGHT") or (d <= 0 and below == "RIGHT")
        shift = longest - length if right else 0
        for n in range(length):
            expected[:, n - min(d, 0), n + max(d, 0)] = diagonal[:, k[1] - d, n + shift]
    out = evaluate(lambda t, d: topi.matrix_set_diag(t, d, k, align), X, diagonal)
    np.testing.assert_array_equal(out, expected)


@given(sizes=st.tuples(*[st.integers(1, 6)] * 4), flags=st.tuples(st.booleans(), st.booleans()))
@settings(max_examples=10, deadline=None)
def test_matrix_products_equal_numpy(sizes, flags):
    batch, m, k, n = sizes
    a, b = random_array(RNG, batch, m, k), random_array(RNG, 1, k, n)
    expected = a @ b
    a = np.ascontiguousarray(a.swapaxes(1, 2)) if flags[0] else a
    b = np.ascontiguousarray(b.swapaxes(1, 2)) if flags[1] else b
    options = dict(zip(("transpose_a", "transpose_b"), flags))
    out = evaluate(lambda x, y: topi.nn.batch_matmul(x, y, **options), a, b)
    np.testing.assert_allclose(out, expected, **TOLERANCE)
    bias = random_array(RNG, n)
    out = evaluate(lambda x, y, z: topi.nn.matmul(x, y, z, **options), a[0], b[0], bias)
    np.testing.assert_allclose(out, expected[0] + bias, **TOLERANCE)
    out = evaluate(lambda x, y: topi.matmul(x, y, *flags), a[0], b[0])
    np.testing.assert_allclose(out, expected[0], **TOLERANCE)


def test_dense_multiplies_with_the_transposed_weight():
    x, w, bias = random_array(RNG, 2, 3, 6), random_array(RNG, 5, 6), random_array(RNG, 5)
    out = evaluate(topi.nn.dense, x, w, bias)
    np.testing.assert_allclose(out, x @ w.T + bias, **TOLERANCE)
    half_x, half_w = x.astype("float16"), w.astype("float16")
    halves = evaluate(lambda a, b: topi.nn.dense(a, b, None, "float32"), half_x, half_w)
    assert halves.dtype == np.float32
    np.testing.assert_allclose(halves, x @ w.T, rtol=2e-2, atol=2e-2)


def test_dense_is_named_and_says_that_its_weight_has_a_free_layout():
    x, w = te.placeholder((3, 6), name="x"), te.placeholder((5, 6), name="w")
    out = topi.nn.dense(x, w)
    assert out.op.name == "T_matmul_NT"
    assert list(out.op.attrs["layout_free_placeholders"]) == [w]


def test_products_take_symbolic_sizes():
    a, b = random_array(RNG, 2, 4, 6), random_array(RNG, 2, 5, 6)
    np.testing.assert_allclose(
        evaluate(topi.nn.batch_matmul, a, b, symbolic=(2, 4, 5, 6)),
        a @ b.swapaxes(1, 2),
        **TOLERANCE,
    )
    np.testing.assert_allclose(
        evaluate(topi.nn.dense, a, b[0], symbolic=(2, 4, 6)), a @ b[0].T, **TOLERANCE
    )


@pytest.mark.parametrize("swap", [False, True])
def test_batches_that_turn_out_to_be_one_broadcast(swap):
    a, b = random_array(RNG, 2, 4, 6), random_array(RNG, 1, 4, 6)
    a, b = (b, a) if swap else (a, b)
    np.testing.assert_allclose(
        evaluate(topi.nn.batch_matmul, a, b, symbolic=(1, 2)), a @ b.swapaxes(1, 2), **TOLERANCE
    )


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
    ("ij->ji", (3, 4)),
    ("ij->", (3, 4)),
    ("ii->i", (4, 4)),
    ("ij,jk", (3, 4), (4, 5)),
    ("i,j,k->kji", (2,), (3,), (4,)),
    ("...ij,...jk->...ik", (2, 3, 4), (4, 5)),
    ("...ij,...jk", (1, 3, 4), (6, 4, 5)),
    ("bhqd,bhkd->bhqk", (1, 2, 3, 4), (1, 2, 5, 4)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda c: c[0])
def test_einsum_equals_numpy(case):
    notation, *shapes = case
    arrays = [random_array(RNG, *shape) for shape in shapes]
    out = evaluate(lambda *t: topi.einsum(notation, *t), *arrays)
    np.testing.assert_allclose(out, np.einsum(notation, *arrays), **TOLERANCE)


@pytest.mark.parametrize("axes", [0, 1, 2, ((0, 1), (2, 0)), (1, 0), ((-1,), (-2,))])
def test_tensordot_equals_numpy(axes):
    a = random_array(RNG, 3, 4, 4)
    b = random_array(RNG, 4, 4, 3)
    out = evaluate(lambda x, y: topi.tensordot(x, y, axes), a, b)
    np.testing.assert_allclose(out, np.tensordot(a, b, axes), **TOLERANCE)


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: topi.arange(0, 3, 0), "step must not be 0"),
        (lambda x: topi.arange(0.5, 3, dtype="int32"), "no whole numbers"),
        (lambda x: topi.meshgrid([x], "yx"), "'ij' or 'xy'"),
        (lambda x: topi.matrix_set_diag(x, x, 0, "TOP_LEFT"), "two of LEFT and RIGHT"),
        (lambda x: topi.matrix_set_diag(x, x, (1, 0)), "diagonals 1 to 0 do not fit"),
        (lambda x: topi.nn.matmul(x, x), "inner sizes differ, 5 and 3"),
        (lambda x: topi.nn.batch_matmul(x, x), "same rank, at least 3"),
        (lambda x: topi.einsum("ij,jk->ik", x), "2 terms for 1 operands"),
        (lambda x: topi.einsum("ijk->i", x), "does not fit an operand of 2"),
        (lambda x: topi.einsum("ij->ik", x), "repeats or invents"),
        (lambda x: topi.einsum("ij,jk->ik", x, x), "extent 5 in one operand and 3"),
        (lambda x: topi.tensordot(x, x, ((0,), (0, 1))), "do not pair up"),
    ],
)
def test_creation_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((3, 5), name="x"))
