"""Import from PyTorch: each operator, structure of inputs and outputs, and refusals."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tvm
from tvm import relax
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.torch import from_exported_program, from_module

torch.manual_seed(0)


class Lambda(nn.Module):
    """A module without parameters."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, *args):
        return self.fn(*args)


X4 = torch.randn(2, 4, 8, 9)
X2 = torch.randn(3, 4)

MODULES = {
    "conv_bias": (nn.Conv2d(4, 6, 3, padding=1), X4),
    "conv_strided_dilated": (nn.Conv2d(4, 6, (3, 2), stride=(2, 1), dilation=(1, 2)), X4),
    "conv_grouped": (nn.Conv2d(4, 6, 3, groups=2), X4),
    "conv_depthwise": (nn.Conv2d(4, 8, 3, groups=4, padding="same"), X4),
    "conv_bn_relu6": (nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU6()), X4),
    "batch_norm_alone": (nn.BatchNorm2d(4), X4),
    "batch_norm_1d": (nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5)), X2),
    "linear": (nn.Linear(4, 5), X2),
    "linear_without_bias": (nn.Linear(9, 5, bias=False), X4),
    "inplace_relu": (nn.Sequential(nn.Conv2d(4, 4, 1), nn.ReLU(inplace=True)), X4),
    "hardtanh": (nn.Hardtanh(-0.5, 0.25), X2),
    "hardswish": (nn.Hardswish(), X2),
    "hardsigmoid": (nn.Hardsigmoid(), X2),
    "sigmoid": (nn.Sigmoid(), X2),
    "gelu": (nn.GELU(), X2),
    "gelu_tanh": (nn.GELU(approximate="tanh"), X2),
    "silu": (nn.SiLU(), X2),
    "leaky_relu": (nn.LeakyReLU(0.2), X2),
    "max_pool": (nn.MaxPool2d(3, stride=2, padding=1), X4),
    "max_pool_ceil": (nn.MaxPool2d(2, ceil_mode=True), X4),
    "avg_pool": (nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), X4),
    "adaptive_avg_pool": (nn.AdaptiveAvgPool2d((2, 3)), X4),
    "global_pool": (nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), X4),
    "softmax": (nn.Softmax(dim=1), X2),
    "log_softmax": (nn.LogSoftmax(dim=-1), X2),
    "dropout": (nn.Dropout(0.9), X2),
    "dropout_in_place": (nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.9, inplace=True)), X2),
    "mean": (Lambda(lambda x: x.mean((2, 3))), X4),
    "mean_all": (Lambda(lambda x: x.mean()), X4),
    "sum": (Lambda(lambda x: x.sum(1, keepdim=True)), X4),
    "amax": (Lambda(lambda x: x.amax(-1)), X4),
    "arithmetic": (Lambda(lambda x: (2 - x) * x / 3 + torch.add(x, x, alpha=0.5)), X2),
    "square": (Lambda(lambda x: x**2 + x**3), X2.abs()),
    "views": (Lambda(lambda x: x.view(2, 4, -1).transpose(1, 2).unsqueeze(1).squeeze(1)), X4),
    "permute_reshape": (Lambda(lambda x: x.permute(0, 2, 3, 1).reshape(2, -1)), X4),
    "cat": (Lambda(lambda x: torch.cat([x, x * 2], 1)), X4),
    "chunk": (Lambda(lambda x: x.chunk(2, 1)[0] * x.chunk(2, 1)[1]), X4),
    "slice": (Lambda(lambda x: x[:, 1:3, ::2]), X4),
    "pad": (Lambda(lambda x: F.pad(x, (1, 2, 0, 1), value=0.5)), X4),
    "expand": (Lambda(lambda x: x + x.mean(0, keepdim=True).expand(3, 4)), X2),
    "matmul": (Lambda(lambda x: x @ x.transpose(-1, -2)), X4),
    "mm": (Lambda(lambda x: torch.mm(x, x.t())), X2),
    "addmm": (Lambda(lambda x: torch.addmm(x @ x.t(), x, x.t(), beta=0.5, alpha=2.0)), X2),
    "clamp": (Lambda(lambda x: x.clamp(min=-0.5)), X2),
    "to_half_and_back": (Lambda(lambda x: x.to(torch.float64).to(torch.float32)), X2),
}


@pytest.mark.parametrize("name", MODULES)
def test_imported_module_equals_torch(run, name):
    module, x = MODULES[name]
    with torch.no_grad():
        expected = module.eval()(x).numpy()
    np.testing.assert_allclose(run(from_module(module, (x,)), x.numpy()), expected, 1e-4, 1e-5)


def test_import_uses_eval_mode_and_restores_the_flags(run):
    module = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4)).train()
    module[0].eval()
    mod = from_module(module, (X2,))
    assert [m.training for m in module.modules()] == [True, False, True]
    with torch.no_grad():
        np.testing.assert_allclose(run(mod, X2.numpy()), module.eval()(X2).numpy(), 1e-4, 1e-5)


