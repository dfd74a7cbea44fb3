"""What there is to tune in a network."""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir import IRModule
from tvm.target import Target

from .utils import normalize_mod

__all__ = ["ExtractedTask"]


@dataclass
class ExtractedTask:
    """A tensor program of a network.

    Attributes
    ----------
    task_name : of the program in the network.
    mod : the program as the network has it.
    target : what it is compiled for.
    dispatched : modules to tune for it, with one function ``main`` each.
    weight : how often the network calls it.
    """

    task_name: str
    mod: IRModule
    target: Target
    dispatched: list[IRModule]
    weight: int = 1

    def __post_init__(self) -> None:
        self.dispatched = [normalize_mod(mod) for mod in self.dispatched]
