"""The table of ONNX operators: how PyTorch computes each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

__all__ = ["Node", "Operator", "find_operator", "has_operator", "operator", "unsigned_as_int64"]

Operator = Callable[..., Any]
_TABLE: dict[tuple[str, str], Operator] = {}


class Node(Protocol):
    """What an operator's function knows of its node, besides its inputs."""

    opset: int
    """Version of the standard operators that the model is written in."""
    op_type: str
    n_outputs: int

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute: a number, text, list, tensor or graph."""

    def has_output(self, index: int) -> bool:
        """Whether an output is wanted."""

    def array(self, index: int) -> np.ndarray[Any, Any] | None:
        """An input that must be known before the network runs; None where it is left out.

        Raises
        ------
        OnnxError : it depends on the network's inputs.
        """

    def ints(self, index: int) -> list[int] | None:
        """The same as a list of integers."""

    def run(self, graph: Any, inputs: Sequence[Any]) -> list[Any]:
        """Results of a graph among the attributes, which may read values around the node."""


def operator(*names: str, domain: str = "") -> Callable[[Operator], Operator]:
    """Enter a function of the node and its inputs; it returns a value, or a list of them.

    Inputs are tensors; lists of them for sequences; None where they are left out.
    """

    def register(function: Operator) -> Operator:
        for name in names:
            _TABLE[domain, name] = function
        return function

    return register


def has_operator(name: str, domain: str = "") -> bool:
    """Whether there is such an operator."""
    return _key(name, domain) in _TABLE


def find_operator(name: str, domain: str = "") -> Operator:
    """The function of an operator that there is."""
    return _TABLE[_key(name, domain)]


def _key(name: str, domain: str) -> tuple[str, str]:
    return ("" if domain == "ai.onnx" else domain), name


_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def unsigned_as_int64(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Compute in 64-bit integers what PyTorch cannot in wide unsigned ones.

    A result of integers gets the type of the operands again, so sums and products wrap as unsigned
    numbers do.
    """

    def compute(*tensors: torch.Tensor) -> torch.Tensor:
        dtype = next((t.dtype for t in tensors if t.dtype in _UNSIGNED), None)
        if dtype is None:
            return function(*tensors)
        wide = [t.to(torch.int64) if t.dtype in _UNSIGNED else t for t in tensors]
        result = function(*wide)
        return result.to(dtype) if result.dtype == torch.int64 else result

    return compute
