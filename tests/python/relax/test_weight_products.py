"""Products with constant matrices as dense layers."""

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.transform import WeightProducts


def product(weight, turns=(), shape=(2, 3, 4), left=None, dtype="float32"):
    """A module of x times a constant, whose axes change places some times first."""
    x = relax.Var("x", relax.TensorStructInfo(shape, dtype))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            right = relax.const(weight)
            for axes in turns:
                right = builder.emit(relax.op.permute_dims(right, axes))
            factors = (x, right) if left is None else (relax.const(left), x)
            made = builder.emit_output(relax.op.matmul(*factors))
        builder.emit_func_output(made)
    return builder.get()


def names_of(mod):
    blocks = mod["main"].body.blocks
    return [str(b.value.op.name) for block in blocks for b in block.bindings]


def weight_of(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


@pytest.mark.parametrize(
    "weight, turns",
    [
        (weight_of(4, 5), []),
        (weight_of(5, 4), [None]),
        (weight_of(4, 5), [[1, 0], [1, 0]]),
    ],
)
def test_a_constant_matrix_becomes_a_weight(weight, turns):
    mod = product(weight, turns)
    changed = WeightProducts()(mod)
    assert "relax.nn.dense" in names_of(changed) and "relax.matmul" not in names_of(changed)
    x = weight_of(2, 3, 4)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    expected = x @ (weight.T if turns == [None] else weight)
    np.testing.assert_allclose(machine["main"](tvm.nd.array(x)).numpy(), expected, rtol=1e-5)


def test_products_that_share_a_matrix_go_on_to_share_it():
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    weight = relax.const(weight_of(4, 4))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            once = builder.emit(relax.op.matmul(x, weight))
            twice = builder.emit_output(relax.op.matmul(once, weight))
        builder.emit_func_output(twice)
    bindings = WeightProducts()(builder.get())["main"].body.blocks[0].bindings
    first, second = (b.value.args[1] for b in bindings if "dense" in str(b.value.op.name))
    assert first.same_as(second)


def test_other_products_stay():
    for mod in (
        product(weight_of(2, 4, 5)),
        product(weight_of(4), shape=(3, 4)),
        product(weight_of(4, 4), shape=(4,)),
        product(weight_of(1, 1), left=weight_of(3, 2), shape=(2, 5)),
    ):
        assert names_of(WeightProducts()(mod)) == names_of(mod)
