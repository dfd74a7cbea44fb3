"""Windows of convolutions without the rows that only read borders."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def window_of(mod):
    call = mod["main"].body.blocks[0].bindings[0].value
    return [int(n) for n in call.args[1].struct_info.shape], op.attrs_of(call)


@settings(max_examples=20, deadline=None)
@given(
    size=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    window=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    dilation=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    stride=st.integers(1, 3),
    padding=st.tuples(*[st.integers(0, 24)] * 4),
)
def test_results_are_the_same(make_module, run, size, window, dilation, stride, padding):
    for k in range(2):
        reach = (window[k] - 1) * dilation[k] + 1
        if size[k] + padding[k] + padding[k + 2] < reach:
            return
    weight = random(4, 3, *window)

    def body(bb, x):
        return op.nn.conv2d(
            x, relax.const(weight), strides=stride, padding=list(padding), dilation=list(dilation)
        )

    x = random(2, 3, *size)
    mod = make_module(body, x.shape)
    trimmed = transform.TrimWindows()(mod)
    np.testing.assert_allclose(run(trimmed, x), run(mod, x), rtol=1e-4, atol=1e-4)
    shape, attrs = window_of(trimmed)
    assert all(n <= m for n, m in zip(shape[2:], window))
    assert min(attrs["padding"]) >= 0


@pytest.mark.parametrize("dilation", [14, 24])
def test_a_dilation_as_wide_as_the_image_leaves_one_row(make_module, run, dilation):
    weight = random(8, 3, 3, 3)

    def body(bb, x):
        return op.nn.conv2d(x, relax.const(weight), padding=dilation, dilation=dilation)

    x = random(1, 3, 14, 14)
    mod = transform.TrimWindows()(make_module(body, x.shape))
    shape, attrs = window_of(mod)
    assert shape == [8, 3, 1, 1] and list(attrs["padding"]) == [0, 0, 0, 0]
    expected = torch.nn.functional.conv2d(
        torch.from_numpy(x), torch.from_numpy(weight), padding=dilation, dilation=dilation
    )
    np.testing.assert_allclose(run(mod, x), expected, rtol=1e-4, atol=1e-4)


def test_rows_that_read_data_somewhere_stay(make_module):
    def body(bb, x):
        return op.nn.conv2d(x, relax.const(random(8, 3, 3, 3)), padding=13, dilation=13)

    shape, attrs = window_of(transform.TrimWindows()(make_module(body, (1, 3, 14, 14))))
    assert shape == [8, 3, 3, 3] and list(attrs["padding"]) == [13, 13, 13, 13]


def test_volumes_and_lines_are_trimmed(make_module, run):
    weights = {3: random(4, 3, 3, 3, 3), 1: random(4, 3, 3)}
    for rank, convolution in ((3, op.nn.conv3d), (1, op.nn.conv1d)):

        def body(bb, x, rank=rank, convolution=convolution):
            return convolution(x, relax.const(weights[rank]), padding=6, dilation=6)

        x = random(1, 3, *[5] * rank)
        mod = make_module(body, x.shape)
        trimmed = transform.TrimWindows()(mod)
        assert window_of(trimmed)[0] == [4, 3, *[1] * rank]
        np.testing.assert_allclose(run(trimmed, x), run(mod, x), rtol=1e-4, atol=1e-4)


def test_weights_that_are_computed_stay(op_names):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 4, 4), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((8, 3, 3, 3), "float32"))
    with bb.function("main", [x, w]), bb.dataflow():
        result = bb.emit_output(bb.emit(op.nn.conv2d(x, w, padding=9, dilation=9)))
        bb.emit_func_output(result)
    mod = transform.TrimWindows()(bb.get())
    assert op_names(mod) == ["nn.conv2d"]
