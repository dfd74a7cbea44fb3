"""NaN among the elements of extremes, and what joins the kernels around them, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tvm import felix

CASES = {
    "last dimension": lambda x: x.amax(-1),
    "other dimension": lambda x: x.amin(1),
    "several dimensions": lambda x: x.amax((0, 2)),
    "everything": lambda x: (x.max(), x.argmin()),
    "with positions": lambda x: x.max(-1),
    "positions": lambda x: (x.argmax(1), x.argmin(-1)),
    "pool": lambda x: F.max_pool2d(x[None], 3, 2, 1),
    "pool, positions": lambda x: F.max_pool2d(x[None], 3, 2, 1, return_indices=True),
    "pool of lines": lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True),
    "pool of volumes": lambda x: F.max_pool3d(x[None, None], 2),
    "adaptive pool": lambda x: F.adaptive_max_pool2d(x[None], (3, 5)),
    "activations": lambda x: (F.relu(x), F.relu6(x), x.clamp(-0.5, 0.5), x.clamp(min=x.mean())),
    "two tensors": lambda x: (torch.maximum(x, x.flip(-1)), torch.minimum(x.flip(1), x)),
    "the other number": lambda x: (torch.fmax(x, x.flip(-1)), torch.fmin(x.flip(1), x)),
    "inside of a kernel": lambda x: F.relu(F.max_pool2d((x * 2 + 1)[None], 3, 2, 1) - 1),
    "around a reduction": lambda x: F.relu((x * 2).amax(-1) + 1).clamp(0, 3),
    "scattered": lambda x: torch.zeros_like(x).scatter_reduce(
        -1, torch.arange(x.shape[-1]).div(3, rounding_mode="floor").expand(x.shape), x, "amax"
    ),
}


class Network(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def with_nan(shape, dtype, seed):
    """Normal numbers, of which some are NaN: about every thirtieth, and the last one."""
    drawn = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=drawn)
    x[torch.rand(shape, generator=drawn) < 0.03] = torch.nan
    x.view(-1)[-1] = torch.nan
    return x.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_nan_is_handed_on(dtype):
    names = list(CASES)

    def everything(x):
        results = []
        for name in names:
            part = CASES[name](x)
            results.extend(part if isinstance(part, tuple) else [part])
        return tuple(results)

    x = with_nan((5, 13, 37), dtype, 0)  # 37 is whole vectors and a tail
    compiled = felix.compile(Network(everything), (x,), cache=False)
    for seed in range(3):
        x = with_nan((5, 13, 37), dtype, seed)
        for k, (got, want) in enumerate(zip(compiled(x), everything(x), strict=True)):
            torch.testing.assert_close(
                torch.as_tensor(got), want, equal_nan=True, msg=lambda m, k=k: f"result {k}: {m}"
            )


@pytest.mark.parametrize("place", [0, 7, 8, 15, 16, 31, 36])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_single_nan_at_every_kind_of_place(place, sign, reduced):
    x = np.random.default_rng(place).standard_normal((3, 37)).astype("float32")
    x[1, place] = np.copysign(np.nan, sign)
    np.testing.assert_array_equal(reduced(x)[0], x.max(1))
    np.testing.assert_array_equal(reduced(x)[1], x.min(0))
    np.testing.assert_array_equal(reduced(x)[2], x.argmax(1))


@pytest.fixture(scope="module")
def reduced():
    def extremes(x):
        return x.amax(1), x.amin(0), x.argmax(1)

    compiled = felix.compile(Network(extremes), (torch.zeros(3, 37),), cache=False)
    return lambda x: [np.asarray(part) for part in compiled(torch.from_numpy(x))]


def test_torch_compile_hands_nan_on():
    x = with_nan((2, 3, 9, 9), torch.float32, 1)

    def network(x):
        return F.max_pool2d(F.relu(x), 2).amax(1)

    torch.testing.assert_close(
        torch.compile(network, backend="felix")(x), network(x), equal_nan=True
    )
