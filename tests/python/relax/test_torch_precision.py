"""Networks in float16, bfloat16 and float64, and integer ones, against PyTorch in that type."""

import pickle

import numpy as np
import pytest
import torch

from tvm import felix, relax
from tvm.felix import nn
from tvm.target import Target
from tvm.target.machine import sums_bfloat16_products

# Half the distance of neighbouring numbers of 11 and 8 bits, over a few roundings.
TOLERANCE = {torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float64: 1e-9}


def check(model, *inputs, tolerance):
    with torch.no_grad():
        expected = model(*inputs)
    result = felix.compile(model, inputs)(*inputs)
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_convolutional_network_equals_torch(dtype):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.GELU(),
        torch.nn.AdaptiveAvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 5),
        torch.nn.Softmax(-1),
    )
    model[1].running_mean.normal_()
    model[1].running_var.uniform_(0.5, 2)
    check(model.eval().to(dtype), torch.randn(2, 3, 10, 10).to(dtype), tolerance=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_transformers_equal_torch(dtype):
    torch.manual_seed(0)
    ids = torch.randint(50, (2, 7))
    for model in (nn.Bert(50, 16, 1, 2, 8), nn.Llama(50, 16, 1, 2, 1, 24)):
        check(model.eval().to(dtype), ids, tolerance=TOLERANCE[dtype])


def test_long_sums_of_short_floats_do_not_stop_growing():
    ones = torch.ones(1, 5000, dtype=torch.bfloat16)
    total, mean, product = felix.compile(lambda x: (x.sum(), x.mean(), x @ x.T), ones)(ones)
    assert (float(total), float(mean), float(product)) == (4992.0, 1.0, 4992.0)


@pytest.mark.parametrize(
    "model, shape",
    [
        (torch.nn.Conv2d(12, 32, 3, padding=1), (1, 12, 7, 6)),
        (torch.nn.Conv2d(32, 32, 3, stride=2, groups=2), (2, 32, 7, 7)),
        (torch.nn.Linear(30, 24), (2, 5, 30)),
        (torch.nn.Linear(31, 24), (5, 31)),
    ],
)
def test_sums_of_bfloat16_products_equal_torch(model, shape):
    # By the processor's own instruction if it has one, and for an odd depth without.
    short = model.eval().to(torch.bfloat16)
    check(short, torch.randn(shape).to(torch.bfloat16), tolerance=TOLERANCE[torch.bfloat16])


@pytest.mark.parametrize(
    "cpu, has",
    [("haswell", False), ("skylake-avx512", False), ("cooperlake", True), ("znver4", True)],
)
def test_processors_with_products_of_bfloat16(cpu, has):
    target = Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}")
    assert sums_bfloat16_products(target) == has
    model = torch.nn.Linear(32, 32).eval().to(torch.bfloat16)
    mod = relax.frontend.torch.from_module(model, torch.randn(8, 32).to(torch.bfloat16))
    code = relax.build(mod, target).mod.imported_modules[0].get_source("asm")
    assert ("vdpbf16ps" in code) == has


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64, torch.bool], ids=str)
def test_whole_numbers_equal_torch(dtype):
    x = torch.arange(-6, 6).reshape(3, 4).to(dtype)
    flags = x != 0

    def model(x, flags):
        return x + x, torch.where(flags, x, x[:1]), x.sum(1), x.to(torch.float32) / 2

    check(model, x, flags, tolerance=0)


def test_bfloat16_constants_keep_their_values():
    values = np.array([[1.0, -2.5, 3.0e38, np.inf, np.nan, 1 / 3]], "float32")
    constant = relax.const(values, "bfloat16")
    assert constant.data.dtype == "bfloat16"
    expected = torch.tensor(values).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(constant.values(), expected)
    np.testing.assert_array_equal(constant.rearranged(np.transpose).values(), expected.T)
    assert constant.astype("float32").data.dtype == "float32"


def test_a_kernel_named_after_a_c_function_does_not_call_itself():
    x = torch.linspace(-2, 2, 24, dtype=torch.float64)
    for function in (torch.cos, torch.sin, torch.erf, torch.tan):
        torch.testing.assert_close(felix.compile(function, x)(x), function(x))


@pytest.mark.parametrize("kind", ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"])
def test_weights_of_eight_bits_are_multiplied_out_and_travel(kind, tmp_path):
    """As `torchao.quantization.Float8WeightOnlyConfig` exports them."""
    dtype = getattr(torch, f"float8_{kind}")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.randn(32, 24).to(dtype))
            self.register_buffer("scale", torch.rand(32, 1))

        def forward(self, x, y):
            product = torch.nn.functional.linear(x, self.weight.to(torch.float32) * self.scale)
            # Numbers of eight bits among inputs and results, too.
            return product, (y.to(torch.float32) + 1).to(dtype)

    net, x = Net().eval(), torch.randn(5, 24)
    y = torch.randn(4, 8).to(dtype)
    fast = felix.compile(net, (x, y), cache=False)
    want, sums = net(x, y)
    for call in (fast, pickle.loads(pickle.dumps(fast))):
        product, narrow = call(x, y)
        torch.testing.assert_close(product, want, rtol=1e-5, atol=1e-5)
        assert narrow.dtype is dtype
        assert torch.equal(narrow.view(torch.uint8), sums.view(torch.uint8))
