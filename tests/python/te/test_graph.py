"""Who reads what among operations, and where stages are attached."""

from __future__ import annotations

import pytest

import tvm
from tvm import te
from tvm.te import schedule


def test_producers_come_before_their_readers():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((4,), lambda i: A[i] * B[i], name="C")
    reads = schedule.CreateReadGraph([C.op])
    assert reads[C.op] == [A, B] and reads[B.op] == [A] and reads[A.op] == []
    assert schedule.PostDFSOrder([C.op], reads) == [A.op, B.op, C.op]
    with pytest.raises(KeyError):
        schedule.PostDFSOrder([te.placeholder((4,), name="D").op], reads)


def test_attach_paths_go_outwards():
    A = te.placeholder((4, 4, 4), name="A")
    B = te.compute((4, 4, 4), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    C = te.compute((4, 4, 4), lambda i, j, k: B[i, j, k] + 1.0, name="C")
    D = te.compute((4, 4, 4), lambda i, j, k: C[i, j, k] + 1.0, name="D")
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[1])
    s[B].compute_at(s[C], C.op.axis[0])
    paths = schedule.CreateAttachPath(s)
    assert paths[D.op] == []
    assert paths[C.op] == [D.op.axis[1], D.op.axis[0]]
    assert paths[B.op] == [C.op.axis[0], D.op.axis[1], D.op.axis[0]]


def test_the_body_of_a_scan_is_what_lies_between_its_states():
    X = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    doubled = te.compute((5, 3), lambda t, i: state[t - 1, i] * 2.0, name="doubled")
    update = te.compute((5, 3), lambda t, i: doubled[t, i] + X[t, i], name="update")
    result = te.scan(init, update, state, inputs=[X])
    assert schedule.ScanGetBody(result.op) == [doubled.op, update.op]
    with pytest.raises(TypeError, match="operation of a scan, got ComputeOp"):
        schedule.ScanGetBody(doubled.op)


def test_the_axes_around_a_step_are_those_of_the_scan():
    X = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda _, i: X[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    result = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(result.op)
    assert result.op.scan_axis in schedule.CreateAttachPath(s)[update.op]
    assert isinstance(tvm.lower(s, [X, result]), tvm.IRModule)
