"""Hand schedules for GPUs: accepted by NVIDIA's compiler, and right when a block is emulated."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, topi
from tvm.target import Target
from tvm.topi import cuda

pytest.importorskip("cuda.bindings.nvrtc")

GPU = Target("cuda -arch=sm_80")


def check(schedule, tensors, expected, rtol=1e-5, atol=1e-5, seed=0):
    """Compile for a GPU, then run the same schedule on the emulated one."""
    with GPU:
        module = tvm.build(schedule(), tensors, target=GPU, name="f")
    assert "__global__" in module.imported_modules[0].get_source()
    rng = np.random.default_rng(seed)
    inputs = [rng.standard_normal([int(n) for n in t.shape]).astype(t.dtype) for t in tensors[:-1]]
    emulated = tvm.target.emulated("cuda -arch=sm_80")
    with emulated:
        func = tvm.build(schedule(), tensors, target=emulated, name="f")["f"]
    arrays = [tvm.nd.array(x) for x in inputs]
    out = tvm.nd.empty([int(n) for n in tensors[-1].shape], tensors[-1].dtype)
    func(*arrays, out)
    np.testing.assert_allclose(out.numpy(), expected(*inputs), rtol=rtol, atol=atol)


@pytest.mark.parametrize("shape", [(5,), (3, 37), (64, 64)])
def test_injective_operators(shape):
    A = te.placeholder(shape, name="A")
    B = topi.exp(topi.add(A, A))
    check(lambda: cuda.schedule_injective(B), [A, B], lambda a: np.exp(a + a), rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 100), 1), ((7, 5), 1), ((3, 64, 4), (0, 2)), ((300,), 0)]
)
def test_reductions_with_functions_before_and_behind(shape, axis):
    A = te.placeholder(shape, name="A")
    B = topi.exp(topi.sum(topi.multiply(A, tvm.tir.const(0.125)), axis=axis))
    check(
        lambda: cuda.schedule_reduce(B), [A, B], lambda a: np.exp((a * 0.125).sum(axis)), rtol=1e-4
    )


def test_a_sum_of_everything():
    A = te.placeholder((5, 60), name="A")
    B = topi.sum(A)
    check(lambda: cuda.schedule_reduce(B), [A, B], lambda a: a.sum(), rtol=1e-4)


def test_an_operator_without_a_reduction_is_refused():
    with pytest.raises(ValueError, match="reduces nothing; use schedule_injective"):
        cuda.schedule_reduce(topi.exp(te.placeholder((4,), name="A")))


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((3, 70), -1), ((2, 9, 4), 1)])
def test_softmax(shape, axis, log):
    A = te.placeholder(shape, name="A")
    B = (topi.nn.log_softmax if log else topi.nn.softmax)(A, axis=axis)

    def expected(a):
        e = np.exp(a - a.max(axis=axis, keepdims=True))
        p = e / e.sum(axis=axis, keepdims=True)
        return np.log(p) if log else p

    check(lambda: cuda.schedule_softmax(B), [A, B], expected, rtol=1e-4)


def test_sgemm():
    tile = cuda.GemmTile(rows=4, columns=4, thread_rows=8, thread_columns=8, depth=8)
    A, B = te.placeholder((64, 24), name="A"), te.placeholder((24, 32), name="B")
    C = cuda.matmul(A, B)
    check(lambda: cuda.schedule_matmul(C, tile), [A, B, C], lambda a, b: a @ b, rtol=1e-4)


def test_a_tile_that_leaves_remainders_is_refused():
    A, B = te.placeholder((60, 24), name="A"), te.placeholder((24, 32), name="B")
    with pytest.raises(ValueError, match="60 rows are no multiple of the tile's 128"):
        cuda.schedule_matmul(cuda.matmul(A, B))


def test_matmul_on_tensor_cores():
    A = te.placeholder((64, 64), name="A", dtype="float16")
    B = te.placeholder((64, 64), name="B", dtype="float16")
    C = cuda.matmul(A, B, "float32")

    def expected(a, b):
        return a.astype("float32") @ b.astype("float32")

    check(lambda: cuda.schedule_matmul_tensorcore(C), [A, B, C], expected, rtol=1e-3, atol=1e-2)


def direct(x, w, pad):
    """Convolution of NHWC data with HWIO weights."""
    kh, kw = w.shape[:2]
    x = np.pad(x.astype("float32"), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    h, width = x.shape[1] - kh + 1, x.shape[2] - kw + 1
    out = np.zeros((x.shape[0], h, width, w.shape[3]), "float32")
    for i in range(kh):
        for j in range(kw):
            out += x[:, i : i + h, j : j + width] @ w[i, j].astype("float32")
    return out


def test_conv2d_on_tensor_cores():
    A = te.placeholder((16, 4, 4, 16), name="A", dtype="float16")
    W = te.placeholder((3, 3, 16, 32), name="W", dtype="float16")
    B = cuda.conv2d_nhwc_tensorcore(A, W, 1, 1)
    check(
        lambda: cuda.schedule_conv2d_nhwc_tensorcore(B),
        [A, W, B],
        lambda a, w: direct(a, w, 1),
        rtol=1e-3,
        atol=2e-2,
    )


def test_sizes_tensor_cores_cannot_take_are_refused():
    A = te.placeholder((3, 4, 4, 16), name="A", dtype="float16")
    W = te.placeholder((3, 3, 16, 32), name="W", dtype="float16")
    with pytest.raises(ValueError, match="3 images are no multiple of 16"):
        cuda.conv2d_nhwc_tensorcore(A, W)


@pytest.mark.parametrize("transformed", [False, True])
def test_winograd_convolution(transformed):
    A = te.placeholder((1, 7, 7, 8), name="A")
    W = te.placeholder((3, 3, 8, 12), name="W")
    if transformed:
        U = te.placeholder((4, 4, 8, 12), name="U")
        B = cuda.conv2d_nhwc_winograd_direct_without_weight_transform(A, U, 1, 1)
        with GPU:
            s = cuda.schedule_conv2d_nhwc_winograd_direct_without_weight_transform(B)
            assert tvm.build(s, [A, U, B], target=GPU).imported_modules
        return
    B = cuda.conv2d_nhwc_winograd_direct(A, W, 1, 1)
    check(
        lambda: cuda.schedule_conv2d_nhwc_winograd_direct(B),
        [A, W, B],
        lambda a, w: direct(a, w, 1),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.parametrize("tile_size", [2, 4])
def test_winograd_transforms_are_exact(tile_size):
    from tvm.topi.cuda.conv2d_nhwc_winograd import _transforms

    a, b, g = (np.array(m) for m in _transforms(tile_size, 3))
    rng = np.random.default_rng(0)
    d, f = rng.standard_normal(tile_size + 2), rng.standard_normal(3)
    expected = [d[i : i + 3] @ f for i in range(tile_size)]
    np.testing.assert_allclose(a.T @ ((g @ f) * (b.T @ d)), expected, atol=1e-12)


def test_winograd_with_a_stride_is_refused():
    A, W = te.placeholder((1, 7, 7, 8), name="A"), te.placeholder((3, 3, 8, 12), name="W")
    with pytest.raises(ValueError, match="stride and dilation must be 1"):
        cuda.conv2d_nhwc_winograd_direct(A, W, 2)


@pytest.mark.parametrize(("stride", "padding"), [(1, 1), (2, 0)])
def test_convolution_of_nchw_data(stride, padding):
    torch = pytest.importorskip("torch")
    A, W = te.placeholder((2, 5, 7, 6), name="A"), te.placeholder((6, 5, 3, 3), name="W")
    B = topi.nn.relu(cuda.conv2d_nchw(A, W, stride, padding))

    def expected(a, w):
        found = torch.nn.functional.conv2d(
            torch.from_numpy(a), torch.from_numpy(w), stride=stride, padding=padding
        )
        return found.relu().numpy()

    check(lambda: cuda.schedule_conv2d_nchw([B]), [A, W, B], expected, rtol=1e-4)


def test_a_schedule_of_convolutions_needs_one():
    A = te.placeholder((2, 3, 4, 4), name="A")
    with pytest.raises(ValueError, match=r"is no convolution.*schedule_injective"):
        cuda.schedule_conv2d_nchw(topi.nn.relu(A))


def test_transposed_convolution():
    A, W = te.placeholder((1, 5, 4, 6), name="A"), te.placeholder((5, 6, 4, 4), name="W")
    B = cuda.conv2d_transpose_nchw(A, W, 2, 1)

    def expected(a, w):
        n, _, height, width = a.shape
        full = np.zeros((n, w.shape[1], 2 * height + 2, 2 * width + 2), "float32")
        for i in range(height):
            for j in range(width):
                full[:, :, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += np.einsum(
                    "nc,cfhw->nfhw", a[:, :, i, j], w
                )
        return full[:, :, 1:-1, 1:-1]

    check(lambda: cuda.schedule_conv2d_transpose_nchw(B), [A, W, B], expected, rtol=1e-4)
