"""What a run gives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvm.runtime import BenchmarkResult

__all__ = ["TVMCResult"]


class TVMCResult:
    """Outputs of a network, and how long it took.

    Attributes
    ----------
    outputs : arrays by name, "output_0" and so on.
    times : of a benchmark, else None.
    """

    def __init__(
        self, outputs: Mapping[str, np.ndarray], times: BenchmarkResult | None = None
    ) -> None:
        self.outputs = dict(outputs)
        self.times = times

    def get_output(self, name: str) -> np.ndarray:
        """An output by its name."""
        return self.outputs[name]

    def format_times(self) -> str:
        """Mean, median, largest, smallest and standard deviation of the times in milliseconds."""
        return str(self.times)

    def __str__(self) -> str:
        parts = [] if self.times is None else [self.format_times()]
        return "\n".join([*parts, f"Output Names:\n {list(self.outputs)}"])
