"""Calls of the operators beside Core ATen that are imported: what programs have before PyTorch
takes them apart, and what its own tools write."""

import math

import torch

from testing_torch_operators import (
    IMAGE,
    LINE,
    POSITIVE,
    ROW,
    VOLUME,
    B,
    C,
    I,
    J,
    X,
    bools,
    ints,
    randn,
)

SMALL = ints(3, 5, low=0, high=5)
BATCH = randn(2, 3, 4)
WITH_NAN = torch.where(bools(3, 5), X, math.nan)
DISTINCT = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(n))
                        for n in range(4)])  # fmt: skip
BYTES = ints(2, 3, 7, 6, low=0, high=256, dtype=torch.uint8)
SORTED = torch.tensor([-1.0, -0.3, 0.2, 0.9])
COMPLETE = {"dtype": torch.float32}

POINTWISE = {
    **{
        f"__{name}__.{overload}": [(I, J if overload == "Tensor" else 5)]
        for name in ("and", "or", "xor") for overload in ("Tensor", "Scalar")
    },
    **{
        f"__{name}shift__.{overload}": [(SMALL + 9, SMALL if overload == "Tensor" else 2)]
        for name in ("l", "r") for overload in ("Tensor", "Scalar")
    },
    **{
        f"bitwise_{name}_shift.{overload}": [arguments]
        for name in ("left", "right")
        for overload, arguments in (("Tensor", (SMALL, SMALL)), ("Tensor_Scalar", (I + 9, 2)),
                                    ("Scalar_Tensor", (5, SMALL)))
    },
    **{
        f"{name}.default": [(X * 4,)]
        for name in ("hardsigmoid", "hardswish", "mish", "relu6", "selu", "silu", "softplus",
                     "square", "isfinite", "contiguous", "detach", "log_sigmoid", "numpy_T",
                     "lift_fresh_copy", "mT")
    },
    "_prelu_kernel.default": [(X, ROW)],
    "prelu.default": [(X, ROW), (IMAGE, randn(4)), (IMAGE, randn(1))],
    "softplus.default": [(X * 9,), (X * 9, 2.0, 3.0)],
    "glu.default": [(IMAGE, 1), (X.repeat(1, 2),)],
    "atan2.default": [(X, ROW)],
    "copysign.Scalar": [(X, -0.0)],
    "copysign.Tensor": [(X, -ROW)],
    "exp2.default": [(X,)],
    "hypot.default": [(X, ROW)],
    "nextafter.default": [(X, ROW)],
    "signbit.default": [(X,), (I - 5,)],
    "special_exp2.default": [(X,)],
    "clamp_max.default": [(X, 0.2), (I, 3)],
    "clamp_max.Tensor": [(X, ROW)],
    "clamp_min.default": [(X, 0.2), (I, 3)],
    "clamp_min.Tensor": [(X, ROW)],
    "max.other": [(X, ROW), (I, J)],
    "min.other": [(X, ROW), (I, J)],
    "floor_divide.default": [(I, J), (X, POSITIVE), (I, -J)],
    "fmod.Tensor": [(X, POSITIVE), (I, J)],
    "fmod.Scalar": [(X, 0.7), (I, 3)],
    "remainder.Tensor": [(X, POSITIVE), (I, -J)],
    "remainder.Scalar": [(X, -0.7), (I, 3)],
    "remainder.Scalar_Tensor": [(2.5, X), (7, J)],
    "true_divide.Tensor": [(X, POSITIVE), (I, J)],
    "rsub.Scalar": [(X, 2.5), (I, 3, 2)],
    "rsub.Tensor": [(X, ROW, {"alpha": 3})],
    "addcdiv.default": [(X, ROW, POSITIVE, {"value": 0.5})],
    "addcmul.default": [(X, ROW, POSITIVE, {"value": -2})],
    "lerp.Scalar": [(X, POSITIVE, 0.3)],
    "lerp.Tensor": [(X, POSITIVE, ROW)],
    "masked_fill.Scalar": [(X, B, -1.5), (X, B[0], 2)],
    "masked_fill.Tensor": [(X, B, torch.tensor(3.0))],
    "where.Scalar": [(B, 1.5, 2.5)],
    "where.ScalarOther": [(B, X, 0.5)],
    "where.ScalarSelf": [(B, 0.5, X)],
    "type_as.default": [(X * 5, I), (I, X)],
    "to.dtype": [(X * 5, torch.int32), (I, torch.float32)],
    "to.other": [(X * 5, I)],
    "to.device": [(X, torch.device("cpu"), torch.float64)],
    "to.dtype_layout": [(I, COMPLETE)],
    "view.dtype": [(X, torch.float32)],
    "fill.Tensor": [(X, torch.tensor(2.0))],
    "dropout.default": [(X, 0.5, False)],
    "alpha_dropout.default": [(X, 0.5, False)],
    "feature_alpha_dropout.default": [(IMAGE, 0.5, False)],
    "feature_dropout.default": [(X, 0.5, False)],
    "bucketize.Tensor": [(X, SORTED), (X, SORTED, {"right": True})],
    "searchsorted.Tensor": [(SORTED, X), (SORTED, X, {"right": True, "out_int32": True}),
                            (SORTED.flip(0), X, {"sorter": torch.tensor([3, 2, 1, 0])})],
    "one_hot.default": [(SMALL, 6)],
}  # fmt: skip
CREATED = {
    "arange.default": [(7,)],
    "arange.start": [(2, 9)],
    "linspace.default": [(-1.0, 2.0, 7)],
    "eye.default": [(4,)],
    "eye.m": [(3, 5)],
    "ones.default": [([2, 3],)],
    "zeros.default": [([2, 3], {"dtype": torch.int64})],
    "ones_like.default": [(X,)],
    "zeros_like.default": [(I,), (X, {"dtype": torch.int32})],
    "new_full.default": [(X, [2, 2], 1.5)],
    "new_ones.default": [(I, [2, 2])],
    "new_zeros.default": [(X, [2, 2], {"dtype": torch.int32})],
    "tril_indices.default": [(4, 5, 1)],
    "triu_indices.default": [(4, 5, -1)],
    "zero.default": [(X,)],
}  # fmt: skip
SUMMARIES = {
    "histc.default": [(X, 5, -2.0, 2.0), (ints(40, low=0, high=4).float(), 4, 0, 3), (X, 5),
                      (torch.ones(7), 4)],
    "median.default": [(X,), (WITH_NAN,), (I,)],
    "median.dim": [(X, 1), (WITH_NAN, 0, True), (DISTINCT, 1)],
    "nanmedian.default": [(WITH_NAN,), (I,)],
    "nanmedian.dim": [(WITH_NAN, 0), (DISTINCT, 1, True)],
    "kthvalue.default": [(X, 2), (X, 3, 0, True), (DISTINCT, 4, 1)],
    "mode.default": [(DISTINCT, 1), (X, 0, True)],
    "cummax.default": [(X, 1), (I, 0), (WITH_NAN, 0)],
    "cummin.default": [(X, 0), (I, 1), (WITH_NAN, 1)],
    "logcumsumexp.default": [(X, 1), (torch.tensor([-math.inf, -math.inf, 90, -3, 91]), 0)],
    **{f"{name}.{overload}": [arguments] for name in ("std", "var")
       for overload, arguments in (
           ("default", (X,)), ("dim", (IMAGE, [1, 2], False)),
           ("correction", (IMAGE, [1], {"correction": 0, "keepdim": True})))},
    "var_mean.default": [(X,)],
    "var_mean.dim": [(IMAGE, [2], False, True)],
    "var_mean.correction": [(IMAGE, [1, 3], {"correction": 1})],
    "sum.default": [(X,), (I,), (B,)],
    "_is_all_true.default": [(B,)],
    "_is_any_true.default": [(B,)],
    "all.default": [(B,)],
    "all.dim": [(B, 1)],
    "all.dims": [(B, [0, 1])],
    "max.default": [(X,), (I,)],
    "min.default": [(X,), (I,)],
    "logsumexp.default": [(X * 9, [1]), (IMAGE, [1, 2], True)],
    "linalg_vector_norm.default": [(X,), (IMAGE, 1, [1]), (X, float("inf"), [0], True), (X, 3.5)],
    "norm.Scalar": [(X,), (X, 1)],
    "norm.ScalarOpt_dim": [(IMAGE, 2, [1]), (X, None, [0], True)],
    "cosine_similarity.default": [(X, POSITIVE), (IMAGE, IMAGE + 1, 2)],
    "cdist.default": [(X, randn(4, 5)), (BATCH, BATCH + 1, 1.0)],
    "pdist.default": [(X,), (X, 1.0)],
    "softmax.int": [(X * 9, 0), (I, 1, torch.float32)],
    "special_softmax.default": [(X, 1)],
    "log_softmax.int": [(X * 9, -1)],
    "_safe_softmax.default": [(X.masked_fill(torch.arange(3)[:, None] == 1, float("-inf")), 1)],
    "cumprod.default": [(X, 1), (IMAGE, 2)],
    "argsort.default": [(X,), (X, 0, True)],
    "argsort.stable": [(X, {"stable": True, "dim": 0})],
    "sort.stable": [(X, {"stable": True, "dim": 0, "descending": True})],
}  # fmt: skip
REARRANGED = {
    "diagonal_scatter.default": [
        (X, randn(3)), (X, randn(2), -1), (X, randn(2), 3), (X, randn(0), 9),
        (IMAGE, randn(*IMAGE.diagonal(1, -1, 1).shape), 1, -1, 1),
    ],
    "as_strided_scatter.default": [(X, randn(2, 3), [2, 3], [5, 2], 1), (X, randn(3), [3], [6])],
    "_unsafe_view.default": [(X, [5, 3])],
    "reshape.default": [(X, [15]), (IMAGE, [2, -1, 3])],
    "reshape_as.default": [(X, randn(5, 3))],
    "view_as.default": [(X, randn(5, 3))],
    "broadcast_to.default": [(ROW, [3, 5])],
    "expand_as.default": [(ROW, X)],
    "flatten.using_ints": [(IMAGE, 1, 2), (IMAGE,)],
    "unflatten.int": [(IMAGE, 1, [2, 2])],
    "squeeze.default": [(randn(1, 3, 1),)],
    "t.default": [(X,), (ROW,)],
    "transpose.int": [(IMAGE, 1, -1)],
    "swapaxes.default": [(IMAGE, 0, 2)],
    "movedim.int": [(IMAGE, 1, 3)],
    "movedim.intlist": [(IMAGE, [0, 1], [3, 0])],
    "chunk.default": [(IMAGE, 3, 2)],
    "unsafe_chunk.default": [(X, 2, 1)],
    "split.Tensor": [(IMAGE, 3, 2)],
    "split.sizes": [(X, [2, 3], 1)],
    "unsafe_split.Tensor": [(X, 2, 1)],
    "tensor_split.indices": [(X, [1, 3], 1)],
    "tensor_split.sections": [(IMAGE, 3, 2)],
    "unbind.int": [(BATCH, 1)],
    "narrow.default": [(IMAGE, 2, 1, 4)],
    "stack.default": [([X, X + 1], 1)],
    "concat.default": [([X, POSITIVE], 1)],
    "tile.default": [(X, [2, 1, 2])],
    "repeat_interleave.self_int": [(X, 2, 1), (X, 3)],
    "roll.default": [(IMAGE, [1, -2], [1, 3]), (X, [4])],
    "tril.default": [(X, 1), (BATCH, -1)],
    "triu.default": [(X,), (BATCH, 1)],
    "unfold.default": [(LINE, 2, 4, 2), (IMAGE, 1, 2, 1)],
    "pad.default": [(IMAGE, [1, 2, 0, 1], "reflect"), (LINE, [1, 1], "constant", 2.0),
                    (IMAGE, [1, 2, 0, 1], "replicate"), (IMAGE, [1, 2, 0, 1], "circular")],
    "replication_pad1d.default": [(LINE, [2, 3])],
    "pixel_shuffle.default": [(IMAGE, 2)],
    "pixel_unshuffle.default": [(randn(1, 2, 4, 6), 2)],
    "index_add.default": [(X, 0, ints(4, low=0, high=3), randn(4, 5)),
                          (X, 1, ints(2, low=0, high=5), randn(3, 2), {"alpha": 2})],
    "index_reduce.default": [(X, 0, ints(4, low=0, high=3), randn(4, 5), "prod"),
                             (X, 0, ints(4, low=0, high=3), randn(4, 5), "amax",
                              {"include_self": False})],
    "index_copy.default": [(X, 0, torch.tensor([2, 0]), randn(2, 5))],
    "_unsafe_index_put.default": [(X, [torch.tensor([2, 0])], randn(2, 5)),
                                  (X, [torch.tensor([2, 2])], randn(2, 5), True)],
    "scatter.reduce": [(X, 1, ints(3, 2, low=0, high=5), randn(3, 2), {"reduce": "add"})],
    "scatter.value_reduce": [(X, 1, torch.tensor([[1], [0], [4]]), 2.0, {"reduce": "multiply"})],
    "take_along_dim.default": [(X, ints(3, 2, low=0, high=5), 1)],
}  # fmt: skip
IMAGES = {
    "conv1d.default": [(LINE, randn(6, 4, 3), randn(6), [2], [1]),
                       (LINE, randn(4, 1, 3), None, [1], [2], [2], 4),
                       (randn(4, 9), randn(2, 4, 1))],
    "conv1d.padding": [(LINE, randn(6, 4, 4), None, [1], "same")],
    "conv2d.default": [(IMAGE, randn(6, 4, 3, 2), randn(6), [2, 1], [1, 0])],
    "conv2d.padding": [(IMAGE, randn(6, 4, 2, 3), None, [1, 1], "same")],
    "conv3d.default": [(VOLUME, randn(3, 2, 2, 3, 1), randn(3), [1, 2, 1], [1, 0, 1])],
    "conv3d.padding": [(VOLUME, randn(3, 2, 2, 3, 1), None, [1, 1, 1], "valid")],
    "_convolution.default": [(IMAGE, randn(6, 4, 3, 3), None, [1, 1], [1, 1], [1, 1], False,
                              [0, 0], 1, False, False, True, True)],
    "conv_transpose1d.default": [(LINE, randn(4, 3, 3), randn(6), [2], [1], [1], 2)],
    "conv_transpose2d.input": [(IMAGE, randn(4, 3, 3, 2), randn(3), [2, 3], [1, 0], [1, 2])],
    "conv_transpose3d.input": [(VOLUME, randn(2, 3, 2, 2, 3), None, [1, 2, 1])],
    "adaptive_avg_pool2d.default": [(IMAGE, [3, 4])],
    "adaptive_avg_pool3d.default": [(VOLUME, [2, 3, 2])],
    "adaptive_max_pool1d.default": [(LINE, [4])],
    "adaptive_max_pool2d.default": [(IMAGE, [3, 4])],
    "adaptive_max_pool3d.default": [(VOLUME, [2, 3, 2])],
    "max_pool1d.default": [(LINE, [3], [2], [1])],
    "max_pool1d_with_indices.default": [(LINE, [3], [2], [1])],
    "max_pool2d.default": [(IMAGE, [3, 2], [2, 1], [1, 0], [1, 2])],
    "max_pool3d.default": [(VOLUME, [2, 2, 2], [2, 1, 1], [1, 0, 0])],
    "grid_sampler.default": [(IMAGE, randn(2, 3, 4, 2) * 0.6, 0, 0, False)],
    "grid_sampler_3d.default": [(VOLUME, randn(1, 2, 3, 4, 3) * 0.6, mode, 0, True)
                                for mode in (0, 1)],
    "upsample_linear1d.default": [(LINE, [14], False)],
    "upsample_linear1d.vec": [(LINE, None, True, [2.0])],
    "upsample_bilinear2d.default": [(IMAGE, [9, 11], True)],
    "upsample_trilinear3d.default": [(VOLUME, [7, 3, 9], False)],
    "upsample_trilinear3d.vec": [(VOLUME, None, False, [2.0, 1.0, 1.5])],
    "upsample_bicubic2d.default": [(IMAGE, [9, 11], False), (IMAGE, [3, 11], True)],
    "upsample_bicubic2d.vec": [(IMAGE, None, False, [2.0, 1.5])],
    **{f"_upsample_{kind}2d_aa.{overload}": cases
       for kind in ("bilinear", "bicubic") for overload, cases in (
           ("default", [(IMAGE, [3, 4], False), (IMAGE, [9, 3], True), (BYTES, [3, 4], False),
                        (BYTES, [9, 11], False)]),
           ("vec", [(IMAGE, None, False, [0.4, 1.6]), (IMAGE, [7, 3], False, None)]))},
    "upsample_nearest1d.default": [(LINE, [14])],
    "upsample_nearest1d.vec": [(LINE, None, [2.0])],
    "upsample_nearest2d.default": [(IMAGE, [9, 5])],
    "upsample_nearest3d.default": [(VOLUME, [7, 3, 9])],
    "upsample_nearest3d.vec": [(VOLUME, None, [2.0, 1.0, 1.5])],
    **{f"_upsample_nearest_exact{rank}d.{overload}": [
           (image, [n * 2 - 1 for n in image.shape[2:]]) if overload == "default"
           else (image, None, [2.0] * rank)]
       for rank, image in ((1, LINE), (2, IMAGE), (3, VOLUME)) for overload in ("default", "vec")},
}  # fmt: skip
PRODUCTS = {
    "_trilinear.default": [
        (randn(4, 5), randn(3, 5, 6), randn(4, 6), [1, 3], [0], [1, 2], [2, 3]),
    ],
    "_grouped_mm.default": [
        (randn(9, 16), randn(3, 16, 24), torch.tensor([2, 2, 9], dtype=torch.int32)),
    ],
    "linear.default": [(X, randn(4, 5), randn(4)), (IMAGE, randn(3, 6)), (ROW, randn(3, 5))],
    "matmul.default": [(X, randn(5, 2)), (IMAGE, randn(6, 3)), (ROW, randn(5)), (X, ROW),
                       (ROW[:3], X), (BATCH, randn(2, 4, 2)), (IMAGE, randn(4, 6, 2))],
    "baddbmm.default": [(randn(3, 2), BATCH, randn(2, 4, 2), {"beta": 0.5, "alpha": 2})],
    "addbmm.default": [(randn(3, 2), BATCH, randn(2, 4, 2))],
    "addmv.default": [(randn(3), X, ROW, {"alpha": 2})],
    "mv.default": [(X, ROW)],
    "dot.default": [(ROW, randn(5))],
    "outer.default": [(ROW, randn(3))],
    "_int_mm.default": [(ints(3, 5, dtype=torch.int8), ints(5, 4, dtype=torch.int8))],
    "batch_norm.default": [(IMAGE, randn(4), randn(4), randn(4), POSITIVE[0, :4], False, 0.1, 1e-5,
                            False),
                           (IMAGE, randn(4), None, None, None, True, 0.0, 1e-5, False)],
    "instance_norm.default": [(IMAGE, randn(4), None, None, None, True, 0.1, 1e-5, False)],
    "group_norm.default": [(IMAGE, 2, randn(4), randn(4))],
    "layer_norm.default": [(IMAGE, [6], randn(6), None), (X, [3, 5])],
    "rms_norm.default": [(IMAGE, [6], randn(6), 1e-6), (X, [5])],
    "_fused_rms_norm.default": [(IMAGE, [6], randn(6), 1e-6)],
    "scaled_dot_product_attention.default": [
        (randn(2, 2, 3, 4), randn(2, 2, 5, 4), randn(2, 2, 5, 6)),
        (randn(2, 2, 3, 4), randn(2, 2, 5, 4), randn(2, 2, 5, 6), bools(3, 5) | (C[:, :1])),
    ],
    "embedding_bag.padding_idx": [
        (randn(6, 3), ints(7, low=0, high=6), torch.tensor([0, 2, 5]), False, 0, False, None,
         False, None)
    ],
}  # fmt: skip

