"""Reverse-mode differentiation of graph functions, against PyTorch's."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relax
from tvm.relax import op
from tvm.relax.transform import Gradient, LegalizeOps
from tvm.script import ir as I
from tvm.script import relax as R


def _call(mod, name, args):
    executable = relax.build(LegalizeOps()(mod), "llvm")
    return relax.VirtualMachine(executable, tvm.cpu())[name](*[tvm.nd.array(a) for a in args])


def _gradients(mod, args):
    (_, gradients) = _call(mod, "main_adjoint", args)
    return [g.numpy() for g in gradients]


def _check(make, reference, *arrays, ints=()):
    """Gradients of the weighted sum of what `make` emits are those that PyTorch finds."""
    arrays = [np.asarray(a, "float32") for a in arrays]
    params = [
        relax.Var(f"x{k}", relax.TensorStructInfo(a.shape, "float32")) for k, a in enumerate(arrays)
    ]
    extra = [
        relax.Var(f"i{k}", relax.TensorStructInfo(a.shape, str(a.dtype)))
        for k, a in enumerate(ints)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", params + extra):
        with builder.dataflow():
            result = builder.emit(make(*params, *extra))
            fields = (
                [
                    builder.emit(relax.TupleGetItem(result, k))
                    for k in range(len(result.struct_info.fields))
                ]
                if isinstance(result.struct_info, relax.TupleStructInfo)
                else [result]
            )
            total = None
            weights = []
            for k, part in enumerate(fields):
                shape = [int(v) for v in part.struct_info.shape]
                weights.append(np.random.default_rng(k).random(shape).astype("float32"))
                term = builder.emit(op.sum(op.multiply(part, relax.const(weights[-1]))))
                total = term if total is None else builder.emit(op.add(total, term))
            out = builder.emit_output(total)
        builder.emit_func_output(out)
    mod = Gradient("main", params)(builder.get())
    assert relax.analysis.well_formed(mod)
    got = _gradients(mod, [*arrays, *ints])
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    values = reference(*tensors, *[torch.tensor(i) for i in ints])
    values = values if isinstance(values, (tuple, list)) else [values]
    sum((v * torch.tensor(w)).sum() for v, w in zip(values, weights, strict=True)).backward()
    for mine, tensor in zip(got, tensors, strict=True):
        np.testing.assert_allclose(mine, tensor.grad.numpy(), rtol=2e-4, atol=2e-5)


def _random(*shape, low=0.2, high=1.8, seed=0):
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 1, 4), (3, 1))])
@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum"]
)
def test_two_operands(name, shapes):
    functions = {"subtract": torch.sub, "divide": torch.div, "power": torch.pow}
    reference = functions.get(name) or getattr(torch, name)
    _check(getattr(op, name), reference, _random(*shapes[0]), _random(*shapes[1], seed=1))


@pytest.mark.parametrize(
    "name",
    ["abs", "cos", "exp", "log", "negative", "sigmoid", "sin", "sqrt", "rsqrt", "square", "tanh",
     "erf", "nn.relu", "nn.silu", "nn.gelu", "nn.softmax", "nn.log_softmax"],
)  # fmt: skip
def test_one_operand(name):
    make, reference = op, torch
    for part in name.split("."):
        make = getattr(make, part)
    last = name.removeprefix("nn.")
    reference = getattr(torch, last, None) or getattr(torch.nn.functional, last)
    positive = name in ("log", "sqrt", "rsqrt")
    x = _random(3, 5) if positive else _random(3, 5, low=-1.5, high=1.5)
    args = (-1,) if name.endswith("softmax") else ()
    _check(lambda v: make(v), lambda v: reference(v, *args), x)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, [1], [0, 2]])
def test_sums(axis, keepdims):
    x, axes = _random(2, 3, 4), tuple(range(3)) if axis is None else tuple(axis)
    _check(lambda v: op.sum(v, axis, keepdims), lambda v: v.sum(axes, keepdims), x)
    _check(lambda v: op.mean(v, axis, keepdims), lambda v: v.mean(axes, keepdims), x)
    _check(
        lambda v: op.variance(v, axis, keepdims),
        lambda v: v.var(axes, correction=0, keepdim=keepdims),
        x,
    )


def test_moves():
    x = _random(2, 3, 4)
    _check(lambda v: op.permute_dims(v, [2, 0, 1]), lambda v: v.permute(2, 0, 1), x)
    _check(op.permute_dims, lambda v: v.permute(2, 1, 0), x)
    _check(lambda v: op.reshape(v, (4, 6)), lambda v: v.reshape(4, 6), x)
    _check(lambda v: op.expand_dims(v, [0, 2]), lambda v: v[None, :, None], x)
    _check(lambda v: op.squeeze(v, [1]), lambda v: v.squeeze(1), _random(2, 1, 3))
    _check(lambda v: op.broadcast_to(v, (5, 2, 3)), lambda v: v.expand(5, 2, 3), _random(2, 1))
    _check(lambda v: op.cumsum(v, 1), lambda v: v.cumsum(1), x)
    _check(op.cumsum, lambda v: v.flatten().cumsum(0), x)
    _check(lambda v: op.triu(v, 1), lambda v: v.triu(1), x)
    _check(lambda v: op.clip(v, 0.5, 1.5), lambda v: v.clip(0.5, 1.5), x)
    _check(
        lambda a, b: op.concat((a, b), 1), lambda a, b: torch.cat((a, b), 1), x, _random(2, 2, 4)
    )
    _check(lambda v: op.split(v, [1, 3], 2), lambda v: v.tensor_split([1, 3], 2), x)
    _check(
        lambda v, i: op.take(v, i, 1),
        lambda v, i: v[:, i.long()],
        x,
        ints=[np.array([2, 0, 2], "int32")],
    )
    _check(
        lambda a, b, c: op.where(c, a, b),
        lambda a, b, c: torch.where(c, a, b),
        _random(2, 3),
        _random(3),
        ints=[np.array([[True, False, True], [False, True, True]])],
    )


@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)),
     ((1, 2, 3), (6, 3, 2)), ((3,), (5, 3, 4)), ((5, 2, 3), (3,))],
)  # fmt: skip
def test_matrix_products(shapes):
    _check(op.matmul, torch.matmul, _random(*shapes[0]), _random(*shapes[1], seed=1))


@pytest.mark.parametrize(
    ("shape", "weight", "settings"),
    [
        ((2, 3, 7, 6), (4, 3, 3, 2), {}),
        ((2, 3, 8, 9), (4, 3, 3, 3), {"strides": 2, "padding": 1}),
        ((1, 4, 9, 9), (6, 2, 3, 3), {"groups": 2, "dilation": 2, "padding": 2}),
        ((2, 4, 8, 8), (4, 1, 3, 3), {"groups": 4, "strides": 2, "padding": 1}),
    ],
)
def test_convolutions(shape, weight, settings):
    names = {"strides": "stride"}
    _check(
        lambda x, w: op.nn.conv2d(x, w, **settings),
        lambda x, w: torch.nn.functional.conv2d(
            x, w, **{names.get(k, k): v for k, v in settings.items()}
        ),
        _random(*shape),
        _random(*weight, seed=1),
    )


def test_pools():
    functional = torch.nn.functional
    x = np.random.default_rng(0).permutation(2 * 3 * 8 * 8).reshape(2, 3, 8, 8) / 50
    _check(
        lambda v: op.nn.max_pool2d(v, (3, 3), (2, 2), (1, 1)),
        lambda v: functional.max_pool2d(v, 3, 2, 1),
        x,
    )
    _check(
        lambda v: op.nn.avg_pool2d(v, (2, 2), (2, 2)), lambda v: functional.avg_pool2d(v, 2, 2), x
    )


def test_losses():
    x, labels = _random(4, 5), np.array([1, 0, 4, 2], "int64")
    _check(
        lambda v, i: op.nn.nll_loss(op.nn.log_softmax(v), i),
        lambda v, i: torch.nn.functional.cross_entropy(v, i),
        x,
        ints=[labels],
    )
    _check(
        op.nn.cross_entropy_with_logits, lambda a, b: -(a * b).sum() / 4, x, _random(4, 5, seed=2)
    )


@I.ir_module
class TwoLayers:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"),
        w: R.Tensor((3, 4), "float32"),
        unused: R.Tensor((2,), "float32"),
    ):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.multiply(b, a)
            d = R.sum(c)
            e = R.sum(a)
            R.output(d, e)
        return d, e


def test_which_result_and_which_variables():
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(s).astype("float32") for s in [(2, 3), (3, 4), (2,)]]
    of_first = Gradient("main")(TwoLayers)
    assert {str(g.name_hint) for g in of_first.get_global_vars()} == {"main", "main_adjoint"}
    x, w = (torch.tensor(a, requires_grad=True) for a in args[:2])
    ((torch.relu(x @ w)) * (x @ w)).sum().backward()
    values, gradients = _call(of_first, "main_adjoint", args)
    assert len(values) == 2 and len(gradients) == 3
    np.testing.assert_allclose(gradients[0].numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients[1].numpy(), w.grad.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(gradients[2].numpy(), np.zeros(2))

    of_second = Gradient("main", TwoLayers["main"].params[1], target_index=1)(TwoLayers)
    (gradient,) = _gradients(of_second, args)
    np.testing.assert_allclose(gradient, args[0].sum(0)[:, None].repeat(4, 1), rtol=1e-5)
    # What the second result does not need is not computed.
    names = [str(b.var.name_hint) for b in of_second["main_adjoint"].body.blocks[0].bindings]
    assert "b_adjoint" not in names


def test_the_form_of_a_small_gradient():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.add(x, y)
                b = R.sum(a)
                R.output(b)
            return b

    @I.ir_module
    class After:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.add(x, y)
                b = R.sum(a)
                R.output(b)
            return b

        @R.function
        def main_adjoint(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.add(x, y)
                b = R.sum(a)
                b_adjoint = R.ones((), dtype="float32")
                a_adjoint = R.broadcast_to(b_adjoint, (3, 3))
                x_adjoint = a_adjoint
                y_adjoint = a_adjoint
                x_adjoint_out = x_adjoint
                y_adjoint_out = y_adjoint
                R.output(b, x_adjoint_out, y_adjoint_out)
            return (b, (x_adjoint_out, y_adjoint_out))

    tvm.ir.assert_structural_equal(Gradient("main")(Before), After)


def test_tuples():
    @I.ir_module
    class Module:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            pair: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")),
        ):
            with R.dataflow():
                a = (x, (pair[0], x))
                b = a[1]
                c = R.multiply(b[0], b[1])
                d = R.add(c, R.multiply(pair[1], pair[0]))
                e = R.sum(d)
                R.output(e)
            return e

    mod = Gradient("main")(Module)
    x, p, q = (_random(2, 3, seed=s) for s in range(3))
    machine = relax.VirtualMachine(relax.build(LegalizeOps()(mod), "llvm"), tvm.cpu())
    _, (of_x, of_pair) = machine["main_adjoint"](
        tvm.nd.array(x), (tvm.nd.array(p), tvm.nd.array(q))
    )
    np.testing.assert_allclose(of_x.numpy(), p, rtol=1e-5)
    np.testing.assert_allclose(of_pair[0].numpy(), x + q, rtol=1e-5)
    np.testing.assert_allclose(of_pair[1].numpy(), p, rtol=1e-5)


def test_checkpoints_are_computed_again():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                x0 = R.grad.start_checkpoint(x)
                a = R.sin(x0)
                b = R.exp(a)
                c = R.grad.end_checkpoint(b)
                d = R.multiply(c, y)
                e = R.sum(d)
                R.output(e)
            return e

    mod = Gradient("main")(Module)
    names = [str(b.var.name_hint) for b in mod["main_adjoint"].body.blocks[0].bindings]
    assert "b_cp" in names or "a_cp" in names
    text = mod["main_adjoint"].script()
    assert "checkpoint" not in text
    x, y = _random(3, 3), _random(3, 3, seed=1)
    of_x, of_y = _gradients(mod, [x, y])
    np.testing.assert_allclose(of_x, np.exp(np.sin(x)) * np.cos(x) * y, rtol=1e-4)
    np.testing.assert_allclose(of_y, np.exp(np.sin(x)), rtol=1e-4)


def test_a_registered_gradient():
    def twice(orig_var, orig_call, output_grad, ctx):
        return [op.multiply(output_grad, relax.const(2.0, "float32"))]

    with pytest.raises(ValueError, match="has a gradient of level 10"):
        op.register_gradient("relax.sin", twice)

    @op.register_gradient("relax.floor")
    def floor_grad(orig_var, orig_call, output_grad, ctx):
        return twice(orig_var, orig_call, output_grad, ctx)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(op.sum(op.floor(x)))
        builder.emit_func_output(out)
    (got,) = _gradients(Gradient("main")(builder.get()), [_random(3)])
    np.testing.assert_array_equal(got, np.full(3, 2, "float32"))


def test_what_has_no_gradient_is_refused():
    main = TwoLayers["main"]
    with pytest.raises(ValueError, match="target_index is 2, the function has 2 results"):
        Gradient("main", target_index=2)(TwoLayers)
    with pytest.raises(ValueError, match="variable x appears twice"):
        Gradient("main", [main.params[0], main.params[0]])(TwoLayers)
    with pytest.raises(ValueError, match="no variable z"):
        Gradient("main", relax.Var("z", main.params[0].struct_info))(TwoLayers)

    @I.ir_module
    class Other:
        @R.function
        def vector(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.sin(x)
                R.output(a)
            return a

        @R.function
        def plain(x: R.Tensor((3,), "float32")):
            return R.sum(x)

        @R.function
        def rounded(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.sum(R.ceil(x))
                R.output(a)
            return a

    with pytest.raises(ValueError, match="the target must be a float scalar"):
        Gradient("vector")(Other)
    with pytest.raises(ValueError, match="must be one dataflow block"):
        Gradient("plain")(Other)
    with pytest.raises(NotImplementedError, match="relax.ceil has no gradient; register one"):
        Gradient("rounded")(Other)


@pytest.mark.parametrize(("n", "count"), [(48, 25), (45, 23), (36, 36)])
def test_fourier_transforms_of_rows(n, count):
    def tables(sign, scale=1.0):
        split = tvm.topi.fft_split(n)
        return [relax.const(t.astype("float32")) for t in tvm.topi.fft_tables(*split, sign, scale)]

    def parts(spectrum):
        spectrum = spectrum[:, :count]
        return spectrum.real, spectrum.imag

    re, im = _random(3, n), _random(3, n, seed=1)
    _check(
        lambda x: op.fourier.rfft_rows(x, *tables(-1), count),
        lambda x: parts(torch.fft.fft(x)),
        re,
    )
    _check(
        lambda x, y: op.fourier.fft_rows(x, y, *tables(1), count, 1),
        lambda x, y: parts(torch.fft.ifft(torch.complex(x, y), norm="forward")),
        re,
        im,
    )
    half = n // 2 + 1
    _check(
        lambda x, y: op.fourier.irfft_rows(x, y, *tables(1, 1 / n)),
        lambda x, y: torch.fft.irfft(torch.complex(x, y), n=n),
        re[:, :half].copy(),
        im[:, :half].copy(),
    )


def test_fourier_transforms_of_columns():
    _check(
        lambda x, y: op.fourier.fft_columns(x, y, 7, -1, 0.5),
        lambda x, y: (
            0.5 * torch.fft.fft(torch.complex(x, y), dim=1)[:, :7].real,
            0.5 * torch.fft.fft(torch.complex(x, y), dim=1)[:, :7].imag,
        ),
        _random(2, 12, 17),
        _random(2, 12, 17, seed=1),
    )
