"""Normalisations, softmax and losses against PyTorch."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from testing_topi import evaluate, random_array
from tvm import te, topi

RNG = np.random.default_rng(0)
X = random_array(RNG, 3, 6, 5, 4) * 2 + 1
T = torch.from_numpy(X)
GAMMA, BETA = random_array(RNG, 6), random_array(RNG, 6)
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def tensors(*arrays):
    """PyTorch's view of the arrays."""
    return [torch.from_numpy(a) for a in arrays]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_equals_torch(name, axis):
    fn = getattr(topi.nn, name)
    expected = getattr(F, name)(T, axis).numpy()
    np.testing.assert_allclose(evaluate(lambda x: fn(x, axis), X), expected, **TOLERANCE)
    out = evaluate(lambda x: fn(x, axis), X, symbolic=(3, 6, 4))
    np.testing.assert_allclose(out, expected, **TOLERANCE)


@pytest.mark.parametrize("axis", [1, -1])
def test_bias_add_and_scale_shift_work_along_channels(axis):
    x = X if axis == 1 else np.ascontiguousarray(X.transpose(0, 2, 3, 1))
    shape = (1, 6, 1, 1) if axis == 1 else (6,)
    out = evaluate(lambda a, b: topi.nn.bias_add(a, b, axis), x, BETA)
    np.testing.assert_allclose(out, x + BETA.reshape(shape), **TOLERANCE)
    fn = topi.nn.scale_shift_nchw if axis == 1 else topi.nn.scale_shift_nhwc
    out = evaluate(fn, x, GAMMA, BETA)
    np.testing.assert_allclose(out, x * GAMMA.reshape(shape) + BETA.reshape(shape), **TOLERANCE)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_equals_torch(training):
    mean, var = random_array(RNG, 6), np.abs(random_array(RNG, 6)) + 0.5
    out = evaluate(lambda *a: topi.nn.batch_norm(*a, training=training), X, GAMMA, BETA, mean, var)
    t_mean, t_var, gamma, beta = tensors(mean.copy(), var.copy(), GAMMA, BETA)
    expected = F.batch_norm(T, t_mean, t_var, gamma, beta, training=training)
    for ours, theirs in zip(out, (expected, t_mean, t_var)):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-5)


