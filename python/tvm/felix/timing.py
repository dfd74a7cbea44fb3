"""Latency of functions in one process, interleaved so that they share the machine's moods."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tvm.relax.frontend.torch import in_eval_mode

__all__ = [
    "interleaved_seconds",
    "machine_ceilings",
    "output_difference",
    "times_as_fast",
    "torch_variants",
]

# Seconds after which threads that wait for work sleep.
_SETTLED = 5e-3


def interleaved_seconds(
    functions: Mapping[str, Callable[[], Any]],
    rounds: int = 15,
    budget: float = 60.0,
    at_least: float = 0.0,
) -> dict[str, list[float]]:
    """Seconds of each call, one sample a function and round, in turn A B C A B C.

    Each timed call follows some of the same function that are not timed. A slow function is sampled
    in fewer rounds (at least three), so that a slow baseline does not stretch the comparison; quick
    functions go on among themselves, so that no single moment of the machine decides between them.

    Parameters
    ----------
    functions : name to a function without arguments; each is called once before timing starts.
    rounds : samples of each function.
    budget : seconds for all samples of all functions together, roughly.
    at_least : seconds for all samples of a function, roughly; quick ones have up to ten times
        `rounds` for it.
    """
    if rounds < 1:
        raise ValueError(f"interleaved_seconds: rounds must be >= 1, got {rounds}")
    samples: dict[str, list[float]] = {name: [] for name in functions}
    limits: dict[str, int] = {}
    for name, function in functions.items():
        start = time.perf_counter()
        function()
        once = time.perf_counter() - start
        affordable = int(budget / len(functions) / max(2 * once, 1e-9))
        limits[name] = max(3, min(rounds, affordable))
    for turn in range(10 * rounds):
        unsure = [name for name in functions if sum(samples[name]) < at_least]
        if turn >= rounds and not unsure:
            break
        for name, function in functions.items():
            if turn < min(limits[name], rounds) or (turn >= rounds and name in unsure):
                _settle(function)
                start = time.perf_counter()
                function()
                samples[name].append(time.perf_counter() - start)
    return samples


def _settle(function: Callable[[], Any]) -> None:
    """Call a function until what ran before it is gone.

    The threads of the one before it spin on the cores for some milliseconds, and the caches hold
    its data.
    """
    end = time.perf_counter() + _SETTLED
    function()
    while time.perf_counter() < end:
        function()


def times_as_fast(one: Sequence[float], other: Sequence[float]) -> float:
    """How many times the seconds of one function those of another are, in the middle round.

    What both had to share in a round, such as a busy neighbour, cancels, as it does not between
    their medians.

    Parameters
    ----------
    one, other : samples of `interleaved_seconds`; rounds that only one has do not count.
    """
    return statistics.median(theirs / ours for ours, theirs in zip(one, other))


def torch_variants(model: torch.nn.Module, inputs: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """Eager PyTorch in inference mode, with contiguous and with channels_last memory format.

    Networks without a 4-D input or parameter only have the contiguous variant. The model passed
    in is left as it was.

    Parameters
    ----------
    inputs : tensors, and what holds them, in any structure that PyTorch knows.
    """
    import copy

    model = in_eval_mode(copy.deepcopy(model))

    def runner(network: torch.nn.Module, arguments: Sequence[Any]) -> Callable[[], Any]:
        def run() -> Any:
            with torch.inference_mode():
                return network(*arguments)

        return run

    variants = {"contiguous": runner(model, inputs)}
    if any(_is_image(t) for t in (*pytree.tree_leaves(list(inputs)), *model.parameters())):
        converted = copy.deepcopy(model)
        # Module.to refuses the format for networks that have weights of five dimensions as well.
        for weight in (*converted.parameters(), *converted.buffers()):
            weight.data = _channels_last(weight.data)
        arguments = pytree.tree_map(_channels_last, list(inputs))
        variants["channels_last"] = runner(converted, arguments)
    return variants


def _is_image(value: Any) -> bool:
    """Whether it is a tensor that may have the channels innermost."""
    return isinstance(value, torch.Tensor) and value.dim() == 4


def _channels_last(value: Any) -> Any:
    """An image or its weights with the channels innermost; everything else as it is."""
    return value.contiguous(memory_format=torch.channels_last) if _is_image(value) else value


def output_difference(actual: Any, expected: Any) -> tuple[float, float]:
    """Largest absolute difference, and largest one relative to the largest expected magnitude.

    Both arguments hold tensors of equal shapes in the same order, in any nesting of sequences,
    mappings and dataclasses; what is no tensor is passed over.
    """
    first, second = list(_tensors(actual)), list(_tensors(expected))
    if len(first) != len(second):
        raise ValueError(f"output_difference: {len(first)} outputs against {len(second)}")
    absolute = relative = 0.0
    for x, y in zip(first, second):
        if x.shape != y.shape:
            raise ValueError(
                f"output_difference: shapes {tuple(x.shape)} and {tuple(y.shape)} differ"
            )
        if x.numel():
            difference = float((x - y).abs().max())
            absolute = max(absolute, difference)
            relative = max(relative, difference / max(float(y.abs().max()), 1e-12))
    return absolute, relative


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an output, as float64."""
    if isinstance(value, torch.Tensor):
        yield value.detach().double()
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _tensors(getattr(value, field.name))


def machine_ceilings() -> dict[str, float]:
    """What this machine does at most, as PyTorch reaches it with the threads it has now.

    Returns
    -------
    "flops": FLOP/s of a product of two 1024x1024 float32 matrices; "bytes_per_second": of a copy of
    64 MB, read and written bytes both counted. The best of a few runs each.
    """
    size = 1024
    a, b = torch.rand(size, size), torch.rand(size, size)
    source, sink = torch.zeros(1 << 24), torch.zeros(1 << 24)
    return {
        "flops": 2.0 * size**3 / _least_seconds(lambda: torch.mm(a, b)),
        "bytes_per_second": 2.0 * source.nbytes / _least_seconds(lambda: sink.copy_(source)),
    }


def _least_seconds(function: Callable[[], Any], runs: int = 5) -> float:
    function()
    least = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        function()
        least = min(least, time.perf_counter() - start)
    return least
