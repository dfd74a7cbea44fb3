"""GPU tasks, their symbolic sketches, and random programs that meet every constraint."""

from __future__ import annotations

import functools

import numpy as np

import tvm
from testing_sketches import CASES, random_inputs
from tvm import auto_scheduler
from tvm.auto_scheduler.cost_model.latency_model import LatencyModel
from tvm.felix import make_task as make_sym_task
from tvm.felix.perf_func import SketchPerfFunc

# The limits of a device that the emulator has too.
TARGET = "cuda -arch=sm_80"


@functools.cache
def sym_task(name, target=TARGET):
    """The symbolic task of one of the workloads in testing_sketches."""
    return make_sym_task(CASES[name], target).task


@functools.cache
def perf_func(name, index, target=TARGET):
    """Features and constraints of one sketch, with a model that knows nothing."""
    return SketchPerfFunc(sym_task(name, target).sketches[index], LatencyModel())


def random_states(name, index, count, seed=0, target=TARGET):
    """Up to `count` concrete states of a sketch whose knobs meet all constraints."""
    function = perf_func(name, index, target)
    points = function.features.config_maker.make(count, np.random.default_rng(seed))
    return [function.sketch.state_from_config(function.features.config(point)) for point in points]


def inputs_of(task, seed=0):
    """Random arrays for all arguments but the last."""
    return random_inputs(list(task.compute_dag.tensors)[:-1], np.random.default_rng(seed))


def run_emulated(task, state, inputs):
    """The output of a program that runs on the emulated device, which looks for races."""
    schedule, args = task.compute_dag.apply_steps_from_state(
        state, auto_scheduler.LayoutRewriteOption.NO_REWRITE
    )
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], np.nan, str(args[-1].dtype)))
    function = tvm.build(schedule, args, target=tvm.target.emulated(task.target))
    function(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy()


def run_plain(task, inputs):
    """The output of the program with nothing scheduled, on the processor."""
    schedule, args = task.compute_dag.apply_steps_from_state(task.compute_dag.init_state)
    out = tvm.nd.array(np.full([int(s) for s in args[-1].shape], np.nan, str(args[-1].dtype)))
    tvm.build(schedule, args, target="llvm")(*[tvm.nd.array(x) for x in inputs], out)
    return out.numpy()
