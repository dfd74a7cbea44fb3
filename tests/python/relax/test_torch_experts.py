"""Mixtures of experts: rows times the matrix of their group."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import felix, te, topi


def reference(data, weight, ends):
    result = np.zeros((len(data), weight.shape[2]), data.dtype)
    start = 0
    for expert, end in enumerate(ends):
        result[start:end] = data[start:end] @ weight[expert]
        start = max(start, end)
    return result


@settings(max_examples=10, deadline=None)
@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=5),
    depth=st.integers(1, 20),
    columns=st.sampled_from([1, 5, 16, 40, 128]),
    behind=st.integers(0, 3),
    kind=st.sampled_from(["int32", "int64"]),
)
def test_rows_of_groups_of_any_size(counts, depth, columns, behind, kind):
    """Groups without rows, and rows behind the last group, which come out as zeros."""
    rng = np.random.default_rng(0)
    rows = sum(counts) + behind
    if not rows:
        return
    data = rng.standard_normal((rows, depth)).astype("float32")
    weight = rng.standard_normal((len(counts), depth, columns)).astype("float32")
    ends = np.cumsum(counts).astype(kind)
    inputs = [te.placeholder(a.shape, str(a.dtype)) for a in (data, weight, ends)]
    output = topi.nn.grouped_matmul(*inputs)
    function = tvm.build(topi.schedule_for(output, "llvm"), [*inputs, output], "llvm")
    result = tvm.nd.empty((rows, columns))
    function(*map(tvm.nd.array, (data, weight, ends)), result)
    np.testing.assert_allclose(result.numpy(), reference(data, weight, ends), rtol=1e-4, atol=1e-5)


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(
    input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor
) -> torch.Tensor:
    """The operator of that name, as the library's documentation describes it."""
    return torch.from_numpy(reference(input.numpy(), weight.numpy(), offs.tolist()))


@grouped_mm_fallback.register_fake
def _(input, weight, offs):
    return input.new_empty(input.shape[0], weight.shape[2])


class Experts(torch.nn.Module):
    """Two of four experts for each row, by sorting rows by expert."""

    def __init__(self):
        super().__init__()
        self.router = torch.nn.Linear(32, 4)
        self.weight = torch.nn.Parameter(torch.randn(4, 48, 32) / 6)

    def forward(self, x):
        scores, chosen = torch.topk(torch.softmax(self.router(x), -1), 2)
        flat = chosen.reshape(-1)
        order = torch.argsort(flat, stable=True)
        counts = torch.histc(flat[order].float(), bins=4, min=0, max=3)
        ends = torch.cumsum(counts, 0, dtype=torch.int32)
        rows = x[order // 2]
        out = torch.ops.transformers.grouped_mm_fallback(rows, self.weight.transpose(1, 2), ends)
        weighted = out * scores.reshape(-1)[order].unsqueeze(-1)
        return torch.zeros(x.shape[0], 48).index_add(0, order // 2, weighted)


def test_a_mixture_of_experts_is_compiled():
    torch.manual_seed(0)
    model, x = Experts().eval(), torch.randn(20, 32)
    with torch.no_grad():
        compiled = felix.compile(model, (x,))
        for _ in range(3):
            x = torch.randn(20, 32)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_other_products_of_groups_are_refused_by_name():
    class Both(torch.nn.Module):
        def forward(self, x, y, ends):
            return torch._grouped_mm(x, y, ends)

    x, y = torch.randn(16, 32).bfloat16(), torch.randn(32, 16).bfloat16()
    ends = torch.tensor([16, 32], dtype=torch.int32)
    with pytest.raises(Exception, match="_grouped_mm.*the ends of the groups of rows"):
        felix.compile(Both(), (x, y, ends))
