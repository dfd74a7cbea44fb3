"""Files: replaced at once, appended whole or not at all, and held by one process."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys

import pytest

from tvm.runtime.files import FolderLock, append_lines, read_json, write_atomically


@pytest.mark.parametrize("content", ["text\n", b"\x00\xff", lambda path: path.write_text("made")])
def test_file_is_replaced(tmp_path, content):
    path = tmp_path / "file.txt"
    path.write_text("old")
    write_atomically(path, content)
    assert path.read_bytes() in (b"text\n", b"\x00\xff", b"made")
    assert list(tmp_path.iterdir()) == [path]


def test_writer_that_fails_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail(partial):
        partial.write_text("half of the n")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_lines_follow_a_torn_one_on_a_line_of_their_own(tmp_path):
    path = tmp_path / "lines"
    path.write_text("whole\ntor")
    append_lines(path, ["a", "b"])
    append_lines(path, ["c"])
    assert path.read_text() == "whole\ntor\na\nb\nc\n"


@contextlib.contextmanager
def files_up_to(size):
    """A limit on the size of files, which stands for a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_line_that_does_not_fit_is_not_there_in_part(tmp_path):
    path = tmp_path / "lines"
    append_lines(path, ["x" * 80])
    with files_up_to(100), pytest.raises(OSError, match=r"cannot append.*lines"):
        append_lines(path, ["y" * 80])
    assert path.read_text() == "x" * 80 + "\n"
    append_lines(path, ["y"])
    assert path.read_text().endswith("x\ny\n")


@pytest.mark.parametrize("content", [b"x" * 200, lambda path: path.write_bytes(b"x" * 200)])
def test_file_that_cannot_be_replaced_is_named(tmp_path, content):
    path = tmp_path / "file.bin"
    with files_up_to(100), pytest.raises(OSError, match=f"'{re.escape(str(path))}'"):
        write_atomically(path, content)
    with pytest.raises(FileNotFoundError, match="'[^']*none/file.bin'"):
        write_atomically(tmp_path / "none" / "file.bin", content)
    assert list(tmp_path.iterdir()) == []


def test_folder_is_held_by_one_process_and_let_go_by_a_dead_one(tmp_path):
    script = (
        "import sys, time\n"
        "from tvm.runtime.files import FolderLock\n"
        f"lock = FolderLock({str(tmp_path)!r})\n"
        "print('held', flush=True)\n"
        "time.sleep(100)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match=f"in use by process {holder.pid}"):
            FolderLock(tmp_path)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with FolderLock(tmp_path), pytest.raises(BlockingIOError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    FolderLock(tmp_path).release()


def test_damaged_json_names_its_file_line_and_column(tmp_path):
    path = tmp_path / "state.json"
    path.write_text('{\n "a": 1,\n "b": }\n')
    with pytest.raises(ValueError, match=r"state\.json:3: column 7: Expecting value"):
        read_json(path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match=r"state\.json: .*utf-8"):
        read_json(path)
    path.write_text("[" * 100_000)
    with pytest.raises(ValueError, match=r"state\.json"):
        read_json(path)
