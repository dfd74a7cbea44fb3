"""State that all of a process shares."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["GLOBAL_SCOPE"]


@dataclass
class AutotvmGlobalScope:
    """What tuners and look-ups tell each other.

    Attributes
    ----------
    in_tuning : whether a tuner is at work.
    silent : no warnings of missing configurations, no progress lines.
    rng : what tuners draw from; another one, or `seed`, makes runs repeat.
    """

    in_tuning: bool = False
    silent: bool = False
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def seed(self, value: int) -> None:
        """Make what follows repeat."""
        self.rng = np.random.default_rng(value)


GLOBAL_SCOPE = AutotvmGlobalScope()
