"""Inverses, determinants and factors against PyTorch, and what becomes of matrices without any."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import felix


def compiled(function, *inputs):
    return felix.compile(function, inputs, target="llvm", cache=False)(*inputs)


@settings(max_examples=5, deadline=None)
@given(n=st.integers(0, 9), batch=st.lists(st.integers(1, 3), max_size=2), seed=st.integers(0, 99))
def test_random_sizes_equal_torch(n, batch, seed):
    generator = torch.Generator().manual_seed(seed)
    matrices = torch.randn(*batch, n, n, generator=generator, dtype=torch.float64)
    right = torch.randn(*batch, n, 3, generator=generator, dtype=torch.float64)

    def function(a, b):
        definite = a @ a.mT + torch.eye(n, dtype=a.dtype)
        return (
            torch.linalg.inv(a),
            torch.linalg.det(a),
            torch.linalg.slogdet(a),
            torch.linalg.solve(a, b),
            torch.cholesky_solve(b, torch.linalg.cholesky(definite)),
            torch.logdet(definite),
            torch.linalg.matrix_power(a, -2),
        )

    expected = function(matrices, right)
    torch.testing.assert_close(compiled(function, matrices, right), expected, rtol=1e-7, atol=1e-8)


def test_matrices_without_an_inverse_say_where():
    singular = torch.tensor(
        [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 1.0]], [[3.0, 0], [0, 1]]]
    )
    torch.testing.assert_close(
        compiled(lambda a: torch.linalg.inv_ex(a).info, singular),
        torch.linalg.inv_ex(singular).info,
    )
    assert torch.equal(compiled(torch.linalg.det, singular), torch.tensor([0.0, 0.0, 3.0]))
    indefinite = torch.tensor(
        [[[1.0, 2.0], [2.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]], [[2.0, 0], [0, 1]]]
    )
    torch.testing.assert_close(
        compiled(lambda a: torch.linalg.cholesky_ex(a).info, indefinite),
        torch.linalg.cholesky_ex(indefinite).info,
    )
    # PyTorch raises an error here.
    assert not compiled(torch.linalg.inv, singular)[0].isfinite().all()


def test_what_has_no_schedule_of_its_own_is_refused():
    lu, pivots = torch.linalg.lu_factor(torch.eye(3))
    with pytest.raises(ValueError, match="of the transposed matrix"):
        compiled(lambda b: torch.linalg.lu_solve(lu, pivots, b, adjoint=True), torch.ones(3, 1))
