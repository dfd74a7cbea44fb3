"""Names that programs ask for now and then."""

import numpy as np

import tvm
from tvm import relax
from tvm.relax.backend import get_patterns_with_prefix
from tvm.relax.backend.contrib.cudnn import partition_for_cudnn
from tvm.relax.frontend import nn
from tvm.script import ir as I
from tvm.script import relax as R


def test_samples_are_the_first_choices_whose_sums_exceed_numbers():
    builder = relax.BlockBuilder()
    prob = relax.Var("prob", R.Tensor((3, 5), "float32"))
    number = relax.Var("number", R.Tensor((6, 1), "float32"))
    row = relax.Var("row", R.Tensor((6, 1), "int64"))
    with builder.function("main", [prob, number, row]):
        builder.emit_func_output(builder.emit(relax.op.multinomial_from_uniform(prob, number, row)))
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), 3).astype("float32")
    u, rows = rng.random((6, 1)).astype("float32"), rng.integers(0, 3, (6, 1))
    got = machine["main"](tvm.nd.array(p), tvm.nd.array(u), tvm.nd.array(rows)).numpy()
    expected = [
        np.searchsorted(p[r].cumsum(), x, side="right") for r, x in zip(rows[:, 0], u[:, 0])
    ]
    np.testing.assert_array_equal(got[:, 0], expected)


def test_metadata_is_parted_from_the_text():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.add(x, R.const([1.0, 2.0, 3.0, 4.0], "float32"))

    program, metadata = relax.utils.metadata_partitioner(Module.script(show_meta=True))
    assert program.startswith("@I.ir_module")
    assert "relax.expr.Constant" in tvm.ir.load_json(metadata)


def test_extents_are_never_negative():
    n, m = tvm.tir.Var("n", "int64"), tvm.tir.Var("m", "int64")
    info = R.Tuple(R.Tensor((n, 4), "float32"), R.Shape([n, m + 1]))
    found = relax.analysis.collect_non_negative_expressions(info)
    assert [str(extent) for extent in found] == ["n", "m + T.int64(1)"]


def test_names_of_functions_know_what_these_take_and_give():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return R.add(x, x)

    name = Module.get_global_var("main")
    assert name.struct_info == Module["main"].struct_info
    assert tvm.ir.structural_equal(name, tvm.ir.GlobalVar("main"))


def test_convolutions_are_cut_out_for_cudnn():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((1, 8, 8, 4), "float16"), w: R.Tensor((8, 3, 3, 4), "float16")):
            with R.dataflow():
                y = R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OHWI")
                R.output(y)
            return y

    assert len(get_patterns_with_prefix("cudnn")) == 7
    names = {
        str(func.attrs["Codegen"])
        for func in partition_for_cudnn(Module).functions.values()
        if "Codegen" in func.attrs
    }
    assert names == {"cudnn"}


def test_modules_by_name_have_parameters_of_that_name():
    class Net(nn.Module):
        def __init__(self):
            self.layers = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)})

        def forward(self, x):
            for layer in self.layers.values():
                x = nn.op.softplus(layer(x))
            return x

    _, parameters = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 4), "float32")}})
    assert [name for name, _ in parameters][:3] == [
        "layers.a.weight", "layers.a.bias", "layers.b.weight",
    ]  # fmt: skip
