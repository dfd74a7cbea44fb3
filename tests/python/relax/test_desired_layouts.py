"""ConvertLayout with the layouts that operators are wished to have."""

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

NHWC = {"relax.nn.conv2d": ["NHWC", "OHWI"]}


def _run(mod):
    executable = relax.build(transform.LegalizeOps()(mod), "llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    random = np.random.default_rng(0)
    args = [
        tvm.nd.array(random.random([int(v) for v in p.struct_info.shape]).astype("float32") + 0.5)
        for p in mod["main"].params
    ]
    result = machine["main"](*args)
    return [result.numpy()] if isinstance(result, tvm.nd.NDArray) else [r.numpy() for r in result]


def _agrees(mod, wanted=NHWC):
    new = transform.ConvertLayout(wanted)(mod)
    assert relax.analysis.well_formed(new)
    for expected, got in zip(_run(mod), _run(new), strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)
    return new


def _names(mod):
    return [
        str(binding.value.op.name).removeprefix("relax.")
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]


def test_a_convolution_between_transposes():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 9, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                gv = R.nn.conv2d(x, w, out_dtype="float32")
                R.output(gv)
            return gv

    @I.ir_module
    class After:
        @R.function
        def main(x: R.Tensor((2, 3, 9, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.permute_dims(x, axes=[0, 2, 3, 1])
                b = R.permute_dims(w, axes=[0, 2, 3, 1])
                c = R.nn.conv2d(a, b, data_layout="NHWC", kernel_layout="OHWI", out_dtype="float32")
                gv = R.permute_dims(c, axes=[0, 3, 1, 2])
                R.output(gv)
            return gv

    tvm.ir.assert_structural_equal(_agrees(Before), After)


def test_operators_follow_and_count_dimensions_anew():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 3, 12, 10), "float32"),
            w: R.Tensor((4, 3, 3, 3), "float32"),
            bias: R.Tensor((1, 4, 1, 1), "float32"),
            line: R.Tensor((4,), "float32"),
        ):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                b = R.nn.relu(R.add(a, bias))
                c = R.nn.batch_norm(b, line, line, line, line, axis=1)
                d = R.nn.max_pool2d(c[0], pool_size=[2, 2])
                e = R.concat((d, R.nn.avg_pool2d(d, pool_size=[1, 1])), axis=-3)
                f = R.split(e, 2, axis=1)
                g = R.strided_slice(f[1], axes=[1, 3], begin=[1, 0], end=[4, 3])
                h = R.nn.softmax(g, axis=1)
                k = R.nn.group_norm(e, R.concat((line, line), 0), R.concat((line, line), 0),
                                    num_groups=2, channel_axis=1, axes=[2, 3])  # fmt: skip
                m = R.mean(k, axis=[2, 3])
                n = R.squeeze(R.max(h, axis=[1], keepdims=True), axis=[1])
                o = R.cumsum(R.flip(h, axis=2), axis=3)
                q = R.nn.pad(R.tile(o, [1, 2, 1]), [0, 0, 1, 0, 0, 2, 0, 0])
                r = R.argmax(q, axis=1)
                s = R.expand_dims(q, axis=[2])
                t = R.permute_dims(q, axes=[3, 1, 0, 2])
                u = R.where(R.less(h, g), h, g)
                R.output(h, m, n, r, s, t, u)
            return h, m, n, r, s, t, u

    new = _agrees(Before)
    names = _names(new)
    assert names[:3] == ["permute_dims", "permute_dims", "nn.conv2d"]
    # Nothing is transposed between the convolution and what leaves the block.
    assert "permute_dims" not in names[names.index("nn.batch_norm") : names.index("nn.softmax")]


def test_what_cannot_follow_gets_its_operands_as_they_are_written():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 6, 6), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                b = R.reshape(a, (2, 64))
                c = R.argmax(R.nn.conv2d(x, w))
                R.output(b, c)
            return b, c

    names = _names(_agrees(Before))
    assert names[names.index("reshape") - 1] == "permute_dims"
    assert names[names.index("argmax") - 1] == "permute_dims"


def test_tuples_and_casts_keep_the_order():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 6, 5), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                pair = (a, R.nn.relu(a))
                b = pair[1]
                c = R.match_cast(b, R.Tensor((2, 4, 4, 3), "float32"))
                d = R.nn.relu(c)
                both = (d, x)
                R.output(both)
            return both

    names = _names(_agrees(Before))
    assert names.count("permute_dims") == 3


def test_other_operators_and_results_of_another_layout():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 6, 5), "float32"), w: R.Tensor((3, 4, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d_transpose(x, w)
                b = R.image.resize2d(a, (12, 12), layout="NCHW", method="nearest_neighbor")
                R.output(b)
            return b

    wanted = {"relax.image.resize2d": ["NHWC"]}
    assert _names(_agrees(Before, wanted)) == [
        "nn.conv2d_transpose", "permute_dims", "image.resize2d", "permute_dims",
    ]  # fmt: skip

    @I.ir_module
    class Mixed:
        @R.function
        def main(x: R.Tensor((2, 3, 6, 5), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                R.output(a)
            return a

    new = transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI", "NCHW"]})(Mixed)
    assert _names(new) == ["permute_dims", "permute_dims", "nn.conv2d"]


def test_a_layout_of_other_dimensions_is_refused():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 6, 5), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                R.output(a)
            return a

    with pytest.raises(ValueError, match="layout NCHW, which cannot become NDHWC"):
        transform.ConvertLayout({"relax.nn.conv2d": ["NDHWC", "OHWI"]})(Before)
