"""What a run says on the console and in its log."""

import logging

import pytest

from tvm.felix.logging import init_logging
from tvm.felix.progress import phase, steps


@pytest.fixture(autouse=True)
def as_before():
    """Loggers as other tests expect them."""
    loggers = [logging.getLogger(name) for name in ("tvm", "auto_scheduler", "tvm.felix.progress")]
    before = [(logger, list(logger.handlers), logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_phases_are_lines_of_their_own_and_stand_in_the_log(tmp_path, capsys):
    init_logging(tmp_path / "run.log", console=logging.WARNING, phases=True)
    phase("Compiling %s", "net")
    assert list(steps([1, 2], "Counting")) == [1, 2]
    logging.getLogger("tvm.felix.tuning").info("a detail")
    logging.getLogger("auto_scheduler").warning("a line is skipped")
    shown = capsys.readouterr()
    assert shown.out.splitlines() == ["Compiling net", "Counting"]
    (warning,) = shown.err.splitlines()
    assert warning.endswith("W auto_scheduler: a line is skipped")
    log = (tmp_path / "run.log").read_text()
    assert all(text in log for text in ("Compiling net", "a detail", "a line is skipped"))


def test_without_phases_only_what_is_above_the_level_is_shown(tmp_path, capsys):
    init_logging(tmp_path / "run.log", console=logging.WARNING, phases=True)
    init_logging(console=logging.WARNING)
    phase("Compiling")
    logging.getLogger("tvm.felix").warning("careful")
    shown = capsys.readouterr()
    assert not shown.out
    assert [line.split(": ", 1)[1] for line in shown.err.splitlines()] == ["careful"]


def test_phases_are_said_once_where_everything_is_shown(capsys):
    init_logging(level=logging.INFO, phases=True)
    phase("Compiling")
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("Compiling") == 1


@pytest.mark.parametrize(("verbose", "told"), [(True, True), (False, False)])
def test_a_folder_gets_a_log_named_by_the_time(tmp_path, capsys, verbose, told):
    """As the original Felix is called: a folder, which need not exist, and whether all is told."""
    folder = tmp_path / "run" / "logs"
    init_logging(folder, verbose)
    logging.getLogger("tvm.felix").debug("a detail")
    logging.getLogger("tvm.felix").info("a step")
    (log,) = folder.iterdir()
    assert log.suffix == ".log" and "a step" in log.read_text()
    assert ("a detail" in log.read_text()) == told
    shown = capsys.readouterr().err
    assert "a step" in shown and "a detail" not in shown
