"""Features of loops are what counting iterations by hand gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from testing_templates import matmul_task
from tvm import te
from tvm.autotvm import feature
from tvm.tir import IterVar


def _matmul(n: int, m: int, k: int) -> tuple[te.Schedule, list[te.Tensor], IterVar]:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.create_schedule(c.op), [a, b, c], r


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(2, 9), st.integers(2, 9))
def test_loops_of_a_product(n: int, m: int, k: int) -> None:
    schedule, args, _ = _matmul(n, m, k)
    rows = feature.get_itervar_feature(schedule, args)
    assert [row[1][1:5] for row in rows] == [
        [n, 1, n, n * m * k],
        [m, 2, n * m, m * k],
        [k, 3, n * m * k, k],
    ]
    touches = [{item[0]: item[1:5] for item in row[3:]} for row in rows]
    # Stride, modulus, elements touched, times each.
    assert touches[0]["A_0"] == [k, -1, n * k, m] and touches[0]["B_0"] == [0, -1, k * m, n]
    assert touches[1]["A_0"] == [0, -1, k, m] and touches[1]["B_0"] == [1, -1, k * m, 1]
    assert touches[2]["A_0"] == [1, -1, k, 1] and touches[2]["B_0"] == [m, -1, k, 1]
    assert touches[2]["C_1"] == [0, -1, 1, k]
    assert rows[2][2][2] >= 1


def test_kinds_and_threads() -> None:
    schedule, args, r = _matmul(64, 64, 8)
    c = args[2]
    y, x = schedule[c].op.axis
    yo, yi = schedule[c].split(y, 8)
    xo, xi = schedule[c].split(x, 8)
    schedule[c].reorder(yo, xo, yi, xi, r)
    for axis, thread in ((yo, "blockIdx.x"), (xo, "vthread"), (yi, "threadIdx.y")):
        schedule[c].bind(axis, te.thread_axis(thread))
    schedule[c].unroll(xi)
    rows = feature.get_itervar_feature(schedule, args)
    kinds = [row[1][5:].index(1) for row in rows]
    assert kinds == [0, 10, 4, 6, 9]
    touches = {item[0]: item[1:] for item in rows[0][3:]}
    # Eight threads touch eight rows of A each, and share the elements of B.
    assert touches["A_0"][4:] == [8, 1] and touches["B_0"][4:] == [1, 8]


def test_a_modulus_is_seen() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((64,), lambda i: a[i % 8], name="B")
    [row] = feature.get_itervar_feature(te.create_schedule(b.op), [a, b])
    touches = {item[0]: item[1:] for item in row[3:]}
    assert touches["A_0"][:2] == [1, 8] and touches["B_0"][:2] == [1, -1]


def test_flat_forms_agree() -> None:
    task = matmul_task()
    schedule, args = task.instantiate(task.config_space.get(30))
    nested = feature.flatten_itervar_feature(
        feature.get_itervar_feature(schedule, args, take_log=True)
    )
    np.testing.assert_allclose(
        feature.get_itervar_feature_flatten(schedule, args), nested, rtol=1e-6
    )
    curve = feature.get_buffer_curve_sample_flatten(schedule, args, sample_n=10)
    assert curve.shape == (10 * 3 * 4 * 2,) and np.isfinite(curve).all() and curve.max() > 0
    with pytest.raises(ValueError, match="simple_mode"):
        feature.ana_lower(schedule, args, simple_mode=False)


def test_curves_have_one_length_for_any_loops() -> None:
    task = matmul_task()
    lengths = {
        len(feature.get_buffer_curve_sample_flatten(*task.instantiate(point)))
        for point in list(task.config_space)[::5]
    }
    assert lengths == {30 * 3 * 4 * 2}
    assert tvm.get_global_func("autotvm.feature.GetItervarFeature") is not None
