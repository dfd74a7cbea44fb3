"""Sketch rules: the numbers of sketches that Ansor derives for a CPU of four cores."""

from __future__ import annotations

import pytest

from tvm import auto_scheduler
from tvm.auto_scheduler import PreloadCustomSketchRule, SketchPolicy


def _task(name, *args):
    return auto_scheduler.SearchTask(
        func=name,
        args=args,
        target="llvm",
        hardware_params=auto_scheduler.HardwareParams(num_cores=4),
    )


@pytest.mark.parametrize(
    ("workload", "count"),
    [
        (("test_matmul", 512, 512, 512), 3),
        (("test_matmul", 8, 8, 512), 5),
        (("test_two_matmuls", 512), 9),
        (("test_conv_relu", 14, 14, 32, 64, 3, 1, 1), 3),
        (("test_max_pool", 16, 32), 1),
        (("test_row_min", 10, 1024), 3),
        (("test_softmax", 10, 1024), 9),
    ],
)
def test_number_of_sketches(workload, count):
    sketches = SketchPolicy(_task(*workload)).generate_sketches()
    assert len(sketches) == count, "\n".join(str(sketch) for sketch in sketches)


def test_max_pool_needs_no_step():
    (sketch,) = SketchPolicy(_task("test_max_pool", 16, 32)).generate_sketches()
    assert len(sketch.transform_steps) == 0


def test_matmul_sketch_has_the_tiling_structure():
    sketches = SketchPolicy(_task("test_matmul", 512, 512, 512)).generate_sketches()
    names = [str(it.name) for it in sketches[-1].stages[2].iters]
    lone = next(s for s in sketches if len(s.stages) == 3)
    names = [str(it.name) for it in lone.stages[2].iters]
    assert names == ["i.0", "j.0", "i.1", "j.1", "k.0", "i.2", "j.2", "k.1", "i.3", "j.3"]


def test_custom_rules_are_asked_first():
    def meets(task, state, stage_id):
        return PreloadCustomSketchRule.APPLY_AND_SKIP_REST if stage_id == 2 else 0

    def apply(task, state, stage_id):
        return [[state, stage_id - 1]]

    policy = SketchPolicy(
        _task("test_matmul", 512, 512, 512),
        init_search_callbacks=[PreloadCustomSketchRule(meets, apply)],
    )
    (sketch,) = policy.generate_sketches()
    assert len(sketch.transform_steps) == 0


def test_unknown_tiling_letters_are_refused():
    policy = SketchPolicy(_task("test_matmul", 512, 512, 512), tiling_structure="SXS")
    with pytest.raises(ValueError, match='structure "SXS"'):
        policy.generate_sketches()
