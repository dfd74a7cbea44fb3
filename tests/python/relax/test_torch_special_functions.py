"""Special functions, signs and selections of single numbers, against PyTorch."""

from __future__ import annotations

import math

import pytest
import torch

from tvm import felix

NUMBERS = torch.tensor(
    [0.0, -0.0, 0.5, 1.0, 2.0, 3.25, 7.5, 8.5, 40.0, 1e-3, -0.25, -1.5, -3.75, -20.5, math.inf]
)
# Poles, and where PyTorch's own series for negative numbers is less exact.
INTEGERS = torch.tensor([-1.0, -2.0, -7.0])
OF_ANY_NUMBER = {
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "erfc": torch.erfc,
    "i0": lambda x: torch.i0(x.clamp(max=80)),
    "i0e": torch.special.i0e,
    "i1": lambda x: torch.special.i1(x.clamp(max=80)),
    "i1e": torch.special.i1e,
    "erfcx": lambda x: torch.special.erfcx(x.clamp(min=-8)),
    "log_ndtr": torch.special.log_ndtr,
    "exp2": torch.exp2,
    "signbit": torch.signbit,
    "logaddexp2": lambda x: torch.logaddexp2(x, 1 - x.clamp(max=50)),
}


def compiled(function, *inputs):
    return felix.compile(function, inputs, target="llvm", cache=False)(*inputs)


@pytest.mark.parametrize("name", OF_ANY_NUMBER)
def test_special_functions_of_all_numbers(name):
    x = torch.cat([NUMBERS, INTEGERS, torch.linspace(-12, 12, 101)])
    function = OF_ANY_NUMBER[name]
    torch.testing.assert_close(
        compiled(function, x), function(x), rtol=2e-5, atol=1e-5, equal_nan=True
    )


@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfc"])
def test_special_functions_of_doubles(name):
    x = torch.cat([NUMBERS, torch.linspace(-12.05, 12, 57)]).double()
    function = OF_ANY_NUMBER[name]
    torch.testing.assert_close(compiled(function, x), function(x), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_inverse_of_erf(dtype):
    x = torch.cat([torch.linspace(-1, 1, 201), torch.tensor([1 - 1e-6, 1e-9, 1.5])]).to(dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(
        compiled(torch.erfinv, x), torch.erfinv(x), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_polygamma(n):
    x = torch.cat([torch.linspace(0.1, 30, 40), torch.linspace(-2.9, -0.05, 23)]).double()

    def function(x):
        return torch.polygamma(n, x)

    torch.testing.assert_close(compiled(function, x), function(x), rtol=1e-9, atol=1e-9)


def test_types_that_an_approximation_is_not_good_for_are_refused():
    with pytest.raises(ValueError, match="i0"):
        compiled(torch.i0, torch.ones(3, dtype=torch.float64))


def test_powers_of_integers_to_tensors_are_refused_by_name():
    numbers = torch.tensor([2, 3])
    with pytest.raises(ValueError, match="of integers to an exponent that is a tensor"):
        compiled(torch.pow, numbers, numbers)


def test_signs_sizes_and_neighbours():
    x = torch.tensor([1.0, -2.0, 0.0, -0.0, math.inf, -1e30])
    y = torch.tensor([-0.0, 3.0, -1.0, math.inf, -math.inf, 1e30])
    for function in (torch.copysign, torch.hypot, torch.nextafter):
        torch.testing.assert_close(compiled(function, x, y), function(x, y))
    result = compiled(lambda x: torch.copysign(x, -1.0), x)
    assert torch.equal(torch.signbit(result), torch.ones(6, dtype=torch.bool))


def test_selections_of_single_numbers_have_no_dimensions():
    x, y = torch.tensor(3.0), torch.tensor(-2.0)

    def functions(x, y):
        return x.masked_fill(y < 0, 7.0), torch.where(x > y, x, y), torch.heaviside(x, y)

    for ours, theirs in zip(compiled(functions, x, y), functions(x, y)):
        assert ours.shape == theirs.shape == ()
        torch.testing.assert_close(ours, theirs)


def test_sums_of_nothing_are_computed_by_products_too():
    x, a, b = torch.randn(4, 10), torch.randn(5, 4, 0), torch.randn(5, 0, 10)
    torch.testing.assert_close(compiled(torch.addbmm, x, a, b), torch.addbmm(x, a, b))
    nothing = torch.randn(0, 10), torch.randn(5, 0, 5), torch.randn(5, 5, 10)
    assert compiled(torch.addbmm, *nothing).shape == (0, 10)
