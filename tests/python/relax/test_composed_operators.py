"""Operators that are made of others, against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import relax
from tvm.relax import op


def _run(make, *arrays):
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{k}", relax.TensorStructInfo(a.shape, str(a.dtype)))
        for k, a in enumerate(arrays)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(*params))
        builder.emit_func_output(out)
    executable = relax.build(builder.get(), "llvm")
    result = relax.VirtualMachine(executable, tvm.cpu())["main"](*map(tvm.nd.array, arrays))
    if isinstance(result, tvm.nd.NDArray):
        return result.numpy()
    return [part.numpy() for part in result]


def _normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


X, Y = _normal(2, 3, 5), _normal(2, 3, 5) * 20
PICKS = np.array([[0, 2], [1, -1], [0, 0]], "int64")
SPREAD = np.array([-np.inf, -200, -1, 0, 1, 200, np.inf], "float32")

CASES = {
    "stack": (lambda a, b: op.stack([a, b], -2), np.stack([X, Y], -2),
              X, Y),
    "outer": (op.outer, np.outer(X[0, 0], Y[1, 1]), X[0, 0], Y[1, 1]),
    "eye": (lambda _: op.eye(3, 4, 1, "int32"), np.eye(3, 4, 1, "int32"), X),
    "eye_like": (lambda a: op.eye_like(a, -1), np.eye(3, 5, -1, "float32"), X[0]),
    "one_hot": (lambda i: op.one_hot(i, 2.0, -1.0, 3, 0),
                np.where(np.arange(3)[:, None] == np.array([2, 0, 5]), 2.0, -1.0),
                np.array([2, 0, 5], "int32")),
    "index_tensor": (lambda a, i: op.index_tensor(a, [i, i]), X[[0, 1, -1], [0, 1, -1]], X,
                     np.array([0, 1, -1], "int64")),
    "gather_nd": (op.gather_nd, X[PICKS[:, 0], PICKS[:, 1]], X, PICKS),
    "scatter_nd": (lambda a, i, u: op.scatter_nd(a, i, u, "add"),
                   torch.tensor(X).index_put(tuple(torch.tensor(PICKS % 3 % [2, 3]).T),
                                             torch.tensor(Y[0]), accumulate=True),
                   X, PICKS % 3 % [2, 3], Y[0]),
    "slice_scatter": (lambda a, s: op.slice_scatter(a, s, 1, 5, 2, -1),
                      torch.slice_scatter(torch.tensor(X), torch.tensor(Y[:, :, :2]), 2, 1, 5, 2),
                      X, Y[:, :, :2]),
    "bucketize": (lambda a, b: op.bucketize(a, b, True, True),
                  torch.bucketize(torch.tensor(X), torch.tensor([-1.0, 0, 1]), right=True),
                  X, np.array([-1, 0, 1], "float32")),
    "atan2": (op.atan2, np.arctan2(X, Y), X, Y),
    "log_add_exp": (op.log_add_exp, np.logaddexp(SPREAD[:, None], SPREAD), SPREAD[:, None], SPREAD),
    "selu": (op.nn.selu, F.selu(torch.tensor(Y)), Y),
    "softplus": (lambda a: op.nn.softplus(a, 0.5, 8.0), F.softplus(torch.tensor(Y * 9), 0.5, 8.0),
                 Y * 9),
    "prelu": (lambda a, s: op.nn.prelu(a, s, 1), F.prelu(torch.tensor(X), torch.tensor(Y[0, :, 0])),
              X, Y[0, :, 0]),
    "pixel_shuffle": (lambda a: op.nn.pixel_shuffle(a, 2),
                      F.pixel_shuffle(torch.tensor(_normal(2, 8, 3, 5)), 2), _normal(2, 8, 3, 5)),
    "batch_flatten": (op.nn.batch_flatten, X.reshape(2, 15), X),
    "instance_norm": (lambda a, g, b: op.nn.instance_norm(a, g, b, 1, [2]),
                      F.instance_norm(torch.tensor(X), weight=torch.tensor(Y[0, :, 0]),
                                      bias=torch.tensor(Y[0, :, 1])),
                      X, Y[0, :, 0], Y[0, :, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_pytorch_does(name):
    make, expected, *arrays = CASES[name]
    result = _run(make, *(np.ascontiguousarray(a) for a in arrays))
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_a_grid_has_the_coordinates_of_numpy(indexing):
    vectors = [_normal(3), _normal(4), _normal(2)]
    grids = _run(lambda *v: op.meshgrid(v, indexing), *vectors)
    for grid, expected in zip(grids, np.meshgrid(*vectors, indexing=indexing), strict=True):
        np.testing.assert_array_equal(grid, expected)


def test_what_does_not_fit_is_refused():
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
    with pytest.raises(ValueError, match="takes vectors"):
        op.outer(x, x)
    with pytest.raises(ValueError, match="no multiple of 2 \\* 2"):
        op.nn.pixel_shuffle(x, 2)
    with pytest.raises(IndexError, match="out of range for 4"):
        op.stack([x, x], 4)
    with pytest.raises(ValueError, match="'ij' or 'xy'"):
        op.meshgrid([x], "ji")


@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_extremes_of_two_hand_nan_on(name, dtype):
    x, y = _normal(5, 37).astype(dtype), _normal(37).astype(dtype)
    x[0, 1], x[2, 36], x[1, 0], y[5] = np.nan, np.nan, np.inf, np.nan
    result = _run(getattr(op, name), x, y)
    np.testing.assert_array_equal(result, getattr(np, name)(x, y))
