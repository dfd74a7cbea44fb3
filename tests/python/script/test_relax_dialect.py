"""Graph functions as text: written by hand, printed, and read again."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from testing_script import check_round_trip
from tvm import relax, te, tir
from tvm.error import DiagnosticError
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Mixed:
    @T.prim_func
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n = T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(
        x: R.Tensor((1, "m"), "float32"),
        w: R.Tensor(("n", "m"), "float32"),
        b: R.Tensor(("n",), "float32"),
    ):
        m, n = T.int64(), T.int64()  # noqa: F841
        with R.dataflow():
            lv = R.call_dps_packed("linear", (x, w, b), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("script.relu", (lv,), R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("script.relu", (lv1,), R.Tensor((1, n), "float32"))
            R.output(out)
        return out


def test_a_module_of_both_dialects_comes_back():
    check_round_trip(Mixed)
    text = str(Mixed["main"])
    assert 'x: R.Tensor((1, "m"), dtype="float32")' in text
    assert "m, n = T.int64(), T.int64()" in text
    call = 'R.call_dps_packed("linear", (x, w, b), out_sinfo=R.Tensor((1, n), dtype="float32"))'
    assert call in text
    assert "R.output(out)" in text
    assert '-> R.Tensor((1, n), dtype="float32")' in text.replace('"n"', "n")


def test_types_that_are_not_written_are_worked_out():
    bindings = Mixed["main"].body.blocks[0].bindings
    assert isinstance(bindings[0].var, relax.DataflowVar)
    assert not isinstance(bindings[-1].var, relax.DataflowVar)
    assert str(bindings[-1].var.struct_info) == 'R.Tensor((1, n), dtype="float32")'


def plus_one(a):
    return te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="one")


def network():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    weight = relax.const(np.arange(64, dtype="float32").reshape(8, 8))
    with bb.function("main", [x], attrs={"note": 1}):
        with bb.dataflow():
            lv = bb.emit(relax.op.matmul(x, weight))
            lv = bb.emit(relax.op.multiply(lv, relax.const(2.0)))
            lv = bb.emit_te(plus_one, lv)
            parts = bb.emit(relax.op.split(lv, 2, 0))
            first = bb.emit(relax.TupleGetItem(parts, 0))
            out = bb.emit_output(relax.op.nn.relu(relax.op.add(first, first)))
        after = bb.emit(out)
        bb.emit_func_output([after, out])
    return bb.get()


def test_networks_with_constants_come_back_with_their_metadata():
    mod = network()
    text = mod.script()
    assert 'metadata["relax.expr.Constant"][0]' in text
    assert text.endswith("# Metadata omitted. Use show_meta=True in script() method to show it.")
    assert "cls = Module" in text
    assert "R.call_tir(cls." in text
    assert 'R.const(2.0, "float32")' in text
    assert 'R.func_attr({"note": 1})' in text
    whole = mod.script(show_meta=True)
    assert "metadata = tvm.ir.load_json(" in whole
    assert "Metadata omitted" not in whole
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(whole))
    with pytest.raises(DiagnosticError, match=r"write the text with script\(show_meta=True\)"):
        tvm.script.from_source(text)


def test_networks_that_were_read_compute_the_same():
    mod = network()
    again = tvm.script.from_source(mod.script(show_meta=True))
    x = tvm.nd.array(np.random.default_rng(0).standard_normal((4, 8)).astype("float32"))
    results = []
    for program in (mod, again):
        vm = relax.VirtualMachine(relax.build(program, "llvm"), tvm.cpu())
        results.append([part.numpy() for part in vm["main"](x)])
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)


def test_the_text_of_older_versions_is_read_under_its_name():
    mod = network()
    assert mod.astext() == mod.script(show_meta=True)
    tvm.ir.assert_structural_equal(mod, tvm.parser.parse(mod.astext()))
    tvm.ir.assert_structural_equal(mod["main"], tvm.parser.parse(mod["main"].astext()))
    func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "f")
    tvm.ir.assert_structural_equal(func, tvm.parser.parse(func.astext()))
    for wrong in ("def @main(%x: Tensor[(1), float32]) { foo(%x) }", "def main(x) return x"):
        with pytest.raises(DiagnosticError, match=r"old\.txt:1:"):
            tvm.parser.parse(wrong, "old.txt")


def test_an_imported_network_comes_back():
    torch = pytest.importorskip("torch")
    from tvm.relax.frontend.torch import from_exported_program

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(4)
            self.dense = torch.nn.Linear(4, 5)

        def forward(self, x):
            y = torch.relu(self.norm(self.conv(x))).mean(dim=(2, 3))
            a, b = torch.split(torch.softmax(self.dense(y), -1), [2, 3], dim=1)
            return torch.cat([b, a * 0.5], dim=1), y.reshape(-1)

    exported = torch.export.export(Net().eval(), (torch.randn(2, 3, 6, 6),))
    mod = from_exported_program(exported)
    check_round_trip_with_metadata(mod)
    check_round_trip_with_metadata(relax.transform.FuseOps()(mod))


def check_round_trip_with_metadata(mod):
    tvm.ir.assert_structural_equal(mod, tvm.script.from_source(mod.script(show_meta=True)))


def test_struct_info_of_all_kinds_comes_back():
    n = tir.SizeVar("n", "int64")
    infos = [
        relax.ObjectStructInfo(),
        relax.PrimStructInfo("int64"),
        relax.ShapeStructInfo([n, 4]),
        relax.ShapeStructInfo(None, 3),
        relax.TensorStructInfo((n, n * 2 + 1), "int8"),
        relax.TensorStructInfo(None, "float32", ndim=2),
        relax.TensorStructInfo(None, "float16"),
        relax.TupleStructInfo([relax.ObjectStructInfo(), relax.TupleStructInfo([])]),
        None,
    ]
    params = [relax.Var("x", info) for info in infos]
    shape = relax.ShapeExpr([n, 3])
    call = relax.Call(relax.ExternFunc("f.g"), params[:2], {"k": [1, "a"]}, [infos[4]], infos[4])
    y, z = relax.Var("x", infos[4]), relax.Var("if", shape.struct_info)
    blocks = [
        relax.BindingBlock([relax.VarBinding(y, call)]),
        relax.BindingBlock([relax.VarBinding(z, shape)]),
        relax.DataflowBlock([]),
    ]
    body = relax.SeqExpr(blocks, relax.Tuple([y, z]))
    func = relax.Function(params, body, is_pure=False)
    text = str(func)
    assert "@R.function(private=True, pure=False)" in text
    assert "if_: R.Shape([n, 3]) = R.shape([n, 3])" in text
    assert 'R.call_packed("f.g", x, x_1, sinfo_args=(R.Tensor(' in text
    check_round_trip(func)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["return y"], "`y` is not defined here"),
        (["y = R.ad(x, x)", "return y"], "there is no construct `R.ad`(.|\n)*did you mean `R.add`"),
        (["return x + y"], "`y` is not defined here"),
        (['return "x"'], "is not a graph expression"),
        (["y = R.add(x, R.const([1.0, 2.0], 'float32'))", "return y"], "do not broadcast"),
        (["y = R.add(x, x)"], "`f` returns nothing"),
        (["with R.dataflow():", "    y = R.add(x, x)", "return x"], "R.output"),
        (
            ["with R.dataflow():", "    y = R.add(x, x)", "    R.output(z)", "return x"],
            "R.output names `z`",
        ),
        (
            ["with R.dataflow():", "    y = R.add(x, x)", "    z = R.add(x, x)",
             "    R.output(z)", "return y"],
            "`y` is not defined here",
        ),
        (["y: R.add = x", "return y"], "is not the type of a graph value"),
        (["y: R.Tensor((5,)) = x", "return y"], "`y` is said to be"),
        (["if x:", "    y = x", "else:", "    z = x", "return x"], "the branches end with"),
        (["for i in x:", "    pass"], "is not a line of a graph function"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_graph_is_named(lines, message):
    head = ["@R.function", 'def f(x: R.Tensor((4,), "float32")):']
    with pytest.raises(DiagnosticError, match=message):
        tvm.script.from_source("\n".join([*head, *("    " + line for line in lines)]))


def test_operators_written_by_hand_take_their_defaults():
    @R.function
    def f(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4,), "float32"):
        return R.sum(x, axis=[1])

    assert str(f.ret_struct_info) == 'R.Tensor((4,), dtype="float32")'
    assert "keepdims=False" in str(f)
    check_round_trip(f)


def test_a_module_of_tensor_and_registered_functions_runs():
    @tvm.register_func("script.relu", override=True)
    def relu(source, out):
        out.copyfrom(np.maximum(source.numpy(), 0))

    rng = np.random.default_rng(0)
    w, b, x = (rng.standard_normal(s).astype("float32") for s in ((5, 8), (5,), (1, 8)))
    bound = relax.transform.BindParams("main", {"w": w, "b": b})(Mixed)
    text = str(bound["main"])
    assert 'def main(x: R.Tensor((1, 8), dtype="float32")) -> R.Tensor((1, 5)' in text
    check_round_trip_with_metadata(bound)
    vm = relax.VirtualMachine(relax.build(bound, "llvm"), tvm.cpu())
    result = vm["main"](tvm.nd.array(x)).numpy()
    np.testing.assert_allclose(result, np.maximum(x @ w.T + b, 0), rtol=1e-5)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        (lambda n, c: (c, n), "T.index_map(lambda n, c: [c, n])"),
        (
            lambda n, c: (n, c // 3, c % 3),
            "T.index_map(lambda n, c: [n, c // T.int64(3), c % T.int64(3)])",
        ),
    ],
)
def test_index_maps_of_graphs_are_functions(order, text):
    x = relax.Var("x", relax.TensorStructInfo((4, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.layout_transform(x, order)))
    func = builder.get()["main"]
    assert text in func.script()
    check_round_trip(func)