# Far from singular, in an order that asks for swaps of rows.
REGULAR = (randn(2, 3, 4, 4) + 3 * torch.eye(4))[..., [2, 0, 3, 1], :]
DEFINITE = REGULAR @ REGULAR.mT + torch.eye(4)
LU, PIVOTS = torch.linalg.lu_factor(REGULAR)
RIGHT = randn(3, 4, 2)
SYSTEMS = {
    "_linalg_det.default": [(REGULAR,), (randn(1, 1),)],
    "_linalg_slogdet.default": [(REGULAR,)],
    "linalg_inv_ex.default": [(REGULAR,)],
    "inverse.default": [(REGULAR,)],
    "_linalg_solve_ex.default": [
        (REGULAR, RIGHT), (REGULAR, randn(2, 3, 4)), (REGULAR[0, 0], randn(4)),
        (REGULAR, randn(2, 3, 5, 4), {"left": False}),
    ],
    "linalg_lu_factor_ex.default": [(REGULAR,), (randn(5, 3),), (randn(3, 5),), (randn(2, 0, 0),)],
    "linalg_lu_solve.default": [(LU, PIVOTS, RIGHT)],
    "linalg_cholesky_ex.default": [(DEFINITE,), (DEFINITE, {"upper": True})],
    "linalg_solve_triangular.default": [
        (DEFINITE, right, {"upper": upper, "left": left, "unitriangular": not upper})
        for upper in (False, True) for left, right in ((True, RIGHT), (False, randn(5, 4)))
    ],
    "triangular_solve.default": [
        (RIGHT, DEFINITE, upper, transpose, not upper)
        for upper in (False, True) for transpose in (False, True)
    ],
    "cholesky_solve.default": [(RIGHT, REGULAR), (RIGHT, REGULAR, True)],
    "cholesky_inverse.default": [(REGULAR,), (REGULAR, True)],
    "_linalg_check_errors.default": [],
}  # fmt: skip

