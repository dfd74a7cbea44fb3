"""Products after Strassen in networks: which ones, and that they keep the values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm import relax
from tvm.relax import op, transform

RNG = np.random.default_rng(0)


def weights(*shape):
    return relax.const((RNG.standard_normal(shape) / np.sqrt(shape[1])).astype("float32"))


def converted(mod):
    return transform.OptimizeForInference(strassen=True)(mod)


def kernels(mod):
    return [group.op_names for group in relax.fused_groups(mod)]


def check(run, mod, shape, seed=0):
    x = np.random.default_rng(seed).standard_normal(shape).astype("float32")
    plain = transform.OptimizeForInference()(mod)
    np.testing.assert_allclose(run(converted(mod), x), run(plain, x), rtol=1e-3, atol=1e-4)


@settings(max_examples=6, deadline=None)
@given(
    leading=st.sampled_from([(70,), (1, 81), (3, 5, 7)]),
    columns=st.sampled_from([512, 576]),
    seed=st.integers(0, 99),
)
def test_a_feed_forward_block_is_two_kernels_over_rows(make_module, run, leading, columns, seed):
    first, second, bias = weights(columns, 576), weights(576, columns), weights(1, columns)

    def body(bb, x):
        hidden = bb.emit(op.nn.dense(x, first))
        hidden = bb.emit(op.nn.gelu(bb.emit(op.add(hidden, bias))))
        return op.add(bb.emit(op.nn.dense(hidden, second)), x)

    shape = (*leading, 576)
    mod = make_module(body, shape)
    assert kernels(converted(mod)) == [
        ["nn.strassen_product", "add", "nn.gelu"],
        ["nn.strassen_product", "add"],
    ]
    check(run, mod, shape, seed)


def test_convolutions_of_one_pixel_are_products_of_their_pixels(make_module, run):
    kernel = relax.const((RNG.standard_normal((256, 640, 1, 1)) / 25).astype("float32"))

    def body(bb, x):
        conv = bb.emit(op.nn.conv2d(x, kernel))
        return op.clip(bb.emit(op.add(conv, weights(1, 256, 1, 1))), 0, 6)

    mod = make_module(body, (2, 640, 9, 9))
    assert ["nn.strassen_product", "add", "clip"] in kernels(converted(mod))
    check(run, mod, (2, 640, 9, 9))


def test_what_depends_on_the_shape_stands_behind_the_product(make_module, run):
    def body(bb, x):
        product = bb.emit(op.nn.dense(x, weights(512, 512)))
        scaled = bb.emit(op.multiply(product, weights(3, 1, 1)))
        return op.nn.softmax(scaled, 1)

    mod = make_module(body, (3, 40, 512))
    assert kernels(converted(mod))[0] == ["nn.strassen_product"]
    check(run, mod, (3, 40, 512))


def test_columns_that_fill_no_vectors_are_halved_with_those_added_to_them(make_module, run):
    mod = make_module(lambda bb, x: op.nn.dense(x, weights(500, 512)), (256, 512))
    assert kernels(converted(mod)) == [["nn.strassen_product"], ["strided_slice"]]
    check(run, mod, (256, 512))


@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(8, 1024, 1024), (256, 64, 64), (256, 513, 512), (256, 512, 504)]
)
def test_products_that_would_not_gain_stay(make_module, rows, depth, columns):
    mod = make_module(lambda bb, x: op.nn.dense(x, weights(columns, depth)), (rows, depth))
    assert kernels(converted(mod)) == [["nn.dense"]]
