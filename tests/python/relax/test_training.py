"""Losses, optimizers and training steps, against PyTorch's."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relax, te
from tvm.relax import op, training
from tvm.relax.training import loss, optimizer
from tvm.script import ir as I
from tvm.script import relax as R


def _info(*shape, dtype="float32"):
    return relax.TensorStructInfo(shape, dtype)


def _machine(mod):
    return relax.VirtualMachine(relax.build(relax.transform.LegalizeOps()(mod), "llvm"), tvm.cpu())


def _value(function, *arrays):
    name = str(function.attrs["global_symbol"])
    result = _machine(tvm.IRModule({name: function}))[name](*[tvm.nd.array(a) for a in arrays])
    return result.numpy()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_two_tensors(reduction):
    rng = np.random.default_rng(0)
    x, t = (rng.standard_normal((3, 5)).astype("float32") for _ in range(2))
    tensors = torch.tensor(x), torch.tensor(t)
    for mine, theirs in ((loss.L1Loss, torch.nn.L1Loss), (loss.MSELoss, torch.nn.MSELoss)):
        got = _value(mine(reduction)(_info(3, 5), _info(3, 5)), x, t)
        np.testing.assert_allclose(got, theirs(reduction=reduction)(*tensors), rtol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(reduction):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 5)).astype("float32")
    classes, weights = np.array([1, 2, 4, 2]), rng.random(5).astype("float32")
    make = loss.CrossEntropyLoss(reduction, ignore_index=2)
    function = make(_info(4, 5), _info(4, dtype="int64"), _info(5))
    assert [str(p.name_hint) for p in function.params] == ["predictions", "targets", "weights"]
    theirs = torch.nn.CrossEntropyLoss(torch.tensor(weights), reduction=reduction, ignore_index=2)
    wanted = theirs(torch.tensor(x), torch.tensor(classes))
    np.testing.assert_allclose(_value(function, x, classes, weights), wanted, rtol=1e-4, atol=1e-6)
    rows = np.eye(5, dtype="float32")[classes]
    categorical = loss.CategoricalCrossEntropyLoss(reduction)(_info(4, 5), _info(4, 5))
    logits = torch.log_softmax(torch.tensor(x), 1).numpy()
    reduce = {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction]
    np.testing.assert_allclose(
        _value(categorical, x, rows), reduce(-logits * rows), rtol=1e-4, atol=1e-6
    )


def test_another_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction is 'mean', 'sum' or 'none', got 'max'"):
        loss.L1Loss("max")


OPTIMIZERS = {
    "sgd": (lambda: optimizer.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    "sgd with decay": (
        lambda: optimizer.SGD(0.1, 0.02), lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.02),
    ),
    "momentum": (
        lambda: optimizer.MomentumSGD(0.1, 0.9, 0.0, 0.01, True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    ),
    "adam": (
        lambda: optimizer.Adam(0.01, (0.8, 0.99), 1e-6, 0.01),
        lambda p: torch.optim.Adam(p, 0.01, (0.8, 0.99), 1e-6, 0.01),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_as_in_pytorch(name):
    make, theirs = OPTIMIZERS[name]
    rng = np.random.default_rng(0)
    shapes = [(3, 2), (4,)]
    values = [rng.standard_normal(s).astype("float32") for s in shapes]
    mine = make().init([relax.Var(f"p{k}", _info(*s)) for k, s in enumerate(shapes)])
    function = mine.get_function()
    assert str(function.attrs["global_symbol"]) == mine.name
    machine = _machine(tvm.IRModule({mine.name: function}))
    tensors = [torch.tensor(v, requires_grad=True) for v in values]
    reference = theirs(tensors)
    params, state = tuple(map(tvm.nd.array, values)), tuple(mine.state)
    for step in range(4):
        gradients = [rng.standard_normal(s).astype("float32") for s in shapes]
        params, state = machine[mine.name](
            tuple(params), tuple(map(tvm.nd.array, gradients)), tuple(state)
        )
        for tensor, gradient in zip(tensors, gradients):
            tensor.grad = torch.tensor(gradient)
        reference.step()
        assert int(state[0].numpy()) == step + 1
    for got, tensor in zip(params, tensors):
        np.testing.assert_allclose(got.numpy(), tensor.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_what_optimizers_cannot_train():
    x = relax.Var("x", _info(3))
    with pytest.raises(ValueError, match="named once each"):
        optimizer.SGD(0.1).init([x, x])
    with pytest.raises(ValueError, match="parameters are float tensors, i is"):
        optimizer.SGD(0.1).init(relax.Var("i", _info(3, dtype="int64")))
    with pytest.raises(ValueError, match="call init first"):
        optimizer.Adam(0.1).get_function()


@I.ir_module
class Network:
    I.module_attrs({"param_num": 2, "state_num": 0})

    @R.function
    def backbone(
        x: R.Tensor((4, 3), "float32"), w: R.Tensor((3, 5), "float32"), b: R.Tensor((5,), "float32")
    ):
        with R.dataflow():
            lv = R.matmul(x, w)
            out = R.add(lv, b)
            R.output(out)
        return out


def test_training_a_network():
    setup = training.SetupTrainer(
        loss.CrossEntropyLoss(), optimizer.SGD(0.5), [_info(4, 5), _info(4, dtype="int64")]
    )
    mod = setup(Network)
    names = {str(gvar.name_hint) for gvar in mod.get_global_vars()}
    assert {"backbone", "backbone_loss", "backbone_loss_adjoint", "optimizer"} <= names
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    trainer = training.Trainer(mod, machine, tvm.cpu(), False)
    with pytest.raises(ValueError, match="a parameter has no value yet"):
        trainer.predict(np.zeros((4, 3), "float32"))
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((4, 3)).astype("float32"), np.array([0, 3, 1, 4])
    w = rng.standard_normal((3, 5)).astype("float32")
    trainer.load_params({"w": w, "b": np.zeros(5, "float32")})
    weight, bias = torch.tensor(w, requires_grad=True), torch.zeros(5, requires_grad=True)
    reference = torch.optim.SGD([weight, bias], 0.5)
    for _ in range(5):
        got = float(trainer.update(x, labels).numpy())
        reference.zero_grad()
        value = torch.nn.functional.cross_entropy(
            torch.tensor(x) @ weight + bias, torch.tensor(labels)
        )
        value.backward()
        reference.step()
        assert got == pytest.approx(float(value.detach()), rel=1e-4)
    exported = trainer.export_params()
    np.testing.assert_allclose(exported["w"].numpy(), weight.detach().numpy(), rtol=1e-4, atol=1e-5)
    wanted = (torch.tensor(x) @ weight + bias).detach().numpy()
    np.testing.assert_allclose(trainer.predict(x).numpy(), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="there is no parameter v; there are w, b"):
        trainer.load_params({"v": w})
    with pytest.raises(ValueError, match=r"has the shape \(3, 5\), got \(5, 3\)"):
        trainer.load_params([w.T, np.zeros(5, "float32")])


def test_states_are_updated():
    @I.ir_module
    class Counting:
        I.module_attrs({"param_num": 1, "state_num": 1})

        @R.function
        def backbone(
            x: R.Tensor((2, 2), "float32"),
            w: R.Tensor((2, 2), "float32"),
            seen: R.Tensor((), "float32"),
        ):
            with R.dataflow():
                out = R.multiply(x, w)
                new = R.add(seen, R.const(1.0, "float32"))
                R.output(out, new)
            return out, new

    mod = training.SetupTrainer(loss.MSELoss(), optimizer.Adam(0.1), [_info(2, 2)] * 2)(Counting)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    trainer = training.Trainer(mod, machine, tvm.cpu())
    trainer.xaiver_uniform_init_params(seed=0)
    x, t = np.ones((2, 2), "float32"), np.zeros((2, 2), "float32")
    losses = [float(trainer.update([x], [t]).numpy()) for _ in range(20)]
    assert losses[-1] < losses[0]
    assert float(trainer.export_states()["seen"].numpy()) == 20


def test_a_module_that_says_nothing_is_refused():
    with pytest.raises(ValueError, match='"param_num" of the module'):
        training.SetupTrainer(loss.MSELoss(), optimizer.SGD(0.1), [_info(4, 5)] * 2)(
            Network.without_attr("param_num")
        )
    with pytest.raises(ValueError, match="make it by SetupTrainer"):
        training.Trainer(Network, None, tvm.cpu())


def test_a_kernel_with_a_gradient_in_te():
    @training.utils.register_te_gradient("tests.scaled")
    def scaled_gradient(output_grad, x, y, factor):
        return [
            te.compute(x.shape, lambda i: output_grad[i] * y[i] * factor),
            te.compute(y.shape, lambda i: output_grad[i] * x[i] * factor),
        ]

    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, _info(4)) for name in "xy")
    with builder.function("main", [x, y]):
        with builder.dataflow():
            out = builder.emit_te(
                lambda a, b: te.compute(a.shape, lambda i: a[i] * b[i] * 3.0), x, y,
                primfunc_name_hint="scaled",
            )  # fmt: skip
            call = builder.lookup_binding(out)
            out = builder.emit(
                op.call_tir_with_grad(
                    call.args[0], call.args[1], call.sinfo_args[0], "tests.scaled",
                    {"factor": 3.0},
                )
            )  # fmt: skip
            total = builder.emit_output(op.sum(out))
        builder.emit_func_output(total)
    mod = relax.transform.Gradient("main")(builder.get())
    a, b = (np.arange(4, dtype="float32") + k for k in (1, 5))
    _, (of_x, of_y) = _machine(mod)["main_adjoint"](tvm.nd.array(a), tvm.nd.array(b))
    np.testing.assert_allclose(of_x.numpy(), 3 * b)
    np.testing.assert_allclose(of_y.numpy(), 3 * a)
