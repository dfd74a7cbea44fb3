"""Networks of PyTorch and ONNX as relay modules."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor

torch = pytest.importorskip("torch")


def _run(mod, params, *inputs):
    lib = relay.build(mod, "llvm", params=params)
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    for param, value in zip(mod["main"].params, inputs):
        executor.set_input(str(param.name_hint), value)
    executor.run()
    return [executor.get_output(k).numpy() for k in range(executor.get_num_outputs())]


class _Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.bn = torch.nn.BatchNorm2d(8)
        self.up = torch.nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.norm = torch.nn.LayerNorm(12)
        self.fc = torch.nn.Linear(12, 5)
        self.bn.running_mean.uniform_(-1, 1)
        self.bn.running_var.uniform_(0.5, 2)

    def forward(self, x):
        y = torch.relu(self.bn(self.conv(x)))
        y = self.up(torch.nn.functional.max_pool2d(y, 2))
        y = torch.nn.functional.gelu(self.norm(y))
        left, right = torch.split(y, 2, 1)
        mixed = torch.cat([left @ right.transpose(2, 3), right[..., 1:9:2]], 3)
        return torch.softmax(self.fc(y).mean((1, 2)), -1), torch.nn.functional.silu(mixed)


def _model():
    torch.manual_seed(0)
    return _Network().eval(), torch.randn(2, 3, 24, 24)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["module", "traced", "scripted", "exported"])
def test_from_pytorch_gives_the_results_of_the_network(form):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten())
    x = torch.randn(2, 3, 8, 8)
    forms = {
        "module": lambda: model,
        "traced": lambda: torch.jit.trace(model, x).eval(),
        "scripted": lambda: torch.jit.script(model).eval(),
        "exported": lambda: torch.export.export(model.eval(), (x,)),
    }
    mod, params = relay.frontend.from_pytorch(forms[form](), [("image", x.shape)])
    names = [str(p.name_hint) for p in mod["main"].params]
    assert names == ["image", "0.weight", "0.bias"]
    assert set(params) == {"0.weight", "0.bias"}
    (result,) = _run(mod, params, x.numpy())
    np.testing.assert_allclose(result, model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_from_pytorch_writes_relay_operators():
    model, x = _model()
    mod, params = relay.frontend.from_pytorch(
        model, [("x", (tuple(x.shape), "float32"))], use_parser_friendly_name=True
    )
    text = mod.astext(show_meta_data=False)
    for name in (
        "nn.conv2d", "nn.bias_add", "nn.batch_norm", "nn.relu", "nn.conv2d_transpose",
        "nn.layer_norm", "nn.batch_matmul", "nn.dense", "strided_slice", "erf",
    ):  # fmt: skip
        assert f" {name}(" in text, name
    assert "bn_running_var" in params and "bn_num_batches_tracked" not in params
    assert tvm.ir.structural_equal(mod, relay.parse(mod.astext()))
    folded = relay.transform.FoldScaleAxis()(relay.transform.SimplifyInference()(mod))
    wanted = [t.detach().numpy() for t in model(x)]
    for program in (mod, folded):
        for got, expected in zip(_run(program, params, x.numpy()), wanted):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_operators_of_relax_alone_keep_their_names_and_are_read_back():
    class Norm(torch.nn.Module):
        def forward(self, x):
            return torch.tril(torch.nn.functional.rms_norm(x, (6,)), 1)

    x = torch.randn(3, 4, 6)
    mod, params = relay.frontend.from_pytorch(Norm(), [("x", x.shape)])
    text = mod.astext()
    assert "relax.nn.rms_norm(" in text
    again = relay.parse(text)
    assert tvm.ir.structural_equal(mod, again)
    (result,) = _run(again, params, x.numpy())
    np.testing.assert_allclose(result, Norm()(x).numpy(), rtol=1e-5, atol=1e-6)


def test_from_pytorch_refuses_what_does_not_fit():
    model = torch.nn.Linear(4, 2)
    with pytest.raises(TypeError, match=r"has pairs \(name, shape\)"):
        relay.frontend.from_pytorch(model, ["x"])
    with pytest.raises(ValueError, match="the shape .* of 'x' has to be of numbers"):
        relay.frontend.from_pytorch(model, [("x", (relay.Any(), 4))])
    with pytest.raises(ValueError, match="takes no custom_convert_map"):
        relay.frontend.from_pytorch(model, [("x", (1, 4))], custom_convert_map={"aten::f": print})
    exported = torch.export.export(model, (torch.zeros(1, 4),))
    with pytest.raises(ValueError, match="takes 1 inputs, input_infos has 2"):
        relay.frontend.from_pytorch(exported, [("x", (1, 4)), ("y", (1, 4))])


def test_from_onnx_freezes_weights_or_returns_them():
    onnx = pytest.importorskip("onnx")
    helper, rng = onnx.helper, np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((64, 3, 3, 3)).astype("float32"),
        "fc": rng.standard_normal((64, 32)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["c"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "fc"], ["y"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "n",
        [helper.make_tensor_value_info("x", kind, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info("y", kind, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    x = rng.standard_normal((2, 3, 8, 8)).astype("float32")
    frozen, none = relay.frontend.from_onnx(model, {"x": x.shape})
    free, params = relay.frontend.from_onnx(model, {"x": x.shape}, freeze_params=False)
    assert none == {} and set(params) == set(weights)
    np.testing.assert_array_equal(params["w"].numpy(), weights["w"])
    assert [str(p.name_hint) for p in free["main"].params] == ["x", "w", "fc"]
    wide = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(weights["w"]), padding=1)
    wanted = wide.mean((2, 3)).numpy() @ weights["fc"]
    for mod, given in ((frozen, none), (free, params)):
        (result,) = _run(mod, given, x)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="is of opset 17, not 13"):
        relay.frontend.from_onnx(model, {"x": x.shape}, opset=13)
    with pytest.raises(ValueError, match="input 'x' is of type float32, not float16"):
        relay.frontend.from_onnx(model, {"x": x.shape}, {"x": "float16"})


def test_other_importers_name_the_way_out():
    with pytest.raises(AttributeError, match="export the network to ONNX"):
        _ = relay.frontend.from_keras


class _Scaled(torch.nn.Module):
    def forward(self, x, *others):
        x -= 1
        x *= others[0]
        return x.sum(-1, dtype=torch.float32) + others[1]


@pytest.mark.filterwarnings("ignore")
def test_a_traced_program_that_writes_to_its_inputs_leaves_the_caller_s_arrays_alone():
    model, inputs = _Scaled(), [torch.rand(3, 4), torch.rand(4), torch.rand(3)]
    kept = [value.clone() for value in inputs]
    traced = torch.jit.trace(model, tuple(v.clone() for v in inputs), check_trace=False)
    infos = [(name, v.shape) for name, v in zip("abc", inputs)]
    mod, params = relay.frontend.from_pytorch(traced, infos)
    (result,) = _run(mod, params, *(v.numpy() for v in inputs))
    for before, after in zip(kept, inputs):
        assert torch.equal(before, after)
    np.testing.assert_allclose(result, model(*inputs).numpy(), rtol=1e-5)


class _Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.std(1), x.var((0, 1)), x.std(), x.std(0, unbiased=False, keepdim=True)),
        lambda x: (x.argmax(1), x.argmin(), x.argmax(0, keepdim=True)),
        lambda x: (*x.topk(2, 0), *x.topk(2, 1, largest=False)),
        lambda x: (*x.sort(1, descending=True), x.argsort(0)),
        lambda x: (x.cumsum(1), x.cumprod(0), x.tril(-1), x.triu(1)),
        lambda x: (
            x.gather(1, torch.tensor([[0, 1], [2, 3], [1, 1]])),
            x.scatter_add(1, torch.tensor([[0, 1]]), torch.ones(1, 2)),
        ),
    ],
    ids=["spread", "places", "topk", "sorts", "running", "indices"],
)
def test_settings_reach_operators_of_relay(function):
    x = torch.randn(3, 5)
    mod, params = relay.frontend.from_pytorch(torch.jit.trace(_Of(function), x), [("x", x.shape)])
    assert "relax." not in mod.astext()
    for got, wanted in zip(_run(mod, params, x.numpy()), function(x), strict=True):
        np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-5, atol=1e-6)
        assert got.dtype == wanted.numpy().dtype


@pytest.mark.filterwarnings("ignore")
def test_a_setting_that_relay_does_not_have_makes_an_operator_of_relax():
    x = torch.randn(3, 5)
    traced = torch.jit.trace(_Of(lambda x: x.var(1, correction=2)), x)
    mod, params = relay.frontend.from_pytorch(traced, [("x", x.shape)])
    assert "relax.variance" in mod.astext()
    (got,) = _run(mod, params, x.numpy())
    np.testing.assert_allclose(got, x.var(1, correction=2).numpy(), rtol=1e-5)
