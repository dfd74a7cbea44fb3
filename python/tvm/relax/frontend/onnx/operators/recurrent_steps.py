"""Recurrent layers whose steps are one kernel: operators that PyTorch gets for the import's sake.

They take what :func:`tvm.topi.nn.lstm_steps` and its neighbours take. PyTorch runs them step by
step, where a graph is computed and not compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Call, TupleGetItem
from tvm.relax.frontend.torch.arguments import Arguments, converter

__all__ = ["gru_steps", "lstm_steps", "rnn_steps"]

# From what the data adds to a step's gates to the state behind the step.
_Step = Callable[[torch.Tensor], torch.Tensor]


def _all_steps(gates: torch.Tensor, backwards: bool, step: _Step) -> torch.Tensor:
    rows = list(gates.flip(0) if backwards else gates)
    states = torch.stack([step(row) for row in rows])
    return states.flip(0) if backwards else states


@torch.library.custom_op("tvm_onnx::lstm_steps", mutates_args=())
def lstm_steps(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    cell: torch.Tensor,
    backwards: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """States of all steps, last state and last cells; see :func:`tvm.topi.nn.lstm_steps`."""
    state = hidden, cell

    def step(row: torch.Tensor) -> torch.Tensor:
        nonlocal state
        into, forget, candidate, out = torch.chunk(row + state[0] @ weight, 4, 1)
        cells = torch.sigmoid(forget) * state[1] + torch.sigmoid(into) * torch.tanh(candidate)
        state = torch.sigmoid(out) * torch.tanh(cells), cells
        return state[0]

    states = _all_steps(gates, backwards, step)
    return states, state[0].clone(), state[1].clone()


@torch.library.custom_op("tvm_onnx::gru_steps", mutates_args=())
def gru_steps(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    bias: torch.Tensor,
    backwards: bool,
    reset_after: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of all steps and the last state; see :func:`tvm.topi.nn.gru_steps`."""
    units = hidden.shape[1]
    of_gates, of_candidate = weight[:, : 2 * units], weight[:, 2 * units :]
    state = hidden

    def step(row: torch.Tensor) -> torch.Tensor:
        nonlocal state
        sums = row[:, : 2 * units] + state @ of_gates
        reset, update = torch.chunk(torch.sigmoid(sums), 2, 1)
        if reset_after:
            from_state = reset * (state @ of_candidate + bias)
        else:
            from_state = (reset * state) @ of_candidate + bias
        candidate = torch.tanh(row[:, 2 * units :] + from_state)
        state = candidate + update * (state - candidate)
        return state

    states = _all_steps(gates, backwards, step)
    return states, state.clone()


@torch.library.custom_op("tvm_onnx::rnn_steps", mutates_args=())
def rnn_steps(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    activation: str,
    backwards: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """States of all steps and the last state; see :func:`tvm.topi.nn.rnn_steps`."""
    function = {"tanh": torch.tanh, "relu": torch.relu}[activation]
    state = hidden

    def step(row: torch.Tensor) -> torch.Tensor:
        nonlocal state
        state = function(row + state @ weight)
        return state

    states = _all_steps(gates, backwards, step)
    return states, state.clone()


@lstm_steps.register_fake
def _lstm_shapes(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    cell: torch.Tensor,
    backwards: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    states = gates.new_empty(*gates.shape[:2], hidden.shape[1])
    return states, torch.empty_like(hidden), torch.empty_like(cell)


@gru_steps.register_fake
def _gru_shapes(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    bias: torch.Tensor,
    backwards: bool,
    reset_after: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return gates.new_empty(*gates.shape[:2], hidden.shape[1]), torch.empty_like(hidden)


@rnn_steps.register_fake
def _rnn_shapes(
    gates: torch.Tensor,
    weight: torch.Tensor,
    hidden: torch.Tensor,
    activation: str,
    backwards: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return gates.new_empty(*gates.shape[:2], hidden.shape[1]), torch.empty_like(hidden)


def _convert(name: str, *tensors: str) -> None:
    """Enter the converter of an operator, given the names of its tensors."""
    call: Callable[..., Call] = getattr(op.nn, name)

    @converter(f"{name}.default", namespace="tvm_onnx")
    def convert(a: Arguments) -> list[RelayExpr]:
        # Sixteen bits would be rounded in every step; sums are formed in float32.
        dtype = "float64" if a.dtype("gates") == "float64" else "float32"
        given = [a.cast(a[tensor], dtype) for tensor in ("gates", "weight", "hidden", *tensors)]
        options = {"backwards": bool(a["backwards"])}
        if name == "rnn_steps":
            options["activation"] = a["activation"]
        if name == "gru_steps":
            options["reset_after"] = bool(a["reset_after"])
        made = a.emit(call(*given, **options))
        count = len(made.struct_info.fields)
        return [a.cast(a.emit(TupleGetItem(made, k)), a.result_dtype) for k in range(count)]


_convert("lstm_steps", "cell")
_convert("gru_steps", "bias")
_convert("rnn_steps")