def test_inputs_and_tuple_outputs_keep_their_order(run):
    def swap(a, b):
        return {"sum": a + b, "pair": (b, a)}

    mod = from_module(Lambda(swap), (X2, X2 * 2))
    results = run(mod, X2.numpy(), 2 * X2.numpy())
    for result, factor in zip(results, (3, 2, 1)):
        np.testing.assert_allclose(result, factor * X2.numpy(), rtol=1e-6)


def test_parameters_become_inputs_on_request(run):
    module = nn.Linear(4, 5).eval()
    program = torch.export.export(module, (X2,))
    mod = from_exported_program(program, keep_params_as_input=True)
    params = mod["main"].params
    assert len(params) == 3
    with torch.no_grad():
        expected = module(X2).numpy()
    bare, values = detach_params(mod)
    assert int(mod["main"].attrs["num_input"]) == 1 and "params" not in bare["main"].attrs
    weights = [value.numpy() for value in values["main"]]
    for weight, parameter in zip(weights, (module.weight, module.bias), strict=True):
        np.testing.assert_array_equal(weight, parameter.detach().numpy())
    np.testing.assert_allclose(run(bare, X2.numpy(), *weights), expected, 1e-4, 1e-5)


class WritesToAView(nn.Module):
    """The result of the convolution changes after it has been read through another name."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        y = self.conv(x)
        y.view(-1).relu_()
        z = y + 1
        y.add_(z)
        return y * z


def test_in_place_operators_change_every_name_of_their_tensor(run):
    module = WritesToAView().eval()
    with torch.no_grad():
        expected = module(X4).numpy()
    np.testing.assert_allclose(run(from_module(module, (X4,)), X4.numpy()), expected, 1e-4, 1e-5)


class Unsupported(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Sequential(Lambda(torch.linalg.matrix_exp))
        self.inner = nn.Sequential(
            nn.Conv2d(4, 4, 1), Lambda(lambda x: torch.fft.rfft(x).cosh().abs())
        )

    def forward(self, x):
        return self.inner(self.up(self.up(x)))


def test_unsupported_operators_are_named_once_with_a_module_and_a_count():
    with pytest.raises(ValueError) as caught:
        from_module(Unsupported(), (torch.randn(1, 4, 8, 8),))
    message = str(caught.value)
    assert "aten.linalg_matrix_exp.default, used by up.0 (Lambda) and 1 more" in message
    assert "cosh.default (computes with complex numbers), used by inner.1" in message
    assert "conv2d" not in message


def test_program_that_writes_to_a_buffer_is_refused():
    program = torch.export.export(nn.BatchNorm1d(4).train(), (X2,))
    with pytest.raises(ValueError, match="in training mode|is the module in eval mode"):
        from_exported_program(program)


def test_a_buffer_that_is_set_to_itself_is_not_written_to(run):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.randn(4))

        def forward(self, x):
            self.table = self.table.to(x.device)
            return x + self.table

    net, x = Net().eval(), torch.randn(2, 4)
    result = run(from_module(net, (x,)), x.numpy())
    np.testing.assert_allclose(result, net(x).numpy(), rtol=1e-6)


def test_checks_of_all_elements_leave_nothing_behind(run):
    """As transformers' deformable attention has them."""

    def checked(x, sizes):
        torch._check_tensor_all(sizes.sum() == x.shape[0], lambda: "sizes of other rows")
        return x * 2

    x, sizes = torch.randn(3), torch.tensor([1, 2])
    program = torch.export.export(Lambda(checked), (x, sizes))
    result = run(from_exported_program(program), x.numpy(), sizes.numpy())
    np.testing.assert_allclose(result, 2 * x.numpy(), rtol=1e-6)


def test_constant_weights_are_shared_with_no_copy_of_the_graph():
    mod = from_module(nn.Linear(4, 5), (X2,))
    bindings = mod["main"].body.blocks[0].bindings
    weight = bindings[0].value.args[1]
    assert isinstance(weight, relax.Constant)
    assert isinstance(weight.data, tvm.nd.NDArray)


def test_a_single_result_stays_in_a_tuple_on_request(run):
    program = torch.export.export(nn.ReLU(), (X2,))
    for unwrap, info in ((True, relax.TensorStructInfo), (False, relax.TupleStructInfo)):
        mod = from_exported_program(program, unwrap_unit_return_tuple=unwrap)
        assert isinstance(mod["main"].ret_struct_info, info)
    (result,) = run(mod, X2.numpy())
    np.testing.assert_array_equal(result, X2.relu().numpy())


def test_a_tuple_of_results_is_a_variable_on_request(run):
    program = torch.export.export(Lambda(lambda x: (x.relu(), x + 1)), (X2,))
    for no_bind, kind in ((True, relax.Tuple), (False, relax.Var)):
        mod = from_exported_program(program, no_bind_return_tuple=no_bind)
        assert isinstance(mod["main"].body.body, kind)
        assert relax.analysis.well_formed(mod)
        results = run(mod, X2.numpy())
        np.testing.assert_array_equal(results[0], X2.relu().numpy())
        np.testing.assert_array_equal(results[1], (X2 + 1).numpy())
