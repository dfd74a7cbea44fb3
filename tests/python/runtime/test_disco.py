"""Sessions of several workers: calls, arrays, collective operations, and what goes wrong."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import relax
from tvm.runtime import disco

FUNCTIONS = """
import os, time
import numpy as np
import tvm
from tvm.runtime.disco import disco_worker_id

class Refused(ValueError):
    pass

class Coded(Exception):
    def __init__(self, code, text):
        super().__init__(code, text)

@tvm.register_func("test.disco.tagged", override=True)
def tagged(value):
    return f"{value} in {disco_worker_id()}"

@tvm.register_func("test.disco.numbered", override=True)
def numbered(shape, dtype):
    size = int(np.prod(shape))
    values = (np.arange(size) + 1 + size * disco_worker_id()).reshape(tuple(shape))
    return tvm.nd.array(values.astype(dtype))

@tvm.register_func("test.disco.add_one", override=True)
def add_one(array):
    array.copyfrom(array.numpy() + 1)

@tvm.register_func("test.disco.fail_on", override=True)
def fail_on(worker, kind):
    if disco_worker_id() == worker:
        if kind == "coded":
            raise Coded(7, "two arguments")
        if kind == "exit":
            raise SystemExit(3)
        raise {"key": KeyError, "refused": Refused}[kind]("no 'weights'")

@tvm.register_func("test.disco.leave", override=True)
def leave(worker, status):
    if disco_worker_id() == worker:
        os._exit(status)

@tvm.register_func("test.disco.sleep_on", override=True)
def sleep_on(worker):
    if disco_worker_id() == worker:
        time.sleep(600)

@tvm.register_func("test.disco.pid", override=True)
def pid():
    return os.getpid()

