"""What importers of one's own are written with."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay import expr as E
from tvm.relay.frontend import common

SPAN = tvm.ir.Span(tvm.ir.SourceName("net"), 3, 3, 1, 9)
X, W = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))


def test_expressions_with_other_parts_keep_the_rest():
    call = relay.nn.conv2d(X, W, padding=1)
    moved = E.CallWithFields(call, args=[W, X], span=SPAN)
    assert moved.args[0].same_as(W) and moved.op.same_as(call.op)
    tvm.ir.assert_structural_equal(moved.attrs, call.attrs)
    assert str(moved.span.source_name) == "net" and call.span is None
    pair = E.TupleWithFields(relay.Tuple([X, W]), [W, X])
    second = E.TupleGetItemWithFields(relay.TupleGetItem(pair, 0), index=1)
    assert pair.fields[0].same_as(W) and second.index == 1 and second.tuple_value.same_as(pair)
    assert float(E.ConstantWithFields(relay.const(1.0), relay.const(2.0).data).data.numpy()) == 2
    choice = E.IfWithFields(relay.If(relay.const(True), X, W), true_branch=W)
    assert choice.true_branch.same_as(W) and choice.false_branch.same_as(W)
    bound = E.LetWithFields(relay.Let(X, W, X), body=W)
    assert bound.var.same_as(X) and bound.body.same_as(W)
    func = relay.Function([X, W], call, attrs={"Primitive": 1})
    inner = E.FunctionWithFields(func, body=X)
    assert inner.body.same_as(X) and int(inner.attrs["Primitive"]) == 1
    cell, value = relay.RefCreate(X), relay.RefCreate(W)
    assert E.RefCreateWithFields(cell, W).value.same_as(W)
    assert E.RefReadWithFields(relay.RefRead(cell), value).ref.same_as(value)
    written = E.RefWriteWithFields(relay.RefWrite(cell, X), value=W)
    assert written.ref.same_as(cell) and written.value.same_as(W)
    other = E.VarWithFields(X, "y", relay.TensorType((2,)))
    assert other.name_hint == "y" and not other.same_as(X) and X.vid.same_as(X)
    assert E.VarWithFields(X, W.vid).name_hint == "w"


def test_without_other_parts_an_expression_is_itself():
    call = X + X
    assert E.CallWithFields(call).same_as(call)
    assert E.VarWithFields(X, X.vid).same_as(X)
    placed = E.CallWithFields(call, virtual_device=tvm.target.VirtualDevice("cpu"))
    assert placed.virtual_device_.device_type == tvm.cpu().device_type
    assert call.virtual_device_.is_unconstrained and tuple(placed.args) == tuple(call.args)


def test_types_and_shapes_are_known_on_the_way():
    conv = relay.nn.conv2d(X, W)
    assert common.infer_shape(conv) == (1, 4, 6, 6)
    assert common.infer_type(conv).checked_type == relay.TensorType((1, 4, 6, 6), "float32")
    assert (common.infer_channels(W), common.infer_channels(W, transpose=True)) == (4, 3)
    open_ = relay.var("o", shape=(relay.Any(), 5))
    shape = common.infer_shape(relay.nn.relu(open_))
    assert isinstance(shape[0], relay.Any) and shape[1] == 5
    with pytest.raises(TypeError, match="has no shape"):
        common.infer_shape(relay.Tuple([X, W]))
    mod = tvm.IRModule({"half": relay.Function([X], X * relay.const(0.5))})
    assert common.infer_shape(mod.get_global_var("half")(X), mod) == (1, 3, 8, 8)


def test_values_follow_from_parameters():
    a, b = relay.var("a", shape=(2,)), relay.var("b", shape=(2,))
    given = {"a": tvm.nd.array(np.array([1, 2], "float32")), "b": np.array([3, 4], "float32")}
    np.testing.assert_array_equal(common.infer_value(a * b, given).numpy(), [3, 8])
    with pytest.raises(ValueError, match=r"depends on \['b'\]"):
        common.infer_value(a * b, {"a": given["a"]})
    folded = common.fold_constant(relay.const(2.0) * relay.const(3.0))
    assert float(folded.data.numpy()) == 6


def test_operators_are_found_by_their_names():
    assert common.get_relay_op("add") is relay.add
    assert common.get_relay_op("conv2d") is common.get_relay_op("nn.conv2d") is relay.nn.conv2d
    assert common.get_relay_op("resize2d") is relay.image.resize2d
    with pytest.raises(AttributeError, match="no operator 'nothing'"):
        common.get_relay_op("nothing")


def test_places_are_given_to_what_has_none():
    inner = common.set_span(relay.nn.relu(X), "first")
    outer = common.set_span(relay.nn.conv2d(inner, W) + relay.const(1.0), "second")
    conv, one = outer.args
    assert [str(e.span.source_name) for e in (outer, conv, one)] == ["second"] * 3
    assert str(conv.args[0].span.source_name) == "first"
    assert conv.args[1].same_as(W)
    parts = common.set_span(relay.split(X, 3, axis=1), SPAN)
    assert len(parts) == 3 and str(parts[0].tuple_value.span.source_name) == "net"
