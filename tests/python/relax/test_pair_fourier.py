"""Transforms of rows take and give pairs where a program has them."""

import pytest
import torch

from tvm import felix


def kernels_of(function, *inputs):
    class Model(torch.nn.Module):
        def forward(self, *values):
            return function(*values)

    compiled = felix.compile(Model().eval(), inputs, cache=False)
    with torch.inference_mode():
        expected = function(*inputs)
        torch.testing.assert_close(compiled(*inputs), expected, rtol=1e-4, atol=1e-3)
    return [kernel.name for kernel in compiled.kernels]


# The length decides on the stages, the shape on the loop around them.
@pytest.mark.parametrize(
    ("shape", "n"),
    [((5,), n) for n in (64, 100, 400, 441, 512)] + [((2, 3), 64), ((), 441)],
)
def test_complex_numbers_stay_pairs(shape, n):
    z = torch.randn(*shape, n, dtype=torch.complex64)
    assert kernels_of(torch.fft.fft, z) == ["fft_pairs"]
    assert kernels_of(lambda z: torch.fft.ifft(z, norm="ortho"), z) == ["fft_pairs"]


@pytest.mark.parametrize(
    ("norm", "n"),
    [(None, n) for n in (64, 100, 400, 882)] + [("ortho", 64), ("forward", 512)],
)
def test_real_numbers_give_pairs(n, norm):
    x = torch.randn(3, n)
    assert kernels_of(lambda x: torch.fft.rfft(x, norm=norm), x) == ["rfft_pairs"]


def test_odd_numbers_of_real_ones_and_whole_transforms_have_parts():
    assert "rfft_rows" in kernels_of(torch.fft.rfft, torch.randn(3, 441))
    kernels_of(lambda x: torch.fft.fft(x.to(torch.complex64)), torch.randn(3, 64))


def test_what_takes_a_part_reads_parts():
    x, z = torch.randn(4, 512), torch.randn(4, 512, dtype=torch.complex64)
    names = kernels_of(lambda x: torch.fft.rfft(x).abs(), x)
    assert names[0] == "rfft_halves" and len(names) == 2, names
    # Both forms are asked for.
    kernels_of(lambda z: (torch.fft.fft(z), torch.fft.fft(z).real), z)
    kernels_of(lambda z: torch.fft.fft(z * 2), z)
    # Parts of two different inputs.
    kernels_of(lambda a, b: torch.fft.fft(torch.complex(a.real, b.imag)), z, z + 1)
    # Parts in the other order are other numbers.
    kernels_of(lambda z: torch.fft.fft(torch.complex(z.imag, z.real)), z)
    kernels_of(lambda z: torch.complex(torch.fft.fft(z).imag, torch.fft.fft(z).real), z)
