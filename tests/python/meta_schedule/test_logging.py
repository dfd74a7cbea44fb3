"""Where messages of searches go."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from testing_traces import TARGET, CountingRunner, NoBuilder, matmul_module
from tvm import meta_schedule as ms
from tvm import tir


class Failing(CountingRunner):
    def run(self, runner_inputs: Any) -> list[Any]:
        return [ms.runner.LocalRunnerFuture(error_message="broken") for _ in runner_inputs]


def _split(sch: tir.Schedule) -> None:
    loop = sch.get_loops(sch.get_block("C"))[0]
    sch.split(loop, sch.sample_perfect_tile(loop, n=2, max_innermost_factor=8))


def test_tasks_have_files_of_their_own(tmp_path: Path) -> None:
    for _ in range(2):
        loggers = ms.logging.get_loggers_from_work_dir(tmp_path, ["first", "a/b c"])
        contexts = [
            ms.TuneContext(
                matmul_module(),
                target=TARGET,
                space_generator=_split,
                search_strategy="replay-trace",
                logger=logger,
            )  # fmt: skip
            for logger in loggers
        ]
        ms.task_scheduler.RoundRobin().tune(
            contexts, [1.0, 1.0], 2, 1, 1, NoBuilder(), Failing(),
            ms.measure_callback.create("default"), ms.database.MemoryDatabase(),
            ms.cost_model.RandomModel(),
        )  # fmt: skip
    names = [f"tvm.meta_schedule.logging.task_{n}" for n in ("00_first", "01_a_b_c")]
    for logger, name in zip(loggers, names):
        text = (tmp_path / "logs" / f"{name}.log").read_text()
        # Both runs, each once.
        assert text.count("a candidate failed: broken") == 2
        assert text.count("to runner") == 2
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()


def test_messages_are_written_with_their_place(caplog: Any) -> None:
    logger = ms.logging.get_logger("tests.meta_schedule")
    write = ms.logging.get_logging_func(logger)
    assert write is not None and ms.logging.get_logging_func(None) is None
    with caplog.at_level(logging.INFO, logger="tests.meta_schedule"):
        write(logging.INFO, "somewhere.py", 12, "50 % done")
        write(logging.DEBUG, "somewhere.py", 13, "not wanted")
    (record,) = caplog.records
    assert (record.getMessage(), record.lineno) == ("50 % done", 12)
