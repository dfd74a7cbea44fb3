"""Long short-term memory against PyTorch."""

import numpy as np
import pytest
import torch

from testing_topi import evaluate, random_array
from tvm import te, topi

STEPS, BATCH, IN, HIDDEN = 5, 3, 4, 6


@pytest.mark.parametrize("with_rest", [False, True])
def test_lstm_equals_torch(with_rest):
    rng = np.random.default_rng(0)
    layer = torch.nn.LSTM(IN, HIDDEN, bias=with_rest)
    x = random_array(rng, STEPS, BATCH, IN)
    arrays = [p.detach().numpy() for p in layer.parameters()]
    start = None
    if with_rest:
        arrays += [random_array(rng, BATCH, HIDDEN) for _ in range(2)]
        start = tuple(torch.from_numpy(a)[None] for a in arrays[-2:])
    with torch.no_grad():
        expected, (_, last_cell) = layer(torch.from_numpy(x), start)
    hidden, cell = evaluate(lambda *t: topi.nn.lstm(*t), x, *arrays)
    np.testing.assert_allclose(hidden, expected.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cell[-1], last_cell[0].numpy(), rtol=1e-4, atol=1e-5)


def test_lstm_takes_its_gates_in_any_order():
    rng = np.random.default_rng(1)
    x, w = random_array(rng, STEPS, BATCH, IN), random_array(rng, 4 * HIDDEN, IN)
    u = random_array(rng, 4 * HIDDEN, HIDDEN)

    def swapped(a):
        i, f, g, o = np.split(a, 4)
        return np.concatenate([g, i, o, f])

    expected, _ = evaluate(lambda *t: topi.nn.lstm(*t), x, w, u)
    out, _ = evaluate(lambda *t: topi.nn.lstm(*t, weight_layout="GIOF"), x, swapped(w), swapped(u))
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_lstm_refuses_gates_that_it_does_not_have():
    x, w = te.placeholder((5, 3, 4), name="x"), te.placeholder((24, 4), name="w")
    with pytest.raises(ValueError, match="orders I, F, G and O, got 'IFCO'"):
        topi.nn.lstm(x, w, te.placeholder((24, 6), name="u"), weight_layout="IFCO")
