"""Logging of tuning runs to the console and to a file."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from . import progress

__all__ = ["init_logging"]

_FORMAT = "%(asctime)s %(levelname).1s %(name)s: %(message)s"


class _LogFile(logging.FileHandler):
    """A log file; where it cannot be written, as on a full disk, the run goes on without."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def init_logging(
    log_file: str | Path | None = None,
    level: int | bool = logging.INFO,
    console: int | None = None,
    *,
    phases: bool = False,
) -> logging.Logger:
    """Send messages of tvm's loggers to the console and, if given, to `log_file`.

    They are called `tvm`, and `auto_scheduler` as in TVM.

    Calling it again replaces the handlers of the earlier call, so messages never appear twice.

    Parameters
    ----------
    log_file : appended to; its folder must exist. A folder gets a file that has the time as its
        name.
    level : of the file, and of the console unless `console` is given. As in the original Felix it
        may say whether everything is wanted (True is DEBUG, on the console INFO); `log_file` is a
        folder then, which is made.
    console : level of the console.
    phases : show on standard output what a run does, as lines without time and name, where the
        level of the console is above INFO.
    """
    if isinstance(level, bool):
        console = logging.INFO if console is None else console
        level = logging.DEBUG if level else logging.INFO
        if log_file is not None:
            Path(log_file).mkdir(parents=True, exist_ok=True)
    if log_file is not None and Path(log_file).is_dir():
        log_file = Path(log_file) / time.strftime("%Y.%m.%d-%H%M%S.log")
    logger = logging.getLogger("tvm")
    loggers = [logger, logging.getLogger("auto_scheduler")]
    for ours in (*loggers, progress.logger):
        for handler in [h for h in ours.handlers if getattr(h, "felix_handler", False)]:
            ours.removeHandler(handler)
            handler.close()
    if phases and (level if console is None else console) > logging.INFO:
        lines = logging.StreamHandler(sys.stdout)
        lines.felix_handler = True  # type: ignore[attr-defined]
        lines.setFormatter(logging.Formatter("%(message)s"))
        # What is above is on the console already.
        lines.addFilter(lambda record: record.levelno == logging.INFO)
        progress.logger.addHandler(lines)
    handlers: list[tuple[logging.Handler, int]] = [
        (logging.StreamHandler(), level if console is None else console)
    ]
    if log_file is not None:
        handlers.append((_LogFile(log_file), level))
    for handler, handler_level in handlers:
        handler.felix_handler = True  # type: ignore[attr-defined]
        handler.setLevel(handler_level)
        handler.setFormatter(logging.Formatter(_FORMAT))
        for ours in loggers:
            ours.addHandler(handler)
    levels = [handler_level for _, handler_level in handlers]
    for ours in loggers:
        ours.setLevel(min([*levels, logging.INFO] if progress.logger.handlers else levels))
        ours.propagate = False
    return logger
