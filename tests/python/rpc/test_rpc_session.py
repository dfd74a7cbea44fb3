"""Sessions: functions, arrays, modules and files of another process."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import rpc, te


@pytest.fixture(scope="module")
def server():
    started = rpc.Server(port=0, key="board", silent=True, open=True)
    yield started
    started.terminate()


@pytest.fixture
def remote(server):
    with rpc.connect(server.host, server.port, "board") as session:
        yield session


@pytest.fixture(scope="module")
def add_one(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "add_one.so"
    a = te.placeholder((102,), name="a")
    b = te.compute(a.shape, lambda i: a[i] + 1.0, name="b")
    tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="add_one").export_library(path)
    return path


def test_functions_run_in_the_other_process(remote):
    assert remote.get_function("rpc.test.addone")(10) == 11
    assert remote.get_function("rpc.test.addone")(2**63 - 1) == -(2**63)
    assert remote.get_function("rpc.test.strcat")("abc", 11) == "abc:11"
    assert remote.get_function("rpc.test.add_to_lhs")(10)(12) == 22


def test_errors_keep_their_kind(remote):
    with pytest.raises(tvm.error.ValueError, match="told to fail by me"):
        remote.get_function("rpc.test.except")("me")
    with pytest.raises(tvm.error.TypeError, match="argument 0"):
        remote.get_function("rpc.test.addone")("text")
    with pytest.raises(AttributeError, match="no function"):
        remote.get_function("rpc.test.nothing")


@settings(max_examples=40, deadline=None)
@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False)
        | st.text(max_size=20)
        | st.binary(max_size=100),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    )
)
def test_plain_values_come_back_equal(value):
    local = rpc.LocalSession()
    identity = local.get_function("rpc.test.identity")

    def plain(item):
        return (
            [plain(i) for i in item]
            if not isinstance(item, (str, bytes)) and hasattr(item, "__len__")
            else item
        )

    assert plain(identity(value)) == value


@tvm.register_func("rpc.test.identity")
def _identity(value):
    return value


def test_functions_of_this_process_are_called_back():
    local = rpc.LocalSession()
    seen = []

    def outer(number):
        seen.append(number)
        return local.get_function("rpc.test.addone")(number)

    assert local.get_function("rpc.test.apply_twice")(outer, 3) == 5
    assert seen == [3, 4]


@tvm.register_func("rpc.test.apply_twice")
def _apply_twice(function, value):
    return function(function(value))


@settings(max_examples=20, deadline=None)
@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    dtype=st.sampled_from(["float64", "float32", "int8", "uint16", "int64", "bool"]),
)
def test_arrays_come_back_equal(shape, dtype):
    local = rpc.LocalSession()
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    there = tvm.nd.array(values, local.cpu(0))
    assert str(there.device).startswith("remote[")
    assert (there.numpy() == values).all()
    assert (there.copyto(local.cpu(0)).numpy() == values).all()


def test_views_and_parts_of_arrays(remote):
    values = np.arange(12, dtype="float32")
    there = tvm.nd.array(values, remote.cpu(0))
    view = there.view((3, 4))
    assert (view.numpy() == values.reshape(3, 4)).all()
    with pytest.raises(ValueError, match="on cpu"):
        remote.get_function("rpc.test.remote_array_func")(tvm.nd.array(values))
    ones = tvm.nd.array(np.ones(5), remote.cpu(0))
    remote.get_function("rpc.test.remote_array_func")(ones)


def test_arrays_stay_while_this_process_holds_them(remote):
    get = remote.get_function("rpc.test.remote_return_nd")
    array = get("get_arr")()
    held = get("ref_count")()
    del array
    gc.collect()
    assert get("ref_count")() == held - 1


def test_objects_are_passed_back(remote):
    shape = remote.get_function("runtime.ShapeTuple")(2, 3)
    assert shape.type_key == "runtime.RPCObjectRef"
    assert remote.get_function("runtime.GetShapeTupleElem")(shape, 1) == 3
    assert remote.get_function("runtime.GetShapeTupleSize")(shape) == 2


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_library_is_uploaded_run_and_timed(kind, remote, add_one):
    session = rpc.LocalSession() if kind == "local" else remote
    session.upload(add_one)
    module = session.load_module("add_one.so")
    device = session.cpu(0)
    values = np.random.default_rng(0).uniform(size=102).astype("float32")
    a, b = tvm.nd.array(values, device), tvm.nd.empty((102,), "float32", device)
    result = module.time_evaluator("add_one", device, number=5, repeat=3)(a, b)
    assert len(result.results) == 3 and result.mean > 0
    assert (b.numpy() == values + 1).all()
    with pytest.raises(AttributeError):
        module["notexist"]


def test_files_stay_in_the_sessions_folder(remote, tmp_path):
    remote.upload(b"1234", "folder/data.bin")
    assert remote.download("folder/data.bin") == b"1234"
    assert remote.listdir("folder") == ["data.bin"]
    remote.remove("folder/data.bin")
    assert remote.listdir("folder") == []
    for name in ("../x", "/etc/passwd", "a/../../x", "", "a//b", "."):
        with pytest.raises(ValueError, match="session's folder"):
            remote.get_function("tvm.rpc.server.download")(name)
    with pytest.raises(ValueError, match="upload it first"):
        remote.load_module("nothing.so")
    with pytest.raises(RuntimeError, match="cannot be opened"):
        remote.download("nothing.bin")


def test_no_folder_and_process_are_left_after_a_session(tmp_path):
    server = rpc.Server(port=0, silent=True, work_dir=tmp_path)
    session = rpc.connect(server.host, server.port)
    session.upload(b"x", "x")
    [folder] = tmp_path.iterdir()
    [of_session] = folder.iterdir()
    process = int(of_session.name.removeprefix("session-"))
    session.close()
    _wait_until(lambda: not _exists(process) and not of_session.exists())
    server.terminate()
    assert list(tmp_path.iterdir()) == []


def test_session_that_crashes_says_how_and_the_server_goes_on(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    server = rpc.Server(port=0, silent=True, open=True, server_init_callback="testing_rpc:register")
    session = rpc.connect(server.host, server.port)
    with pytest.raises(rpc.RPCError, match="signal 11"):
        session.get_function("testing_rpc.crash")()
    with pytest.raises(rpc.RPCError, match="has ended; connect again"):
        session.get_function("rpc.test.addone")
    again = rpc.connect(server.host, server.port)
    assert again.get_function("rpc.test.addone")(1) == 2
    # One that hangs ends with its client.
    process = again.get_function("testing_rpc.process")()
    again.set_time_limit(0.3)
    with pytest.raises(rpc.RPCSessionTimeoutError, match="no answer"):
        again.get_function("testing_rpc.hang")()
    _wait_until(lambda: not _exists(process))
    assert rpc.connect(server.host, server.port).get_function("rpc.test.addone")(1) == 2
    server.terminate()


def test_session_ends_when_its_time_is_over(server):
    session = rpc.connect(server.host, server.port, "board", session_timeout=0.5)
    function = session.get_function("rpc.test.addone")
    time.sleep(1.0)
    with pytest.raises(rpc.RPCSessionTimeoutError, match="its time of"):
        function(1)


def test_operator_bounds_the_time_of_sessions():
    server = rpc.Server(port=0, silent=True, timeout=0.5)
    session = rpc.connect(server.host, server.port, session_timeout=1000)
    function = session.get_function("rpc.test.addone")
    time.sleep(1.0)
    with pytest.raises(rpc.RPCSessionTimeoutError, match="its time of"):
        function(1)
    server.terminate()


def test_server_takes_what_programs_for_tvm_say():
    server = rpc.Server(port=0, silent=True, no_fork=True, reuse_addr=False)
    assert rpc.connect(server.host, server.port).get_function("rpc.test.addone")(1) == 2
    server.terminate()


def test_busy_server_says_so(server, remote):
    with pytest.raises(rpc.RPCSessionTimeoutError, match="busy with another session"):
        rpc.connect(server.host, server.port, "board", connect_timeout=0.6)


def test_session_goes_on_to_a_second_server(server):
    second = rpc.Server(port=0, key="inner", silent=True)
    session = rpc.connect(
        server.host,
        server.port,
        "board",
        session_constructor_args=["rpc.Connect", second.host, second.port, "inner"],
    )
    assert session.get_function("rpc.test.addone")(1) == 2
    values = tvm.nd.array(np.arange(3), session.cpu(0))
    assert values.numpy()[1] == 1
    session.close()
    with pytest.raises(rpc.RPCError, match="no session constructor"):
        rpc.connect(server.host, server.port, "board", session_constructor_args=["rpc.NonExisting"])
    second.terminate()


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _wait_until(true, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_session_with_this_process_loads_files_of_this_machine(tmp_path):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    path = tmp_path / "add_one.so"
    tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="add_one").export_library(path)
    local = rpc.LocalSession()
    a, b = (tvm.nd.array(np.zeros(3, "float32"), local.cpu()) for _ in range(2))
    local.load_module(str(path))["add_one"](a, b)
    np.testing.assert_array_equal(b.numpy(), 1)
    with pytest.raises(ValueError, match="does not name a file"):
        local.load_module("../add_one.so")
