"""Layers that go through a sequence step by step."""

from __future__ import annotations

from tvm import topi
from tvm.ir import RelayExpr

from ...expr import Call
from ...struct_info import TupleStructInfo
from ..base import make_call
from ..registry import OpPattern, register, register_rule
from ..rules import known_shape, opaque_tensor, tensor, with_shape

__all__ = ["gru_steps", "lstm_steps", "rnn_steps"]


def lstm_steps(
    gates: RelayExpr,
    weight: RelayExpr,
    hidden: RelayExpr,
    cell: RelayExpr,
    projection: RelayExpr | None = None,
    backwards: bool = False,
) -> Call:
    """Long short-term memory: a tuple of states, last state and cells, see
    :func:`tvm.topi.nn.lstm_steps`."""
    given = () if projection is None else (projection,)
    return make_call("nn.lstm_steps", gates, weight, hidden, cell, *given, backwards=backwards)


def gru_steps(
    gates: RelayExpr,
    weight: RelayExpr,
    hidden: RelayExpr,
    bias: RelayExpr,
    backwards: bool = False,
    reset_after: bool = True,
) -> Call:
    """Gated recurrent units: a tuple of states and last state, see
    :func:`tvm.topi.nn.gru_steps`."""
    return make_call(
        "nn.gru_steps", gates, weight, hidden, bias, backwards=backwards, reset_after=reset_after
    )


def rnn_steps(
    gates: RelayExpr,
    weight: RelayExpr,
    hidden: RelayExpr,
    activation: str = "tanh",
    backwards: bool = False,
) -> Call:
    """States and last state, see :func:`tvm.topi.nn.rnn_steps`."""
    return make_call(
        "nn.rnn_steps", gates, weight, hidden, activation=activation, backwards=backwards
    )


def _results(call: Call) -> TupleStructInfo:
    gates, hidden = tensor(call, 0, "gates"), tensor(call, 2, "hidden")
    shape, state = known_shape(gates), known_shape(hidden)
    rest = [tensor(call, 3, "cell")] if str(call.op.name) == "relax.nn.lstm_steps" else []
    if shape is None or state is None:
        return TupleStructInfo([opaque_tensor(gates.dtype, 3), hidden, *rest])
    return TupleStructInfo([with_shape((*shape[:2], state[1]), gates.dtype), hidden, *rest])


for _name, _compute in (
    ("nn.lstm_steps", topi.nn.lstm_steps),
    ("nn.gru_steps", topi.nn.gru_steps),
    ("nn.rnn_steps", topi.nn.rnn_steps),
):
    register(_name, _compute, OpPattern.OPAQUE, tunable=False)
    register_rule(_name, _results)
