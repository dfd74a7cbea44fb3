"""Functions in C++ among the modules of a network."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.runtime.linker import create_object

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

SOURCE = """
#include <dlpack/dlpack.h>
#include <tvm/runtime/packed_func.h>
#include <stdexcept>

namespace {
int scaled(DLTensor* a, DLTensor* b, double factor, DLTensor* c) {
  if (a->ndim != 1) throw std::runtime_error("scaled takes vectors");
  const auto* x = static_cast<const float*>(a->data);
  const auto* y = static_cast<const float*>(b->data);
  auto* z = static_cast<float*>(c->data);
  for (int64_t i = 0; i < a->shape[0]; ++i) z[i] = x[i] + static_cast<float>(factor) * y[i];
  return 0;
}
}  // namespace
TVM_DLL_EXPORT_TYPED_FUNC(test_scaled, scaled);
"""


def same_shape(a, b, factor):
    return nn.Tensor.placeholder(a.shape, a.dtype)


class Net(nn.Module):
    def __init__(self, module):
        self.functions = module

    def forward(self, a: nn.Tensor, b: nn.Tensor):
        return nn.op.relu(self.functions["test_scaled"](a, b, 0.5))


def source_module():
    # Without optimisation it is compiled in half of the time.
    options = [*nn.SourceModule.get_compile_options("cpp"), "-O0"]
    return nn.SourceModule({"test_scaled": same_shape}, SOURCE, "cpp", options)


def spec_of(extent):
    return {"forward": {name: nn.spec.Tensor([extent], "float32") for name in "ab"}}


@pytest.fixture(scope="module")
def module():
    compiled = source_module().load()
    made = nn.SourceModule({"test_scaled": same_shape}, SOURCE, "cpp")
    made.load = lambda: compiled
    return made


@pytest.mark.parametrize("extent", [5, "n"])
def test_a_source_is_linked_into_the_library(module, tmp_path, extent):
    mod, params, externs = Net(module).export_tvm(spec_of(extent), allow_extern=True)
    assert params == [] and externs == [module]
    executable = relax.build(relax.transform.AttachExternModules(externs)(mod))
    executable.export_library(tmp_path / "net.so")
    a, b = np.random.default_rng(0).standard_normal((2, 5)).astype("float32")
    for built in (executable, relax.load_executable(tmp_path / "net.so")):
        run = relax.VirtualMachine(built)["forward"]
        got = run(tvm.nd.array(a), tvm.nd.array(b)).numpy()
        np.testing.assert_allclose(got, np.maximum(a + 0.5 * b, 0), rtol=1e-6)


def test_a_method_adds_the_module_whose_function_it_names(module):
    class Scaled(nn.Module):
        def forward(self, a: nn.Tensor, b: nn.Tensor):
            nn.add_extern(module)
            return nn.op.extern("test_scaled", [a, b, 0.5], nn.Tensor.placeholder([5], "float32"))

    mod, _, externs = Scaled().export_tvm(spec_of(5), allow_extern=True)
    assert externs == [module]
    built = relax.build(relax.transform.AttachExternModules(externs)(mod))
    a, b = np.random.default_rng(1).standard_normal((2, 5)).astype("float32")
    got = relax.VirtualMachine(built)["forward"](tvm.nd.array(a), tvm.nd.array(b)).numpy()
    np.testing.assert_allclose(got, a + 0.5 * b, rtol=1e-6)
    with pytest.raises(ValueError, match="allow_extern"):
        Scaled().export_tvm(spec_of(5))
    with pytest.raises(RuntimeError, match="no network is being exported"):
        nn.add_extern(module)


def test_a_network_is_called_with_tensors_of_pytorch(module):
    import torch

    a, b = torch.randn(2, 4)
    out = Net(module).jit(spec_of(4))["forward"](a, b)
    torch.testing.assert_close(out, torch.relu(a + 0.5 * b))


def test_an_object_file_serves_as_well(tmp_path):
    source = tmp_path / "add.c"
    source.write_text(
        "#include <tvm/runtime/c_runtime_api.h>\n"
        "int32_t test_next(const TVMAny* args, int32_t count, TVMAny* ret) {\n"
        "  const float* a = (const float*)((DLTensor*)args[0].v_handle)->data;\n"
        "  float* c = (float*)((DLTensor*)args[1].v_handle)->data;\n"
        "  c[0] = a[0] + 1;\n"
        "  (void)count;\n  ret->type_code = kTVMNull;\n  return 0;\n}\n"
    )
    create_object(tmp_path / "add.o", [source])

    class Next(nn.Module):
        def __init__(self):
            self.functions = nn.ObjectModule({"test_next": nn.op.relu}, tmp_path / "add.o")

        def forward(self, x: nn.Tensor):
            return nn.op.relu(self.functions["test_next"](x))

    spec = {"forward": {"x": nn.spec.Tensor([1], "float32")}}
    mod, _, externs = Next().export_tvm(spec, allow_extern=True)
    built = relax.build(relax.transform.AttachExternModules(externs)(mod))
    one = tvm.nd.array(np.ones(1, "float32"))
    assert relax.VirtualMachine(built)["forward"](one).numpy() == [2]


def test_wrong_modules_and_failures_are_named(module, tmp_path):
    with pytest.raises(ValueError, match="Turn on flag `allow_extern`"):
        Net(module).export_tvm(spec_of(1))
    with pytest.raises(ValueError, match="there is no file .*missing.o"):
        nn.ObjectModule({}, tmp_path / "missing.o")
    with pytest.raises(ValueError, match="there is no file .*missing.cc"):
        nn.SourceModule({}, tmp_path / "missing.cc", "cpp")
    with pytest.raises(ValueError, match="source_format must be one of"):
        nn.SourceModule({}, SOURCE, "rust")
    with pytest.raises(KeyError, match="no function 'other'; it has test_scaled"):
        module["other"]
    with pytest.raises(RuntimeError, match="failed:\n(.|\n)*not_a_type"):
        nn.SourceModule({}, "not_a_type x;\n", "cpp").load()
    mod, _, externs = Net(module).export_tvm(
        {"forward": {n: nn.spec.Tensor([1, 1], "float32") for n in "ab"}}, allow_extern=True
    )
    built = relax.build(relax.transform.AttachExternModules(externs)(mod))
    x = tvm.nd.array(np.ones((1, 1), "float32"))
    with pytest.raises(RuntimeError, match="scaled takes vectors"):
        relax.VirtualMachine(built)["forward"](x, x)
