"""Long short-term memory, after Hochreiter and Schmidhuber, Neural Computation 9(8), 1997."""

from __future__ import annotations

from typing import Any

from tvm import te, tir

from .. import tag
from ..dense import dense
from ..utils import get_const_tuple, simplify

__all__ = ["lstm"]


def lstm(
    data: te.Tensor,
    weight_input: te.Tensor,
    weight_hidden: te.Tensor,
    bias_input: te.Tensor | None = None,
    bias_hidden: te.Tensor | None = None,
    hidden_init: te.Tensor | None = None,
    cell_init: te.Tensor | None = None,
    weight_layout: str = "IFGO",
) -> tuple[te.Tensor, te.Tensor]:
    """Hidden states and cell states of a layer for each step of a sequence.

    Parameters
    ----------
    data : (steps, batch, in).
    weight_input : (4 * hidden, in).
    weight_hidden : (4 * hidden, hidden).
    bias_input, bias_hidden : (4 * hidden,), or None for none.
    hidden_init, cell_init : states before the first step, (batch, hidden); None for zeros.
    weight_layout : order in which the weights hold the input, forget, cell (G) and output gate.

    Returns
    -------
    Hidden states and cell states, (steps, batch, hidden) each.
    """
    if sorted(weight_layout) != sorted("IFGO"):
        raise ValueError(f"topi.nn.lstm: weight_layout orders I, F, G and O, got {weight_layout!r}")
    steps, batch, _ = get_const_tuple(data.shape)
    hidden = get_const_tuple(weight_hidden.shape)[1]
    dtype = data.dtype
    # What the data adds to the gates does not wait for earlier steps.
    inputs = dense(data, weight_input)

    def start(init: te.Tensor | None, name: str) -> te.Tensor:
        zero = tir.const(0, dtype)
        return te.compute(
            (1, batch, hidden), lambda _, b, j: zero if init is None else init(b, j), name=name
        )

    shape = (simplify(steps + 1), batch, hidden)
    hidden_state = te.placeholder(shape, dtype, "hidden_state")
    cell_state = te.placeholder(shape, dtype, "cell_state")
    k = te.reduce_axis((0, hidden), name="k")
    recurrent = te.compute(
        (shape[0], batch, 4 * hidden),
        lambda t, b, j: te.sum(hidden_state(t - 1, b, k) * weight_hidden(j, k), axis=[k]),
        name="lstm_recurrent",
        tag=tag.MATMUL,
    )

    def gate(letter: str, t: Any, b: Any, j: Any) -> Any:
        at = j + weight_layout.index(letter) * hidden
        value = inputs(t - 1, b, at) + recurrent(t, b, at)
        for bias in (bias_input, bias_hidden):
            value = value if bias is None else value + bias(at)
        return tir.tanh(value) if letter == "G" else tir.sigmoid(value)

    next_cell = te.compute(
        shape,
        lambda t, b, j: (
            gate("F", t, b, j) * cell_state(t - 1, b, j) + gate("I", t, b, j) * gate("G", t, b, j)
        ),
        name="lstm_cell",
    )
    next_hidden = te.compute(
        shape,
        lambda t, b, j: gate("O", t, b, j) * tir.tanh(next_cell(t, b, j)),
        name="lstm_hidden",
    )
    given = [bias for bias in (bias_input, bias_hidden) if bias is not None]
    hidden_all, cell_all = te.scan(
        [start(hidden_init, "hidden_start"), start(cell_init, "cell_start")],
        [next_hidden, next_cell],
        [hidden_state, cell_state],
        inputs=[inputs, weight_hidden, *given],
        name="lstm",
    )

    def without_start(states: te.Tensor, name: str) -> te.Tensor:
        return te.compute(
            (steps, batch, hidden),
            lambda t, b, j: states(t + 1, b, j),
            name=name,
            tag=tag.INJECTIVE,
        )

    return without_start(hidden_all, "T_lstm_hidden"), without_start(cell_all, "T_lstm_cell")
