"""Convolutions over lines and volumes, and transposed ones, as plain ones over images."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import felix, relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)
PLAIN = {1: op.nn.conv1d, 3: op.nn.conv3d}
OF_TORCH = {
    1: torch.nn.functional.conv1d,
    2: torch.nn.functional.conv2d,
    3: torch.nn.functional.conv3d,
}
TRANSPOSED_OF_TORCH = {
    1: torch.nn.functional.conv_transpose1d,
    2: torch.nn.functional.conv_transpose2d,
    3: torch.nn.functional.conv_transpose3d,
}


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def converted(mod):
    passes = [
        transform.FoldBatchnorm(),
        transform.FoldPad(),
        transform.ConvertConvTranspose(),
        transform.ConvertConvTo2d(),
        transform.DeadCodeElimination(),
    ]
    for each in passes:
        mod = each(mod)
    return mod


def transposed(x, weight, rank, **options):
    spatial = "DHW"[3 - rank :] if rank > 1 else "W"
    layouts = {"data_layout": f"NC{spatial}", "kernel_layout": f"IO{spatial}"}
    return op.make_call("nn.conv_transpose", x, weight, **options, **layouts)


@st.composite
def windows(draw, rank, largest=3):
    """Sizes of a convolution: the data's, the kernel's, and its settings."""
    kernel = [draw(st.integers(1, largest)) for _ in range(rank)]
    dilation = [draw(st.integers(1, 2)) for _ in range(rank)]
    return {
        "batch": draw(st.integers(1, 2)),
        "groups": draw(st.sampled_from([1, 1, 2, 4])),
        "size": [(k - 1) * d + draw(st.integers(1, 5)) for k, d in zip(kernel, dilation)],
        "kernel": kernel,
        "settings": {
            "stride": [draw(st.integers(1, 3)) for _ in range(rank)],
            "padding": [draw(st.integers(0, 2)) for _ in range(rank)],
            "dilation": dilation,
        },
    }


def check_convolution(make_module, run, op_names, rank, case):
    x = random(case["batch"], 4, *case["size"])
    weight = random(8, 4 // case["groups"], *case["kernel"])
    bias, other = random(1, 8, *[1] * rank), random(8, *[1] * rank)
    options = case["settings"]
    named = {
        "strides": options["stride"],
        "padding": options["padding"] * 2,
        "dilation": options["dilation"],
    }

    def body(bb, data):
        conv = PLAIN[rank](data, relax.const(weight), groups=case["groups"], **named)
        summed = bb.emit(op.nn.relu(bb.emit(op.add(bb.emit(conv), relax.const(bias)))))
        return op.multiply(relax.const(other), summed)

    mod = make_module(body, x.shape)
    names = op_names(converted(mod))
    assert f"nn.conv{rank}d" not in names
    # What follows is computed on the images.
    assert names[names.index("nn.relu") - 1] == "add"
    assert not {"reshape", "permute_dims"} & set(names[names.index("nn.conv2d") :][:3])
    conv = OF_TORCH[rank](
        torch.from_numpy(x), torch.from_numpy(weight), groups=case["groups"], **options
    )
    expected = torch.relu(conv + torch.from_numpy(bias)) * torch.from_numpy(other)
    for one in (converted(mod), transform.OptimizeForInference()(mod)):
        np.testing.assert_allclose(run(one, x), expected.numpy(), rtol=1e-3, atol=1e-4)


@settings(max_examples=6, deadline=None)
@given(case=windows(1, largest=7))
def test_lines_are_images_of_one_row(make_module, run, op_names, case):
    check_convolution(make_module, run, op_names, 1, case)


@settings(max_examples=10, deadline=None)
@given(case=windows(3))
def test_volumes_are_images_for_each_depth(make_module, run, op_names, case):
    check_convolution(make_module, run, op_names, 3, case)


def test_a_filter_over_the_depth_moves_no_element(make_module, run, op_names):
    x, weight = random(2, 3, 6, 4, 5), random(8, 3, 3, 1, 1)
    mod = make_module(
        lambda bb, data: op.nn.conv3d(data, relax.const(weight), padding=[1, 0, 0]), x.shape
    )
    assert op_names(converted(mod)).count("permute_dims") == 2
    expected = torch.nn.functional.conv3d(
        torch.from_numpy(x), torch.from_numpy(weight), padding=(1, 0, 0)
    )
    np.testing.assert_allclose(run(converted(mod), x), expected.numpy(), rtol=1e-4, atol=1e-5)


def test_chains_of_convolutions_stay_images(make_module, run, op_names):
    """A residual block over lines, with batch norms that become part of the weights."""
    first, second = relax.const(random(4, 4, 3)), relax.const(random(4, 4, 3))
    statistics = [relax.const(np.abs(random(4)) + 0.5) for _ in range(4)]

    def body(bb, data):
        hidden = bb.emit(op.nn.conv1d(data, first, padding=1))
        normed = bb.emit(op.nn.batch_norm(hidden, *statistics))
        hidden = bb.emit(op.nn.relu(bb.emit(relax.TupleGetItem(normed, 0))))
        padded = bb.emit(op.nn.pad(hidden, [0, 0, 0, 0, 2, 0]))
        return op.add(bb.emit(op.nn.conv1d(padded, second)), hidden)

    x = random(1, 4, 9)
    mod = make_module(body, x.shape)
    names = op_names(converted(mod))
    assert names == ["reshape", "nn.conv2d", "add", "nn.relu", "nn.conv2d", "add", "reshape"]
    np.testing.assert_allclose(run(converted(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_are_plain_ones(make_module, run, op_names, rank):
    @settings(max_examples=6, deadline=None)
    @given(case=windows(rank, largest=4), extra=st.integers(0, 2))
    def run_cases(case, extra):
        options = dict(case["settings"])
        options["stride"] = [min(s, k) for s, k in zip(options["stride"], case["kernel"])]
        options["padding"] = [
            min(p, d * (k - 1))
            for p, k, d in zip(options["padding"], case["kernel"], options["dilation"])
        ]
        extra_of = [
            min(extra, max(s, d) - 1) for s, d in zip(options["stride"], options["dilation"])
        ]
        x = random(case["batch"], 4, *case["size"])
        weight = random(4, 3, *case["kernel"])
        expected = TRANSPOSED_OF_TORCH[rank](
            torch.from_numpy(x),
            torch.from_numpy(weight),
            groups=case["groups"],
            output_padding=extra_of,
            **options,
        ).numpy()
        if expected.size == 0:
            return

        def body(bb, data):
            return transposed(
                data,
                relax.const(weight),
                rank,
                strides=options["stride"],
                padding=options["padding"] * 2,
                dilation=options["dilation"],
                output_padding=extra_of,
                groups=case["groups"],
            )

        mod = make_module(body, x.shape)
        names = op_names(converted(mod))
        assert "nn.conv_transpose" not in names
        np.testing.assert_allclose(run(converted(mod), x), expected, rtol=1e-3, atol=1e-4)

    run_cases()


def test_an_image_grown_from_one_point_is_a_product(make_module, run, op_names):
    x, weight = random(2, 6, 1, 1), random(6, 5, 4, 4)
    mod = make_module(
        lambda bb, data: transposed(data, relax.const(weight), 2, strides=1, padding=[1, 0, 0, 1]),
        x.shape,
    )
    assert op_names(converted(mod)) == ["reshape", "nn.dense", "reshape"]
    whole = torch.nn.functional.conv_transpose2d(torch.from_numpy(x), torch.from_numpy(weight))
    np.testing.assert_allclose(
        run(converted(mod), x), whole.numpy()[:, :, 1:, :-1], rtol=1e-4, atol=1e-5
    )


def test_batch_norm_becomes_part_of_a_transposed_convolution(make_module, run, op_names):
    weight = relax.const(random(4, 6, 4, 4))
    statistics = [relax.const(np.abs(random(6)) + 0.5) for _ in range(4)]

    def body(bb, data):
        grown = bb.emit(transposed(data, weight, 2, strides=[2, 2], padding=[1, 1, 1, 1]))
        return relax.TupleGetItem(bb.emit(op.nn.batch_norm(grown, *statistics)), 0)

    x = random(1, 4, 5, 5)
    mod = make_module(body, x.shape)
    assert "multiply" not in op_names(converted(mod))
    np.testing.assert_allclose(run(converted(mod), x), run(mod, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [1, 2])
def test_transposed_convolutions_of_a_rank_of_their_own_are_converted(
    rank, make_module, run, op_names
):
    weight, x = random(4, 3, *[4] * rank), random(1, 4, *[5] * rank)
    grow = getattr(op.nn, f"conv{rank}d_transpose")
    mod = make_module(
        lambda bb, data: grow(data, relax.const(weight), strides=2, padding=1), x.shape
    )
    assert "nn.conv2d" in op_names(converted(mod))
    # What is built meets the conversion before fusion, which does not know these operators.
    assert "nn.conv2d" in op_names(transform.PrepareGraph()(mod))
    expected = TRANSPOSED_OF_TORCH[rank](torch.from_numpy(x), torch.from_numpy(weight), None, 2, 1)
    np.testing.assert_allclose(run(mod, x), expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kernel", "stride"), [(1, 4), (2, 4), (4, 3)])
def test_phases_without_an_element_of_the_kernel_are_zero(
    kernel, stride, make_module, run, op_names
):
    weight, x = random(4, 3, kernel, kernel), random(1, 4, 5, 6)
    mod = make_module(
        lambda bb, data: transposed(data, relax.const(weight), 2, strides=[stride] * 2), x.shape
    )
    assert "nn.conv_transpose" not in op_names(converted(mod))
    whole = torch.nn.functional.conv_transpose2d(
        torch.from_numpy(x), torch.from_numpy(weight), None, stride
    )
    np.testing.assert_allclose(run(converted(mod), x), whole.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("before", [False, True])
def test_a_single_filter_of_one_pixel_is_a_sum_of_channels(batch, before):
    """Channels that are rows of memory are added up where they stand, not turned around first."""
    layers = [torch.nn.Conv2d(5, 7, 3)] if before else []
    module = torch.nn.Sequential(*layers, torch.nn.Conv2d(7, 1, 1), torch.nn.Conv2d(1, 4, 3)).eval()
    x = torch.randn(batch, 5 if before else 7, 9, 11)
    network = felix.compile(module, (x,), cache=False)
    names = [kernel.name for kernel in network.kernels]
    assert any(name.startswith("matmul") for name in names) != before, names
    with torch.no_grad():
        torch.testing.assert_close(network(x), module(x), rtol=1e-4, atol=1e-4)
