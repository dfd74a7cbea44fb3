"""Sessions of several workers: calls, their results and their errors."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import numpy as np
import pytest

import tvm
from testing_disco import arrays_of, numbered_arrays, values_of
from tvm import relax
from tvm.runtime import disco


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
    x = numbered_arrays(session, (2, 4))
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
    import testing_disco

    session.get_global_func("test.disco.fail_on")(0, "refused")
    with pytest.raises(testing_disco.Refused):
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


def test_shutdown_raises_what_nobody_has_seen(disco_functions):
    session = disco.ThreadedSession(2)
    session.import_python_module(disco_functions)
    session.get_global_func("test.disco.fail_on")(1, "key")
    with pytest.raises(KeyError, match="worker 1"):
        session.shutdown()
