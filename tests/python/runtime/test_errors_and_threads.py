"""Errors through several languages, lifetime of what crosses, threads and the interpreter lock."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

import tvm
from tvm import te

in_cpp = tvm.get_global_func("runtime.ParallelFor")


def through_cpp(function):
    """Call a Python function from C++, on this thread."""
    in_cpp(1, lambda _: function())


def frames_of(error):
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_exception_of_a_callback_has_python_and_cpp_frames():
    def fail():
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here") as caught:
        through_cpp(fail)
    assert frames_of(caught.value)[-1] == "fail"
    assert "through_cpp" in frames_of(caught.value)
    (note,) = caught.value.__notes__
    assert note.startswith("Raised in a Python function that C++ called, at ")
    assert __file__ in note
    assert "libtvm_runtime.so: tvm::runtime::threading::ParallelFor" in note


def test_error_of_cpp_below_python_below_cpp_keeps_kind_message_and_frames():
    def outer():
        through_cpp(inner)

    def inner():
        tvm.ir.IntImm("int8", 500)

    with pytest.raises(tvm.error.ValueError, match="500 does not fit int8") as caught:
        through_cpp(outer)
    names = frames_of(caught.value)
    assert names.index("outer") < names.index("inner")
    assert caught.value.backtrace.startswith("src/ir/expr.cc:")
    assert "tvm::" in caught.value.backtrace
    # One note for each time it passed from Python into C++.
    assert len(caught.value.__notes__) == 2


def test_python_may_catch_what_cpp_raised_for_another_python_function():
    def careful():
        with pytest.raises(ZeroDivisionError):
            through_cpp(lambda: 1 // 0)

    through_cpp(careful)


def test_exception_passes_compiled_code_and_names_it():
    @tvm.register_func("test.fail_below_compiled_code", override=True)
    def fail(i):
        raise KeyError("weights")

    call = tvm.tir.call_packed
    out = te.compute((4,), lambda i: call("test.fail_below_compiled_code", i), name="out")
    host = tvm.build(te.create_schedule(out.op), [out], "llvm", name="host")
    with pytest.raises(KeyError, match="weights") as caught:
        host(tvm.nd.empty((4,), "int32"))
    assert "compiled function" in caught.value.__notes__[0]


def test_registered_error_class_crosses_under_its_name():
    @tvm.register_error
    class BoardError(tvm.TVMError):
        pass

    @tvm.register_error("BoardIsOff")
    class Off(BoardError):
        pass

    def fail():
        raise Off("no power")

    with pytest.raises(Off, match="no power"):
        through_cpp(fail)
    assert tvm._ffi.base.ERROR_TYPE["BoardIsOff"] is Off
    with pytest.raises(TypeError, match="is not an exception class"):
        tvm.register_error("NoError", int)


def test_keyboard_interrupt_in_a_callback_arrives_as_itself():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        through_cpp(interrupted)


def test_internal_error_shows_where_it_was_noticed():
    with pytest.raises(tvm.error.TVMError) as caught:
        tvm.get_global_func("runtime.ModuleGetImport")(tvm.runtime.system_lib(), 3)
    assert "src/runtime/" in caught.value.backtrace


def test_function_lives_as_long_as_cpp_holds_it():
    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    tvm.register_func("test.keeps", lambda owner=owner: owner is not None)
    del owner
    gc.collect()
    assert alive() is not None
    assert tvm.get_global_func("test.keeps")()
    tvm.register_func("test.keeps", lambda: True, override=True)
    gc.collect()
    assert alive() is None
    tvm._ffi.remove_global_func("test.keeps")


def test_held_value_is_freed_with_the_container_that_held_it():
    class Big:
        pass

    value = Big()
    alive = weakref.ref(value)
    array = tvm.runtime.convert([tvm._ffi.hold(value)])
    del value
    gc.collect()
    assert alive() is not None
    del array
    gc.collect()
    assert alive() is None


def test_function_outlives_its_module():
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    function = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="inc")["inc"]
    gc.collect()
    out = tvm.nd.empty((4,))
    function(tvm.nd.array(np.zeros(4, "float32")), out)
    assert out.numpy().sum() == 4


def test_failing_calls_leave_no_references_behind():
    def fail():
        raise ValueError

    array = tvm.nd.empty((4,))
    before = sys.getrefcount(fail)
    for _ in range(100):
        with pytest.raises(ValueError):
            through_cpp(fail)
        with pytest.raises(TypeError):
            tvm.get_global_func("runtime.NDArrayShape")(fail, array)
    gc.collect()
    assert sys.getrefcount(fail) <= before + 1


def test_dlpack_capsules_that_nobody_takes_are_freed():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    tvm.nd.empty((1 << 18,), "float32").__dlpack__()
    before = resident()
    for _ in range(1000):
        tvm.nd.empty((1 << 18,), "float32").__dlpack__()
    # Kept capsules would hold 1000 MiB.
    assert (resident() - before) * os.sysconf("SC_PAGESIZE") < 100 << 20


def test_other_threads_run_during_a_long_call():
    progress = []
    stop = threading.Event()

    def count():
        while not stop.is_set():
            progress.append(None)
            time.sleep(0.001)

    worker = threading.Thread(target=count)
    worker.start()
    nap = tvm.get_global_func("runtime.TimeEvaluator")(
        tvm.get_global_func("runtime.NumThreads"), tvm.cpu(), 1, 3, 0.0, 1, 100.0, 1, 0, None
    )
    before = len(progress)
    nap()
    during = len(progress) - before
    stop.set()
    worker.join()
    # Two pauses of 100 ms inside one call into C++.
    assert during > 10


def test_callbacks_from_pool_threads_take_the_lock():
    seen = []

    def visit(i):
        seen.append((i, threading.get_ident()))

    tvm.runtime.config_threadpool(3)
    try:
        for _ in range(20):
            in_cpp(8, visit)
    finally:
        tvm.runtime.config_threadpool()
    assert sorted(i for i, _ in seen) == sorted(list(range(8)) * 20)


def test_exception_on_a_pool_thread_reaches_the_caller():
    def fail_on_five(i):
        if i == 5:
            raise ValueError("task five")

    with pytest.raises(ValueError, match="task five"):
        in_cpp(8, fail_on_five)
    in_cpp(8, lambda i: None)


def test_interrupt_during_a_parallel_loop_reaches_the_caller():
    script = (
        "import os, signal, threading, tvm\n"
        "run = tvm.get_global_func('runtime.ParallelFor')\n"
        # A shell has its background processes ignore the signal, and they hand that on.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "main, begun = threading.get_ident(), threading.Event()\n"
        # The other threads wait for this one, so that it is in the loop for certain.
        "def task(i):\n"
        "    if threading.get_ident() != main:\n"
        "        begun.wait(60)\n"
        "        return\n"
        "    begun.set()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    for _ in range(100000): pass\n"
        "try:\n    run(64, task)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
        "seen = []\n"
        "run(4, seen.append)\n"
        "print(sorted(seen))\n"
    )
    assert fresh(script).splitlines() == ["interrupted", "[0, 1, 2, 3]"]


def test_concurrent_calls_do_not_mix():
    a = te.placeholder((64,), name="a")
    b = te.compute((64,), lambda i: a[i] * 3.0, name="b")
    schedule = te.create_schedule(b.op)
    schedule[b].parallel(b.op.axis[0])
    triple = tvm.build(schedule, [a, b], "llvm", name="triple")
    wrong = []

    def work(number):
        source = tvm.nd.array(np.full(64, number, "float32"))
        target = tvm.nd.empty((64,))
        for _ in range(200):
            triple(source, target)
            if (target.numpy() != 3 * number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def fresh(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_tvm_num_threads_sets_the_default():
    script = "import tvm; print(tvm.runtime.num_threads())"
    assert fresh(script, TVM_NUM_THREADS="3") == "3"


def test_threads_of_openmp_are_the_default_where_ours_are_not_set():
    script = (
        "import os; os.environ.pop('TVM_NUM_THREADS', None)\n"
        "import tvm; print(tvm.runtime.num_threads())"
    )
    assert fresh(script, OMP_NUM_THREADS="3") == "3"
    assert fresh(script, OMP_NUM_THREADS="5,2") == "5"
    unread = fresh(script, OMP_NUM_THREADS="many")
    assert unread == fresh("import os; os.environ.pop('OMP_NUM_THREADS', None)\n" + script)
    plain = "import tvm; print(tvm.runtime.num_threads())"
    assert fresh(plain, TVM_NUM_THREADS="2", OMP_NUM_THREADS="3") == "2"


def test_wrong_tvm_num_threads_is_refused():
    script = (
        "import tvm\n"
        "try:\n    tvm.runtime.num_threads()\n"
        "except ValueError as error:\n    print(error)"
    )
    assert "expected a number from 1 to 1024" in fresh(script, TVM_NUM_THREADS="many")
    assert "TVM_BIND_THREADS: expected 0 or 1" in fresh(script, TVM_BIND_THREADS="yes")


AFFINITY_SCRIPT = """
import os, tvm
cpus = sorted(os.sched_getaffinity(0))
tvm.runtime.config_threadpool(2, {mode})
seen = []
for _ in range(50):
    tvm.get_global_func("runtime.ParallelFor")(4, lambda i: seen.append(
        tuple(sorted(os.sched_getaffinity(0)))))
