"""Complex numbers and Fourier transforms of PyTorch, which become real products."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fft

from testing_torch_programs import check
from tvm.relax.frontend.torch import from_module

few = settings(max_examples=5, deadline=None)
NORMS = st.sampled_from(["backward", "ortho", "forward"])


@few
@given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=3), norm=NORMS, data=st.data())
def test_transforms_of_random_shapes_equal_torch(shape, norm, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = torch.randn(shape)

    def transforms(x):
        half = fft.rfft(x, dim=axis, norm=norm)
        whole = fft.fft(x, dim=axis, norm=norm)
        return (
            half,
            whole,
            fft.ifft(whole, dim=axis, norm=norm),
            fft.irfft(half, n=shape[axis], dim=axis, norm=norm),
            fft.irfftn(fft.rfftn(x, norm=norm), s=shape, norm=norm),
            fft.fftn(x, norm=norm).real,
        )

    check(transforms, x)


# One product; two factors; three; a prime above the longest product, alone and times two.
@pytest.mark.parametrize("n", [400, 768, 641])
def test_long_transforms_equal_torch(n):
    # As long as PyTorch's rounding: sums of n numbers of size 1.
    check(
        lambda x: (fft.rfft(x), fft.ifft(fft.fft(x)).real, fft.irfft(fft.rfft(x), n=n)),
        torch.randn(2, n),
        atol=n * 2e-6,
    )


def test_frames_of_a_signal_and_back_equal_torch():
    window = torch.hann_window(64)
    settings = {"n_fft": 64, "hop_length": 16, "window": window}

    def there_and_back(x):
        spectrum = torch.stft(x, **settings, return_complex=True)
        power = spectrum.abs().square()
        return spectrum, power, torch.istft(spectrum, **settings)

    check(there_and_back, torch.randn(2, 500))


def test_rotary_embeddings_by_complex_products_equal_torch():
    """As the first implementations of Llama write them, with the turns as a buffer."""

    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            turns = torch.polar(torch.ones(6, 4), torch.randn(6, 4))
            self.register_buffer("turns", turns)

        def forward(self, x):
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * self.turns).flatten(-2).type_as(x)

    check(Rotary(), torch.randn(2, 3, 6, 8))
    mod = from_module(Rotary(), torch.randn(2, 3, 6, 8), keep_params_as_input=True)
    assert len(mod["main"].params) == 1, "complex parameters are constants"


def test_arithmetic_of_complex_numbers_equals_torch():
    z = torch.randn(3, 4, dtype=torch.complex64) + 2
    w = torch.randn(4, dtype=torch.complex64) - 3j
    x = torch.randn(3, 4)

    def arithmetic(z, w, x):
        return {
            "sums": (z + w, z - x, x - z, z + 1, 2j - z, torch.add(z, w, alpha=0.5), -z),
            "products": (z * w, z * x, x * 1j, z**2, z**3, z.square(), 2 * z),
            "quotients": (z / w, z / x, 1 / z, z / 2, x / z),
            "functions": (z.abs(), z.angle(), z.exp(), z.log(), z.sqrt(), z.sgn()),
            "parts": (z.real, z.imag, z.conj() * w, torch.complex(x, x), torch.polar(x.abs(), x)),
            "pairs": (torch.view_as_real(z), torch.view_as_complex(torch.stack([x, x], -1))),
            "matrices": (z @ w, z @ z.mT, z.mT.conj() @ z, torch.einsum("ij,j->i", z, w)),
            "linear": torch.nn.functional.linear(z, z, w[:3]),
            "sizes": (z == z + 0, z != w, z.sum(), z.mean(0), z.cumsum(1)),
        }

    check(arithmetic, z, w, x)


def test_movement_of_complex_numbers_equals_torch():
    z = torch.randn(3, 4, dtype=torch.complex64)
    x = torch.randn(3, 4)
    index = torch.tensor([2, 0])

    def movement(z, x, index):
        return {
            "views": (z.reshape(2, 6), z.t(), z[1:, ::2], z[:, 1], z.expand(2, 3, 4)),
            "joins": (z[None], torch.cat([z, x], 1), torch.stack([z, z * 2]), z.repeat(2, 1)),
            "pieces": (*z.split(2, 1), *z.unbind(0), *z.chunk(2, 1)),
            "picks": (z[index], z.index_select(0, index), z.flip(1), z.roll(1, 0), z.diagonal()),
            "choices": (torch.where(x > 0, z, x), z.masked_fill(x > 0, 0), z.tril()),
            "pads": torch.nn.functional.pad(z, (1, 2), value=3.0),
            "made": (torch.zeros_like(z), torch.ones_like(z), torch.full((2,), 1 + 2j), z.clone()),
            "types": (x.to(torch.complex64), z.to(torch.complex128)),
        }  # fmt: skip

    check(movement, z, x, index)


def test_what_has_no_formula_for_complex_numbers_is_named():
    with pytest.raises(ValueError, match=r"cosh.default \(computes with complex numbers\)"):
        from_module(lambda x: torch.view_as_complex(x).cosh().real, torch.randn(3, 2))
    with pytest.raises(ValueError, match="complex numbers"):
        from_module(lambda x: (torch.view_as_complex(x) ** 1.7).real, torch.randn(3, 2))
