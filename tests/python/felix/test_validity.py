"""Points of real sketches: those that descents start from, and those that rounding gives back."""

from __future__ import annotations

import numpy as np
import pytest

from testing_sketches import CASES
from tvm.auto_scheduler.cost_model.lightning_model import MLPModelPLWrapper
from tvm.felix.perf_func import TaskPerfFunc
from tvm.felix.sym_task import make_task

_POINTS = 200


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(
            (name, target)
            for name in ("conv3x3", "stem", "depthwise", "dense", "two_matmuls")
            for target in ("llvm -mcpu=znver4 -num-cores=2", "llvm -mcpu=haswell")
        ),
        ("matmul", "cuda -arch=sm_80"),
        ("matmul_tokens", "cuda -arch=sm_80"),
        ("softmax", "cuda -arch=sm_80"),
    ],
)
def test_points_stay_valid(name, target):
    task = make_task(CASES[name], target).task
    functions = TaskPerfFunc(task.sketches, 1.0, name, MLPModelPLWrapper()).sketch_funcs
    rng = np.random.default_rng(3)
    assert len(functions) == len(task.sketches)
    for function in functions.values():
        polytope, valid = function.features.polytope, function.features.config_maker.valid
        started = function.features.config_maker.make(_POINTS, rng)
        assert len(started)
        assert (started @ polytope.matrix.T + polytope.offset <= 1e-6).all()
        assert valid(started).all()
        # What descends ends anywhere in the polytope. Rounding mends the sums of exponents; only
        # constraints that are no sums may be broken by it.
        moved = polytope.sample(_POINTS, rng)
        rounded, inside = polytope.round(moved)
        assert inside.mean() >= 0.99
        near = started + rng.normal(0.0, 0.3, started.shape)
        rounded, inside = polytope.round(near)
        assert valid(rounded[inside] + 0.0).sum() >= 0.5 * len(near)
