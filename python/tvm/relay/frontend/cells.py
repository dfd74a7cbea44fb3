"""Recurrent cells over the steps of a sequence, written in relay's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tvm.ir import RelayExpr

from .. import op
from ..expr import const

__all__ = ["gru_cell", "lstm_cell", "rnn_cell"]

Activation = Callable[[RelayExpr], RelayExpr]


def _affine(x: RelayExpr, weight: RelayExpr, bias: RelayExpr | None) -> RelayExpr:
    product = op.nn.dense(x, weight)
    return product if bias is None else op.add(product, bias)


def _in_order(steps: Sequence[RelayExpr], backwards: bool) -> list[RelayExpr]:
    return list(reversed(steps)) if backwards else list(steps)


def rnn_cell(
    input_seqs: Sequence[RelayExpr],
    hidden_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    proj: RelayExpr | None = None,
    act: Activation = op.tanh,
    backwards: bool = False,
) -> tuple[list[RelayExpr], RelayExpr]:
    """Elman's cell over a sequence: ``h = act(x w_inp^T + b_inp + h w_hid^T + b_hid)``.

    Parameters
    ----------
    input_seqs : the steps, (batch, features) each.
    hidden_state : of the beginning, (batch, hidden).
    w_inp, w_hid : (hidden, features) and (hidden, hidden).
    b_inp, b_hid : (hidden,), or None.
    proj : (projected, hidden): what each state is multiplied with, or None.
    backwards : whether the last step is the first one.

    Returns
    -------
    The state behind each step, in the order of `input_seqs`, and the last one.
    """
    outputs = []
    for step in _in_order(input_seqs, backwards):
        gates = op.add(_affine(step, w_inp, b_inp), _affine(hidden_state, w_hid, b_hid))
        hidden_state = act(gates)
        if proj is not None:
            hidden_state = op.nn.dense(hidden_state, proj)
        outputs.append(hidden_state)
    return _in_order(outputs, backwards), hidden_state


def gru_cell(
    input_seqs: Sequence[RelayExpr],
    hidden_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    rz_act: Activation = op.sigmoid,
    n_act: Activation = op.tanh,
    backwards: bool = False,
    linear_before_reset: bool = True,
    sequence_lens: RelayExpr | None = None,
) -> tuple[list[RelayExpr], RelayExpr]:
    """Gated recurrent units over a sequence (Cho et al. 2014), as PyTorch and ONNX have them.

    Parameters
    ----------
    w_inp, w_hid : (3 hidden, features) and (3 hidden, hidden), for the reset, the update and the
        new state, in this order.
    b_inp, b_hid : (3 hidden,), or None.
    rz_act, n_act : of the gates, and of the new state.
    linear_before_reset : whether the reset is of the product with the state, as in PyTorch, or of
        the state before it.
    sequence_lens : (batch,), integers: how many steps each sequence has. States stay what they are
        behind the last one, and outputs are zero there.

    The others, and what comes back, are those of :func:`rnn_cell`.
    """
    count = len(input_seqs)
    reset_update_w, new_w = _two_thirds(w_hid)
    reset_update_b, new_b = (None, None) if b_hid is None else _two_thirds(b_hid)
    outputs: list[RelayExpr] = []
    places = _in_order([const(k, "int32") for k in range(count)], backwards)
    for place, step in zip(places, _in_order(input_seqs, backwards)):
        from_input = _affine(step, w_inp, b_inp)
        r_in, z_in, n_in = op.split(from_input, 3, axis=-1)
        from_state = _affine(hidden_state, reset_update_w, reset_update_b)
        r_hid, z_hid = op.split(from_state, 2, axis=-1)
        reset, update = rz_act(op.add(r_in, r_hid)), rz_act(op.add(z_in, z_hid))
        if linear_before_reset:
            state_part = op.multiply(reset, _affine(hidden_state, new_w, new_b))
        else:
            state_part = _affine(op.multiply(reset, hidden_state), new_w, new_b)
        new = n_act(op.add(n_in, state_part))
        following = op.add(new, op.multiply(update, op.subtract(hidden_state, new)))
        if sequence_lens is None:
            hidden_state = following
            outputs.append(hidden_state)
            continue
        there = op.expand_dims(op.less(place, op.cast(sequence_lens, "int32")), 1)
        hidden_state = op.where(there, following, hidden_state)
        outputs.append(op.where(there, following, op.zeros_like(following)))
    return _in_order(outputs, backwards), hidden_state


def _two_thirds(value: RelayExpr) -> tuple[RelayExpr, RelayExpr]:
    """The first two parts of three along the first axis, and the last one."""
    first, second, third = op.split(value, 3, axis=0)
    return op.concatenate([first, second], axis=0), third


def lstm_cell(
    input_seqs: Sequence[RelayExpr],
    hidden_state: RelayExpr,
    cell_state: RelayExpr,
    w_inp: RelayExpr,
    w_hid: RelayExpr,
    b_inp: RelayExpr | None = None,
    b_hid: RelayExpr | None = None,
    proj: RelayExpr | None = None,
    p_i: RelayExpr | None = None,
    p_f: RelayExpr | None = None,
    p_o: RelayExpr | None = None,
    f_act: Activation = op.sigmoid,
    g_act: Activation = op.tanh,
    h_act: Activation = op.tanh,
    backwards: bool = False,
) -> tuple[list[RelayExpr], RelayExpr, RelayExpr]:
    """Long short-term memory over a sequence (Hochreiter and Schmidhuber 1997, with the forget gate
    of Gers et al.).

    Parameters
    ----------
    cell_state : of the beginning, (batch, hidden).
    w_inp, w_hid : (4 hidden, features) and (4 hidden, hidden), for the input gate, the forget gate,
        the cell and the output gate, in this order.
    b_inp, b_hid : (4 hidden,), or None.
    p_i, p_f, p_o : peepholes of the gates, (hidden,), or None.
    f_act, g_act, h_act : of the gates, of the cell, and of the cell where it is read.

    The others are those of :func:`rnn_cell`.

    Returns
    -------
    The state behind each step, in the order of `input_seqs`; the last one; and the last cell.
    """
    outputs = []
    for step in _in_order(input_seqs, backwards):
        gates = op.add(_affine(step, w_inp, b_inp), _affine(hidden_state, w_hid, b_hid))
        enter, forget, cell, leave = op.split(gates, 4, axis=-1)
        if p_i is not None:
            enter = op.add(enter, op.multiply(p_i, cell_state))
        if p_f is not None:
            forget = op.add(forget, op.multiply(p_f, cell_state))
        cell_state = op.add(
            op.multiply(f_act(forget), cell_state), op.multiply(f_act(enter), g_act(cell))
        )
        if p_o is not None:
            leave = op.add(leave, op.multiply(p_o, cell_state))
        hidden_state = op.multiply(f_act(leave), h_act(cell_state))
        if proj is not None:
            hidden_state = op.nn.dense(hidden_state, proj)
        outputs.append(hidden_state)
    return _in_order(outputs, backwards), hidden_state, cell_state
