"""Which task is tuned next."""

from __future__ import annotations

import math

import numpy as np

from tvm.felix.task_scheduler import TaskProgress, TaskScheduler

RNG = np.random.default_rng(0)


def test_untouched_tasks_come_first_heaviest_first():
    tasks = [TaskProgress(1, 1e6, [1e-3]), TaskProgress(1, 1e6, []), TaskProgress(4, 1e6, [])]
    assert TaskScheduler().choose(tasks, RNG) == 2


def test_the_task_with_the_most_weighted_latency_to_gain_is_chosen():
    tasks = [TaskProgress(1, 1e6, [2e-3, 1e-3]), TaskProgress(8, 1e6, [2e-3, 1e-3])]
    assert TaskScheduler().choose(tasks, RNG) == 1


def test_a_task_that_only_fails_is_dropped_and_never_absorbs_the_budget():
    tasks = [TaskProgress(1, 1e6, [math.inf] * 3), TaskProgress(1, 1e6, [1e-3])]
    assert TaskScheduler().choose(tasks, RNG) == 1


def test_a_stalled_task_is_dropped():
    tasks = [TaskProgress(1, 1e6, [1e-3] * 10), TaskProgress(1, 1e3, [1e-6])]
    assert TaskScheduler().choose(tasks, RNG) == 1


def test_nothing_is_chosen_when_every_task_is_finished():
    assert TaskScheduler().choose([TaskProgress(1, 1e6, [1e-3], dead=True)], RNG) is None
