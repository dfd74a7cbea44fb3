"""Libraries that are programs with the least server."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import rpc, te
from tvm.contrib import cc
from tvm.target import Target


def _build(target, name="scaled_sum"):
    n = te.var("n")
    a, b = (te.placeholder((n,), name=name) for name in "ab")
    c = te.compute((n,), lambda i: a[i] * 2.0 + b[i], name="c")
    return tvm.build(te.create_schedule(c.op), [a, b, c], target, name=name)


def _system(kind):
    target = Target(f"{kind} -system-lib")
    return Target(target, target)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "scaled_sum"
    _build(_system("llvm")).export_library(path, fcompile=rpc.with_minrpc(cc.create_executable))
    return path


def _check(session):
    function = session.system_lib()["scaled_sum"]
    rng = np.random.default_rng(0)
    for size in (1, 17, 4096):
        x, y = rng.standard_normal((2, size)).astype("float32")
        result = tvm.nd.empty((size,), "float32", session.cpu(0))
        function(tvm.nd.array(x, session.cpu(0)), tvm.nd.array(y, session.cpu(0)), result)
        np.testing.assert_array_equal(result.numpy(), x * 2 + y)


def test_a_program_serves_its_functions(program):
    with rpc.PopenSession(program) as session:
        _check(session)
        library = session.system_lib()
        assert (
            library.time_evaluator("scaled_sum", session.cpu(0), number=3)(
                *(tvm.nd.array(np.ones(8, "float32"), session.cpu(0)) for _ in range(3))
            ).mean
            > 0
        )
    assert session._process.returncode == 0


def test_a_program_may_come_as_bytes(program):
    with rpc.PopenSession(program.read_bytes()) as session:
        _check(session)


@pytest.mark.parametrize("runtime", ["libtvm", tvm.runtime.system_lib_path()])
def test_it_links_the_runtime_that_is_named(tmp_path, runtime):
    link = rpc.with_minrpc(cc.create_executable, runtime=runtime)
    _build(_system("c")).export_library(tmp_path / "program", fcompile=link, options=["-O1"])
    needed = subprocess.run(["ldd", tmp_path / "program"], capture_output=True, text=True).stdout
    assert ("libtvm.so" in needed) == (runtime == "libtvm")
    with rpc.PopenSession(tmp_path / "program") as session:
        _check(session)


def test_a_session_has_the_files_and_the_limits_of_others(program):
    with rpc.PopenSession(program) as session:
        session.upload(b"text", "a/b.txt")
        assert session.download("a/b.txt") == b"text"
        with pytest.raises(ValueError, match="session's folder"):
            session.upload(b"text", "../b.txt")
        with pytest.raises(rpc.RPCError, match="not among those that this server lets be called"):
            session.get_function("rpc.ServeSocket")


def test_the_end_of_the_program_ends_the_session(program):
    session = rpc.PopenSession(program)
    session._process.send_signal(signal.SIGKILL)
    with pytest.raises(rpc.RPCError, match="the program scaled_sum"):
        session.system_lib()
    session.close()


def test_a_program_started_by_hand_says_what_it_is(program):
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 2
    assert "start it by rpc.PopenSession" in done.stderr


def test_modules_that_a_program_cannot_have_are_refused(tmp_path):
    link = rpc.with_minrpc(cc.create_executable)
    with pytest.raises(ValueError, match=r'build it for a target.*Target\("llvm -system-lib"\)'):
        _build("llvm").export_library(tmp_path / "program", fcompile=link)
    module = _build(_system("llvm"))
    n = te.placeholder((8,), name="a")
    on_device = te.compute((8,), lambda i: n[i] + 1.0, name="b")
    schedule = te.create_schedule(on_device.op)
    schedule[on_device].bind(on_device.op.axis[0], te.thread_axis("threadIdx.x"))
    module.import_module(
        tvm.build(schedule, [n, on_device], Target(tvm.target.emulated("cuda"), "llvm"))
    )
    with pytest.raises(ValueError, match="imports others that travel as bytes"):
        module.export_library(tmp_path / "program", fcompile=link)
    assert not Path(tmp_path, "program").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server": "web_server"}, "no server 'web_server'; there is posix_popen_server"),
        ({"runtime": "/no/such/library.so"}, "no library /no/such/library.so"),
    ],
)
def test_what_is_not_there_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        rpc.with_minrpc(cc.create_executable, **options)
