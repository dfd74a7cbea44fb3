"""Operators for tests and benchmarks of a search, written as te tensors.

Each function gives the inputs and the result; `CONFIGS` has shapes that were used in the papers on
Ansor (OSDI 2020) and MetaSchedule (NeurIPS 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir, topi

__all__ = ["CONFIGS", "create_te_workload"]

Tensors = tuple[te.Tensor, ...]


def _product(a: Any, b: Any, dtype: str) -> Any:
    return a.astype(dtype) * b.astype(dtype)


def _window(size: Any, kernel: int, stride: int, padding: int, dilation: int = 1) -> Any:
    """Places of a window of `kernel` elements."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def matmul(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """(n, k) times (k, m)."""
    left = te.placeholder((n, k), name="A", dtype=in_dtype)
    right = te.placeholder((k, m), name="B", dtype=in_dtype)
    r = te.reduce_axis((0, k), name="k")
    result = te.compute(
        (n, m), lambda i, j: te.sum(_product(left[i, r], right[r, j], out_dtype), axis=[r]), "C"
    )
    return left, right, result


def matmul_relu(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """`matmul`, and nothing below zero."""
    left, right, result = matmul(n, m, k, in_dtype, out_dtype)
    return left, right, topi.nn.relu(result)


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """B products of (N, K) and (K, M)."""
    left = te.placeholder((B, N, K), name="X", dtype=in_dtype)
    right = te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    r = te.reduce_axis((0, K), name="k")
    result = te.compute(
        (B, N, M),
        lambda b, i, j: te.sum(_product(left[b, i, r], right[b, r, j], out_dtype), axis=[r]),
        "Z",
    )
    return left, right, result


def transpose_batch_matmul(
    batch: int,
    seq_len: int,
    n_head: int,
    n_dim: int,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """The scores of attention: heads come after positions in memory, so both are transposed."""
    shape = (batch, seq_len, n_head, n_dim)
    query = te.placeholder(shape, name="query", dtype=in_dtype)
    value = te.placeholder(shape, name="value", dtype=in_dtype)
    rows = te.compute(
        (batch, n_head, seq_len, n_dim), lambda b, h, l, d: query[b, l, h, d], name="query_T"
    )
    columns = te.compute(
        (batch, n_head, n_dim, seq_len), lambda b, h, d, l: value[b, l, h, d], name="value_T"
    )
    r = te.reduce_axis((0, n_dim), name="k")
    result = te.compute(
        (batch, n_head, seq_len, seq_len),
        lambda b, h, i, j: te.sum(
            _product(rows[b, h, i, r], columns[b, h, r, j], out_dtype), axis=[r]
        ),
        name="C",
    )
    return query, value, result


def conv1d_nlc(
    N: int,
    L: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """One-dimensional convolution, channels last."""
    data = te.placeholder((N, L, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, CI // groups, CO), name="weight", dtype=in_dtype)
    own, made = CI // groups, CO // groups
    rc = te.reduce_axis((0, own), name="rc")
    rl = te.reduce_axis((0, kernel_size), name="rl")
    padded = topi.nn.pad(data, [0, padding, 0])
    result = te.compute(
        (N, _window(L, kernel_size, stride, padding, dilation), CO),
        lambda n, l, co: te.sum(
            _product(
                padded[n, l * stride + rl * dilation, co // made * own + rc],
                weight[rl, rc, co],
                out_dtype,
            ),
            axis=[rl, rc],
        ),
        name="conv1d_nlc",
    )
    return data, weight, result


def conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution, channels last."""
    data = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder(
        (kernel_size, kernel_size, CI // groups, CO), name="weight", dtype=in_dtype
    )
    own, made = CI // groups, CO // groups
    rh = te.reduce_axis((0, kernel_size), name="rh")
    rw = te.reduce_axis((0, kernel_size), name="rw")
    rc = te.reduce_axis((0, own), name="rc")
    padded = topi.nn.pad(data, [0, padding, padding, 0])
    height, width = (_window(size, kernel_size, stride, padding, dilation) for size in (H, W))
    result = te.compute(
        (N, height, width, CO),
        lambda n, h, w, co: te.sum(
            _product(
                padded[
                    n,
                    h * stride + rh * dilation,
                    w * stride + rw * dilation,
                    co // made * own + rc,
                ],
                weight[rh, rw, rc, co],
                out_dtype,
            ),
            axis=[rh, rw, rc],
        ),
        name="conv2d_nhwc",
    )
    return data, weight, result


def conv3d_ndhwc(
    N: int,
    D: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Three-dimensional convolution, channels last."""
    data = te.placeholder((N, D, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((*[kernel_size] * 3, CI // groups, CO), name="weight", dtype=in_dtype)
    own, made = CI // groups, CO // groups
    rd, rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rd", "rh", "rw"))
    rc = te.reduce_axis((0, own), name="rc")
    padded = topi.nn.pad(data, [0, padding, padding, padding, 0])
    sizes = [_window(size, kernel_size, stride, padding, dilation) for size in (D, H, W)]
    result = te.compute(
        (N, *sizes, CO),
        lambda n, d, h, w, co: te.sum(
            _product(
                padded[
                    n,
                    d * stride + rd * dilation,
                    h * stride + rh * dilation,
                    w * stride + rw * dilation,
                    co // made * own + rc,
                ],
                weight[rd, rh, rw, rc, co],
                out_dtype,
            ),
            axis=[rd, rh, rw, rc],
        ),
        name="conv3d_ndhwc",
    )
    return data, weight, result


def depthwise_conv2d_nhwc(
    N: int,
    H: int,
    W: int,
    C: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    factor: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution of each channel by itself, into `factor` channels."""
    data = te.placeholder((N, H, W, C), name="inputs", dtype=in_dtype)
    weight = te.placeholder((factor, kernel_size, kernel_size, C), name="weight", dtype=in_dtype)
    rh = te.reduce_axis((0, kernel_size), name="rh")
    rw = te.reduce_axis((0, kernel_size), name="rw")
    padded = topi.nn.pad(data, [0, padding, padding, 0])
    height, width = (_window(size, kernel_size, stride, padding, dilation) for size in (H, W))
    result = te.compute(
        (N, height, width, C * factor),
        lambda n, h, w, c: te.sum(
            _product(
                padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor],
                weight[c % factor, rh, rw, c // factor],
                out_dtype,
            ),
            axis=[rh, rw],
        ),
        name="depth_conv2d_nhwc",
    )
    return data, weight, result


def conv2d_transpose_nhwc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Transposed convolution, channels last; zeros between the inputs are not stored."""
    data = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight", dtype=in_dtype)
    border = kernel_size - 1 - padding
    edge = (border + stride - 1) // stride
    padded = topi.nn.pad(data, [0, edge, edge, 0])
    shift = (stride - border % stride) % stride
    rh = te.reduce_axis((0, kernel_size), name="rh")
    rw = te.reduce_axis((0, kernel_size), name="rw")
    rc = te.reduce_axis((0, CI), name="rc")

    def dilated(n: Any, y: Any, x: Any, c: Any) -> Any:
        if stride == 1:
            return padded[n, y, x, c]
        stored = te.all((y % stride).equal(0), (x % stride).equal(0))
        value = padded[n, y // stride, x // stride, c]
        return te.if_then_else(stored, value, tir.const(0.0, in_dtype))

    last = kernel_size - 1
    result = te.compute(
        (N, *[(size - 1) * stride - 2 * padding + kernel_size for size in (H, W)], CO),
        lambda n, h, w, co: te.sum(
            _product(
                dilated(n, h + rh + shift, w + rw + shift, rc),
                weight[last - rh, last - rw, rc, co],
                out_dtype,
            ),
            axis=[rh, rw, rc],
        ),
        name="conv2d_transpose_nhwc",
    )
    return data, weight, result


def conv2d_capsule_nhwijc(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    capsule_size: int = 4,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution whose elements are matrices (Hinton et al., "Matrix capsules", ICLR 2018)."""
    capsule = (capsule_size, capsule_size)
    data = te.placeholder((N, H, W, *capsule, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder(
        (kernel_size, kernel_size, *capsule, CI, CO), name="weight", dtype=in_dtype
    )
    rh = te.reduce_axis((0, kernel_size), name="rh")
    rw = te.reduce_axis((0, kernel_size), name="rw")
    rk = te.reduce_axis((0, capsule_size), name="cap_k")
    rc = te.reduce_axis((0, CI), name="rc")
    padded = topi.nn.pad(data, [0, padding, padding, 0, 0, 0])
    height, width = (_window(size, kernel_size, stride, padding) for size in (H, W))
    result = te.compute(
        (N, height, width, *capsule, CO),
        lambda n, h, w, i, j, co: te.sum(
            _product(
                padded[n, h * stride + rh, w * stride + rw, i, rk, rc],
                weight[rh, rw, rk, j, rc, co],
                out_dtype,
            ),
            axis=[rh, rw, rk, rc],
        ),
        name="conv2d_capsule_nhwijc",
    )
    return data, weight, result


def conv2d_nchw(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution, channels first."""
    data = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype)
    weight = te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    result = topi.nn.conv2d_nchw(data, weight, stride, padding, dilation, out_dtype=out_dtype)
    return data, weight, result


def _with_parameters(result: te.Tensor, parameters: Sequence[te.Tensor], axis: int) -> te.Tensor:
    """Bias, scale and offset of a batch norm, one after another, and a ReLU."""
    steps: list[tuple[str, Callable[[Any, Any], Any]]] = [
        ("bias_add", lambda a, b: a + b),
        ("bn_mul", lambda a, b: a * b),
        ("bn_add", lambda a, b: a + b),
    ]
    for (name, step), parameter in zip(steps, parameters):

        def element(*at: Any, step: Any = step, data: Any = result, by: Any = parameter) -> Any:
            return step(data[at], by[tuple([at[axis]] + [0] * (len(by.shape) - 1))])

        result = te.compute(result.shape, element, name=name)
    return topi.nn.relu(result)


def conv2d_nchw_bias_bn_relu(
    n: int,
    h: int,
    w: int,
    ci: int,
    co: int,
    kh: int,
    kw: int,
    stride: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution, channels first, with bias, batch norm and ReLU."""
    data, weight, result = conv2d_nchw(
        n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype
    )
    bias, scale, offset = (
        te.placeholder((co, 1, 1), name=name, dtype=out_dtype)
        for name in ("B", "bn_scale", "bn_offset")
    )
    return data, weight, bias, scale, offset, _with_parameters(result, (bias, scale, offset), 1)


def conv2d_nhwc_bn_relu(
    N: int,
    H: int,
    W: int,
    CI: int,
    CO: int,
    kernel_size: int,
    strides: int,
    padding: int,
    dilation: int = 1,
    in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:
    """Convolution, channels last, with bias, batch norm and ReLU."""
    data, weight, result = conv2d_nhwc(
        N, H, W, CI, CO, kernel_size, strides, padding, dilation, 1, in_dtype, out_dtype
    )
    bias, scale, offset = (
        te.placeholder((CO,), name=name) for name in ("bias", "bn_scale", "bn_offset")
    )
    return data, weight, bias, offset, scale, _with_parameters(result, (bias, scale, offset), 3)


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """Largest of 2 x 2 neighbours."""
    data = te.placeholder((n, ci, h, w), name="X")
    edges = [padding] * 4
    return data, topi.nn.pool2d(data, [2, 2], [1, 1], [1, 1], edges, "max")


def softmax_mn(m: int, n: int) -> Tensors:
    """Softmax of rows."""
    data = te.placeholder((m, n), name="A")
    return data, topi.nn.softmax(data, axis=1)


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """Root of the sum of squares of B matrices."""
    data = te.placeholder((B, M, N), name="A")
    i = te.reduce_axis((0, M), name="i")
    j = te.reduce_axis((0, N), name="j")
    squares = te.compute((B,), lambda b: te.sum(data[b, i, j] * data[b, i, j], axis=[i, j]), "C")
    return data, te.compute((B,), lambda b: te.sqrt(squares[b]), name="D")


def create_te_workload(name: str, idx: int) -> tir.PrimFunc:
    """The function of an operator of `CONFIGS` with its shape number `idx`.

    Raises
    ------
    KeyError : there is no operator of that name.
    """
    if name not in CONFIGS:
        raise KeyError(f"create_te_workload: no workload {name!r}; there are {sorted(CONFIGS)}")
    make, shapes = CONFIGS[name]
    return te.create_prim_func(make(*shapes[idx]))


CONFIGS: dict[str, tuple[Callable[..., Tensors], list[tuple[int, ...]]]] = {
    "C1D": (
        conv1d_nlc,
        [
            (1, 256, 64, 128, 3, 2, 1),
            (1, 128, 128, 256, 1, 2, 0),
            (1, 64, 256, 256, 5, 1, 2),
            (1, 32, 512, 512, 3, 1, 1),
        ],
    ),
    "C2D": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 64, 1, 1, 0),
            (1, 14, 14, 256, 256, 3, 1, 1),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "C3D": (
        conv3d_ndhwc,
        [
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 16, 14, 14, 256, 256, 3, 1, 1),
            (1, 16, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "GMM": (
        batch_matmul_nkkm,
        [(1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)],
    ),
    "GRP": (
        conv2d_nhwc,
        [
            (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
            (1, 56, 56, 64, 64, 1, 1, 0, 1, 4),
            (1, 14, 14, 256, 256, 3, 1, 1, 1, 4),
            (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
        ],
    ),
    "DIL": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 14, 14, 256, 256, 3, 1, 1, 2),
            (1, 7, 7, 512, 512, 3, 1, 1, 2),
        ],
    ),
    "DEP": (
        depthwise_conv2d_nhwc,
        [
            (1, 112, 112, 32, 3, 1, 1),
            (1, 112, 112, 64, 3, 2, 1),
            (1, 14, 14, 512, 3, 2, 1),
            (1, 7, 7, 1024, 3, 1, 1),
        ],
    ),
    "T2D": (
        conv2d_transpose_nhwc,
        [
            (1, 4, 4, 512, 256, 4, 2, 1),
            (1, 8, 8, 256, 128, 4, 2, 1),
            (1, 16, 16, 128, 64, 4, 2, 1),
            (1, 32, 32, 64, 3, 4, 2, 1),
        ],
    ),
    "CAP": (
        conv2d_capsule_nhwijc,
        [
            (1, 16, 16, 32, 32, 3, 2, 1),
            (1, 8, 8, 32, 32, 3, 1, 1),
            (1, 16, 16, 8, 16, 3, 2, 1),
            (1, 8, 8, 16, 16, 3, 1, 1),
        ],
    ),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (
        conv2d_nhwc_bn_relu,
        [
            (1, 224, 224, 3, 64, 7, 2, 3),
            (1, 56, 56, 64, 128, 3, 2, 1),
            (1, 28, 28, 128, 256, 1, 2, 0),
            (1, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "TBG": (
        transpose_batch_matmul,
        [(1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)],
    ),
}
