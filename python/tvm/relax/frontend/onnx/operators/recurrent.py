"""Recurrent layers: those that PyTorch has as one kernel a direction, the others step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from ..errors import OnnxError
from .recurrent_steps import gru_steps, lstm_steps, rnn_steps
from .registry import Node, operator

__all__: list[str] = []

Activation = Callable[[torch.Tensor], torch.Tensor]


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    """An activation by ONNX' name, with its parameters."""
    table: dict[str, Activation] = {
        "relu": torch.relu,
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "softsign": F.softsign,
        "softplus": F.softplus,
        "affine": lambda x: (1.0 if alpha is None else alpha) * x + (beta or 0.0),
        "leakyrelu": lambda x: F.leaky_relu(x, 0.01 if alpha is None else alpha),
        "thresholdedrelu": lambda x: torch.where(
            x > (1.0 if alpha is None else alpha), x, torch.zeros_like(x)
        ),
        "scaledtanh": lambda x: (
            (1.0 if alpha is None else alpha) * torch.tanh((1.0 if beta is None else beta) * x)
        ),
        "hardsigmoid": lambda x: torch.clamp(
            (0.2 if alpha is None else alpha) * x + (0.5 if beta is None else beta), 0.0, 1.0
        ),
        "elu": lambda x: F.elu(x, 1.0 if alpha is None else alpha),
    }
    if name.lower() not in table:
        raise OnnxError(f"unknown activation '{name}'")
    return table[name.lower()]