print(sorted(set(seen)) == {expected}, sorted(os.sched_getaffinity(0)) == {caller})
tvm.runtime.config_threadpool()
print(sorted(os.sched_getaffinity(0)) == cpus)
"""


@pytest.mark.parametrize(
    ("mode", "expected", "caller"),
    [
        ("'share_cores', cpus[:1]", "[(cpus[0],)]", "cpus[:1]"),
        ("'one_per_core', cpus[:1]", "[(cpus[0],)]", "cpus[:1]"),
        ("'none'", "[tuple(cpus)]", "cpus"),
    ],
)
def test_threads_run_on_the_processors_they_are_given(mode, expected, caller):
    script = AFFINITY_SCRIPT.format(mode=mode, expected=expected, caller=caller)
    assert fresh(script).split() == ["True", "True", "True"]


@pytest.mark.parametrize(
    ("affinity", "cores", "message"),
    [
        ("sideways", None, 'unknown affinity "sideways"'),
        ("one_per_core", None, "needs a list of processors"),
        ("one_per_core", [100000], "may not run on processor 100000"),
        ("big", [0], "chooses its own"),
        ("none", [0], "no affinity mode that uses them"),
    ],
)
def test_wrong_affinity_is_refused(affinity, cores, message):
    with pytest.raises(ValueError, match=message):
        tvm.runtime.config_threadpool(1, affinity, cores)


def test_tvm_spells_the_affinity_by_numbers():
    configure = tvm.get_global_func("runtime.config_threadpool")
    configure(0, 2)
    assert tvm.runtime.num_threads() == 2
    with pytest.raises(ValueError, match="unknown affinity mode 7"):
        configure(7, 2)
    tvm.runtime.config_threadpool()


def test_idle_threads_sleep():
    script = (
        "import time, tvm\n"
        "tvm.runtime.config_threadpool(4)\n"
        "run = tvm.get_global_func('runtime.ParallelFor')\n"
        "for _ in range(20): run(8, lambda i: None)\n"
        "time.sleep(0.05)\n"
        "start = time.process_time()\n"
        "time.sleep(0.5)\n"
        "print(time.process_time() - start)\n"
    )
    assert float(fresh(script)) < 0.05


def test_a_forked_child_runs_parallel_loops():
    script = (
        "import os, tvm\n"
        "tvm.runtime.config_threadpool(3)\n"
        "run = tvm.get_global_func('runtime.ParallelFor')\n"
        "run(4, lambda i: None)\n"
        "child = os.fork()\n"
        "seen = []\n"
        "run(4, seen.append)\n"
        "assert sorted(seen) == [0, 1, 2, 3]\n"
        "if child == 0: os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert fresh(script) == "0"


# Threads that compute while the interpreter shuts down, which takes long enough for each to come
# back to Python, and to be ended there: in a callback, in an exception's text, in a destructor.
EXIT_SCRIPT = """
import sys, threading, time, tvm

