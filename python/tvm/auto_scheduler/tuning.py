"""Options of a tuning run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .measure import (
    LocalBuilder,
    LocalRunner,
    ProgramBuilder,
    ProgramRunner,
)
from .measure_callback import MeasureCallback, as_callbacks

__all__ = ["TuningOptions"]


@tvm._ffi.register_object("auto_scheduler.TuningOptions")
class TuningOptions(Object):
    """Options of a tuning run.

    Parameters
    ----------
    num_measure_trials : programs to measure; with one at most nothing is measured.
    early_stopping : measurements without improvement that end the search; None for never.
    num_measures_per_round : programs a round.
    verbose : 0 silent, 1 progress, 2 every program.
    builder, runner : "local" for LocalBuilder() and LocalRunner(), or objects.
    measure_callbacks : such as RecordToFile.

    Raises
    ------
    ValueError : a number out of range, or an unknown name of a builder or runner.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: ProgramBuilder | str = "local",
        runner: ProgramRunner | str = "local",
        measure_callbacks: Sequence[MeasureCallback | Callable[..., None]] | None = None,
    ) -> None:
        for what, given in (("builder", builder), ("runner", runner)):
            if isinstance(given, str) and given != "local":
                raise ValueError(f"TuningOptions: unknown {what} {given!r}; known: 'local'")
        self.__init_handle_by_constructor__(
            _ffi_api.TuningOptions,
            num_measure_trials,
            -1 if early_stopping is None else early_stopping,
            num_measures_per_round,
            verbose,
            LocalBuilder() if isinstance(builder, str) else builder,
            LocalRunner() if isinstance(runner, str) else runner,
            as_callbacks(measure_callbacks or ()),
        )
