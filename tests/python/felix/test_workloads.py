"""Random operators for training data: of all families, each of which can be searched."""

from __future__ import annotations

import pytest

from tvm.felix.sym_task import make_task
from tvm.felix.workloads import random_workloads


def test_equal_seeds_give_equal_operators_of_all_families():
    names = list(random_workloads(150, seed=4))
    assert names == list(random_workloads(150, seed=4))
    assert len(set(names)) == 150
    families = {name.split()[0] for name in names}
    assert {
        "conv2d",
        "depthwise",
        "dense",
        "product",
        "softmax",
        "layer_norm",
        "scores",
    } <= families
    assert {"max_pool", "avg_pool"} & families


@pytest.mark.parametrize("name", ["product", "max_pool", "avg_pool", "softmax", "scores"])
def test_operators_become_tasks_with_sketches(name):
    [build] = [b for n, b in random_workloads(150, seed=4).items() if n.startswith(name)][:1]
    assert make_task(build(), target="llvm", desc=name).task.sketches
