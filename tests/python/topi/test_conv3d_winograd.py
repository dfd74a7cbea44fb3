"""The 3-d convolution that GPUs are given by Winograd's algorithm."""

import numpy as np
import pytest

import tvm
from tvm import te, topi


@pytest.mark.parametrize(("space", "padding"), [((5, 6, 4), 1), ((8, 8, 8), (0, 1, 0))])
def test_it_is_a_convolution(space, padding):
    x = te.placeholder((1, 2, *space), name="x")
    w = te.placeholder((3, 2, 3, 3, 3), name="w")
    fast = topi.cuda.conv3d_ncdhw_winograd(x, w, 1, padding, 1)
    pads = [padding] * 3 if isinstance(padding, int) else list(padding)
    plain = topi.nn.conv3d_ncdhw(x, w, 1, pads, 1)
    rng = np.random.default_rng(0)
    arrays = [
        tvm.nd.array(rng.standard_normal([int(e) for e in t.shape]).astype("float32"))
        for t in (x, w)
    ]
    results = []
    for out in (fast, plain):
        result = tvm.nd.empty([int(e) for e in out.shape])
        tvm.build(te.create_schedule(out.op), [x, w, out], "llvm")(*arrays, result)
        results.append(result.numpy())
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)
    assert topi.cuda.schedule_conv3d_ncdhw_winograd(fast).stages
    with pytest.raises(ValueError, match="strides"):
        topi.cuda.conv3d_ncdhw_winograd(x, w, 2, padding, 1)
