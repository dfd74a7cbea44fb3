"""Fixtures, parameters and marks of tvm.testing, under a pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import tvm
import tvm.testing

_FILE = """
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te

length, dtype = tvm.testing.parameters((4, "int32"), (16, "float32"))
addend = tvm.testing.parameter(1, 2, ids=["one", "two"])
made = []


@tvm.testing.fixture(cache_return_value=True)
def data(length, dtype):
    made.append(length)
    return np.arange(length).astype(dtype)


def test_sum(target, dev, data, length, dtype, addend):
    a = te.placeholder((length,), dtype, name="a")
    b = te.compute((length,), lambda i: a[i] + tvm.tir.const(addend, dtype), name="b")
    run = tvm.build(te.create_schedule(b.op), [a, b], target)
    out = tvm.nd.empty((length,), dtype, dev)
    run(tvm.nd.array(data, dev), out)
    tvm.testing.assert_allclose(out.numpy(), data + addend)
    data[:] = 0  # a copy
    assert len(made) <= 2


@tvm.testing.parametrize_targets("llvm", "metal")
def test_named(target, dev):
    assert dev.exist


@tvm.testing.known_failing_targets("llvm")
def test_failing(target):
    raise AssertionError


@tvm.testing.exclude_targets("llvm")
def test_excluded(target):
    raise AssertionError


@tvm.testing.requires_metal
def test_device():
    raise AssertionError


@tvm.testing.uses_gpu
def test_optional():
    pass


@tvm.testing.requires_package("no_such_package")
def test_package():
    raise AssertionError


class TestMembers:
    low, high = tvm.testing.parameters((1, 2), (3, 4))
    size = tvm.testing.parameter(by_dict={"small": 5, "large": 6})

    @tvm.testing.fixture
    def more(self, size):
        return size + 1

    def test_all(self, low, high, more):
        assert high == low + 1 and more in (6, 7)


@pytest.mark.parametrize("number", [1, 2])
@tvm.testing.xfail_parameterizations("2", reason="known")
def test_run(number):
    assert number == 1
"""


def _run(folder, *options):
    (folder / "conftest.py").write_text('pytest_plugins = ["tvm.testing.plugin"]\n')
    (folder / "test_file.py").write_text(_FILE)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", "/dev/null"]
    environment = {"TVM_TEST_TARGETS": "llvm"}
    return subprocess.run(
        [*command, *options, "test_file.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
    ).stdout


def test_the_plugin_runs_tests_over_targets_and_parameters(tmp_path):
    text = _run(tmp_path)
    found = dict(re.findall(r"::(\S+) (PASSED|SKIPPED|XFAIL|FAILED|ERROR)", text))
    assert len([name for name in found if name.startswith("test_sum")]) == 4, text
    # pytest orders the parts of a name as it likes.
    runs = [set(name[9:-1].split("-")) for name in found if name.startswith("test_sum")]
    assert {"llvm", "4", "int32", "one"} in runs and {"llvm", "16", "float32", "two"} in runs
    assert found["test_named[llvm]"] == "PASSED" and found["test_named[metal]"] == "SKIPPED"
    assert found["test_failing[llvm]"] == "XFAIL" and found["test_excluded[llvm]"] == "SKIPPED"
    assert found["test_device"] == found["test_package"] == "SKIPPED"
    assert found["test_optional"] == "PASSED"
    assert len([name for name in found if name.startswith("TestMembers")]) == 4
    assert (found["test_run[1]"], found["test_run[2]"]) == ("PASSED", "XFAIL")
    assert {"FAILED", "ERROR"}.isdisjoint(found.values()), text


def test_marks_select_tests(tmp_path):
    text = _run(tmp_path, "-m", "metal")
    assert re.search(r"1 skipped, \d+ deselected|2 skipped, \d+ deselected", text), text


def test_enabled_targets_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("TVM_TEST_TARGETS", "llvm -num-cores=2; stackvm")
    assert [target for target, _ in tvm.testing.enabled_targets()] == [
        "llvm -num-cores=2",
        "stackvm",
    ]
    assert tvm.testing.device_enabled("llvm") and not tvm.testing.device_enabled("cuda")
    monkeypatch.setenv("TVM_TEST_TARGETS", "no_such_kind")
    with pytest.raises(ValueError, match="unknown kind"):
        tvm.testing.enabled_targets()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="values and ids, or by_dict"):
        tvm.testing.parameter(1, by_dict={"one": 1})
    with pytest.raises(ValueError, match="one length"):
        tvm.testing.parameters((1, 2), (3,))
    with pytest.raises(ValueError, match="support_required must be one of"):
        tvm.testing.requires_llvm(support_required="maybe")
    with pytest.raises(TypeError, match="cleans up after its value"):

        @tvm.testing.fixture(cache_return_value=True)
        def opened():
            yield 1
