"""Where the messages of searches go: a file for each task, if a program wants that.

Messages about all tasks go to the logger "tvm.meta_schedule", and those about one task to the
logger of its `TuneContext`, which is a part of that one unless it is given another.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["get_logger", "get_loggers_from_work_dir", "get_logging_func"]

_FORMAT = "%(asctime)s [%(levelname)s] %(message)s"


def get_logger(name: str) -> logging.Logger:
    """The logger of a name, of Python's `logging`."""
    return logging.getLogger(name)


def get_logging_func(
    logger: logging.Logger | None,
) -> Callable[[int, str, int, str], None] | None:
    """A function that writes a message to a logger; None for none.

    It takes a level of Python's `logging`, the file and line that the message comes from, and the
    message.
    """
    if logger is None:
        return None
    writer = logger

    def write(level: int, filename: str, lineno: int, message: str) -> None:
        if writer.isEnabledFor(level):
            record = writer.makeRecord(writer.name, level, filename, lineno, message, (), None)
            writer.handle(record)

    return write


def get_loggers_from_work_dir(
    work_dir: str | os.PathLike[str], task_names: Sequence[str]
) -> list[logging.Logger]:
    """A logger for each task, for `TuneContext`, which writes to a file of its own.

    Parameters
    ----------
    work_dir : the files are ``logs/tvm.meta_schedule.logging.task_<number>_<name>.log`` in this
        folder, which is made; what they hold already stays.
    """
    folder = Path(work_dir) / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    digits = max(2, len(str(len(task_names) - 1)))
    loggers = []
    for number, task in enumerate(task_names):
        plain = re.sub(r"[^\w.-]", "_", task)
        name = f"tvm.meta_schedule.logging.task_{number:0{digits}d}_{plain}"
        logger = logging.getLogger(name)
        # A logger outlives the run that made it, whose file was another one.
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
            handler.close()
        handler = logging.FileHandler(folder / f"{name}.log", encoding="utf-8")
        handler.setFormatter(logging.Formatter(_FORMAT))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        loggers.append(logger)
    return loggers