def test_batch_norm_may_leave_out_scale_and_shift():
    mean, var = random_array(RNG, 6), np.abs(random_array(RNG, 6)) + 0.5
    out = evaluate(
        lambda *a: topi.nn.batch_norm(*a, center=False, scale=False)[0], X, GAMMA, BETA, mean, var
    )
    expected = F.batch_norm(T, *tensors(mean, var))
    np.testing.assert_allclose(out, expected.numpy(), **TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("count", [1, 2])
def test_layer_norm_equals_torch(count, dtype):
    shape = X.shape[-count:]
    gamma, beta = random_array(RNG, *shape, dtype=dtype), random_array(RNG, *shape, dtype=dtype)
    x = X.astype(dtype)
    axes = tuple(range(-count, 0))
    wide = [t.float() for t in tensors(x, gamma, beta)]
    expected = F.layer_norm(wide[0], shape, *wide[1:])
    tolerance = TOLERANCE if dtype == "float32" else {"rtol": 4e-3, "atol": 4e-3}
    for symbolic in ((), (3, 6)):
        out = evaluate(lambda *a: topi.nn.layer_norm(*a, axes), x, gamma, beta, symbolic=symbolic)
        assert out.dtype == dtype
        np.testing.assert_allclose(out.astype("f"), expected.numpy(), **tolerance)


def test_layer_norm_may_be_over_a_dimension_in_the_middle():
    expected = F.layer_norm(T.transpose(1, 3), (6,), *tensors(GAMMA, BETA)).transpose(1, 3)
    out = evaluate(lambda *a: topi.nn.layer_norm(*a, 1), X, GAMMA, BETA)
    np.testing.assert_allclose(out, expected.numpy(), **TOLERANCE)


def test_normalisation_keeps_digits_where_the_mean_is_large():
    x = (random_array(RNG, 2, 64) + 3000).astype("float32")
    ones, zeros = np.ones(64, "float32"), np.zeros(64, "float32")
    out = evaluate(topi.nn.layer_norm, x, ones, zeros)
    wide = x.astype("float64")
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(out, expected, atol=2e-3)


def test_rms_norm_divides_by_the_root_mean_square():
    weight = random_array(RNG, 4)
    expected = X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(evaluate(topi.nn.rms_norm, X, weight), expected, **TOLERANCE)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm_equals_torch(groups):
    expected = F.group_norm(T, groups, *tensors(GAMMA, BETA)).numpy()
    out = evaluate(lambda *a: topi.nn.group_norm(*a, groups, 1, (2, 3)), X, GAMMA, BETA)
    np.testing.assert_allclose(out, expected, **TOLERANCE)
    last = np.ascontiguousarray(X.transpose(0, 2, 3, 1))
    out = evaluate(lambda *a: topi.nn.group_norm(*a, groups, -1, (1, 2)), last, GAMMA, BETA)
    np.testing.assert_allclose(out.transpose(0, 3, 1, 2), expected, **TOLERANCE)


def test_instance_norm_equals_torch():
    expected = F.instance_norm(T, None, None, *tensors(GAMMA, BETA)).numpy()
    np.testing.assert_allclose(
        evaluate(topi.nn.instance_norm, X, GAMMA, BETA), expected, **TOLERANCE
    )


@pytest.mark.parametrize("size", [3, 5])
def test_lrn_equals_torch(size):
    expected = F.local_response_norm(T, size, 0.1, 0.75, 2.0).numpy()
    out = evaluate(lambda x: topi.nn.lrn(x, size, 1, 0.1, 0.75, 2.0), X)
    np.testing.assert_allclose(out, expected, **TOLERANCE)


@pytest.mark.parametrize("axis", [None, 1, (1, 3)])
def test_l2_normalize_divides_by_the_length(axis):
    length = np.sqrt((X**2).sum(axis=axis, keepdims=True))
    out = evaluate(lambda x: topi.nn.l2_normalize(x, 1e-12, axis), X)
    np.testing.assert_allclose(out, X / length, **TOLERANCE)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_nll_loss_equals_torch(reduction):
    logits = F.log_softmax(T, 1).numpy()
    targets = RNG.integers(0, 6, (3, 5, 4)).astype("int64")
    targets[0, 0] = -100
    weights = np.abs(random_array(RNG, 6))
    expected = F.nll_loss(*tensors(logits, targets, weights), reduction=reduction).numpy()
    out = evaluate(lambda *a: topi.nn.nll_loss(*a, reduction), logits, targets, weights)
    np.testing.assert_allclose(out, expected, **TOLERANCE)


def test_cross_entropy_is_the_mean_over_the_batch():
    logits, targets = F.softmax(T[:, :, 0, 0], 1), F.softmax(T[:, :, 1, 1], 1)
    expected = F.cross_entropy(T[:, :, 0, 0], targets).numpy()
    out = evaluate(topi.nn.cross_entropy, logits.numpy(), targets.numpy())
    np.testing.assert_allclose(out, expected, **TOLERANCE)
    out = evaluate(topi.nn.cross_entropy_with_logits, logits.log().numpy(), targets.numpy())
    np.testing.assert_allclose(out, expected, **TOLERANCE)


def test_embedding_looks_rows_up():
    weight, indices = random_array(RNG, 7, 3), RNG.integers(0, 7, (2, 4)).astype("int64")
    np.testing.assert_array_equal(evaluate(topi.nn.embedding, weight, indices), weight[indices])


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x, v: topi.nn.group_norm(x, v, v, 4, 1, (2,)), "4 groups do not divide 6"),
        (lambda x, v: topi.nn.lrn(x, 4), "size must be odd, got 4"),
        (lambda x, v: topi.nn.nll_loss(x, x, v, "max"), "'none', 'sum' or 'mean', got 'max'"),
    ],
)
def test_normalisation_refuses_arguments_that_do_not_fit(fn, message):
    with pytest.raises(ValueError, match=message):
        fn(te.placeholder((2, 6, 4), name="x"), te.placeholder((6,), name="v"))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_attention_equals_torch(with_bias, causal):
    q, k, v = (random_array(RNG, 2, n, 3, d) for n, d in ((5, 8), (7, 8), (7, 4)))
    bias = random_array(RNG, 1, 3, 5, 7)
    mask = torch.from_numpy(bias) if with_bias else torch.zeros(5, 7)
    if causal:
        mask = mask.masked_fill(~torch.ones(5, 7, dtype=torch.bool).tril(), float("-inf"))
    heads = [t.transpose(1, 2) for t in tensors(q, k, v)]
    expected = F.scaled_dot_product_attention(*heads, mask).transpose(1, 2).numpy()
    arrays = [q, k, v, bias] if with_bias else [q, k, v]
    out = evaluate(lambda *t: topi.nn.attention(*t, causal=causal), *arrays)
    np.testing.assert_allclose(out, expected, **TOLERANCE)
