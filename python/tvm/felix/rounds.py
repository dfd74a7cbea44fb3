"""Kernels of several networks, timed in turns inside of them, and which of two is faster.

Another process takes a core for a while, and clocks rise and fall, for longer than a network runs.
So the networks run in turns, one sample of each kernel a round; samples of one round are compared
with each other, and a kernel counts as faster only if it is so in the middle round. One lucky
sample decides nothing, as the least of all would let it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .compiler import CompiledNetwork

__all__ = ["clearly_faster", "kernel_rounds", "typical"]

_ROUNDS = 20


def kernel_rounds(
    networks: Sequence[CompiledNetwork],
    seconds: Callable[[CompiledNetwork], Mapping[str, float]],
) -> list[dict[str, np.ndarray]]:
    """Seconds of each kernel of each network, one sample a round.

    Parameters
    ----------
    networks : which run in turns; another one begins each round, so that none always finds the
        caches as the same other one left them.
    seconds : runs a network once and gives what its kernels took, by their keys.
    """
    samples: list[dict[str, list[float]]] = [{} for _ in networks]
    for turn in range(_ROUNDS):
        for place in range(len(networks)):
            which = (turn + place) % len(networks)
            for key, taken in seconds(networks[which]).items():
                samples[which].setdefault(key, []).append(taken)
    return [{key: np.array(values) for key, values in kernels.items()} for kernels in samples]


def typical(samples: np.ndarray) -> float:
    """The lower quartile, which neither busy neighbours nor lucky samples move far."""
    return float(np.quantile(samples, 0.25))


def clearly_faster(one: np.ndarray, other: np.ndarray, margin: float) -> bool:
    """Whether one kernel is faster than another by their samples of the same rounds.

    Parameters
    ----------
    margin : which part of the other's seconds it may take at most, in the middle round (what both
        had to share cancels) and where both are typical.
    """
    in_turns = float(np.median(one / other))
    return in_turns < margin and typical(one) < margin * typical(other)
