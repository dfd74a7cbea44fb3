"""What a task learned is tried at other sizes."""

from __future__ import annotations

import math

import pytest

from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import MeasureResult
from tvm.felix import make_task
from tvm.felix.canonical import split_groups
from tvm.felix.policy import make_policies
from tvm.felix.relatives import carried_over, suggestions


def tensors(rows, depth, columns):
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")
    return [x, w, topi.nn.matmul(x, w)]


def policies_of(*sizes):
    tasks = [
        auto_scheduler.SearchTask(compute_dag=tensors(*size), target="llvm -mcpu=znver4")
        for size in sizes
    ]
    return make_policies(tasks, verbose=0)


def test_tiles_become_the_nearest_divisors():
    first = make_task(tensors(64, 64, 64), "llvm -mcpu=znver4").task.sketches[0]
    second = make_task(tensors(48, 64, 63), "llvm -mcpu=znver4").task.sketches[0]
    groups = split_groups(first)
    # Tiles of 4 from within, and a reduction that is taken whole.
    config = {}
    for extent, names in groups:
        config.update(dict.fromkeys(names, 1))
        config[names[-1]] = extent if len(names) == 1 else 4
    found = carried_over(config, first, second)
    for (_, theirs), (extent, names) in zip(groups, split_groups(second)):
        assert math.prod(found[name] for name in names) <= extent
        assert extent % math.prod(found[name] for name in names) == 0
        if len(names) == 1:
            assert found[names[0]] == extent
        else:
            assert found[names[-1]] == (3 if extent == 63 else 4)
            assert all(found[name] == 1 for name in names[:-1])
        assert len(theirs) == len(names)
    assert carried_over(config, first, first) == config


def test_other_loops_are_refused():
    sketch = make_task(tensors(64, 64, 64), "llvm -mcpu=znver4").task.sketches[0]
    x = te.placeholder((64, 64), name="x")
    other = make_task([x, topi.exp(x)], "llvm -mcpu=znver4").task.sketches[0]
    with pytest.raises(ValueError, match="split other loops"):
        carried_over({}, sketch, other)


def test_the_best_of_relatives_is_part_of_the_next_batch():
    first, second, third = policies_of((64, 64, 64), (128, 64, 96), (512, 512, 512))
    assert first.relatives == [second, third]
    assert third.relatives == [second, first]
    assert not suggestions(second)
    batch = first.propose(8)
    results = [MeasureResult([1e-3 / (k + 1)], 0, "", 0.0, 0.0) for k in range(len(batch))]
    first.observe(batch, results)
    suggested = suggestions(second)
    assert suggested
    infos = {second.search_state._info(candidate).key for candidate in suggested}
    proposed = [second._pending[c].key for c in second.propose(8)]
    assert len(infos & set(proposed)) >= min(2, len(infos))
    # The next batch has others.
    assert not set(proposed) & {second._pending[c].key for c in second.propose(8)}


def test_tasks_of_other_structure_are_no_relatives():
    x = te.placeholder((64, 64), name="x")
    tasks = [
        auto_scheduler.SearchTask(compute_dag=each, target="llvm")
        for each in (tensors(64, 64, 64), [x, topi.nn.softmax(x)])
    ]
    first, second = make_policies(tasks, verbose=0)
    assert first.relatives == second.relatives == []
