"""The history that a schedule keeps of itself."""

from __future__ import annotations

import tvm
from tvm import te

KEPT = {"te.keep_schedule_record": True}


def product():
    k = te.reduce_axis((0, 8), name="k")
    A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


def test_every_primitive_is_noted_with_the_schedule_after_it():
    A, B, C = product()
    with tvm.transform.PassContext(config=KEPT):
        s = te.create_schedule(C.op)
    assert list(s.primitive_record) == ["vanilla"]
    s[C].tile(*C.op.axis, 4, 4)
    AL = s.cache_read(A, "local", [C])
    s[AL].compute_at(s[C], s[C].leaf_iter_vars[1])
    assert list(s.primitive_record) == [
        *("vanilla", "split", "split", "reorder", "cache_read", "compute_at"),
    ]
    steps = list(s.schedule_record)
    assert len(steps) == len(s.primitive_record)
    assert [len(step[C].leaf_iter_vars) for step in steps] == [3, 4, 5, 5, 5, 5]
    assert "A_local" not in str(tvm.lower(steps[3], [A, B, C]))
    text = str(tvm.lower(steps[5], [A, B, C]))
    assert text == str(tvm.lower(s, [A, B, C]))
    # Looking at a step, and going on from it, leaves the history alone.
    steps[0][C].split(C.op.axis[0], 2)
    assert len(s.schedule_record) == 6


def test_nothing_is_kept_unless_asked_for():
    *_, C = product()
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[0], 2)
    assert len(s.schedule_record) == 0


def test_a_copy_begins_without_a_history_and_stages_outlive_their_schedule():
    *_, C = product()
    with tvm.transform.PassContext(config=KEPT):
        s = te.create_schedule(C.op)
    copied = s.copy()
    copied[C].split(C.op.axis[0], 2)
    assert len(copied.schedule_record) == 0 and len(s.schedule_record) == 1
    stage = s[C]
    del s
    stage.split(C.op.axis[0], 2)
    assert len(stage.leaf_iter_vars) == 4


def test_a_schedule_may_be_empty():
    with tvm.transform.PassContext(config=KEPT):
        s = te.create_schedule([])
    assert len(s.stages) == 0 and len(s.schedule_record) == 1
