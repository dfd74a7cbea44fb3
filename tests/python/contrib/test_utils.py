"""Temporary folders, archives, and the system's compiler."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

import tvm
from tvm.contrib import cc, nvcc, tar, utils

needs_cc = pytest.mark.skipif(cc.get_cc() is None, reason="no C compiler")


def test_a_temporary_folder_goes_with_its_owner():
    folder = utils.tempdir()
    path = Path(folder.relpath("a.txt"))
    path.write_text("a")
    assert folder.listdir() == ["a.txt"]
    assert (folder / "a.txt") == path
    del folder
    assert not path.parent.exists()


def test_a_temporary_folder_may_be_named_and_removed(tmp_path):
    with utils.tempdir(tmp_path / "mine") as folder:
        assert Path(folder.path).is_dir()
    assert not (tmp_path / "mine").exists()


def test_an_archive_gives_its_files_back(tmp_path):
    for name in ("a.o", "b.o"):
        (tmp_path / name).write_text(name)
    tar.tar(tmp_path / "all.tar", [tmp_path / "a.o", tmp_path / "b.o"])
    (tmp_path / "out").mkdir()
    files = tar.untar(tmp_path / "all.tar", tmp_path / "out")
    assert [file.read_text() for file in files] == ["a.o", "b.o"]


def test_an_archive_with_one_name_twice_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"a\.o would be in .* twice"):
        tar.tar(tmp_path / "all.tar", [tmp_path / "a.o", tmp_path / "x" / "a.o"])


def test_an_archive_that_leaves_its_folder_is_refused(tmp_path):
    (tmp_path / "a").write_text("a")
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.add(tmp_path / "a", arcname="../escaped")
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match=r"\.\./escaped"):
        tar.untar(tmp_path / "bad.tar", tmp_path / "out")
    assert not (tmp_path / "escaped").exists()


def test_a_file_that_is_no_archive_is_named(tmp_path):
    (tmp_path / "text.tar").write_text("not an archive")
    with pytest.raises(ValueError, match="text.tar is no archive"):
        tvm.runtime.load_module(tmp_path / "text.tar")


@needs_cc
def test_a_program_is_compiled_and_runs(tmp_path):
    (tmp_path / "main.c").write_text("int main(void) { return CODE; }")
    link = cc.cross_compiler(cc.create_executable, options=["-DCODE=7"])
    link(tmp_path / "main", [tmp_path / "main.c"])
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 7


def test_a_cross_compiler_says_what_it_makes_and_adds_files(tmp_path):
    (tmp_path / "main.c").write_text("int code(void); int main(void) { return code(); }")
    (tmp_path / "more.c").write_text("int code(void) { return 3; }")
    link = cc.cross_compiler(cc.create_executable, add_files=[tmp_path / "more.c"])
    link(tmp_path / "main", [tmp_path / "main.c"])
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 3
    assert link.output_format == "so" and link.get_target_triple is None
    by_name = cc.cross_compiler("cc", output_format="dylib")
    assert by_name.output_format == "dylib"
    assert by_name.get_target_triple() == cc.get_target_by_dump_machine("cc")()


def test_the_compiler_runs_in_a_folder_and_through_ccache(tmp_path, monkeypatch):
    (tmp_path / "one.c").write_text("int one(void) { return 1; }")
    cc.create_shared("one.so", "one.c", cwd=tmp_path)
    assert (tmp_path / "one.so").exists()
    cache = tmp_path / "ccache"
    cache.write_text('#!/bin/sh\necho "$CCACHE_DIR $1" > called\nexec "$@"\n')
    cache.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    cc.create_shared("two.so", ["one.c"], cwd=tmp_path, ccache_env={"CCACHE_DIR": "here"})
    assert (tmp_path / "called").read_text().startswith("here /")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="ccache was not found"):
        cc.create_shared("b.so", ["one.c"], cc="cc", cwd=tmp_path, ccache_env={})


def test_a_compiler_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RuntimeError, match="create_shared: cannot run no-such-gcc"):
        cc.cross_compiler("no-such-gcc")(tmp_path / "a.so", [])


def test_a_machine_without_compiler_is_told_the_way_out(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="install one, name one in the environment variable CC"):
        cc.create_shared(tmp_path / "a.so", [])


def test_features_of_a_gpu_follow_from_its_version():
    assert nvcc.parse_compute_version("8.6") == (8, 6)
    assert nvcc.have_tensorcore("7.0")
    assert not nvcc.have_tensorcore("6.1")
    assert nvcc.have_int8("6.1")
    assert not nvcc.have_fp16("5.2")
    assert nvcc.have_bf16("10.0")
    with pytest.raises(ValueError, match='such as "8.6", got "sm_80"'):
        nvcc.parse_compute_version("sm_80")


def test_a_file_is_locked_by_one_at_a_time(tmp_path):
    path = tmp_path / "lock"
    order = []

    def wait():
        with utils.filelock(path):
            order.append("second")

    with utils.filelock(path):
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_programs_are_found_by_name():
    assert utils.which("sh").endswith("/sh")
    assert utils.which("no such program") is None
