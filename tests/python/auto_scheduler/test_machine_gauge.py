"""Measurements on a machine that is disturbed now and then."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.auto_scheduler import machine_gauge, measure_jobs
from tvm.auto_scheduler.machine_gauge import MachineGauge, undisturbed

USUAL, SLOW = 5e-6, 7e-6
WAIT = 0.3


class Machine:
    """A machine whose speed follows a plan, a phase for each chunk of repeats or pause.

    Time passes only in `timed` and `sleep`.
    """

    def __init__(self, phases, monkeypatch):
        self.phases, self.at = list(phases), 0
        self.chunks, self.slept = [], 0.0
        self.gauge = MachineGauge(self.read, WAIT)
        self.gauge.learn(USUAL)
        monkeypatch.setattr(machine_gauge.time, "sleep", self.sleep)

    def is_slow(self):
        return self.phases[min(self.at, len(self.phases) - 1)] == "slow"

    def read(self):
        return SLOW if self.is_slow() else 1.02 * USUAL

    def sleep(self, seconds):
        self.slept += seconds
        self.at += 1

    def timed(self, count):
        seconds = [2.0 if self.is_slow() else 1.0] * count
        self.chunks.append(count)
        self.at += 1
        return seconds

    def measure(self, repeat):
        self.gauge.start_program()
        return undisturbed(self.gauge, repeat, self.timed)


def test_a_calm_machine_is_measured_as_it_is(monkeypatch):
    machine = Machine(["calm"], monkeypatch)
    assert machine.measure(10) == [1.0] * 10
    assert sum(machine.chunks) == 10
    assert machine.slept == 0


def test_a_measurement_waits_for_a_disturbance_to_pass(monkeypatch):
    machine = Machine(["slow"] * 20 + ["calm"], monkeypatch)
    assert machine.measure(8) == [1.0] * 8
    assert 0 < machine.slept < 0.1


def test_what_is_disturbed_on_the_way_is_made_again(monkeypatch):
    # Calm before, and not any more behind; the time of repeats is that of their start.
    machine = Machine(["calm", "slow", "calm", "calm", "calm"], monkeypatch)
    seconds = machine.measure(4)
    assert len(machine.chunks) == 2 and seconds == [1.0] * 4


def test_nobody_waits_for_ever(monkeypatch):
    machine = Machine(["slow"], monkeypatch)
    for _ in range(20):
        assert machine.measure(8) == [2.0] * 8
    # What is saved up at first is worth ten programs.
    assert machine.slept < (20 + 10 + 1) * WAIT


def test_the_environment_says_how_long_to_wait(monkeypatch):
    monkeypatch.setenv("TVM_MEASURE_WAIT_SECONDS", "0")
    gauge = MachineGauge(lambda: SLOW)
    gauge.learn(USUAL)
    gauge.start_program()
    assert undisturbed(gauge, 8, lambda count: [2.0] * count) == [2.0] * 8
    for text in ("soon", "-1", "nan"):
        monkeypatch.setenv("TVM_MEASURE_WAIT_SECONDS", text)
        with pytest.raises(ValueError, match=f'MEASURE_WAIT_SECONDS is "{text}"'):
            MachineGauge()


def test_a_new_process_learns_what_is_usual(monkeypatch):
    machine = Machine(["slow"] * 5 + ["calm"], monkeypatch)
    machine.gauge.usual = math.inf
    assert machine.gauge.is_calm(), "nothing else was ever seen"
    machine.gauge.learn(USUAL)
    assert not machine.gauge.is_calm()


def test_the_gauge_reads_microseconds():
    readings = [MachineGauge()._read() for _ in range(50)]
    assert all(reading > 0 for reading in readings)
    assert min(readings) < 1e-3


@pytest.mark.parametrize("repeat", [1, 3, 10])
def test_workers_tell_what_they_read(repeat):
    data = te.placeholder((16,), name="data")
    out = te.compute((16,), lambda i: data[i] + 1.0, name="out")
    module = tvm.build(te.create_schedule(out.op), [data, out], "llvm", name="main")
    arguments = {
        "reference": None,
        "functions": ["main"],
        "key": "k",
        "special_inputs": {},
        "args": [measure_jobs.describe_argument(tensor) for tensor in (data, out)],
        "transforms": [],
        "flush": False,
        "best_seconds": None,
        "number": 1,
        "repeat": repeat,
        "min_repeat_ms": 0,
        "cooldown_interval": 0.0,
        "gauge_seconds": 1e-3,
    }
    gauge = MachineGauge()
    inputs = measure_jobs.Inputs()
    result = measure_jobs.time_program(
        arguments, lambda: module, lambda: None, tvm.cpu(), inputs, gauge
    )
    assert result["error_no"] == 0 and len(result["costs"]) == repeat
    assert np.all(np.array(result["costs"]) > 0)
    assert gauge.usual < 1e-3