Z = torch.complex(X, randn(3, 5))
SPECTRA = {
    "complex.default": [(X, X * 2)],
    "polar.default": [(POSITIVE, X)],
    "view_as_complex.default": [(randn(3, 2),)],
    **{
        f"{name}.default": [(Z,)]
        for name in ("view_as_real", "real", "imag", "_conj", "_conj_physical", "angle")
    },
    **{
        f"{name}.default": [(Z,), (X + 0,)]
        for name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "sgn")
    },
    "_fft_r2c.default": [(X, [1], 0, True), (X, [0, 1], 1, False), (IMAGE, [1, 3], 2, True)],
    "_fft_c2c.default": [(Z, [1], 0, True), (Z, [0, 1], 2, False)],
    "_fft_c2r.default": [(Z, [1], 2, 8), (Z, [1, 0], 1, 5)],
}

STEPS = randn(2, 4, 3)  # batch, steps, inputs


def _layer(gates):
    """Weights and biases of one direction: 5 units, that many gates each."""
    return [randn(5 * gates, 3), randn(5 * gates, 5), randn(5 * gates), randn(5 * gates)]


# With biases, one layer, no dropout, no training, one direction, the batch first.
_OF_LAYER = (True, 1, 0.0, False, False, True)
RECURRENT = {
    "lstm.input": [(STEPS, [randn(1, 2, 5), randn(1, 2, 5)], _layer(4), *_OF_LAYER)],
    "gru.input": [(STEPS, randn(1, 2, 5), _layer(3), *_OF_LAYER)],
    "rnn_tanh.input": [(STEPS, randn(1, 2, 5), _layer(1), *_OF_LAYER)],
    "rnn_relu.input": [(STEPS, randn(1, 2, 5), _layer(1), *_OF_LAYER)],
}

COMPOSITE_GROUPS = {
    "pointwise": POINTWISE,
    "created": CREATED,
    "summaries": SUMMARIES,
    "rearranged": REARRANGED,
    "images": IMAGES,
    "products": PRODUCTS,
    "systems": SYSTEMS,
    "spectra": SPECTRA,
    "recurrent": RECURRENT,
}
# Operators of which only the first result is imported.
FIRST_RESULTS = {
    "embedding_bag.padding_idx",
    "_fused_rms_norm.default",
    "_linalg_det.default",
    "_linalg_slogdet.default",
    "_linalg_solve_ex.default",
    *(f"adaptive_max_pool{rank}d.default" for rank in (1, 2, 3)),
}
