"""Shapes that operators of programs compute when they run."""

import numpy as np
import pytest

import tvm
from tvm import relay, te

_FIRST = relay.op.register("shapes.first_of", "the first elements of a vector, as many as asked")
_FIRST.set_num_inputs(2)
_FIRST.add_type_rel("FirstOf", lambda types, attrs: relay.TensorType([relay.Any()]))


@relay.op.register_compute("shapes.first_of")
def _compute(attrs, inputs, out_type):
    return [te.compute(out_type.shape, lambda i: inputs[0][i] * 2.0)]


@relay.op.register_shape_func("shapes.first_of", [False, True])
def _shape(attrs, inputs, ranks):
    length, count = inputs
    assert list(ranks) == [1]
    return [te.compute((1,), lambda i: tvm.tir.min(length[i], count().astype("int64")))]


def test_a_shape_that_depends_on_values_is_computed():
    x, k = relay.var("x", shape=(relay.Any(),)), relay.var("k", "int32")
    func = relay.Function([x, k], relay.exp(relay.Call(_FIRST, [x, k])))
    data = np.arange(5, dtype="float32")
    for kind in ("vm", "debug"):
        run = relay.create_executor(kind).evaluate(func)
        for count, wanted in ((2, 2), (4, 4), (9, 5)):
            found = run(data, np.array(count, "int32")).numpy()
            np.testing.assert_allclose(found, np.exp(2 * data[:wanted]), rtol=1e-5)


def test_a_shape_function_gives_a_shape_for_each_result():
    op = relay.op.register("shapes.none", "nothing is said of its shape")
    op.set_num_inputs(1)
    op.add_type_rel("Open", lambda types, attrs: relay.TensorType([relay.Any()]))
    relay.op.register_compute("shapes.none", _compute)
    relay.op.register_shape_func("shapes.none", False, lambda attrs, inputs, ranks: [])
    x = relay.var("x", shape=(3,))
    with pytest.raises(ValueError, match="gives 0 shapes for 1 results"):
        relay.create_executor("vm").evaluate(relay.Function([x], relay.Call(op, [x])))(
            np.ones(3, "float32")
        )