def _ordered(rows: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Rows of the gates in another order."""
    parts = torch.chunk(rows, len(order))
    return torch.cat([parts[k] for k in order])


class _Layer:
    """What the three kinds of recurrent layers have in common.

    Attributes
    ----------
    x : (steps, batch, input size).
    directions : index of each direction, and whether it runs backwards.
    """

    def __init__(
        self,
        n: Node,
        x: torch.Tensor,
        lengths: torch.Tensor | None,
        defaults: list[str],
    ) -> None:
        self.batch_first = bool(n.attr("layout", 0))
        self.x = x.transpose(0, 1) if self.batch_first else x
        self.lengths = lengths
        kind = n.attr("direction", "forward")
        self.directions = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[
            kind
        ]
        names = n.attr("activations") or defaults * len(self.directions)
        self._names = [str(name).lower() for name in names]
        alphas, betas = list(n.attr("activation_alpha", [])), list(n.attr("activation_beta", []))
        self.activations = [
            _activation(
                name,
                alphas[i] if i < len(alphas) else None,
                betas[i] if i < len(betas) else None,
            )
            for i, name in enumerate(names)
        ]
        self.clip = n.attr("clip")

    def state(self, given: torch.Tensor | None, direction: int, size: int) -> torch.Tensor:
        """The state that a direction starts with: (batch, size)."""
        if given is None:
            return torch.zeros(self.x.shape[1], size, dtype=self.x.dtype)
        return given[:, direction] if self.batch_first else given[direction]

    def is_one_kernel(self, *functions: str) -> bool:
        """Whether every direction has these activations, and all sequences all steps."""
        same = self._names == [*functions] * len(self.directions)
        return same and self.clip is None and self.lengths is None

    def gates(
        self, w: torch.Tensor, bias: torch.Tensor | None, order: Sequence[int]
    ) -> torch.Tensor:
        """What the data adds to the gates of all steps, these in another order."""
        return F.linear(self.x, _ordered(w, order), None if bias is None else _ordered(bias, order))

    def limited(self, x: torch.Tensor) -> torch.Tensor:
        """What goes into an activation."""
        return x if self.clip is None else torch.clamp(x, -self.clip, self.clip)

    def run(
        self,
        backwards: bool,
        state: tuple[torch.Tensor, ...],
        step: Callable[..., tuple[torch.Tensor, ...]],
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Outputs of all steps, and the last state; `step` takes the input and the state."""
        count = self.x.shape[0]
        outputs: list[torch.Tensor] = [torch.zeros(())] * count
        for time in reversed(range(count)) if backwards else range(count):
            new = step(self.x[time], *state)
            if self.lengths is None:
                state, outputs[time] = new, new[0]
                continue
            # Sequences that have ended keep their state and give zeros.
            active = (self.lengths > time).unsqueeze(1)
            state = tuple(torch.where(active, a, b) for a, b in zip(new, state))
            outputs[time] = torch.where(active, new[0], torch.zeros_like(new[0]))
        return torch.stack(outputs), state

    def outputs(
        self, sequences: list[torch.Tensor], states: list[tuple[torch.Tensor, ...]]
    ) -> list[torch.Tensor]:
        """The results in the layout that the node has."""
        whole = torch.stack(sequences, 1)
        last = [torch.stack(parts) for parts in zip(*states)]
        if self.batch_first:
            return [whole.permute(2, 0, 1, 3), *(part.transpose(0, 1) for part in last)]
        return [whole, *last]


@operator("RNN")
def _rnn(
    n: Node,
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    initial: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    layer = _Layer(n, x, lengths, ["Tanh"])
    size = r.shape[-1]
    sequences, states = [], []
    for d, backwards in enumerate(layer.directions):
        bias = b[d, :size] + b[d, size:] if b is not None else None
        start = layer.state(initial, d, size)
        function = next((f for f in ("tanh", "relu") if layer.is_one_kernel(f)), None)
        if function is not None:
            gates = layer.gates(w[d], bias, [0])
            sequence, *state = rnn_steps(gates, r[d].t(), start, function, backwards)
            sequences.append(sequence)
            states.append(tuple(state))
            continue

        def step(
            xt: torch.Tensor, h: torch.Tensor, d: int = d, bias: torch.Tensor | None = bias
        ) -> tuple[torch.Tensor, ...]:
            gate = F.linear(xt, w[d], bias) + F.linear(h, r[d])
            return (layer.activations[d](layer.limited(gate)),)

        sequence, last = layer.run(backwards, (start,), step)
        sequences.append(sequence)
        states.append(last)
    return layer.outputs(sequences, states)


@operator("GRU")
def _gru(
    n: Node,
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    initial: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    layer = _Layer(n, x, lengths, ["Sigmoid", "Tanh"])
    size = r.shape[-1]
    reset_after = bool(n.attr("linear_before_reset", 0))
    sequences, states = [], []
    for d, backwards in enumerate(layer.directions):
        wb = b[d, : 3 * size] if b is not None else torch.zeros(3 * size, dtype=x.dtype)
        rb = b[d, 3 * size :] if b is not None else torch.zeros(3 * size, dtype=x.dtype)
        f, g = layer.activations[2 * d : 2 * d + 2]
        start = layer.state(initial, d, size)
        if layer.is_one_kernel("sigmoid", "tanh"):
            order, shift = [1, 0, 2], rb[2 * size :]
            of_gates = torch.cat([rb[: 2 * size], torch.zeros_like(shift)])
            gates = layer.gates(w[d], wb + of_gates, order)
            weight = _ordered(r[d], order).t()
            sequence, *state = gru_steps(gates, weight, start, shift, backwards, reset_after)
            sequences.append(sequence)
            states.append(tuple(state))
            continue

        def step(
            xt: torch.Tensor,
            h: torch.Tensor,
            d: int = d,
            wb: torch.Tensor = wb,
            rb: torch.Tensor = rb,
            f: Activation = f,
            g: Activation = g,
        ) -> tuple[torch.Tensor, ...]:
            from_x = torch.split(F.linear(xt, w[d], wb), size, 1)
            inner = torch.split(F.linear(h, r[d, : 2 * size], rb[: 2 * size]), size, 1)
            update = f(layer.limited(from_x[0] + inner[0]))
            reset = f(layer.limited(from_x[1] + inner[1]))
            weight, shift = r[d, 2 * size :], rb[2 * size :]
            if reset_after:
                hidden = reset * F.linear(h, weight, shift)
            else:
                hidden = F.linear(reset * h, weight, shift)
            new = g(layer.limited(from_x[2] + hidden))
            return ((1 - update) * new + update * h,)

        sequence, last = layer.run(backwards, (start,), step)
        sequences.append(sequence)
        states.append(last)
    return layer.outputs(sequences, states)


@operator("LSTM")
def _lstm(
    n: Node,
    x: torch.Tensor,
    w: torch.Tensor,
    r: torch.Tensor,
    b: torch.Tensor | None = None,
    lengths: torch.Tensor | None = None,
    initial_h: torch.Tensor | None = None,
    initial_c: torch.Tensor | None = None,
    peepholes: torch.Tensor | None = None,
) -> list[torch.Tensor]:
    layer = _Layer(n, x, lengths, ["Sigmoid", "Tanh", "Tanh"])
    size = r.shape[-1]
    coupled = bool(n.attr("input_forget", 0))
    sequences, states = [], []
    for d, backwards in enumerate(layer.directions):
        bias = b[d, : 4 * size] + b[d, 4 * size :] if b is not None else None
        zeros = torch.zeros(3 * size, dtype=x.dtype)
        pi, po, pf = torch.split(zeros if peepholes is None else peepholes[d], size)
        f, g, h_of = layer.activations[3 * d : 3 * d + 3]
        start = (layer.state(initial_h, d, size), layer.state(initial_c, d, size))
        plain = peepholes is None and not coupled
        if plain and layer.is_one_kernel("sigmoid", "tanh", "tanh"):
            order = [0, 2, 3, 1]
            gates = layer.gates(w[d], bias, order)
            sequence, *state = lstm_steps(gates, _ordered(r[d], order).t(), *start, backwards)
            sequences.append(sequence)
            states.append(tuple(state))
            continue

        def step(
            xt: torch.Tensor,
            h: torch.Tensor,
            c: torch.Tensor,
            d: int = d,
            bias: torch.Tensor | None = bias,
            peep: tuple[torch.Tensor, ...] = (pi, po, pf),
            functions: tuple[Activation, ...] = (f, g, h_of),
        ) -> tuple[torch.Tensor, ...]:
            f, g, h_of = functions
            gates = F.linear(xt, w[d], bias) + F.linear(h, r[d])
            into, out, forget, cell = torch.split(gates, size, 1)
            i = f(layer.limited(into + peep[0] * c))
            keep = 1 - i if coupled else f(layer.limited(forget + peep[2] * c))
            new_c = keep * c + i * g(layer.limited(cell))
            o = f(layer.limited(out + peep[1] * new_c))
            return o * h_of(new_c), new_c

        sequence, last = layer.run(backwards, start, step)
        sequences.append(sequence)
        states.append(last)
    return layer.outputs(sequences, states)