run = tvm.get_global_func("runtime.ParallelFor")


def busy():
    for _ in range(20000):
        pass


class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)


class SlowError(ValueError):
    def __str__(self):
        busy()
        return "slow"


class Task:
    def __init__(self, fails):
        self.fails = fails

    def __call__(self, i):
        busy()
        if self.fails:
            raise SlowError()

    def __del__(self, busy=busy):
        busy()


class Converted:
    def asobject(self):
        busy()
        return tvm.tir.const(1)


def quick(i):
    pass


def work():
    while True:
        try:
            {call}
        except (TypeError, ValueError):
            pass


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
sys.late = Late()
print("done")
"""


@pytest.mark.parametrize(
    "call",
    [
        "run(2, quick)",
        "run(2, Task(fails=False))",
        "run(2, Task(fails=True))",
        "run(Converted(), quick)",
    ],
)
def test_a_thread_that_still_computes_does_not_disturb_the_exit(call):
    for _ in range(3):
        assert fresh(EXIT_SCRIPT.format(call=call)) == "done"


def test_parallel_loops_inside_parallel_loops_run_serially():
    inner = []
    in_cpp(4, lambda i: in_cpp(3, lambda j: inner.append((i, j))))
    assert sorted(inner) == [(i, j) for i in range(4) for j in range(3)]


def test_long_runs_reuse_their_scratch_memory():
    a = te.placeholder((1 << 20,), name="a")
    b = te.compute((1 << 20,), lambda i: a[i] + 1.0, name="b")
    c = te.compute((1 << 20,), lambda i: b[i] * 2.0, name="c")
    run = tvm.build(te.create_schedule(c.op), [a, c], "llvm", name="run")
    source, target = tvm.nd.array(np.ones(1 << 20, "float32")), tvm.nd.empty((1 << 20,))

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    run(source, target)
    before = resident()
    for _ in range(50):
        run(source, target)
    assert resident() - before < 16 << 20
    assert target.numpy()[0] == 4


def test_time_evaluator_prepares_each_repeat_and_pauses():
    prepared = []
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="b")
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="inc")
    timer = module.time_evaluator(
        "inc",
        tvm.cpu(),
        number=2,
        repeat=3,
        cooldown_interval_ms=1,
        repeats_to_cooldown=2,
        f_preproc=lambda *args: prepared.append(len(args)),
    )
    result = timer(tvm.nd.empty((4,)), tvm.nd.empty((4,)))
    assert prepared == [2, 2, 2]
    assert len(result.results) == 3
    assert result.min <= result.median <= result.max
    assert result.mean == pytest.approx(np.mean(result.results))
    with pytest.raises(ValueError, match="repeats_to_cooldown must be >= 1"):
        module.time_evaluator("inc", tvm.cpu(), repeats_to_cooldown=0)
    with pytest.raises(ValueError, match="no_such_function"):
        module.time_evaluator("inc", tvm.cpu(), f_preproc="no_such_function")
