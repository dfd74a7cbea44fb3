"""Attention is recognised however it is written, and computes the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import relax
from tvm.relax import transform
from tvm.relax.frontend.torch import export_for_inference, from_exported_program


def optimized(fn, *inputs):
    """A function of tensors as the graph that is built, with attention as one operator."""

    class Module(torch.nn.Module):
        def forward(self, *args):
            return fn(*args)

    mod = from_exported_program(export_for_inference(Module(), inputs))
    return transform.OptimizeForInference(attention=True)(mod)


def check(run, fn, *inputs, fused=True, products=0):
    mod = optimized(fn, *inputs)
    names = [name for group in relax.fused_groups(mod) for name in group.op_names]
    assert ("nn.head_attention" in names) == fused
    if fused:
        assert "nn.softmax" not in names
        assert names.count("matmul") == products
    got = run(mod, *(x.numpy() for x in inputs))
    np.testing.assert_allclose(got, fn(*inputs).numpy(), rtol=1e-4, atol=1e-5)


@settings(max_examples=8, deadline=None)
@given(
    batch=st.integers(1, 2),
    groups=st.integers(1, 3),
    shared=st.integers(1, 3),
    length=st.sampled_from([1, 3, 8, 13, 49, 70]),
    source=st.sampled_from([1, 16, 37, 50]),
    size=st.sampled_from([8, 20, 64]),
    mask=st.sampled_from(["none", "causal", "bool", "float", "keys"]),
)
def test_torchs_attention_of_any_size_is_one_operator(
    run, batch, groups, shared, length, source, size, mask
):
    torch.manual_seed(length + source)
    query = torch.randn(batch, groups * shared, length, size)
    key, value = torch.randn(2, batch, groups, source, size)
    masks = {
        "bool": torch.rand(length, source) > 0.4,
        "float": torch.randn(1, groups * shared, length, source),
        "keys": torch.arange(source)[None, None, None, :] < max(1, source // 2),
    }
    settings = {"is_causal": mask == "causal", "enable_gqa": shared > 1}

    def fn(q, k, v, *rest):
        seen = rest[0] if rest else None
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, **settings)

    rest = [masks[mask]] if mask in masks else []
    # Of few queries only keys of whole vectors are read where they are.
    fused = length >= 8 or size % 16 == 0
    check(run, fn, query, key, value, *rest, fused=fused)


def test_queries_that_see_nothing_give_zeros(run):
    query, key, value = torch.randn(3, 1, 2, 9, 8)
    seen = torch.ones(9, 9, dtype=torch.bool)
    seen[4] = False
    check(run, lambda *x: F.scaled_dot_product_attention(*x[:3], x[3]), query, key, value, seen)


def test_attention_that_is_written_out_reads_and_writes_tokens_in_front(run):
    def fn(x, w):
        q, k, v = (x @ w).view(1, 12, 3, 2, 16).permute(2, 0, 3, 1, 4)
        scores = (q / math.sqrt(16)) @ k.transpose(-2, -1)
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(1, 12, 32)

    check(run, fn, torch.randn(1, 12, 32), torch.randn(32, 96) * 0.2, products=1)


def test_windows_with_biases_under_views_are_taken(run):
    """As shifted windows add a mask for each window under a view of five dimensions."""

    def fn(q, k, v, bias, mask):
        scores = (q * 0.25) @ k.transpose(-2, -1) + bias
        scores = scores.view(1, 4, 3, 9, 9) + mask[None, :, None]
        return scores.view(4, 3, 9, 9).softmax(-1) @ v

    q, k, v = torch.randn(3, 4, 3, 9, 16)
    check(run, fn, q, k, v, torch.randn(1, 3, 9, 9), torch.randn(4, 9, 9))


def test_three_dimensions_are_heads_of_one_batch(run):
    q, k, v = torch.randn(3, 5, 11, 8)
    check(run, lambda q, k, v: torch.bmm((torch.bmm(q, k.mT) * 0.3).softmax(-1), v), q, k, v)


@pytest.mark.parametrize(
    "fn",
    [
        lambda q, k, v: (q @ k.mT).softmax(-2) @ v,
        lambda q, k, v: (lambda s: s.softmax(-1) @ v + s.sum())(q @ k.mT),
        lambda q, k, v: (q @ k.mT).softmax(-1),
        lambda q, k, v: (q[:, :, :4] @ k.mT).softmax(-1) @ v,
        lambda q, k, v: ((q @ k.mT + 1.0) * 2.0).exp() @ v,
    ],
    ids=["another dimension", "scores read twice", "no values", "few queries", "no softmax"],
)
def test_what_is_no_attention_stays(run, fn):
    q, k, v = torch.randn(3, 1, 2, 10, 10) * 0.3
    check(run, fn, q, k, v, fused=False)
