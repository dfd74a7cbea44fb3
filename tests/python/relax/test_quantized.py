"""Quantised networks: their operators, and products that become integer kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_processors import has_feature
from tvm import relax
from tvm.relax.frontend.torch import from_module
from tvm.target import Target
from tvm.target.machine import int16_vector_width, sums_byte_products

Q = torch.ops.quantized_decomposed
LIMITS = {torch.uint8: (0, 255), torch.int8: (-128, 127)}


def run(mod, *inputs, target="llvm"):
    machine = relax.VirtualMachine(relax.build(mod, target), tvm.cpu())
    result = machine["main"](*[tvm.nd.array(np.asarray(x)) for x in inputs])
    return result.numpy()


def kernels(mod):
    """Graph functions of the network as fusion makes them, as text by name."""
    fused = relax.transform.OptimizeForInference()(mod)
    return {group.name: str(group.function) for group in relax.fused_group.fused_groups(fused)}


def weights_of(shape, axis=0, seed=0):
    """Random int8 weights with a scale for each index of an axis."""
    rng = np.random.default_rng(seed)
    values = torch.tensor(rng.integers(-127, 128, shape).astype("int8"))
    scales = torch.tensor(rng.uniform(0.002, 0.01, shape[axis]).astype("float32"))
    return values, scales


class Layer(torch.nn.Module):
    """An operator whose input and result are quantised, and its weights, as PT2E writes them."""

    def __init__(self, function, shape, dtype=torch.uint8, zero=0, out_zero=0):
        super().__init__()
        values, scales = weights_of(shape)
        self.register_buffer("values", values)
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros(shape[0], dtype=torch.int64))
        self.bias = torch.nn.Parameter(torch.randn(shape[0]))
        self.function, self.dtype = function, dtype
        self.zero, self.out_zero = zero, out_zero

    def forward(self, x):
        x = Q.quantize_per_tensor(x, 0.03, self.zero, *LIMITS[self.dtype], self.dtype)
        x = Q.dequantize_per_tensor(x, 0.03, self.zero, *LIMITS[self.dtype], self.dtype)
        weight = Q.dequantize_per_channel(
            self.values, self.scales, self.zeros, 0, -128, 127, torch.int8
        )
        y = torch.relu(self.function(x, weight, self.bias))
        y = Q.quantize_per_tensor(y, 0.05, self.out_zero, *LIMITS[self.dtype], self.dtype)
        return Q.dequantize_per_tensor(y, 0.05, self.out_zero, *LIMITS[self.dtype], self.dtype)


def check(model, x, step=0.05, target="llvm"):
    """Ours against PyTorch: equal but for sums that lie on the border of two integers."""
    mod = from_module(model, (x,))
    found = kernels(mod)
    assert any('dtype="int32"' in text and ("conv2d" in text or "dense" in text)
               for text in found.values())  # fmt: skip
    with torch.no_grad():
        expected = model(x).numpy()
    result = run(mod, x, target=target)
    difference = np.abs(result - expected)
    assert difference.max() <= step * 1.01
    assert (difference > step / 2).mean() < 0.01


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_quantize_and_dequantize_equal_numpy(dtype, axis):
    rng = np.random.default_rng(1)
    x = rng.normal(0, 40, (3, 4, 5)).astype("float32")
    shape = () if axis is None else (x.shape[axis],)
    scale = rng.uniform(0.1, 0.7, shape).astype("float32")
    zero = rng.integers(0, 30, shape).astype("int32")
    place = -1 if axis is None else axis
    builder = relax.BlockBuilder()
    var = relax.Var("x", relax.TensorStructInfo(x.shape, "float32"))
    parameters = relax.const(scale, "float32"), relax.const(zero, "int32")
    with builder.function("main", [var]):
        with builder.dataflow():
            whole = builder.emit(relax.op.quantize(var, *parameters, axis=place, out_dtype=dtype))
            assert str(whole.struct_info.dtype) == dtype
            real = builder.emit_output(relax.op.dequantize(whole, *parameters, axis=place))
        builder.emit_func_output(real)
    along = [1] * 3
    if axis is not None:
        along[axis] = -1
        scale, zero = scale.reshape(along), zero.reshape(along)
    limits = np.iinfo(dtype)
    integers = np.clip(np.rint(x / scale) + zero, limits.min, limits.max)
    expected = ((integers - zero) * scale).astype("float32")
    np.testing.assert_allclose(run(builder.get(), x), expected, rtol=1e-6, atol=1e-6)


def test_bad_types_are_refused_with_their_names():
    real = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    one, zero = relax.const(1.0, "float32"), relax.const(0, "int32")
    with pytest.raises(tvm.error.ValueError, match="float16; use int8"):
        relax.op.quantize(real, one, zero, out_dtype="float16")
    with pytest.raises(tvm.error.ValueError, match="integers, not float32"):
        relax.op.dequantize(real, one, zero)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from([3, 4, 8, 24]),
    st.sampled_from([8, 16, 20, 48]),
    st.sampled_from([1, 3]),
    st.integers(1, 2),
    st.integers(0, 1),
    st.sampled_from([(torch.uint8, 0), (torch.uint8, 113), (torch.int8, -128), (torch.int8, 5)]),
)
def test_convolutions_equal_pytorch(channels, filters, kernel, stride, padding, kind):
    dtype, zero = kind

    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias, stride, padding)

    model = Layer(conv, (filters, channels, kernel, kernel), dtype, zero, min(zero, 0))
    check(model, torch.randn(1, channels, 9, 7))


@pytest.mark.parametrize("groups, shape", [(4, (32, 8, 3, 3)), (16, (16, 1, 3, 3))])
def test_grouped_and_depthwise_convolutions_equal_pytorch(groups, shape):
    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias, 1, 1, 1, groups)

    check(Layer(conv, shape), torch.randn(2, groups * shape[1], 6, 6))


@pytest.mark.parametrize("lead", [(5,), (2, 3)])
@pytest.mark.parametrize("depth", [30, 64])
@pytest.mark.parametrize("columns", [1, 24, 32])
def test_matrix_products_equal_pytorch(lead, depth, columns):
    model = Layer(torch.nn.functional.linear, (columns, depth), torch.int8, 3)
    check(model, torch.randn(*lead, depth))


def test_a_product_with_weights_from_the_left_is_turned():
    def product(x, weight, bias):
        return torch.matmul(x, weight.t()) + bias

    check(Layer(product, (16, 12)), torch.randn(4, 12))


class Dynamic(torch.nn.Module):
    """A layer whose input is quantised by the range that it has."""

    def __init__(self, tokens):
        super().__init__()
        values, scales = weights_of((24, 32))
        self.register_buffer("values", values)
        self.register_buffer("scales", scales)
        self.tokens = tokens

    def forward(self, x):
        if self.tokens:
            scale, zero = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
            x = Q.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
            x = Q.dequantize_per_token(x, scale, zero, -128, 127, torch.int8, torch.float32)
        else:
            scale, zero = Q.choose_qparams.tensor(x, 0, 255, 1e-7, torch.uint8)
            x = Q.quantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
            x = Q.dequantize_per_tensor.tensor(x, scale, zero, 0, 255, torch.uint8)
        weight = Q.dequantize_per_channel(self.values, self.scales, None, 0, -128, 127, torch.int8)
        return torch.nn.functional.linear(x, weight)


@pytest.mark.parametrize("tokens", [False, True])
def test_scales_that_depend_on_the_input(tokens):
    check(Dynamic(tokens), torch.randn(2, 6, 32), step=0.05)


def test_symmetric_scales_that_depend_on_the_input():
    def function(x):
        scale, zero = Q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-7, torch.int8)
        each, zeros = Q.choose_qparams_per_token(x, torch.int8)
        return scale, zero, each, zeros

    x = torch.randn(4, 16)
    mod = from_module(function, (x,))
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    for ours, theirs in zip(machine["main"](tvm.nd.array(x.numpy())), function(x)):
        np.testing.assert_allclose(ours.numpy().reshape(-1), theirs.numpy().reshape(-1), rtol=1e-6)


class Block(torch.nn.Module):
    """Pooling, concatenation and a view between quantised values."""

    def forward(self, x):
        def again(value):
            value = Q.quantize_per_tensor(value, 0.02, 10, 0, 255, torch.uint8)
            return Q.dequantize_per_tensor(value, 0.02, 10, 0, 255, torch.uint8)

        x = again(x)
        y = again(torch.nn.functional.max_pool2d(x, 3, 2, 1))
        return again(torch.cat([y, again(torch.flatten(y, 2).reshape(y.shape))], 1))


def test_what_only_moves_elements_works_on_bytes():
    model, x = Block(), torch.randn(1, 4, 8, 8)
    mod = from_module(model, (x,))
    pooling = next(text for name, text in kernels(mod).items() if "max_pool2d" in name)
    assert "float32" not in pooling
    # Quantised once, where the network begins.
    assert sum(text.count("R.round") for text in kernels(mod).values()) == 1
    np.testing.assert_allclose(run(mod, x), model(x).numpy(), atol=0.0201)
    assert (np.abs(run(mod, x) - model(x).numpy()) > 0.01).mean() < 0.01


def test_integers_multiplied_without_a_scale():
    values, _ = weights_of((32, 16))

    def function(x, zero):
        return torch.matmul(x.to(torch.int32) - zero, values.t().to(torch.int32)[:32])

    x = torch.randint(0, 256, (5, 16), dtype=torch.uint8)
    zero = torch.tensor(7, dtype=torch.int32)
    mod = from_module(function, (x, zero))
    assert np.array_equal(run(mod, x, zero), function(x, zero).numpy())


def test_products_of_bytes_as_torchao_exports_them():
    values, scales = weights_of((32, 16))

    def function(x):
        largest = x.abs().amax(-1, keepdim=True)
        step = largest / 127
        whole = torch.clamp(torch.round(x / step), -128, 127).to(torch.int8)
        return torch._int_mm(whole, values.t()) * step * scales

    x = torch.randn(20, 16)
    mod = from_module(function, (x,))
    assert any('"uint8"' in text and "dense" in text for text in kernels(mod).values())
    np.testing.assert_allclose(run(mod, x), function(x).numpy(), rtol=1e-4, atol=1e-4)


def test_kernels_of_bytes_are_not_searched():
    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias)

    mod = from_module(Layer(conv, (16, 16, 1, 1)), (torch.randn(1, 16, 4, 4),))
    assert not relax.extract_tasks(mod) or all(
        "conv2d" not in group.name for group in relax.extract_tasks(mod)
    )


@pytest.mark.parametrize(
    "cpu, instruction, register",
    [
        ("x86-64", "pmaddwd", "xmm"),
        ("haswell", "vpmaddwd", "ymm"),
        ("skylake-avx512", "vpmaddwd", "zmm"),
        ("cascadelake", "vpdpbusd", "zmm"),
        ("znver4", "vpdpbusd", "zmm"),
        ("alderlake", "vpdpbusd", "ymm"),
    ],
)
def test_processors_sum_up_products_of_bytes(cpu, instruction, register):
    target = Target(f"llvm -mtriple=x86_64-unknown-linux-gnu -mcpu={cpu}")
    assert sums_byte_products(target) == (instruction == "vpdpbusd")

    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias)

    mod = from_module(Layer(conv, (16, 16, 1, 1)), (torch.randn(1, 16, 4, 4),))
    code = relax.build(mod, target).mod.imported_modules[0].get_source("asm")
    lines = [line for line in code.splitlines() if f"\t{instruction}\t" in line]
    assert any(register in line for line in lines)


def test_vectors_of_floats_may_be_wider_than_those_of_integers():
    target = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=ivybridge")
    assert (target.vector_width, int16_vector_width(target)) == (256, 128)

    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias)

    mod = from_module(Layer(conv, (16, 16, 1, 1)), (torch.randn(1, 16, 4, 4),))
    assert relax.build(mod, target) is not None


@pytest.mark.skipif(not has_feature("avx2"), reason="runs code for AVX2")
@pytest.mark.parametrize("shape", [(16, 8, 3, 3), (40, 3, 1, 1)])
def test_processors_without_vnni_compute_the_same(shape):
    def conv(x, weight, bias):
        return torch.nn.functional.conv2d(x, weight, bias, 1, 1)

    model = Layer(conv, shape, torch.uint8, 5)
    # Products at the ends of their range do not saturate.
    model.values[0] = -128
    check(model, torch.full((1, shape[1], 5, 6), 9.0), target="llvm -mcpu=haswell")


def test_other_architectures_have_none():
    target = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")
    assert not sums_byte_products(target)


def test_a_program_exported_before_is_taken_as_it_is():
    model = torch.export.export(torch.nn.ReLU().eval(), (torch.randn(3),)).module()
    x = np.array([-1.0, 2.0, 0.0], "float32")
    assert run(from_module(model, (torch.tensor(x),)), x).tolist() == [0, 2, 0]
