"""Whether the processor runs at its usual speed while something is timed on it.

On a machine that is shared, a neighbour on the same core takes up to half of its units, for tenths
of a second at a time: every repeat of a short measurement is slow then, and the least of them, too.
A fixed piece of work, timed before and after, tells such measurements from others.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

from tvm.runtime import _ffi_profiling_api as _profiling_api

__all__ = ["MachineGauge", "gauge_here", "undisturbed"]

# How much longer than usual the gauge takes on a core that is disturbed. On a Zen 3 a convolution
# takes its usual time below 1.08, and 1.4 times as long where the gauge takes 1.25 to 1.5 times.
_DISTURBED = 1.1
# Seconds that each program may wait for a calm machine unless the environment says otherwise, and
# for how many programs they may be saved up.
_VARIABLE = "TVM_MEASURE_WAIT_SECONDS"
_SECONDS_A_PROGRAM = 0.3
_SAVED_UP = 20
_PAUSE_SECONDS = 0.002
# Repeats that are timed between two readings.
_CHUNK = 4


class MachineGauge:
    """Readings of the gauge, the least of which is how long it takes on a calm machine.

    Parameters
    ----------
    read : seconds that the gauge takes now.
    seconds : that each program may wait for a calm machine; 0 never waits. By default the
        environment's ``TVM_MEASURE_WAIT_SECONDS``, or 0.3.

    Raises
    ------
    ValueError : the environment's value is no number of seconds.

    Attributes
    ----------
    usual : the least reading in seconds, of this process or of others of this machine; infinite
        before the first.
    """

    def __init__(
        self,
        read: Callable[[], float] = _profiling_api.GaugeSeconds,
        seconds: float | None = None,
    ) -> None:
        self._read = read
        self._seconds = _seconds_of_environment() if seconds is None else seconds
        self._allowance = _SAVED_UP / 2 * self._seconds
        self.usual = math.inf

    def is_calm(self) -> bool:
        """Whether the machine is at its usual speed now."""
        reading = self._read()
        self.usual = min(self.usual, reading)
        return reading <= _DISTURBED * self.usual

    def learn(self, seconds: float) -> None:
        """What another process of this machine read at least."""
        self.usual = min(self.usual, seconds)

    def start_program(self) -> None:
        """Another program is about to be timed."""
        self._allowance = min(self._allowance + self._seconds, _SAVED_UP * self._seconds)

    def may_wait(self) -> bool:
        """Whether there is time left to wait for a calm machine."""
        return self._allowance > 0

    def wait(self) -> bool:
        """Wait until the machine is calm, as long as may be waited; whether it is."""
        while not self.is_calm():
            if not self.may_wait():
                return False
            time.sleep(_PAUSE_SECONDS)
            self.spend(_PAUSE_SECONDS)
        return True

    def spend(self, seconds: float) -> None:
        """Seconds were spent on what a calm machine would not have needed."""
        self._allowance -= seconds


def _seconds_of_environment() -> float:
    text = os.environ.get(_VARIABLE, str(_SECONDS_A_PROGRAM))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise ValueError(f'{_VARIABLE} is "{text}"; say how many seconds a program may wait, or 0')
    return seconds


gauge_here = MachineGauge()
"""Of this machine, for this process."""


def undisturbed(
    gauge: MachineGauge, repeat: int, timed: Callable[[int], Sequence[float]]
) -> list[float]:
    """Repeats of a measurement on a machine that is as calm as it gets.

    Repeats that the gauge finds disturbed are made again while that may be waited for. Where too
    few are calm, the fastest of the others stand in for them.

    Parameters
    ----------
    timed : seconds of so many repeats.

    Returns
    -------
    `repeat` figures.
    """
    calm: list[float] = []
    disturbed: list[float] = []
    left = repeat
    while left > 0 or not (calm or not gauge.may_wait()):
        count = min(_CHUNK, left) if left > 0 else min(_CHUNK, repeat)
        is_extra = left <= 0
        is_calm = gauge.wait()
        start = time.perf_counter()
        seconds = timed(count)
        if is_extra:
            gauge.spend(time.perf_counter() - start)
        (calm if gauge.is_calm() and is_calm else disturbed).extend(seconds)
        left -= count
    return (calm + sorted(disturbed))[:repeat]
