"""What all tuners do: propose points, measure them, learn from them, keep the best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..measure import MeasureInput, MeasureResult, create_measure_batch
from ..task.space import ConfigEntity
from ..task.task import Task
from ..utils import TuningScope, format_si_prefix, throughput

__all__ = ["Tuner"]

logger = logging.getLogger("autotvm")

# A tuner of which this many points fail one after the other says why, since the cause is another.
_MANY_ERRORS = 150
_FOREVER = 10**9


class Tuner:
    """Base of tuners, which define `has_next`, `next_batch` and, if they learn, `update`.

    Parameters
    ----------
    task : what is tuned.

    Attributes
    ----------
    best_config, best_flops, best_measure_pair, best_iter : the fastest point so far, its
        operations a second, its measurement, and the number of that measurement.
    n_trial, early_stopping, ttl : limits of the run at hand, and measurements that are left of it.
    """

    def __init__(self, task: Task, **kwargs: Any) -> None:
        self.param = kwargs
        self.task = task
        if task.config_space is None:
            raise ValueError(f"tuner: the task {task.name} has no space; make it with task.create")
        self.space = task.config_space
        self.reset()

    def reset(self) -> None:
        """Forget the best."""
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self.error_ct_threshold = _MANY_ERRORS
        self.ttl = 0
        self.n_trial = 0
        self.early_stopping = _FOREVER

    def has_next(self) -> bool:
        """Whether there are points that were not proposed."""
        raise TypeError(f"{type(self).__name__} does not define has_next")

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """Up to so many points to measure."""
        raise TypeError(f"{type(self).__name__} does not define next_batch")

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from measurements."""

    def load_history(
        self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500
    ) -> None:
        """Learn from records of earlier runs.

        Parameters
        ----------
        data_set : pairs of inputs and results.
        min_seed_records : with fewer that fit nothing is learned.
        """
        raise TypeError(f"{type(self).__name__} does not learn from records of other runs")

    def set_error_threshold(self, threshold: int) -> None:
        """Say what goes wrong after this many failures in a row."""
        self.error_ct_threshold = int(threshold)

    def tune(
        self,
        n_trial: int,
        measure_option: dict[str, Any],
        early_stopping: int | None = None,
        callbacks: Sequence[Callable[..., Any]] = (),
        si_prefix: str = "G",
    ) -> None:
        """Measure points until the budget or the space is spent.

        Parameters
        ----------
        n_trial : measurements at most.
        measure_option : what `autotvm.measure_option` gave.
        early_stopping : end after this many measurements without a faster one.
        callbacks : called after each batch with (tuner, inputs, results).
        si_prefix : unit of the throughput in messages.

        Raises
        ------
        ValueError : an unknown prefix.
        """
        format_si_prefix(0, si_prefix)
        self.n_trial = n_trial
        self.early_stopping = _FOREVER if early_stopping is None else early_stopping
        measure_batch = create_measure_batch(self.task, measure_option)
        batch_size = getattr(measure_batch, "n_parallel", 1)
        done = errors = 0
        with TuningScope():
            while done < n_trial and self.has_next():
                configs = self.next_batch(min(batch_size, n_trial - done))
                if not configs:
                    break
                inputs = [MeasureInput(self.task.target, self.task, config) for config in configs]
                results = measure_batch(inputs)
                for offset, (inp, result) in enumerate(zip(inputs, results)):
                    errors = errors + 1 if int(result.error_no) != 0 else 0
                    self._keep_best(done + offset, inp, result, si_prefix)
                done += len(results)
                self.ttl = min(self.early_stopping + self.best_iter, n_trial) - done
                self.update(inputs, results)
                for callback in callbacks:
                    callback(self, inputs, results)
                if errors > self.error_ct_threshold:
                    logger.warning(
                        "%d measurements in a row failed, the last with: %s", errors, results[-1]
                    )
                    errors = 0
                if done >= self.best_iter + self.early_stopping:
                    logger.debug("early stopping after %d measurements", done)
                    break

    def _keep_best(
        self, number: int, inp: MeasureInput, result: MeasureResult, si_prefix: str
    ) -> None:
        flops = throughput(float(self.task.flop or 0), result)
        if flops > self.best_flops:
            self.best_flops, self.best_config = flops, inp.config
            self.best_measure_pair, self.best_iter = (inp, result), number
        logger.debug(
            "No: %d\t%sFLOPS: %.2f/%.2f\tresult: %s\t%s",
            number + 1,
            si_prefix,
            format_si_prefix(flops, si_prefix),
            format_si_prefix(self.best_flops, si_prefix),
            result,
            inp.config,
        )
