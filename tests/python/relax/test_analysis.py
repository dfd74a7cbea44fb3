"""Well-formed modules, and the faults that are refused."""

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax import op, transform
from tvm.relax.analysis import check_well_formed, well_formed

INFO = relax.TensorStructInfo((2, 3))
X = relax.Var("x", INFO)


def module_of(*bindings, result=None, params=(X,), dataflow=True):
    block = relax.DataflowBlock if dataflow else relax.BindingBlock
    pairs = [relax.VarBinding(var, value) for var, value in bindings]
    body = relax.SeqExpr([block(pairs)], result if result is not None else pairs[-1].var)
    return tvm.IRModule({relax.GlobalVar("main"): relax.Function(params, body)})


Y, LOCAL = relax.Var("y", INFO), relax.DataflowVar("lv", INFO)

FAULTS = {
    "reads 'y', which is not visible": module_of((LOCAL, op.exp(Y)), (Y, op.exp(LOCAL))),
    "the result reads 'lv'": module_of((LOCAL, op.exp(X)), result=LOCAL),
    "binds 'y' a second time": module_of((Y, op.exp(X)), (Y, op.exp(X))),
    "has Call as an argument": module_of((Y, op.exp(op.exp(X)))),
    "outside a dataflow block": module_of((LOCAL, op.exp(X)), (Y, op.exp(LOCAL)), dataflow=False),
    "calls 'absent', which the module": module_of(
        (Y, relax.Call(relax.GlobalVar("absent"), [X], struct_info=INFO))
    ),
    "leaves 'z' without struct info": module_of(
        (Y, op.exp(X)), params=(X, relax.Var("z", None))
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_refused_with_its_place(fault):
    with pytest.raises(ValueError, match=f"function 'main': .*{fault}"):
        check_well_formed(FAULTS[fault])
    assert not well_formed(FAULTS[fault])


def test_passes_keep_modules_well_formed(make_module):
    def body(bb, x):
        conv = op.nn.conv2d(x, relax.const(np.ones((3, 1, 1, 1)), "float32"))
        return op.add(op.nn.relu(conv), conv)

    mod = make_module(body, (1, 1, 4, 4))
    for step in (
        transform.FoldBatchnorm(),
        transform.ConvertLayout(),
        transform.DeadCodeElimination(),
        transform.FoldConstant(),
        transform.FuseOps(),
    ):
        mod = step(mod)
        check_well_formed(mod)


def test_the_pass_that_spoils_a_graph_is_named():
    from tvm.transform import PassContext

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 2), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.add(x, x)))
    good = builder.get()

    @relax.transform.graph_pass("test.Forgets")
    def forgets(mod):
        func = mod["main"]
        return tvm.IRModule({"main": relax.Function([], func.body, attrs=func.attrs)})

    verified = PassContext(config={"ir.verify": True})
    with verified, pytest.raises(tvm.error.InternalError, match="pass test.Forgets left .* 'x'"):
        forgets()(good)
    with PassContext(config={"ir.verify": False}):
        bad = forgets()(good)
    with verified, pytest.raises(ValueError, match="pass test.Forgets was given a faulty module"):
        forgets()(tvm.IRModule({"main": bad["main"].with_attr("again", 1)}))


def test_types_print_as_the_struct_info_that_says_as_much():
    assert str(relax.ShapeType(3)) == "R.Shape(ndim=3)"
    assert str(relax.DynTensorType(2, "float16")) == 'R.Tensor(ndim=2, dtype="float16")'
    assert str(relax.DynTensorType(-1, None)) == "R.Tensor(ndim=-1)"
    assert str(relax.ObjectType()) == "R.Object"
    assert str(relax.PackedFuncType()) == "R.PackedFunc"
