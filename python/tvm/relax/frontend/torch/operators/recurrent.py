"""Recurrent layers: what the data adds is one product, and the steps are one kernel a direction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Constant, TupleGetItem
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter

__all__: list[str] = []

# From what data adds, the weights of one direction, its initial states, and whether it runs
# backwards, to the call of its kernel.
_Steps = Callable[[RelayExpr, "_Weights", Sequence[RelayExpr], bool], RelayExpr]


class _Weights:
    """The parameters of one direction of a layer, in the order that PyTorch has them."""

    def __init__(self, a: Arguments, given: Iterator[RelayExpr], is_projected: bool) -> None:
        self._a = a
        self.of_data = next(given)
        self.of_state = _turned(a, next(given))
        biases = bool(a["has_biases"])
        self.data_bias = next(given) if biases else None
        self.state_bias = next(given) if biases else None
        self.projection = _turned(a, next(given)) if is_projected else None

    def gates(self, data: RelayExpr, *biases: RelayExpr | None) -> RelayExpr:
        """What data and biases add to the gates, for all steps."""
        total = self._a.emit(op.nn.dense(data, self.of_data))
        given = [bias for bias in biases if bias is not None]
        if not given:
            return total
        # Constants are added up while the network is compiled.
        whole = functools.reduce(lambda a, b: self._a.emit(op.add(a, b)), given)
        return self._a.emit(op.add(total, whole))


def _turned(a: Arguments, weight: RelayExpr) -> RelayExpr:
    if isinstance(weight, Constant):
        return weight.rearranged(lambda array: array.T)
    return a.emit(op.permute_dims(weight))


def _layers(a: Arguments, initial: Sequence[RelayExpr], steps: _Steps) -> list[RelayExpr]:
    """Outputs of all steps, and the last states of each kind.

    Parameters
    ----------
    initial : states of each kind, (layers * directions, batch, size).
    """
    # Sixteen bits would be rounded in every step; sums are formed in float32.
    dtype = "float64" if a.dtype("input") == "float64" else "float32"
    data = a.cast(a["input"], dtype)
    if a["batch_first"]:
        data = a.emit(op.permute_dims(data, [1, 0, 2]))
    weights = iter([a.cast(parameter, dtype) for parameter in a["params"]])
    initial = [a.cast(state, dtype) for state in initial]
    sizes = [open_shape(state.struct_info)[2] for state in initial]
    is_projected = len(set(sizes)) > 1
    directions = (False, True) if a["bidirectional"] else (False,)
    last: list[list[RelayExpr]] = [[] for _ in initial]
    for layer in range(int(a["num_layers"])):
        outputs: list[RelayExpr] = []
        for backwards in directions:
            at = layer * len(directions) + len(outputs)
            states = [
                a.emit(op.squeeze(a.emit(op.strided_slice(state, [0], [at], [at + 1])), [0]))
                for state in initial
            ]
            made = a.emit(steps(data, _Weights(a, weights, is_projected), states, backwards))
            outputs.append(a.emit(TupleGetItem(made, 0)))
            for k, kind in enumerate(last):
                kind.append(a.emit(TupleGetItem(made, k + 1)))
        data = outputs[0] if len(outputs) == 1 else a.emit(op.concat(outputs, 2))
    if a["batch_first"]:
        data = a.emit(op.permute_dims(data, [1, 0, 2]))
    results = [data, *(a.emit(op.stack(kind, 0)) for kind in last)]
    return [a.cast(result, a.result_dtype) for result in results]


@converter("lstm.input")
def _lstm(a: Arguments) -> list[RelayExpr]:
    def steps(data: RelayExpr, w: _Weights, states: Sequence[RelayExpr], back: bool) -> RelayExpr:
        hidden, cell = states
        gates = w.gates(data, w.data_bias, w.state_bias)
        return op.nn.lstm_steps(gates, w.of_state, hidden, cell, w.projection, back)

    return _layers(a, a["hx"], steps)


@converter("gru.input")
def _gru(a: Arguments) -> list[RelayExpr]:
    def steps(data: RelayExpr, w: _Weights, states: Sequence[RelayExpr], back: bool) -> RelayExpr:
        (state,) = states
        units = open_shape(state.struct_info)[1]
        if w.state_bias is None:
            gates = w.gates(data, w.data_bias)
            bias = a.emit(op.zeros((units,), str(state.struct_info.dtype)))
        else:
            # The reset gate acts on the candidate's share of it.
            shares = a.emit(op.split(w.state_bias, 3, 0))
            reset, update, bias = (a.emit(TupleGetItem(shares, k)) for k in range(3))
            zeros = a.emit(op.zeros_like(bias))
            on_gates = a.emit(op.concat([reset, update, zeros], 0))
            gates = w.gates(data, w.data_bias, on_gates)
        return op.nn.gru_steps(gates, w.of_state, state, bias, back)

    return _layers(a, [a["hx"]], steps)


def _rnn(activation: str) -> Any:
    def convert(a: Arguments) -> list[RelayExpr]:
        def steps(
            data: RelayExpr, w: _Weights, states: Sequence[RelayExpr], back: bool
        ) -> RelayExpr:
            (state,) = states
            gates = w.gates(data, w.data_bias, w.state_bias)
            return op.nn.rnn_steps(gates, w.of_state, state, activation, back)

        return _layers(a, [a["hx"]], steps)

    return convert


for _activation in ("tanh", "relu"):
    converter(f"rnn_{_activation}.input")(_rnn(_activation))