@tvm.register_func("test.disco.reduce_on", override=True)
def reduce_on(worker, source, target):
    if disco_worker_id() == worker:
        tvm.get_global_func("runtime.disco.allreduce")(source, "sum", target)
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """Name of a module that registers functions, which controller and workers can import."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "disco_functions.py").write_text(FUNCTIONS)
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        patch.syspath_prepend(folder)
        yield "disco_functions"


@pytest.fixture(scope="module", params=["threads", "processes"])
def session(request, functions):
    kind = {"threads": disco.ThreadedSession, "processes": disco.ProcessSession}[request.param]
    made = kind(3)
    made.import_python_module(functions)
    yield made
    made.shutdown()


def values_of(ref):
    return [ref.debug_get_from_remote(worker) for worker in range(ref.session.num_workers)]


def arrays_of(ref):
    return [value.numpy() for value in values_of(ref)]


def numbered(session, shape, dtype="float32"):
    return session.get_global_func("test.disco.numbered")(shape, dtype)


# -------------------------------------------------------------------- calls


def test_two_threads_call_a_registered_function():
    @tvm.register_func("test.disco.twice", override=True)
    def twice(value):
        return 2 * value + disco.disco_worker_id()

    session = disco.ThreadedSession(num_workers=2)
    assert values_of(session.get_global_func("test.disco.twice")(10)) == [20, 21]
    session.shutdown()


def test_all_workers_call_a_function(session):
    assert values_of(session.get_global_func("test.disco.tagged")("x")) == [
        "x in 0",
        "x in 1",
        "x in 2",
    ]


def test_workers_are_threads_or_processes(session):
    pids = values_of(session.get_global_func("test.disco.pid")())
    processes = getattr(session, "process_ids", [os.getpid()] * 2)
    assert pids == [os.getpid(), *processes]


def test_the_number_of_a_worker_is_found_by_compiled_code_and_python(session):
    ids = values_of(session.get_global_func("runtime.disco.worker_id")())
    assert ids == [(0,), (1,), (2,)]
    assert isinstance(ids[0], tvm.runtime.ShapeTuple)
    assert values_of(session.get_global_func("runtime.disco.worker_rank")()) == [0, 1, 2]
    assert values_of(session.get_global_func("runtime.disco.device")()) == [tvm.cpu()] * 3
    with pytest.raises(RuntimeError, match="this thread is no worker"):
        disco.disco_worker_id()


def test_references_stand_for_each_workers_value(session):
    tagged = session.get_global_func("test.disco.tagged")
    assert values_of(tagged(tagged("x")))[1] == "x in 1 in 1"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -5,
        0.25,
        "text",
        b"\x00bytes",
        [1, ["a", None]],
        {"a": 1},
        tvm.cpu(3),
        tvm.runtime.ShapeTuple([2, 3]),
        tvm.DataType("float16"),
    ],
    ids=repr,
)
def test_values_arrive_and_return_unchanged(session, value):
    ref = session.call_packed(session.get_global_func("test.disco.pid"))
    ref.debug_copy_from(1, value)
    returned = ref.debug_get_from_remote(1)
    assert returned == value
    assert isinstance(returned, type(value))


def test_each_worker_gets_a_copy_of_an_array(session):
    host = tvm.nd.array(np.zeros(3, "float32"))
    ref = session.empty((3,), "float32")
    for worker in range(3):
        ref.debug_copy_from(worker, np.full(3, worker, "float32"))
    session.get_global_func("test.disco.add_one")(host)
    session.get_global_func("test.disco.add_one")(ref)
    assert [values.tolist() for values in arrays_of(ref)] == [[1] * 3, [2] * 3, [3] * 3]
    assert host.numpy().tolist() == [0, 0, 0]


def test_workers_run_at_the_same_time():
    meet = threading.Barrier(2, timeout=60)
    tvm.register_func("test.disco.wait_for_other", lambda: meet.wait() >= 0, override=True)
    session = disco.ThreadedSession(2)
    assert values_of(session.get_global_func("test.disco.wait_for_other")()) == [True, True]
    session.shutdown()


def test_workers_run_an_exported_network(session, tmp_path):
    x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
    weight = np.arange(12, dtype="float32").reshape(4, 3)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(builder.emit(relax.op.matmul(x, relax.const(weight))))
        builder.emit_func_output(out)
    path = tmp_path / "network.so"
    relax.build(builder.get(), "llvm").export_library(path)

    module = session.load_vm_module(str(path), tvm.cpu())
    x = numbered(session, (2, 4))
    for source, result in zip(arrays_of(x), arrays_of(module["main"](x))):
        np.testing.assert_allclose(result, source @ weight, rtol=1e-5)
    module["other"](x)
    with pytest.raises(AttributeError, match='no function "other"'):
        session.sync_worker_0()
    with pytest.raises(TypeError, match="a Module cannot go"):
        module.debug_get_from_remote(0)


def test_values_nobody_refers_to_are_freed():
    class Big:
        pass

    made = []

    def make():
        made.append(weakref.ref(big := Big()))
        return tvm._ffi.hold(big)

    tvm.register_func("test.disco.make_big", make, override=True)
    session = disco.ThreadedSession(1)
    function = session.get_global_func("test.disco.make_big")
    kept, dropped = function(), function()
    session.sync_worker_0()
    del dropped
    session.sync_worker_0()
    gc.collect()
    assert [alive() is not None for alive in made] == [True, False]
    assert function().reg_id != kept.reg_id
    session.shutdown()
    tvm._ffi.remove_global_func("test.disco.make_big")


def test_threads_of_a_forgotten_session_end():
    session = disco.ThreadedSession(2)
    session.sync_worker_0()
    threads = [c._thread for c in session._channels]
    del session
    gc.collect()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)


# ------------------------------------------------------------------- arrays


def test_arrays_are_copied_to_and_from_worker_0(session):
    host = tvm.nd.array(np.arange(6, dtype="int32").reshape(2, 3))
    placed = session.copy_to_worker_0(host)
    host.copyfrom(np.zeros((2, 3), "int32"))
    back = tvm.nd.empty((2, 3), "int32")
    session.copy_from_worker_0(back, placed)
    session.sync_worker_0()
    np.testing.assert_array_equal(back.numpy(), np.arange(6).reshape(2, 3))
    assert placed.debug_get_from_remote(1) is None

    made = session.empty((2, 3), "int32")
    assert session.copy_to_worker_0(back, made) is made
    np.testing.assert_array_equal(made.debug_get_from_remote(0).numpy(), back.numpy())


def test_an_array_for_worker_0_is_made_there_only(session):
    ref = session.empty((2,), "float16", worker0_only=True)
    first, *others = values_of(ref)
    assert (first.shape, first.dtype) == ((2,), "float16")
    assert others == [None, None]


def test_broadcast_copies_worker_0s_array(session):
    source = numbered(session, (2, 2))
    target = session.broadcast_from_worker0(source, session.empty((2, 2), "float32"))
    for got in arrays_of(target):
        np.testing.assert_array_equal(got, [[1, 2], [3, 4]])
    for got in arrays_of(session.broadcast(np.array([5, 6], "int64"))):
        np.testing.assert_array_equal(got, [5, 6])


def test_scatter_cuts_and_gather_joins_in_the_order_of_workers(session):
    values = np.arange(18, dtype="float64").reshape(3, 2, 3)
    pieces = session.scatter(values)
    for got, expected in zip(arrays_of(pieces), values):
        np.testing.assert_array_equal(got, expected)
    whole = session.empty((3, 2, 3), "float64", worker0_only=True)
    session.gather_to_worker0(pieces, whole)
    np.testing.assert_array_equal(whole.debug_get_from_remote(0).numpy(), values)
    rows = session.empty((6, 3), "float64")
    for got in arrays_of(session.allgather(pieces, rows)):
        np.testing.assert_array_equal(got, values.reshape(6, 3))


REFERENCE = {
    "sum": np.sum,
    "prod": np.prod,
    "min": np.min,
    "max": np.max,
    "avg": np.mean,
}


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *itertools.product(REFERENCE, ["float32", "float16"]),
        *itertools.product(["sum", "prod", "min", "max"], ["int32", "uint8"]),
    ],
)
def test_allreduce_is_numpys(session, op, dtype):
    source = numbered(session, (3,), dtype)
    expected = REFERENCE[op](np.stack(arrays_of(source)).astype("float64"), axis=0).astype(dtype)
    for got in arrays_of(session.allreduce(source, session.empty((3,), dtype), op)):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)


def test_allreduce_may_write_over_its_source(session):
    ref = session.broadcast(np.array([1.5], "float32"))
    assert [got.tolist() for got in arrays_of(session.allreduce(ref, ref))] == [[4.5]] * 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=3, max_size=3))
def test_bfloat16_is_summed_as_numbers_and_rounded_to_nearest(values):
    torch = pytest.importorskip("torch")
    given = torch.tensor(values).to(torch.bfloat16)
    session = disco.ThreadedSession(3)
    ref = session.empty((1,), "bfloat16")
    for worker, value in enumerate(given.split(1)):
        ref.debug_copy_from(worker, tvm.nd.from_dlpack(value))
    total = torch.from_dlpack(session.allreduce(ref, ref).debug_get_from_remote(2))
    wide = given.float()
    assert total.item() == ((wide[0] + wide[1]) + wide[2]).to(torch.bfloat16).item()
    session.shutdown()


@settings(max_examples=15, deadline=None)
@given(
    workers=st.integers(1, 4),
    shape=st.lists(st.integers(0, 4), max_size=3).map(tuple),
    dtype=st.sampled_from(["int8", "float64", "bool"]),
)
def test_scatter_then_gather_is_the_identity(workers, shape, dtype):
    session = disco.ThreadedSession(workers)
    values = np.random.default_rng(0).integers(0, 2, (workers, *shape)).astype(dtype)
    target = session.empty(values.shape, dtype)
    session.gather_to_worker0(session.scatter(values), target)
    np.testing.assert_array_equal(target.debug_get_from_remote(0).numpy(), values)
    session.shutdown()


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("key", KeyError, "worker 1: .*no .*weights"),
        ("refused", ValueError, "worker 1: .*no 'weights'"),
        ("coded", tvm.TVMError, r"worker 1: Coded: \(7, 'two arguments'\)"),
        ("exit", tvm.TVMError, "worker 1: SystemExit: 3"),
    ],
)
def test_an_exception_arrives_with_type_message_and_worker(session, kind, error, message):
    fail_on = session.get_global_func("test.disco.fail_on")
    result = fail_on(1, kind)
    with pytest.raises(error, match=message) as caught:
        result.debug_get_from_remote(1)
    (note,) = caught.value.__notes__
    assert "in fail_on" in note
    # The session goes on, without the value.
    with pytest.raises(RuntimeError, match="worker 1: the value does not exist"):
        result.debug_get_from_remote(1)
    assert result.debug_get_from_remote(0) is None
    assert values_of(session.get_global_func("test.disco.tagged")(1))[1] == "1 in 1"


def test_a_class_the_controller_knows_arrives_as_itself(session):
    import disco_functions

    session.get_global_func("test.disco.fail_on")(0, "refused")
    with pytest.raises(disco_functions.Refused):
        session.sync_worker_0()


def test_calls_after_a_failure_are_skipped_until_it_was_raised(session):
    ref = session.broadcast(np.zeros(1, "float32"))
    session.get_global_func("test.disco.fail_on")(1, "key")
    session.get_global_func("test.disco.add_one")(ref)
    with pytest.raises(KeyError):
        ref.debug_get_from_remote(1)
    assert [got[0] for got in arrays_of(ref)] == [1, 0, 1]


def test_a_failed_worker_does_not_keep_others_waiting(session):
    ref = session.broadcast(np.ones(1, "float32"))
    session.get_global_func("test.disco.fail_on")(2, "key")
    session.allreduce(ref, ref)
    with pytest.raises(KeyError, match="worker 2"):
        session.sync_worker_0()
    session.allreduce(ref, ref)
    assert [got[0] for got in arrays_of(ref)] == [3, 3, 3]


def test_a_collective_that_some_workers_leave_out_is_an_error(session):
    ref = session.broadcast(np.ones(1, "float32"))
    session.get_global_func("test.disco.reduce_on")(1, ref, ref)
    with pytest.raises(RuntimeError, match="worker 1: allreduce: worker . takes no part"):
        ref.debug_get_from_remote(1)


def test_an_unknown_function_is_named(session):
    session.get_global_func("test.disco.no_such_function")
    with pytest.raises(ValueError, match="no_such_function.*import_python_module"):
        session.sync_worker_0()


@pytest.mark.parametrize(
    ("name", "source", "target", "message"),
    [
        ("broadcast_from_worker0", (2,), (3,), r"receives into shape \(3,\).*sends \(2,\)"),
        ("scatter_from_worker0", (4,), (2,), r"4 elements .* give each of 3 workers 1.33"),
        ("gather_to_worker0", (2,), (5,), r"worker 0 receives into shape \(5,\).*send \(2,\)"),
        ("allgather", (2,), (2,), r"receives into shape \(2,\), but 3 workers send \(2,\)"),
        ("allreduce", (2,), (2, 1), r"receives into shape \(2, 1\), but sends \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(session, name, source, target, message):
    source, target = session.empty(source, "float32"), session.empty(target, "float32")
    getattr(session, name)(source, target)
    with pytest.raises(ValueError, match=rf"worker \d: {name}: .*{message}"):
        session.sync_worker_0()


def test_element_types_that_do_not_fit_are_refused(session):
    ints, floats = session.empty((2,), "int32"), session.empty((2,), "float32")
    session.allreduce(ints, floats)
    with pytest.raises(ValueError, match="source has elements of int32, the target float32"):
        session.sync_worker_0()
    session.allreduce(ints, ints, "avg")
    with pytest.raises(ValueError, match="average of int32 would be rounded; use sum"):
        session.sync_worker_0()
    flags = session.empty((2,), "bool")
    session.allreduce(flags, flags)
    with pytest.raises(ValueError, match="elements of bool cannot be reduced"):
        session.sync_worker_0()
    with pytest.raises(ValueError, match='unknown operation "median"; known: sum, prod'):
        session.allreduce(floats, floats, "median")


def test_copies_between_unlike_arrays_are_refused(session):
    ref = session.empty((2,), "float32")
    with pytest.raises(ValueError, match=r"worker 1: cannot copy float32 of shape \(3,\) into"):
        ref.debug_copy_from(1, np.zeros(3, "float32"))
    session.copy_from_worker_0(tvm.nd.empty((2,), "int32"), ref)
    with pytest.raises(ValueError, match="cannot copy float32 .* into int32"):
        session.sync_worker_0()
    with pytest.raises(TypeError, match="copy_from_worker_0: expected an NDArray"):
        session.copy_from_worker_0(np.zeros(2, "float32"), ref)
    with pytest.raises(ValueError, match=r"expected 3 slices.*got shape \(2, 3\)"):
        session.scatter(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="extents must be >= 0"):
        session.empty((2, -1), "float32")


def test_wrong_workers_arguments_and_references_are_refused(session):
    ref = session.empty((2,), "float32")
    for worker in (-1, 3):
        with pytest.raises(ValueError, match=f"no worker {worker}; the session has 3"):
            ref.debug_get_from_remote(worker)
    with pytest.raises(TypeError, match="argument 1: a set cannot go"):
        session.call_packed(session.get_global_func("test.disco.tagged"), 0, {1})
    with pytest.raises(TypeError, match="expected a DRef, got a function"):
        session.call_packed(print_nothing)
    other = disco.ThreadedSession(1)
    with pytest.raises(ValueError, match="belongs to another session"):
        other.call_packed(ref)
    other.shutdown()
    session.call_packed(ref)
    with pytest.raises(TypeError, match="a NDArray was called as a function"):
        session.sync_worker_0()


def print_nothing():
    pass


def test_workers_have_devices_of_their_own(session):
    session.init_ccl("host", 0, 1, 2)
    devices = values_of(session.get_global_func("runtime.disco.device")())
    assert devices == [tvm.cpu(0), tvm.cpu(1), tvm.cpu(2)]
    assert session.empty((1,), "int8").debug_get_from_remote(2).shape == (1,)
    session.init_ccl("host", 0, 0, 0)
    with pytest.raises(ValueError, match='unknown "gloo"; known: nccl, rccl, host'):
        session.init_ccl("gloo", 0, 1, 2)
    with pytest.raises(ValueError, match="1 devices for 3 workers"):
        session.init_ccl("nccl", 0)


def test_a_session_that_was_shut_down_says_so():
    session = disco.ThreadedSession(2)
    ref = session.empty((1,), "float32")
    session.shutdown()
    session.shutdown()
    for use in (
        session.sync_worker_0,
        lambda: session.empty((1,), "float32"),
        lambda: ref.debug_get_from_remote(0),
    ):
        with pytest.raises(RuntimeError, match="was shut down"):
            use()
    with pytest.raises(ValueError, match="at least 1 worker, got 0"):
        disco.ThreadedSession(0)


def test_shutdown_raises_what_nobody_has_seen(functions):
    session = disco.ThreadedSession(2)
    session.import_python_module(functions)
    session.get_global_func("test.disco.fail_on")(1, "key")
    with pytest.raises(KeyError, match="worker 1"):
        session.shutdown()


# ---------------------------------------------------------------- processes


@pytest.fixture
def processes(functions):
    session = disco.ProcessSession(3)
    session.import_python_module(functions)
    yield session
    del session


def assert_over(session, reason):
    with pytest.raises(RuntimeError, match=f"session is over: worker 1 is gone, .*{reason}"):
        session.sync_worker_0()
    with pytest.raises(RuntimeError, match=reason):
        session.empty((1,), "float32")
    session.shutdown()


def test_a_killed_process_is_reported_to_who_waits_for_it(processes):
    result = processes.get_global_func("test.disco.sleep_on")(1)
    killer = threading.Timer(0.2, os.kill, (processes.process_ids[0], signal.SIGKILL))
    killer.start()
    with pytest.raises(RuntimeError, match=r"worker 1 is gone, its process \d+ ended .* SIGKILL"):
        result.debug_get_from_remote(1)
    assert_over(processes, "ended by signal SIGKILL")


def test_a_killed_process_does_not_keep_others_waiting(processes):
    ref = processes.empty((1,), "float32")
    ref.debug_get_from_remote(1)
    processes.get_global_func("test.disco.sleep_on")(1)
    processes.allreduce(ref, ref)
    os.kill(processes.process_ids[0], signal.SIGKILL)
    assert_over(processes, "ended by signal SIGKILL")


def test_shutdown_does_not_repeat_what_a_call_said(processes):
    ref = processes.empty((1,), "float32")
    processes.get_global_func("test.disco.sleep_on")(1)
    processes.allreduce(ref, ref)
    os.kill(processes.process_ids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="the session is over: worker 1 is gone"):
        while True:
            processes.empty((1,), "float32")
            time.sleep(0.01)
    processes.shutdown()


def test_a_process_killed_while_idle_is_noticed(processes):
    ref = processes.empty((1,), "float32")
    os.kill(processes.process_ids[0], signal.SIGKILL)
    with pytest.raises(RuntimeError, match="SIGKILL"):
        ref.debug_get_from_remote(1)
    assert_over(processes, "SIGKILL")


def test_a_process_that_exits_is_reported_by_status_even_at_shutdown(processes):
    processes.get_global_func("test.disco.leave")(1, 5)
    with pytest.raises(RuntimeError, match=r"ended early: worker 1 is gone, .* status 5"):
        processes.shutdown()


def test_shutdown_ends_the_processes_and_waits(processes):
    ref = processes.broadcast(np.ones(1 << 16, "float32"))
    processes.allreduce(ref, ref)
    ids = processes.process_ids
    processes.shutdown()
    for pid in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_large_arrays_pass_the_pipes(processes):
    # Far more than a pipe holds, in both directions at once.
    ref = processes.broadcast(np.arange(1 << 20, dtype="float32"))
    for got in arrays_of(processes.allreduce(ref, ref)):
        np.testing.assert_array_equal(got, 3 * np.arange(1 << 20, dtype="float32"))


def test_an_entry_point_of_ones_own_registers_functions(functions, tmp_path, monkeypatch):
    (tmp_path / "own_worker.py").write_text(
        "import disco_functions\nfrom tvm.exec.disco_worker import main\nmain()\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    session = disco.ProcessSession(2, entrypoint="own_worker")
    assert session.get_global_func("test.disco.tagged")(0).debug_get_from_remote(1) == "0 in 1"
    session.shutdown()


def test_an_entry_point_that_does_not_start_is_refused(capfd):
    with pytest.raises(RuntimeError, match='"no.such.module" does not start: .*status 1'):
        disco.ProcessSession(2, entrypoint="no.such.module")
    assert "no.such.module" not in capfd.readouterr().out


def run_script(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize(("last_words", "status"), [("pass", 0), ("os.kill(os.getpid(), 9)", -9)])
def test_processes_end_with_a_controller_that_forgets_or_is_killed(last_words, status):
    script = f"""
        import os
        from tvm.runtime import disco
        session = disco.ProcessSession(2)
        {last_words}
    """
    # A worker holds the other end of our pipe, so this waits for its end as well.
    done = run_script(script)
    assert done.returncode == status, done.stderr


def test_sessions_need_the_runtime_only_and_are_not_loaded_before():
    script = """
        import sys, tvm
        assert not any("disco" in name for name in sys.modules)
        for kind in (tvm.runtime.disco.ThreadedSession, tvm.runtime.disco.ProcessSession):
            session = kind(2)
            shape = session.get_global_func("runtime.disco.worker_id")()
            print(shape.debug_get_from_remote(1))
            session.shutdown()
        assert "tvm.ir" not in sys.modules
    """
    done = run_script(script, TVM_USE_RUNTIME_LIB="1")
    assert done.stdout.split("\n")[:2] == ["ShapeTuple([1])"] * 2, done.stderr


def test_the_worker_program_explains_itself():
    done = subprocess.run(
        [sys.executable, "-m", "tvm.exec.disco_worker"], capture_output=True, text=True, check=False
    )
    assert "a ProcessSession starts this program" in done.stderr
