"""relax.frontend.nn: networks written as modules, traced, and compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import relax, te, tir, topi
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import spec
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def filled(module, seed=0):
    """The module with random values for its parameters, as a state for PyTorch too."""
    rng = np.random.default_rng(seed)
    state = {}
    for name, parameter in module.state_dict().items():
        parameter.data = rng.normal(size=parameter.shape).astype(parameter.dtype) * 0.3
        state[name] = torch.from_numpy(parameter.data.numpy())
    return state


def run(module, *inputs, method="forward"):
    """What the compiled module gives for tensors of PyTorch."""
    method_spec = spec.MethodSpec.from_torch(inputs, getattr(module, method))
    compiled = module.jit(spec.ModuleSpec(module, [method], [method_spec]))
    return compiled[method](*inputs)


def exported(module, **methods):
    return module.export_tvm(methods)


class MLP(nn.Module):
    def __init__(self):
        self.first = nn.Linear(6, 8)
        self.act = nn.ReLU()
        self.layers = nn.ModuleList([nn.Linear(8, 8, bias=False), nn.Identity()])
        self.last = nn.Linear(8, 3, bias=False)

    def forward(self, x: nn.Tensor):
        return self.last(self.layers(self.act(self.first(x))))


def test_a_network_becomes_the_functions_that_its_methods_say():
    class Net(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(4, 2, bias=False)

        def forward(self, x: nn.Tensor):
            return nn.relu(self.layer(x))

        def double(self, x: nn.Tensor):
            return x + x

    @I.ir_module
    class Expected:
        @R.function
        def forward(
            x: R.Tensor((1, 4), "float32"), layer_weight: R.Tensor((2, 4), "float32")
        ) -> R.Tensor((1, 2), "float32"):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                permute_dims = R.permute_dims(layer_weight, axes=None)
                matmul = R.matmul(x, permute_dims)
                relu = R.nn.relu(matmul)
                gv: R.Tensor((1, 2), "float32") = relu
                R.output(gv)
            return gv

        @R.function
        def double(
            x: R.Tensor(("n", 4), "float32"), layer_weight: R.Tensor((2, 4), "float32")
        ) -> R.Tensor(("n", 4), "float32"):
            n = T.int64()
            R.func_attr({"num_input": 1})
            with R.dataflow():
                add = R.add(x, x)
                gv: R.Tensor((n, 4), "float32") = add
                R.output(gv)
            return gv

    net = Net()
    mod, params = exported(
        net,
        forward={"x": spec.Tensor([1, 4], "float32")},
        double={"x": spec.Tensor(["n", 4], "float32")},
    )
    assert [name for name, _ in params] == ["layer.weight"]
    assert params[0][1] is net.layer.weight
    tvm.ir.assert_structural_equal(mod, Expected)


def test_a_network_computes_what_pytorch_does():
    class Reference(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(6, 8)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8, bias=False)])
            self.last = torch.nn.Linear(8, 3, bias=False)

        def forward(self, x):
            return self.last(self.layers[0](torch.relu(self.first(x))))

    module, reference, x = MLP(), Reference(), torch.randn(5, 6)
    reference.load_state_dict(filled(module))
    with torch.no_grad():
        torch.testing.assert_close(run(module, x), reference(x), rtol=1e-4, atol=1e-5)


LAYERS = {
    "conv1d": (
        lambda: nn.Conv1D(4, 6, 3, stride=2, padding=1, groups=2),
        lambda: torch.nn.Conv1d(4, 6, 3, 2, 1, groups=2),
        (2, 4, 9),
    ),
    "conv2d": (
        lambda: nn.Conv2D(3, 5, 3, padding=1, dilation=1),
        lambda: torch.nn.Conv2d(3, 5, 3, padding=1),
        (1, 3, 8, 8),
    ),
    "conv3d": (lambda: nn.Conv3D(2, 3, 3), lambda: torch.nn.Conv3d(2, 3, 3), (1, 2, 5, 5, 5)),
    "conv_transpose": (
        lambda: nn.ConvTranspose1D(4, 3, 3, stride=2, output_padding=1),
        lambda: torch.nn.ConvTranspose1d(4, 3, 3, 2, output_padding=1),
        (1, 4, 6),
    ),
    "layer_norm": (lambda: nn.LayerNorm(6), lambda: torch.nn.LayerNorm(6), (2, 3, 6)),
    "group_norm": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (2, 6, 4)),
    "no_affine": (
        lambda: nn.GroupNorm(2, 6, affine=False),
        lambda: torch.nn.GroupNorm(2, 6, affine=False),
        (2, 6, 4),
    ),
    "rms_norm": (
        lambda: nn.RMSNorm(6, -1, bias=False),
        lambda: torch.nn.RMSNorm(6, eps=1e-5),
        (2, 6),
    ),
    "gelu": (nn.GELU, torch.nn.GELU, (3, 5)),
    "silu": (nn.SiLU, torch.nn.SiLU, (3, 5)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_compute_what_those_of_pytorch_do(name):
    ours, theirs, shape = LAYERS[name]
    module, reference, x = ours(), theirs(), torch.randn(shape)
    reference.load_state_dict(filled(module))
    with torch.no_grad():
        torch.testing.assert_close(run(module, x), reference(x), rtol=1e-4, atol=1e-4)


def test_embedding_takes_indices_of_any_rank():
    module = nn.Embedding(10, 4)
    table = filled(module)["weight"]
    for shape in ((3,), (2, 3)):
        indices = torch.randint(10, shape)
        torch.testing.assert_close(run(module, indices), table[indices])


def test_several_products_of_one_input():
    module, x = nn.MultiLinear(4, [3, 2, 5]), torch.randn(2, 4)
    state = filled(module)
    whole = torch.nn.functional.linear(x, state["weight"], state["bias"])
    for piece, expected in zip(run(module, x), whole.split([3, 2, 5], -1), strict=True):
        torch.testing.assert_close(piece, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scaled", [True, False])
def test_attention_is_that_of_its_definition(scaled):
    module = nn.Attention(8, heads=2, dim_head=4, scale_qk=scaled)
    state, x = filled(module), torch.randn(1, 5, 8)

    def heads(name):
        return (x @ state[f"{name}.weight"].T).reshape(1, 5, 2, 4).transpose(1, 2)

    attended = torch.nn.functional.scaled_dot_product_attention(
        heads("to_q"), heads("to_k"), heads("to_v"), scale=0.5 if scaled else 1.0
    )
    rows = attended.transpose(1, 2).reshape(1, 5, 8)
    expected = rows @ state["to_out.0.weight"].T + state["to_out.0.bias"]
    torch.testing.assert_close(run(module, x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("size", "first"), [(6, False), (7, True)])
def test_embedded_time_steps_are_sines_and_cosines(size, first):
    steps = torch.tensor([0, 3, 50], dtype=torch.int32)
    result = run(nn.Timesteps(size, flip_sin_to_cos=first), steps).numpy()
    half = size // 2
    angles = steps[:, None].numpy() * np.exp(-np.log(10000.0) * np.arange(half) / (half - 1))
    halves = [np.sin(angles), np.cos(angles)]
    expected = np.zeros((3, size))
    expected[:, : 2 * half] = np.concatenate(halves[::-1] if first else halves, -1)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_arithmetic_of_tensors_takes_numbers():
    class Sums(nn.Module):
        def forward(self, x, y):
            z = (1 - x) * 2 + y / 4 - (x + y).maximum(0.5)
            return z, nn.where(x > y, x, 2 * y), (x <= 0).astype("float32")

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    expected = (
        (1 - x) * 2 + y / 4 - (x + y).clamp_min(0.5),
        torch.where(x > y, x, 2 * y),
        (x <= 0).float(),
    )
    for ours, theirs in zip(run(Sums(), x, y), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_operators_on_shapes_and_order():
    class Shapes(nn.Module):
        def forward(self, x):
            a, b = nn.chunk(x, 2, dim=1)
            joined = nn.concat([nn.unsqueeze(a, 0), nn.unsqueeze(b, 0)], 0)
            values, indices = nn.topk(x, 2)
            return (
                joined.permute_dims(1, 0, 2).reshape(3, -1),
                nn.pad(a, [0, 0, 1, 0], value=2.0),
                nn.cumsum(x, 1),
                nn.triu(x),
                nn.sum(nn.square(x), axis=1, keepdims=True),
                values,
                indices,
                nn.sort(x, descending=True),
            )

    x = torch.randn(3, 4)
    a, b = x.chunk(2, 1)
    expected = (
        torch.stack([a, b]).permute(1, 0, 2).reshape(3, -1),
        torch.nn.functional.pad(a, (1, 0), value=2.0),
        x.cumsum(1),
        x.triu(),
        x.square().sum(1, keepdim=True),
        x.topk(2).values,
        x.topk(2).indices.int(),
        x.sort(descending=True).values,
    )
    for ours, theirs in zip(run(Shapes(), x), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_images_are_enlarged():
    class Twice(nn.Module):
        def forward(self, x):
            return nn.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)

    x = torch.randn(1, 2, 3, 4)
    expected = torch.nn.functional.interpolate(
        x, scale_factor=2, mode="bilinear", align_corners=True
    )
    torch.testing.assert_close(run(Twice(), x), expected, rtol=1e-4, atol=1e-5)


def test_kernels_of_users_and_functions_of_the_runtime():
    @T.prim_func(private=True)
    def plus_one(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("plus"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] + T.float32(1)

    @tvm.register_func("test_nn_frontend.halve", override=True)
    def halve(x, out):
        tvm.nd.array(x.numpy() / 2).copyto(out)

    class Custom(nn.Module):
        def forward(self, x):
            out = nn.Tensor.placeholder([4], "float32")
            y = nn.tensor_ir_op(plus_one, "plus_one", [x], out)
            z = nn.tensor_expr_op(lambda v: te.compute((4,), lambda i: v[i] * 3.0), "triple", [y])
            return nn.extern("test_nn_frontend.halve", [nn.relu(z)], out)

    x = torch.tensor([-3.0, 0.0, 1.0, 2.0])
    torch.testing.assert_close(run(Custom(), x), torch.relu((x + 1) * 3) / 2)


def test_arguments_may_be_tuples_and_sizes():
    class Nested(nn.Module):
        def forward(self, pair, n: tir.Var):
            x, (y, z) = pair
            return x + y, nn.reshape(z, [n, 2])

    tensor = spec.Tensor([2, 2], "float32")
    flat = spec.Tensor(["m"], "float32")
    mod, _ = exported(Nested(), forward={"pair": (tensor, [tensor, flat]), "n": int})
    func = mod["forward"]
    assert [str(v.name_hint) for v in func.params] == ["pair", "n"]
    assert isinstance(func.params[0].struct_info, relax.TupleStructInfo)
    assert isinstance(func.params[1].struct_info, relax.ShapeStructInfo)
    assert int(func.attrs["num_input"]) == 2


@pytest.mark.parametrize(("mode", "count"), [("plain", 4), ("packed", 2), ("none", 1)])
def test_weights_are_inputs_as_the_mode_says(mode, count):
    class Use(nn.Module):
        def __init__(self):
            self.inner = MLP()

        def forward(self, x):
            return self.inner(x) if mode != "none" else x

    arguments = {"x": spec.Tensor([1, 6], "float32"), "$": {"param_mode": mode}}
    mod, params = exported(Use(), forward=arguments)
    assert len(params) == 4
    assert len(mod["forward"].params) == (5 if mode == "plain" else count)


def test_states_are_saved_loaded_and_converted():
    source, target = MLP(), MLP()
    filled(source)
    assert list(source.state_dict()) == [
        "first.weight",
        "first.bias",
        "layers.0.weight",
        "last.weight",
    ]
    assert target.load_state_dict(source.state_dict()) == ([], [])
    np.testing.assert_array_equal(
        target.first.weight.data.numpy(), source.first.weight.data.numpy()
    )
    with pytest.raises(KeyError, match=r"Missing keys: \['first.weight'"):
        MLP().load_state_dict({"other": source.last.weight})
    with pytest.raises(ValueError, match="it has float32 values, which would be rounded"):
        source.to("float16")
    fresh = MLP()
    fresh.to("float16")
    assert {p.dtype for p in fresh.parameters()} == {"float16"}
    with pytest.raises(ValueError, match=r"Shape mismatch: expected \(8, 6\), got \(2,\)"):
        fresh.first.weight.data = np.zeros(2, "float16")
    with pytest.raises(ValueError, match="not set to any concrete values: first.weight"):
        run(MLP(), torch.zeros(1, 6))


def test_defaults_of_element_types_can_be_changed():
    nn.set_default_dtype("float16")
    try:
        assert nn.Linear(2, 2).weight.dtype == nn.get_default_dtype() == "float16"
    finally:
        nn.set_default_dtype("float32")


def test_parts_of_a_network_are_replaced():
    class Wider(nn.Mutator):
        def visit_module(self, name, node):
            if isinstance(node, nn.ReLU):
                return nn.SiLU()
            if name == "layers.0":
                return nn.Identity()
            return super().visit_module(name, node)

        def visit_param(self, name, node):
            return nn.Parameter(node.shape, "float16") if name == "first.bias" else node

    module = Wider().visit_module("", MLP())
    assert isinstance(module.act, nn.SiLU) and isinstance(module.layers[0], nn.Identity)
    assert module.first.bias.dtype == "float16" and module.first.weight.dtype == "float32"


def test_modules_alike_share_a_function():
    class Block(nn.Module):
        define_subroutine = True

        def __init__(self, size):
            self.layer = nn.Linear(size, size)

        def forward(self, x):
            return nn.relu(self.layer(x))

    class Net(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([Block(4), Block(4)])

        def forward(self, x):
            return self.blocks(x)

    net = Net()
    mod, _ = exported(net, forward={"x": spec.Tensor(["n", 4], "float32")})
    assert sorted(str(gvar.name_hint) for gvar in mod.functions) == ["block", "forward"]
    assert "global_symbol" not in (mod["block"].attrs or {})
    names = [str(b.value.op.name_hint) for b in mod["forward"].body.blocks[0].bindings[:2]]
    assert names == ["block", "block"]
    # The parameters are those of the network again.
    assert net.blocks[0].layer.weight.shape == [4, 4]


def test_debugging_calls_are_kept_in_order():
    class Shows(nn.Module):
        def forward(self, x):
            nn.print_(x)
            nn.debug_func("user.check", x, 1, 2.0, "text")
            return x

    arguments = {"forward": {"x": spec.Tensor([2], "float32")}}
    mod, _ = Shows().export_tvm(arguments, debug=True)
    assert len(mod["_initialize_effect"].params) == 0
    calls = [
        binding.value
        for binding in mod["forward"].body.blocks[0].bindings
        if isinstance(binding.value, relax.Call)
    ]
    shown = [str(call.args[2].value) for call in calls]
    assert shown == ["vm.builtin.debug_print", "user.check"]
    assert calls[1].args[1].same_as(mod["forward"].body.blocks[0].bindings[0].var)
    assert "test_nn_frontend.py" in str(calls[0].args[3].value)
    with pytest.raises(RuntimeError, match="only supported when debug mode is on"):
        Shows().export_tvm(arguments)


def test_a_cache_is_handed_on():
    class Rows(nn.Module):
        def __init__(self):
            self.cache = nn.KVCache(8, [2, 4])

        def forward(self, x, total: tir.Var):
            self.cache.append(x)
            return self.cache.view(total)

    row = spec.Tensor([1, 2, 4], "float32")
    mod, _ = exported(Rows(), forward={"x": row, "total": int})
    assert [str(v.name_hint) for v in mod["forward"].params] == ["x", "total", "cache"]
    assert isinstance(mod["forward"].ret_struct_info, relax.TupleStructInfo)
    with pytest.raises(TypeError, match='set to use dtype "float32", but got "float16"'):
        exported(Rows(), forward={"x": spec.Tensor([1, 2, 4], "float16"), "total": int})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"y": int}, ValueError, r"unknown: \['y'\], missing: \['x'\]"),
        ({"x": 3.5}, TypeError, "Invalid spec for argument x: 3.5"),
        ({"x": int, "$": {"param_mode": "some"}}, ValueError, "Invalid param_mode: some"),
    ],
)
def test_wrong_specifications_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        exported(MLP(), forward=arguments)


def test_operators_outside_of_a_network_are_refused():
    with pytest.raises(RuntimeError, match="relu is applied outside of a network"):
        nn.relu(nn.Tensor.from_const(np.zeros(2, "float32")))
    with pytest.raises(ValueError, match="MLP has no method backward"):
        exported(MLP(), backward={})


def test_pipelines_have_names():
    mod, _ = exported(MLP(), forward={"x": spec.Tensor([1, 6], "float32")})
    for name in ("zero", "default_build"):
        relax.build(relax.get_pipeline(name)(mod), "llvm")

    @relax.register_pipeline("test_nn_frontend")
    def normalized():
        return relax.transform.Normalize()

    tvm.ir.assert_structural_equal(relax.get_pipeline("test_nn_frontend")(mod), mod)
    with pytest.raises(ValueError, match=r"Unknown pre-built pipeline none, candidates are \["):
        relax.get_pipeline("none")
    with pytest.raises(ValueError, match="zero has already been registered"):
        relax.register_pipeline("zero")


def test_functions_are_built_inside_of_others():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([2], "float32"))
    with builder.function("main", [x]):
        y = relax.Var("y", relax.TensorStructInfo([2], "float32"))
        with builder.function("inner", [y], private=True):
            inner = builder.emit_func_output(builder.emit(relax.op.nn.relu(y)))
        called = builder.emit(relax.Call(inner, [x]))
        builder.emit_func_output(builder.emit_te(topi.add, called, called))
    mod = builder.get()
    assert {"main", "inner"} <= {str(gvar.name_hint) for gvar in mod.functions}
    assert relax.analysis.well_formed(mod)


def test_compile_takes_graphs_and_kernels():
    mod, _ = exported(MLP(), forward={"x": spec.Tensor([1, 6], "float32")})
    assert isinstance(tvm.compile(mod, "llvm"), relax.Executable)
    with tvm.target.Target("llvm"):
        assert isinstance(tvm.compile(mod, relax_pipeline="zero"), relax.Executable)

    @T.prim_func
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    a, b = tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.empty((4,))
    tvm.compile(twice)(a, b)
    assert b.numpy().tolist() == [0, 2, 4, 6]
