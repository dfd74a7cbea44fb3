"""Branches, loops and scans, followed while the network is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..errors import OnnxError
from .registry import Node, operator

__all__: list[str] = []

# Loops are unrolled; a hostile file asks for 2^60 turns.
_MAX_TURNS = 1000


def _truth(n: Node, index: int, default: bool) -> bool:
    value = n.array(index)
    return default if value is None else bool(value.reshape(-1)[0])


@operator("If")
def _if(n: Node, condition: torch.Tensor) -> list[Any]:
    return n.run(n.attr("then_branch" if _truth(n, 0, True) else "else_branch"), [])


@operator("Loop")
def _loop(
    n: Node,
    turns: torch.Tensor | None = None,
    condition: torch.Tensor | None = None,
    *state: Any,
) -> list[Any]:
    limit = n.ints(0)
    going = _truth(n, 1, True)
    body = n.attr("body")
    carried = list(state)
    collected: list[list[Any]] | None = None
    turn = 0
    while going and (limit is None or turn < limit[0]):
        if turn >= _MAX_TURNS:
            raise OnnxError(f"a loop of more than {_MAX_TURNS} turns")
        results = n.run(body, [np.array(turn, np.int64), np.array(going), *carried])
        going = _known_truth(results[0])
        carried, outputs = results[1 : 1 + len(carried)], results[1 + len(carried) :]
        collected = [[] for _ in outputs] if collected is None else collected
        for values, value in zip(collected, outputs):
            values.append(value)
        turn += 1
    stacked = [torch.stack([torch.as_tensor(v) for v in values]) for values in collected or []]
    return [*carried, *stacked]


def _known_truth(value: Any) -> bool:
    return bool(np.asarray(value).reshape(-1)[0]) if isinstance(value, np.ndarray) else bool(value)


@operator("Scan")
def _scan(n: Node, *inputs: Any) -> list[Any]:
    if n.opset < 9:
        raise OnnxError("Scan of opset 8 is not supported; convert the model to a newer opset")
    body = n.attr("body")
    scanned = n.attr("num_scan_inputs")
    state, sequences = list(inputs[:-scanned]), list(inputs[-scanned:])
    axes = n.attr("scan_input_axes", [0] * scanned)
    backwards = n.attr("scan_input_directions", [0] * scanned)
    count = sequences[0].shape[axes[0]]
    collected: list[list[torch.Tensor]] = []
    for turn in range(count):
        items = [
            sequence.select(axis, count - 1 - turn if back else turn)
            for sequence, axis, back in zip(sequences, axes, backwards)
        ]
        results = n.run(body, [*state, *items])
        outputs = results[len(state) :]
        state = results[: len(state)]
        collected = collected or [[] for _ in outputs]
        for values, value in zip(collected, outputs):
            values.append(torch.as_tensor(value))
    out_axes = n.attr("scan_output_axes", [0] * len(collected))
    out_back = n.attr("scan_output_directions", [0] * len(collected))
    stacked = [
        torch.stack(values[::-1] if back else values, axis)
        for values, axis, back in zip(collected, out_axes, out_back)
    ]
    return [*state, *stacked]


@operator("SequenceMap")
def _sequence_map(n: Node, sequence: list[Any], *others: Any) -> list[Any]:
    body = n.attr("body")
    rows = []
    for i, item in enumerate(sequence):
        rest = [other[i] if isinstance(other, list) else other for other in others]
        rows.append(n.run(body, [item, *rest]))
    return [list(column) for column in zip(*rows)]
