"""What graph tuners share: candidates of operators, times of moving data, records that come out."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm.runtime.files import write_atomically
from tvm.target import Target

from ..measure import LocalBuilder, LocalRunner, create_measure_batch, measure_option
from ..measure.measure import Runner
from ..measure_node import MeasureInput, MeasureResult
from ..task import create
from ..task.dispatcher import record_pairs
from ..task.records import encode
from ..task.topi_integration import deep_tuple
from .assignment import Assignment

__all__ = ["BaseGraphTuner"]

# One operator's data moved: shape (N, C, H, W), type, layouts before and after.
Move = tuple[tuple[int, ...], str, str, str]


class BaseGraphTuner:
    """Chooses a record for each operator of a network.

    Parameters
    ----------
    graph : relay function, or module with "main".
    input_shapes : shapes of its inputs by name.
    records : what tuning the network's tasks recorded: a file or pairs of inputs and results.
    target_ops : relay operators to choose for.
    target : what the network is compiled for.
    max_sch_num : candidates of an operator, the fastest of each pair of blocks first.
    verbose : say on the standard output what is done.
    log_file : file that this is written to as well; None for none.
    log_level, name : of the logger.

    Raises
    ------
    ValueError : no operator of the network has a record, or an input has another shape.
    """

    def __init__(
        self,
        graph: Any,
        input_shapes: Mapping[str, Sequence[int]],
        records: Any,
        target_ops: Sequence[Any],
        target: Target | str,
        max_sch_num: int = 20,
        verbose: bool = True,
        log_file: str | None = "graph_tuner.log",
        log_level: int = logging.DEBUG,
        name: str = "graph_tuner",
    ) -> None:
        self._target = target if isinstance(target, Target) else Target(target)
        self._logger = _logger(name, verbose, log_file, log_level)
        by_workload = _candidates(record_pairs(records), max_sch_num)
        described = json.loads(
            str(
                tvm.get_global_func("relay.LayoutGraph")(
                    graph,
                    dict(input_shapes),
                    self._target,
                    [str(op.name) for op in target_ops],
                    json.dumps(list(by_workload)),
                )
            )
        )
        self._edges = [(*edge[:3], tuple(edge[3]), edge[4]) for edge in described["edges"]]
        workloads = [deep_tuple(workload) for workload in described["workloads"]]
        if not workloads:
            raise ValueError("graph tuner: no operator of the network has a record")
        self._candidates = [by_workload[workload] for workload in workloads]
        self._times: dict[Move, float] = {}
        self._chosen: list[tuple[MeasureInput, MeasureResult]] = []

    def benchmark_layout_transform(
        self,
        min_exec_num: int = 100,
        timeout: float = 10,
        layout_records: Any = None,
        infer_layout: bool = False,
        runner: Runner | None = None,
    ) -> None:
        """Time every move of data that a choice may need.

        Parameters
        ----------
        min_exec_num : runs of each.
        timeout : seconds for one of them.
        layout_records : times from an earlier call, see `layout_records`; what is there is not
            timed again.
        infer_layout : time one move only, and take the others to be as fast an element.
        runner : what times them; by default a `LocalRunner`.
        """
        self._logger.info("Timing changes of layout...")
        wanted = dict.fromkeys(move for edge in self._edges for move in self._moves(edge))
        missing = list(wanted)
        if layout_records is not None:
            known = {inp.task.workload: result for inp, result in record_pairs(layout_records)}
            for move in wanted:
                result = known.get(self._task(move).workload)
                if result is not None and int(result.error_no) == 0:
                    self._times[move] = float(np.mean(result.costs))
                    missing.remove(move)
        measured = missing[:1] if infer_layout and not self._times else missing
        measured = [] if infer_layout and self._times else measured
        runner = runner or LocalRunner(timeout=timeout, number=min_exec_num, repeat=1)
        self.layout_records = self._measured(measured, timeout, runner)
        for move, (inp, result) in zip(measured, self.layout_records):
            if int(result.error_no) != 0:
                raise RuntimeError(
                    f"graph tuner: {inp.task.workload} cannot be timed: {result.costs}"
                )
            self._times[move] = float(np.mean(result.costs))
        if infer_layout and missing:
            known_moves = list(self._times.items())
            rate = sum(t for _, t in known_moves) / sum(np.prod(m[0]) for m, _ in known_moves)
            for move in missing:
                self._times.setdefault(move, float(rate * np.prod(move[0])))
        self._logger.info("Timed %d changes of layout.", len(measured))

    def run(self) -> None:
        """Choose.

        Raises
        ------
        RuntimeError : `benchmark_layout_transform` has not been called.
        """
        costs = {
            number: np.array([float(np.mean(result.costs)) for _, result in candidates])
            for number, candidates in enumerate(self._candidates)
        }
        problem = Assignment(costs)
        for edge in self._edges:
            times = [0.0 if move is None else self._time(move) for move in self._all_moves(edge)]
            source, reader = edge[:2]
            if source >= 0 and reader >= 0:
                shape = len(costs[source]), len(costs[reader])
                problem.add(source, reader, np.reshape(times, shape))
            else:
                problem.add_to(max(source, reader), np.array(times))
        self._logger.info("Choosing among %s schedules...", [len(c) for c in costs.values()])
        solution = self._solve(problem)
        self._chosen = [
            candidates[solution[number]] for number, candidates in enumerate(self._candidates)
        ]
        alone = {number: int(np.argmin(cost)) for number, cost in costs.items()}
        self._logger.info(
            "Chosen: %.3f ms; the fastest schedule of each would take %.3f ms.",
            1e3 * problem.cost_of(solution),
            1e3 * problem.cost_of(alone),
        )

    def _solve(self, problem: Assignment) -> dict[int, int]:
        """One candidate a node."""
        raise TypeError(f"{type(self).__name__} does not define _solve")

    def get_optimal_records(self) -> list[tuple[MeasureInput, MeasureResult]]:
        """The chosen record of each operator, in the order of the network.

        Raises
        ------
        RuntimeError : `run` has not been called.
        """
        if not self._chosen:
            raise RuntimeError("graph tuner: nothing is chosen yet; call run() first")
        return list(self._chosen)

    def write_opt_sch2record_file(self, record_file: str = "graph_opt_schedule.log") -> None:
        """Write the chosen records, as `autotvm.apply_graph_best` reads them."""
        lines = [encode(*record) + "\n" for record in self.get_optimal_records()]
        write_atomically(record_file, "".join(lines).encode())
        self._logger.info("Wrote the chosen schedules to %s.", record_file)

    def _layout(self, number: int, choice: int, knob: str) -> str:
        if number < 0:
            return "NCHW"
        config = self._candidates[number][choice][0].config
        return f"NCHW{int(config[knob].size[-1])}c"

    def _all_moves(self, edge: tuple[Any, ...]) -> Iterable[Move | None]:
        """What an edge moves for each pair of choices, None where layouts are the same."""
        source, reader, reads, shape, dtype = edge
        ends = [range(len(self._candidates[n])) if n >= 0 else [0] for n in (source, reader)]
        for one in ends[0]:
            for other in ends[1]:
                before = self._layout(source, one, "tile_oc")
                after = self._layout(reader, other, "tile_ic" if reads else "tile_oc")
                yield None if before == after else (shape, dtype, before, after)

    def _moves(self, edge: tuple[Any, ...]) -> Iterable[Move]:
        return (move for move in self._all_moves(edge) if move is not None)

    def _time(self, move: Move) -> float:
        if move not in self._times:
            raise RuntimeError("graph tuner: call benchmark_layout_transform() before run()")
        return self._times[move]

    def _task(self, move: Move) -> Any:
        (batch, channels, *image), dtype, before, after = move
        shape = (batch, channels, *image)
        if before != "NCHW":
            block = int(before[4:-1])
            shape = (batch, channels // block, *image, block)
        args = [("TENSOR", shape, dtype), before, after]
        return create("layout_transform", args, self._target)

    def _measured(
        self, moves: Sequence[Move], timeout: float, runner: Runner
    ) -> list[tuple[MeasureInput, MeasureResult]]:
        inputs = []
        for move in moves:
            task = self._task(move)
            inputs.append(MeasureInput(self._target, task, task.config_space.get(0)))
        if not inputs:
            return []
        option = measure_option(LocalBuilder(timeout=timeout), runner)
        return list(zip(inputs, create_measure_batch(inputs[0].task, option)(inputs)))


def _candidates(
    pairs: Iterable[tuple[MeasureInput, MeasureResult]], limit: int
) -> dict[Any, list[tuple[MeasureInput, MeasureResult]]]:
    """The fastest record of each pair of blocks of each workload, at most `limit` of them."""
    best: dict[Any, dict[tuple[int, int], tuple[MeasureInput, MeasureResult]]] = {}
    for inp, result in pairs:
        config = inp.config
        if int(result.error_no) != 0 or "tile_ic" not in config or "tile_oc" not in config:
            continue
        blocks = int(config["tile_ic"].size[-1]), int(config["tile_oc"].size[-1])
        table = best.setdefault(inp.task.workload, {})
        known = table.get(blocks)
        if known is None or np.mean(result.costs) < np.mean(known[1].costs):
            table[blocks] = (inp, result)
    return {
        workload: sorted(table.values(), key=lambda pair: float(np.mean(pair[1].costs)))[:limit]
        for workload, table in best.items()
    }


def _logger(name: str, verbose: bool, log_file: str | None, level: int) -> logging.Logger:
    """The tuner's own log, with the outputs that it was made with."""
    logger = logging.Logger(name, level)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stdout)] if verbose else []
    if log_file is not None:
        handlers.append(logging.FileHandler(log_file))
    for handler in handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
    return logger
