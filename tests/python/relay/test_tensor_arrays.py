"""Lists of tensors: read, written, stacked, cut and put together."""

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps


def evaluated(mod, body, *args):
    """The value of an expression of the module for arrays."""
    params = relay.analysis.free_vars(body)
    mod["main"] = relay.Function(params, body)
    return relay.create_executor("debug", mod=mod).evaluate()(*args)


def elements(value):
    """The tensors of a list, None for those without a value."""
    found = []
    while value.constructor.name_hint == "Cons":
        fields = value.fields[0].fields
        found.append(fields[0].numpy() if len(fields) else None)
        value = value.fields[1]
    return found


@pytest.fixture()
def prelude():
    return Prelude(tvm.IRModule())


def written(array, write, made, tensors):
    """The expression of an array with elements, and the variables of these."""
    variables = [relay.var(f"v{k}", shape=t.shape, dtype=str(t.dtype)) for k, t in
                 enumerate(tensors)]  # fmt: skip
    whole = array(relay.const(len(tensors)))
    for k, variable in enumerate(variables):
        whole = write(whole, relay.const(k), made(variable))
    return whole


def test_elements_have_no_value_until_they_are_written(prelude):
    ops = TensorArrayOps(prelude, "int32")
    assert ops.get_name("tensor_t") == "tensor_int32_t"
    array, write = ops.get_global_var("tensor_array"), ops.get_global_var("tensor_array_write")
    read = prelude.get_global_var("tensor_array_read", "int32")
    tensor0, tensor1 = ops.get_ctor("tensor0"), prelude.get_tensor_ctor("tensor1", "int32")
    both = write(array(relay.const(3)), relay.const(2), tensor1(relay.const([4, 5])))
    both = write(both, relay.const(0), tensor0(relay.const(7)))
    first, second, third = elements(evaluated(prelude.mod, both))
    assert first == 7 and second is None and list(third) == [4, 5]
    assert str(evaluated(prelude.mod, read(both, relay.const(1))).constructor.name_hint) == (
        "tensor_nil_int32"
    )


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arrays_of_any_rank_are_put_together_and_cut(prelude, dtype):
    var = prelude.get_global_var
    a, b = (np.random.default_rng(k).integers(0, 9, (3, 2)).astype(dtype) for k in range(2))
    whole = written(*(var(n, dtype) for n in ("tensor_array", "tensor_array_write")),
                    prelude.get_tensor_ctor("tensor2", dtype), [a, b])  # fmt: skip
    mod = prelude.mod
    joined = evaluated(mod, var("tensor_array_concat", dtype)(whole), a, b)
    np.testing.assert_array_equal(joined.fields[0].numpy(), np.concatenate([a, b]))
    stacked = evaluated(mod, var("tensor_array_stack", dtype)(whole), a, b)
    assert str(stacked.constructor.name_hint) == f"tensor3_{dtype}"
    np.testing.assert_array_equal(stacked.fields[0].numpy(), np.stack([a, b]))
    gathered = var("tensor_array_gather", dtype)(whole, relay.const([1, 1, 0]))
    np.testing.assert_array_equal(
        evaluated(mod, gathered, a, b).fields[0].numpy(), np.stack([b, b, a])
    )
    rows = var("tensor_array_unstack_tensor2", dtype)(relay.const(a, dtype))
    for row, expected in zip(elements(evaluated(mod, rows)), a, strict=True):
        np.testing.assert_array_equal(row, expected)
    swapped = var("tensor_array_scatter", dtype)(whole, relay.const([1, 0]), whole)
    for one, expected in zip(elements(evaluated(mod, swapped, a, b)), [b, a], strict=True):
        np.testing.assert_array_equal(one, expected)
    value = prelude.get_tensor_ctor("tensor2", dtype)(relay.const(a, dtype))
    cut = var("tensor_array_split", dtype)(whole, value, relay.const([1, 2]))
    for one, expected in zip(elements(evaluated(mod, cut, a, b)), [a[:1], a[1:]], strict=True):
        np.testing.assert_array_equal(one, expected)
    taken = var("tensor_take", dtype)(value, relay.const(1), relay.const(3))
    np.testing.assert_array_equal(evaluated(mod, taken).fields[0].numpy(), a[1:3])


@pytest.mark.parametrize("shape", [(), (2,), (relay.Any(), 2), (3, 2)])
def test_arrays_of_one_shape(prelude, shape):
    ops = StaticTensorArrayOps(prelude, "float32", shape)
    ops.register()
    ops.register()
    mod, var = prelude.mod, ops.get_global_var
    sizes = [3 if isinstance(e, relay.Any) else e for e in shape]
    a, b = (np.random.default_rng(k).random(sizes).astype("float32") for k in range(2))
    made = ops.get_ctor("tensor_constructor")
    whole = written(var("tensor_array"), var("tensor_array_write"), made, [a, b])
    element = evaluated(mod, var("tensor_array_read")(whole, relay.const(1)), a, b)
    np.testing.assert_array_equal(element.fields[0].numpy(), b)
    read = var("tensor_get_data")(var("tensor_array_read")(whole, relay.const(0)))
    np.testing.assert_array_equal(evaluated(mod, read, a, b).numpy(), a)
    stacked = evaluated(mod, var("tensor_array_stack")(whole), a, b)
    np.testing.assert_array_equal(stacked.fields[0].numpy(), np.stack([a, b]))
    gathered = var("tensor_array_gather")(whole, relay.const([1, 0, 1]))
    np.testing.assert_array_equal(
        evaluated(mod, gathered, a, b).fields[0].numpy(), np.stack([b, a, b])
    )
    parts = var("tensor_array_unstack")(relay.const(np.stack([a, b, a])))
    for one, expected in zip(elements(evaluated(mod, parts)), [a, b, a], strict=True):
        np.testing.assert_array_equal(one, expected)
    ops.define_tensor_array_scatter([2], True)
    swapped = var("tensor_array_scatter")(whole, relay.const([1, 0]), whole)
    for one, expected in zip(elements(evaluated(mod, swapped, a, b)), [b, a], strict=True):
        np.testing.assert_array_equal(one, expected)
    if shape:
        joined = evaluated(mod, var("tensor_array_concat")(whole), a, b)
        np.testing.assert_array_equal(joined.fields[0].numpy(), np.concatenate([a, b]))


def test_rows_of_one_tensor_become_elements_of_another_shape(prelude):
    ops = StaticTensorArrayOps(prelude, "float32", (2, 3))
    ops.register()
    ops.define_tensor_array_split((4, 3), (2,), True)
    value = np.random.default_rng(0).random((4, 3)).astype("float32")
    made = prelude.get_tensor_ctor_static("tensor_constructor", "float32", (4, 3))
    array = ops.get_global_var("tensor_array")(relay.const(2))
    cut = ops.get_global_var("tensor_array_split")(
        array, made(relay.const(value)), relay.const([2, 2])
    )
    for one, expected in zip(elements(evaluated(prelude.mod, cut)), [value[:2], value[2:]],
                             strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, expected)


def test_names_say_type_and_shape(prelude):
    assert prelude.get_name_static("tensor_t", "int8", (2, relay.Any())) == (
        "static_tensor_int8_2_any_t"
    )
    assert prelude.get_name_static("tensor_array", "int8", ()) == "tensor_array_int8_scalar"
    with pytest.raises(ValueError, match="an extent of a tensor array is a number"):
        StaticTensorArrayOps(prelude, "int8", (-1,)).register()
    with pytest.raises(ValueError, match="has no constructor 'tensor9_int8'"):
        prelude.get_tensor_ctor("tensor9", "int8")
