"""One call or more of each Core ATen operator that is imported, with inputs to try it on."""

import math

import torch

_GENERATOR = torch.Generator().manual_seed(7)


def randn(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=_GENERATOR).to(dtype)


def ints(*shape, low=-9, high=9, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=_GENERATOR, dtype=dtype)


def bools(*shape):
    return torch.rand(shape, generator=_GENERATOR) < 0.5


X = randn(3, 5)
POSITIVE = randn(3, 5).abs() + 0.1
UNIT = randn(3, 5).clamp(-0.95, 0.95)
GAPS = torch.where(torch.arange(15).reshape(3, 5) % 4 == 1, math.nan, POSITIVE - 0.5)
ROW = randn(5)
I, J = ints(3, 5), ints(3, 5, low=1)
B, C = bools(3, 5), bools(3, 5)
IMAGE = randn(2, 4, 7, 6)
VOLUME = randn(1, 2, 5, 4, 6)
LINE = randn(2, 4, 9)

# Group to operator to a list of arguments; keywords as a dict at the end.
UNARY = {
    **{
        f"{name}.default": [(X,)]
        for name in ("abs", "alias", "asinh", "atan", "ceil", "clone", "cos", "cosh", "erf", "exp",
                     "expm1", "floor", "neg", "relu", "round", "sigmoid", "sign", "sin", "sinh",
                     "tan", "tanh", "trunc", "hardtanh", "isinf", "isnan")
    },
    **{f"{name}.default": [(POSITIVE,)] for name in ("log", "log10", "log1p", "log2", "reciprocal",
                                                     "rsqrt", "sqrt")},
    **{f"{name}.default": [(UNIT,)] for name in ("acos", "asin", "atanh")},
    "acosh.default": [(POSITIVE + 1,)],
    "bitwise_not.default": [(I,), (B,)],
    "logical_not.default": [(B,), (I,)],
    "gelu.default": [(X,), (X, {"approximate": "tanh"})],
    "leaky_relu.default": [(X, 0.2)],
    "elu.default": [(X,), (X, 1.5, 2.0, 0.5)],
    "_to_copy.default": [(X, {"dtype": torch.float64}), (I, {"dtype": torch.float32}),
                         (X * 5, {"dtype": torch.int32}), (I, {"dtype": torch.bool}),
                         (B, {"dtype": torch.int8})],
    "clamp.default": [(X, -0.5, 0.5), (X, None, 0.3), (I, 0, None)],
    "clamp.Tensor": [(X, ROW, None), (X, -ROW.abs(), ROW.abs())],
    "pow.Tensor_Scalar": [(X, 2), (POSITIVE, 1.7), (I, 3), (POSITIVE, 0.5)],
    "pow.Scalar": [(2.0, X)],
    "pow.Tensor_Tensor": [(POSITIVE, X)],
    "native_dropout.default": [(X, 0.5, False)],
}  # fmt: skip
BINARY = {
    "add.Tensor": [(X, ROW), (X, I, {"alpha": 2}), (B, C)],
    "add.Scalar": [(X, 1.5), (I, 2)],
    "sub.Tensor": [(X, ROW, {"alpha": 0.5}), (I, J)],
    "sub.Scalar": [(X, 1.5)],
    "mul.Tensor": [(X, X), (I, X), (B, X)],
    "mul.Scalar": [(X, 3)],
    "div.Tensor": [(X, POSITIVE), (I, J)],
    "div.Scalar": [(X, 3)],
    "div.Tensor_mode": [(X, POSITIVE, {"rounding_mode": "floor"}),
                        (X * 4, POSITIVE, {"rounding_mode": "trunc"}),
                        (I, J, {"rounding_mode": "floor"}), (I, J, {"rounding_mode": "trunc"})],
    "div.Scalar_mode": [(X * 9, 2.0, {"rounding_mode": "floor"})],
    "fmod.Tensor": [(X * 5, POSITIVE), (I, J)],
    "fmod.Scalar": [(X * 5, 1.5), (I, -4)],
    "remainder.Tensor": [(X * 5, POSITIVE), (I, J)],
    "remainder.Scalar": [(X * 5, -1.5), (I, -4)],
    "maximum.default": [(X, X.flip(0)), (I, J)],
    "minimum.default": [(X, X.flip(0))],
    "fmax.default": [(GAPS, X), (X, GAPS), (GAPS, GAPS), (I, J)],
    "fmin.default": [(X, GAPS), (GAPS, X.flip(0))],
    "atan2.default": [(X, X.flip(1))],
    **{f"{name}.Tensor": [(I, J), (X, X.flip(0)), (B, C)] for name in ("eq", "ne", "lt", "le", "gt",
                                                                      "ge")},
    **{f"{name}.Scalar": [(I, 2), (X, 0.5), (I, 0.5)] for name in ("eq", "ne", "lt", "le", "gt",
                                                                  "ge")},
    **{f"logical_{name}.default": [(B, C), (I, B)] for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Tensor": [(I, J), (B, C)] for name in ("and", "or", "xor")},
    **{f"bitwise_{name}.Scalar": [(I, 5)] for name in ("and", "or", "xor")},
    "where.self": [(B, X, ROW), (B, I, J)],
}  # fmt: skip
REDUCTION = {
    "amax.default": [(X, [1]), (IMAGE, [1, 3], True)],
    "amin.default": [(X, [0], True), (I, [1])],
    "any.default": [(B,)],
    "any.dim": [(B, 1), (I, 0, True)],
    "any.dims": [(bools(2, 3, 4), [0, 2])],
    "argmax.default": [(X,), (X, 1), (I, 0, True)],
    "argmin.default": [(X, 1)],
    "max.dim": [(X, 1), (I, 0, True)],
    "min.dim": [(X, -1)],
    "mean.default": [(X,)],
    "mean.dim": [(IMAGE, [2, 3]), (X, [1], True)],
    "sum.dim_IntList": [(X, [1]), (I, [0]), (B, [1]), (X, [])],
    "prod.default": [(X,)],
    "prod.dim_int": [(X, 1), (J, 0)],
    "var.dim": [(X, [1]), (X, [0], False)],
    "var.correction": [(X, [1], {"correction": 2}), (X,)],
    "_softmax.default": [(X, 1, False), (IMAGE, 1, False)],
    "_log_softmax.default": [(X, 0, False)],
    "cumsum.default": [(X, 1), (I, 0)],
    "_cdist_forward.default": [(randn(2, 3, 4), randn(2, 5, 4), p, None) for p in
                               (2.0, 1.0, 0.0, math.inf, 3.0)]
                              + [(randn(2, 30, 4), randn(2, 5, 4), 2.0, mode) for mode in (0, 2)]
                              + [(randn(7, 4), randn(9, 4), 2.0, 1)],
    "_pdist_forward.default": [(randn(4, 3), 2.0)],
}  # fmt: skip
_INDEX = ints(2, 3, low=0, high=5)
SELECTION = {
    "embedding.default": [(randn(6, 4), _INDEX)],
    "_embedding_bag.default": [
        (randn(6, 4), ints(7, low=0, high=6), torch.tensor([0, 2, 2, 5]), False, mode)
        for mode in (0, 1, 2)
    ],
    "gather.default": [(X, 1, ints(3, 2, low=0, high=5)), (X, 0, ints(2, 5, low=0, high=3))],
    "index.Tensor": [
        (X, [torch.tensor([0, -1])]),
        (X, [None, torch.tensor([1, 1, -2])]),
        (IMAGE, [None, ints(2, 1, low=0, high=4), ints(3, low=-7, high=7)]),
        (IMAGE, [ints(2, low=0, high=2), None, ints(2, low=0, high=7)]),
    ],
    "index_put.default": [
        (X, [torch.tensor([0, 2])], randn(2, 5)),
        (X, [None, torch.tensor([1, 1])], randn(3, 1), True),
        (IMAGE, [None, torch.tensor([0, 3]), torch.tensor([1, 2])], randn(6), True),
        (IMAGE, [torch.tensor([0, 1]), None, torch.tensor([5, 2])], randn(2, 4, 6)),
        (X, [B], torch.tensor(7.0)),
    ],
    "index_select.default": [(X, 1, torch.tensor([4, 0, 0]))],
    "masked_scatter.default": [(X, B, randn(3, 5)), (X, bools(5), randn(15))],
    "scatter.src": [(X, 1, ints(3, 2, low=0, high=5).sort(1)[0].add(torch.tensor([0, 1])) % 5,
                     randn(3, 4))],
    "scatter.value": [(X, 0, ints(1, 5, low=0, high=3), 2.5)],
    "scatter_add.default": [(X, 1, ints(3, 4, low=0, high=5), randn(3, 4))],
    "scatter_reduce.two": [
        (X, 1, ints(3, 4, low=0, high=5), randn(3, 4), how) for how in
        ("sum", "prod", "amax", "amin", "mean")
    ],
    "select.int": [(X, 1, -2), (IMAGE, 2, 3)],
    "select_scatter.default": [(X, ROW, 0, -1)],
    "slice.Tensor": [(X, 1, 1, 4), (IMAGE, 2, None, -1, 3), (X, 0, 2, 1), (X, 1, -3, 2**62)],
    "slice_scatter.default": [(X, randn(3, 2), 1, 1, 5, 2)],
    "sort.default": [(X, 1), (I, 0, True)],
    "topk.default": [(X, 2), (X, 3, 0, False)],
    "flip.default": [(X, [0, 1]), (IMAGE, [2])],
    "diagonal.default": [(X,), (IMAGE, 1, 2, 3), (X, -1)],
}  # fmt: skip
SHAPE = {
    "as_strided.default": [(X, [2, 3], [5, 1], 4), (X, [3, 2, 2], [5, 2, 1]),
                           (X.T, [2, 3, 2], [5, 3, 1], 1)],
    "cat.default": [([X, X * 2], 1), ([X, I], 0), ([torch.empty(0), X], 0)],
    "constant_pad_nd.default": [(X, [1, 2], 0.5), (IMAGE, [1, -1, 0, 2]), (I, [1, 1, 1, 0], 3),
                                (B, [1, 1])],
    "copy.default": [(X, ROW), (X, I)],
    "expand.default": [(ROW, [3, -1]), (randn(3, 1), [2, 3, 4])],
    "permute.default": [(IMAGE, [0, 2, -1, 1])],
    "reflection_pad1d.default": [(LINE, [2, 3])],
    "reflection_pad2d.default": [(IMAGE, [1, 2, 3, 0])],
    "reflection_pad3d.default": [(VOLUME, [1, 1, 2, 0, 1, 2])],
    "replication_pad2d.default": [(IMAGE, [1, 2, 3, 0])],
    "replication_pad3d.default": [(VOLUME, [1, 1, 2, 0, 1, 2])],
    "repeat.default": [(X, [2, 3]), (X, [2, 1, 2])],
    "split_with_sizes.default": [(X, [1, 4], 1)],
    "squeeze.dim": [(randn(3, 1, 5), 1), (X, 1)],
    "squeeze.dims": [(randn(1, 3, 1), [0, 2])],
    "unsqueeze.default": [(X, -1)],
    "view.default": [(X, [5, -1])],
    "arange.start_step": [(2, 11, 3), (0.5, 2.0, 0.25), (5, -3, -2)],
    "full.default": [([2, 3], 1.5), ([4], 7), ([2], True)],
    "full_like.default": [(X, -2), (I, 3)],
    "fill.Scalar": [(X, 2.5)],
    "scalar_tensor.default": [(2.5,)],
}  # fmt: skip
WINDOW = {
    "convolution.default": [
        (IMAGE, randn(6, 2, 3, 2), randn(6), [2, 1], [1, 0], [1, 2], False, [0, 0], 2),
        (LINE, randn(6, 4, 3), None, [2], [1], [1], False, [0], 1),
        (VOLUME, randn(4, 2, 2, 3, 2), randn(4), [1, 2, 1], [1, 0, 1], [1, 1, 1], False, [0], 1),
        (LINE, randn(4, 3, 4), randn(3), [3], [1], [1], True, [2], 1),
        (IMAGE, randn(4, 3, 3, 2), randn(6), [2, 1], [1, 0], [1, 2], True, [1, 0], 2),
        (VOLUME, randn(2, 3, 2, 2, 3), None, [2, 1, 2], [0, 1, 1], [1, 1, 1], True, [0, 0, 1], 1),
    ],
    "avg_pool2d.default": [(IMAGE, [3, 2], [2, 1], [1, 0], True, False), (IMAGE, [2, 2]),
                           (IMAGE, [2, 2], [2, 2], [0, 0], False, True, 3),
                           (IMAGE, [40, 40], [40, 40], [0, 0], True),
                           (IMAGE, [9, 5], [9, 5], [1, 2], True, False)],
    "avg_pool3d.default": [(VOLUME, [2, 2, 3], [1, 2, 1], [1, 0, 1])],
    "avg_pool1d.default": [(LINE, [4], [2], [1])],
    "max_pool2d_with_indices.default": [(IMAGE, [3, 3], [2, 2], [1, 1], [1, 1], True),
                                        (IMAGE, [2, 3], [], [0, 1], [2, 1]),
                                        (IMAGE, [9, 9], [9, 9], [1, 1], [2, 1], True)],
    "max_pool3d_with_indices.default": [(VOLUME, [2, 2, 2], [2, 1, 1], [1, 0, 0])],
    "adaptive_avg_pool1d.default": [(LINE, [4])],
    "_adaptive_avg_pool2d.default": [(IMAGE, [3, 4]), (IMAGE, [1, 1])],
    "_adaptive_avg_pool3d.default": [(VOLUME, [2, 2, 3])],
    "affine_grid_generator.default": [
        (randn(2, 2, 3), [2, 5, 4, 6], False), (randn(1, 2, 3), [1, 1, 1, 3], True),
        (randn(2, 3, 4), [2, 1, 3, 2, 4], True)],
    "col2im.default": [(randn(2, 12, 6), [4, 9], [2, 3], [1, 1], [0, 0], [2, 3]),
                       (randn(2, 12, 12), [5, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
                       (randn(2, 12, 9), [6, 5], [3, 2], [1, 2], [1, 0], [2, 1])],
    "grid_sampler_2d.default": [(IMAGE, randn(2, 3, 4, 2) * 0.6, mode, padding, corners)
                                for mode, padding, corners in ((0, 0, False), (1, 1, True),
                                                               (2, 2, False), (0, 2, True))],
    "upsample_bilinear2d.vec": [(IMAGE, [9, 11], False, None), (IMAGE, None, True, [2.0, 1.5]),
                                (IMAGE, None, False, [1.3, 1.7])],
    "upsample_nearest2d.vec": [(IMAGE, [9, 5], None), (IMAGE, None, [2.0, 3.0])],
}  # fmt: skip
LINEAR = {
    "addmm.default": [(randn(4), randn(3, 5), randn(5, 4)),
                      (randn(3, 4), randn(3, 5), randn(5, 4), {"beta": 0.5, "alpha": 2})],
    "bmm.default": [(randn(2, 3, 4), randn(2, 4, 5))],
    "mm.default": [(randn(3, 4), randn(4, 5))],
    "native_layer_norm.default": [(IMAGE, [7, 6], randn(7, 6), randn(7, 6), 1e-5),
                                  (X, [5], None, None, 1e-3)],
    "native_group_norm.default": [(IMAGE, randn(4), randn(4), 2, 4, 42, 2, 1e-5),
                                  (LINE, None, None, 2, 4, 9, 4, 1e-5)],
    "_native_batch_norm_legit_no_training.default": [
        (IMAGE, randn(4), randn(4), randn(4), randn(4).abs() + 0.5, 0.1, 1e-5)
    ],
    "_native_batch_norm_legit.no_stats": [(IMAGE, randn(4), None, True, 0.1, 1e-5)],
}  # fmt: skip

# Operators of which only the first result is imported.
FIRST_RESULT = {"_embedding_bag.default", "native_group_norm.default", "native_dropout.default",
                "_native_batch_norm_legit_no_training.default",
                "_native_batch_norm_legit.no_stats"}  # fmt: skip

GROUPS = {
    "unary": UNARY,
    "binary": BINARY,
    "reduction": REDUCTION,
    "selection": SELECTION,
    "shape": SHAPE,
    "window": WINDOW,
    "linear": LINEAR,
}
