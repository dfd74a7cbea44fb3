"""What importers of one's own are written with: attributes, tables of expressions, cells."""

import numpy as np
import pytest
import torch

import tvm
from tvm import relay
from tvm.relay.frontend import common

RNG = np.random.default_rng(7)


def _random(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _value(expr, *args):
    func = relay.Function(relay.analysis.free_vars(expr), expr)
    return relay.create_executor("vm").evaluate(func)(*args)


def test_texts_of_attributes_are_read_as_what_they_are():
    attrs = common.StrAttrsDict(
        {
            "alpha": "0.5", "count": "3", "none": "None", "pad": "(1, 2)", "name": "x",
            "flag": "True", "pairs": "((0, 1), (2, 3))", "axes": "[0, None]", "scales": "(1, 0.5)",
        }
    )  # fmt: skip
    assert attrs.get_float("alpha") == 0.5 and attrs.get_int("count") == 3
    assert attrs.get_int("none", 4) == 4 and attrs.get_int("absent", 7) == 7
    assert attrs.get_int_tuple("pad") == (1, 2) and attrs.get_int_list("pad") == [1, 2]
    assert attrs.get_int_tuple("axes") == (0, None) and attrs.get_int_tuple("count") == (3,)
    assert attrs.get_float_tuple("scales") == (1.0, 0.5) and attrs.get_str("name") == "x"
    assert attrs.get_tuple_tuple_int("pairs") == ((0, 1), (2, 3))
    assert attrs.get_bool("flag") and not attrs.get_bool("absent", False)
    assert attrs.has_attr("flag") and not attrs.has_attr("absent")
    with pytest.raises(AttributeError, match="Required attribute absent not found"):
        attrs.get_bool("absent")


def test_attributes_are_renamed_transformed_and_refused():
    x, w = relay.var("x", shape=(1, 2, 5, 5)), relay.var("w", shape=(3, 2, 3, 3))
    convert = common.AttrCvt(
        lambda attrs: f"conv{len(attrs['kernel'])}d",
        transforms={
            "kernel": "kernel_size",
            "pads": ("padding", (0, 0), lambda pads: tuple(pads[:2])),
            "group": ("groups", 1),
            "stride": ("strides", (2, 2)),
        },
        excludes=["auto"],
        ignores=["note"],
        extras={"channels": 3},
        custom_check=(lambda attrs: "kernel" in attrs, "a kernel"),
    )
    call = convert([x, w], {"kernel": (3, 3), "pads": (1, 1, 1, 1), "note": 1, "dilation": (1, 1)})
    attrs = call.attrs
    assert call.op.name == "nn.conv2d" and list(attrs["padding"])[:2] == [1, 1]
    assert (list(attrs["strides"]), attrs["channels"], attrs["groups"]) == ([2, 2], 3, 1)
    with pytest.raises(NotImplementedError, match="Attribute auto in operator conv2d"):
        convert([x, w], {"kernel": (3, 3), "auto": "SAME"})
    with pytest.raises(RuntimeError, match="Check failed: a kernel"):
        convert([x, w], {"pads": (1, 1, 1, 1)})
    clip = common.Renamer("clip")([x], {"a_min": 0.0, "a_max": 1.0, "tvm_custom": {}})
    assert clip.op.name == "clip" and clip.attrs["a_max"] == 1.0
    with pytest.raises(AttributeError, match="no operator 'there_is_none'"):
        common.Renamer("there_is_none")([x], {})


def test_a_table_keeps_expressions_and_names_constants():
    table = common.ExprTable()
    x = relay.var("x", shape=(2,))
    table.set_expr("x", x)
    table.set_expr("x", relay.exp(x))
    assert table.get_expr("x").same_as(x) and table.has_expr("x")
    table.set_expr("x", relay.exp(x), force_override=True)
    assert not table.get_expr("x").same_as(x)
    first, second = table.new_const(np.ones((2, 3), "float32")), table.new_const(_random(4))
    assert [str(v.name_hint) for v in (first, second)] == ["_param_1", "_param_2"]
    assert table.params["_param_1"].shape == (2, 3)
    assert first.type_annotation == relay.TensorType((2, 3))
    table.set_padding((1, 1))
    assert table.in_padding and table.paddings == (1, 1)
    table.clear_padding()
    assert not table.in_padding
    with pytest.raises(KeyError, match="no expression 'y'"):
        table.get_expr("y")
    with pytest.raises(TypeError, match="is to be an expression"):
        table.set_expr("y", 3)


def test_values_that_are_known_are_found():
    a, x = relay.var("a", shape=(2,)), relay.var("x", shape=(2,))
    params = {"a": np.array([1, 2], "float32")}
    value, known = common.try_infer_value(a + a, parameters=params)
    assert known and value.tolist() == [2, 4]
    assert common.try_infer_value(a, lambda v: v.sum(), parameters=params) == (3.0, True)
    expr, known = common.try_infer_value(x + a, parameters=params)
    assert not known and isinstance(expr, relay.Call)
    assert common.try_infer_value(x, on_failure=lambda: "none") == ("none", False)
    assert isinstance(common.try_resolve_var_to_const(a, params), relay.Constant)
    assert common.try_resolve_var_to_const(x, params).same_as(x)
    assert common.infer_value_simulated(relay.shape_of(x), {}).numpy().tolist() == [2]
    assert common.get_name(x) == "x" and common.get_name(a + a) == ""
    assert common.to_int_list(np.array([[1.0, 2.0]])) == [1, 2]


def test_shapes_scalars_and_slices():
    x = relay.var("x", shape=(3, 1, 2))
    assert common.shape_of(x).data.numpy().tolist() == [3, 1, 2]
    open_ = relay.var("y", shape=(relay.Any(), 2))
    assert _value(common.shape_of(open_), _random(5, 2)).numpy().tolist() == [5, 2]
    data = _random(3, 1, 2)
    for axis, count in ((0, 3), (1, 1), (-1, 2)):
        parts = _value(common.unbind(x, axis).astuple(), data)
        assert len(parts) == count
        for k, part in enumerate(parts):
            np.testing.assert_array_equal(part.numpy(), np.take(data, k, axis))
    one = relay.var("s", shape=(1, 1))
    assert _value(common.ensure_scalar_shape(one), _random(1, 1)).shape == ()
    with pytest.raises(ValueError, match="is no scalar"):
        common.ensure_scalar_shape(x)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("extent", [7, 8])
def test_borders_that_keep_the_size(mode, extent):
    stride, kernel = (2, 2), (3, 2)
    data = _random(1, 1, extent, extent)
    places = -(-extent // 2)
    total = [max((places - 1) * 2 + k - extent, 0) for k in kernel]
    sides = [(t // 2, t - t // 2) for t in total]
    sides = [side[::-1] for side in sides] if mode == "SAME_LOWER" else sides
    expected = np.pad(data, [(0, 0), (0, 0), *sides], constant_values=0.5)
    for size in (extent, relay.Any()):
        x = relay.var("x", shape=(1, 1, size, size))
        padded = common.autopad(x, stride, kernel, mode=mode, pad_value=0.5)
        np.testing.assert_array_equal(_value(padded, data).numpy(), expected)


def _steps(count, batch, features):
    return [relay.var(f"x{k}", shape=(batch, features)) for k in range(count)]


def _run_cell(make, arrays, *more):
    """The outputs of a cell and its last states, for arrays of the steps and of the weights."""
    steps = _steps(3, 2, 4)
    consts = [None if array is None else relay.const(array) for array in arrays[1:]]
    outputs, *states = make(steps, *consts, *more)
    func = relay.Function(steps, relay.Tuple([*outputs, *states]))
    mod = tvm.IRModule.from_expr(func)
    found = relay.create_executor("graph", mod).evaluate()(*arrays[0])
    return [value.numpy() for value in found]


@pytest.mark.parametrize("backwards", [False, True])
def test_recurrent_cells_are_those_of_torch(backwards):
    hidden, steps = 5, list(_random(3, 2, 4))
    begin = np.zeros((2, hidden), "float32")
    ordered = torch.tensor(np.stack(steps[::-1] if backwards else steps))
    for kind, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        layer = getattr(torch.nn, kind)(4, hidden)
        weights = [p.detach().numpy() for p in layer.parameters()]
        expected, last = layer(ordered)
        rows = list(expected.detach().numpy())
        rows = rows[::-1] if backwards else rows
        assert weights[0].shape[0] == gates * hidden
        states = [begin, begin] if kind == "LSTM" else [begin]
        cell = {"RNN": common.rnn_cell, "GRU": common.gru_cell, "LSTM": common.lstm_cell}[kind]
        found = _run_cell(
            lambda *given, cell=cell: cell(*given, backwards=backwards), [steps, *states, *weights]
        )
        final = [s.detach().numpy()[0] for s in (last if kind == "LSTM" else [last])]
        for value, wanted in zip(found, [*rows, *final], strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)


def test_a_cell_stops_where_its_sequence_ends():
    hidden, steps = 5, list(_random(3, 2, 4))
    layer = torch.nn.GRU(4, hidden)
    weights = [p.detach().numpy() for p in layer.parameters()]
    begin = np.zeros((2, hidden), "float32")
    lens = relay.const(np.array([3, 1], "int32"))
    found = _run_cell(
        lambda *given: common.gru_cell(*given, sequence_lens=lens), [steps, begin, *weights]
    )
    expected = layer(torch.tensor(np.stack(steps)))[0].detach().numpy()
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-5)
    assert not found[1][1].any() and not found[2][1].any()
    np.testing.assert_allclose(found[3][0], expected[2][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[3][1], expected[0][1], rtol=1e-4, atol=1e-5)
