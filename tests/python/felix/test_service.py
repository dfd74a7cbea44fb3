"""A compiled network in a service: many threads, forks and interrupts, and no more memory."""

from __future__ import annotations

import os
import resource
import signal
import threading

import pytest
import torch
from torch import nn

from tvm import felix
from tvm.felix.compiler import as_ndarray
from tvm.runtime.machine_pool import MachinePool


@pytest.fixture(scope="module")
def network():
    os.environ["TVM_FELIX_CACHE"] = "off"
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 8), nn.Softmax(-1))
    return felix.compile(layers, (torch.zeros(4, 16),), cache=False)


def call_from_threads(network, calls: int, n_threads: int = 8) -> int:
    """Calls with wrong results, of `calls` from each of some threads at once."""
    inputs = [torch.randn(4, 16) for _ in range(13)]
    expected = [network(x) for x in inputs]
    wrong = []

    def work(first: int) -> None:
        for number in range(first, first + calls):
            at = number % len(inputs)
            if not torch.equal(network(inputs[at]), expected[at]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(7 * i,)) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(wrong)


def test_threads_get_their_own_results(network):
    assert call_from_threads(network, 200) == 0
    assert 1 <= network._main.size <= (os.cpu_count() or 1)


@pytest.mark.slow
def test_a_hundred_thousand_calls_from_eight_threads(network):
    call_from_threads(network, 500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert call_from_threads(network, 12500) == 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10  # KiB


def test_no_more_machines_than_allowed_and_failed_calls_give_theirs_back(network):
    pool = MachinePool(network.executable, limit=2)
    x = torch.randn(4, 16)

    class Pool:
        def __call__(self, value):
            return torch.from_dlpack(pool(as_ndarray(value)))

    assert call_from_threads(Pool(), 50) == 0
    assert pool.size <= 2
    for _ in range(5):
        with pytest.raises(TypeError):
            pool()
    assert torch.equal(Pool()(x), network(x))
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        MachinePool(network.executable, limit=0)
    with pytest.raises(AttributeError, match="no function 'other'"):
        MachinePool(network.executable, "other")()


def test_a_process_that_is_forked_in_mid_call_works(network):
    x = torch.randn(4, 16)
    expected, stop = network(x), threading.Event()

    def busy():
        while not stop.is_set():
            network(x)

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(30)  # ends a child that hangs
                os._exit(0 if torch.equal(network(x), expected) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_interrupted_calls_leave_the_network_usable(network):
    x = torch.randn(4, 16)
    expected = network(x)

    calling = False

    def interrupt(*_):
        if calling:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(50):
            # Again after a while: Python drops what is raised while it frees an object.
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.5)
            try:
                calling = True
                while True:
                    network(x)
            except KeyboardInterrupt:
                # At once: an interrupt outside of calls would end the tests.
                calling = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert torch.equal(network(x), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert network._main.size <= (os.cpu_count() or 1)
