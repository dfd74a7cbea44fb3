"""Neural operators that fusion does not know: built, and legalised, against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tvm
from tvm import relax
from tvm.relax.op import nn


def _run(make, *arrays, legal):
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"p{i}", relax.TensorStructInfo(list(a.shape), str(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(make(*params))
        builder.emit_func_output(out)
    mod = builder.get()
    if legal:
        mod = relax.transform.LegalizeOps()(mod)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    return machine["main"](*[tvm.nd.array(a) for a in arrays]).numpy()


def _random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


X1, X3 = _random(2, 3, 9), _random(1, 2, 6, 7, 8)
Q, K, V = _random(2, 5, 2, 4), _random(2, 6, 2, 4), _random(2, 6, 2, 3)
BIAS = _random(2, 2, 5, 6)
W1, W2, X2 = _random(3, 4, 3), _random(4, 3, 3, 3), _random(1, 4, 5, 6)


def _torch_attention(q, k, v, **settings):
    heads = [torch.from_numpy(x).transpose(1, 2) for x in (q, k, v)]
    return F.scaled_dot_product_attention(*heads, **settings).transpose(1, 2)


CASES = {
    "conv1d_transpose": (
        lambda x, w: nn.conv1d_transpose(x, w, strides=2, padding=1, output_padding=1),
        (X1, W1),
        lambda x, w: F.conv_transpose1d(x, w, stride=2, padding=1, output_padding=1),
    ),
    "conv2d_transpose": (
        lambda x, w: nn.conv2d_transpose(x, w, strides=(2, 1), dilation=2),
        (X2, W2),
        lambda x, w: F.conv_transpose2d(x, w, stride=(2, 1), dilation=2),
    ),
    "max_pool1d": (
        lambda x: nn.max_pool1d(x, 3, 2, padding=1),
        (X1,),
        lambda x: F.max_pool1d(x, 3, 2, 1),
    ),
    "avg_pool1d": (
        lambda x: nn.avg_pool1d(x, 3, 2, padding=1, count_include_pad=True),
        (X1,),
        lambda x: F.avg_pool1d(x, 3, 2, 1),
    ),
    "max_pool3d": (
        lambda x: nn.max_pool3d(x, 2, 2),
        (X3,),
        lambda x: F.max_pool3d(x, 2, 2),
    ),
    "avg_pool3d": (
        lambda x: nn.avg_pool3d(x, (2, 3, 2), (1, 2, 2)),
        (X3,),
        lambda x: F.avg_pool3d(x, (2, 3, 2), (1, 2, 2)),
    ),
    "adaptive_avg_pool1d": (
        lambda x: nn.adaptive_avg_pool1d(x, 4),
        (X1,),
        lambda x: F.adaptive_avg_pool1d(x, 4),
    ),
    "adaptive_avg_pool3d": (
        lambda x: nn.adaptive_avg_pool3d(x, (2, 3, 4)),
        (X3,),
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)),
    ),
    "square": (relax.op.square, (X1,), torch.square),
    "einsum": (
        lambda a, b: relax.op.einsum([a, b], "bij,bkj->bik"),
        (X1, _random(2, 4, 9)),
        lambda a, b: torch.einsum("bij,bkj->bik", a, b),
    ),
}


@pytest.mark.parametrize("legal", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_operators_compute_what_those_of_pytorch_do(name, legal):
    make, arrays, reference = CASES[name]
    expected = reference(*map(torch.from_numpy, arrays)).numpy()
    result = _run(make, *arrays, legal=legal)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("legal", [False, True])
@pytest.mark.parametrize("causal", [None, "TopLeft", "BottomRight"])
@pytest.mark.parametrize("biased", [False, True])
def test_attention_is_that_of_its_definition(legal, causal, biased):
    rows, columns = 5, 6
    mask = torch.from_numpy(BIAS) if biased else torch.zeros(1, 1, rows, columns)
    if causal is not None:
        ahead = 0 if causal == "TopLeft" else columns - rows
        seen = torch.ones(rows, columns, dtype=torch.bool).tril(ahead)
        mask = mask.masked_fill(~seen, float("-inf"))
    arrays = (Q, K, V, BIAS) if biased else (Q, K, V)

    def make(q, k, v, bias=None):
        return nn.attention(q, k, v, bias, scale=0.3, causal_mask=causal)

    expected = _torch_attention(Q, K, V, attn_mask=mask, scale=0.3).numpy()
    result = _run(make, *arrays, legal=legal)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
