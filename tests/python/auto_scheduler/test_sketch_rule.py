"""Sketch rules: the numbers of sketches that Ansor derives for a CPU of four cores and a GPU."""

from __future__ import annotations

import pytest

from tvm import auto_scheduler
from tvm.auto_scheduler import PreloadCustomSketchRule, SketchPolicy


def _task(name, *args, target="llvm"):
    cores = 4 if target == "llvm" else None
    return auto_scheduler.SearchTask(
        func=name,
        args=args,
        target=target,
        hardware_params=auto_scheduler.HardwareParams(num_cores=cores, target=target),
    )


def _sketches(task, **options):
    return SketchPolicy(task, verbose=0, **options).generate_sketches()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_cores": 0}, "num_cores must be >= 1, or -1 for a GPU, got 0"),
        ({"vector_unit_bytes": -3}, "vector_unit_bytes must be >= 1, got -3"),
        ({"cache_line_bytes": 0}, "cache_line_bytes must be >= 1, got 0"),
        ({"warp_size": -5}, "warp_size must be >= 0, got -5"),
        ({"vector_unit_bytes": 1.5}, "vector_unit_bytes must be an integer of 32 bits, got 1.5"),
        ({"num_cores": 2**40}, "num_cores must be an integer of 32 bits"),
    ],
)
def test_hardware_that_no_machine_has_is_refused_by_field(values, message):
    with pytest.raises(ValueError, match=f"HardwareParams: {message}"):
        auto_scheduler.HardwareParams(**values)


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
        (("test_winograd", 14, 128, 128), 3),
    ],
)
def test_number_of_sketches_on_a_cpu(workload, count):
    sketches = _sketches(_task(*workload))
    assert len(sketches) == count, "\n".join(str(sketch) for sketch in sketches)


@pytest.mark.parametrize(
    ("workload", "count"),
    [
        (("test_matmul", 512, 512, 512), 1),
        (("test_matmul", 8, 8, 1024), 2),
        (("test_conv_relu", 14, 14, 32, 64, 3, 1, 1), 1),
        (("test_max_pool", 16, 32), 1),
        (("test_row_min", 10, 1024), 2),
        (("test_softmax", 2, 1024), 4),
    ],
)
def test_number_of_sketches_on_a_gpu(workload, count):
    sketches = _sketches(_task(*workload, target="cuda"))
    assert len(sketches) == count, "\n".join(str(sketch) for sketch in sketches)


def test_tiles_on_a_gpu_are_read_through_shared_memory():
    (sketch,) = _sketches(_task("test_matmul", 512, 512, 512, target="cuda"))
    assert [str(stage.op.name) for stage in sketch.stages] == [
        *("A", "A.shared", "B", "B.shared", "C.local", "C")
    ]
    cached = sketch.stages[4]
    assert sketch.stages[1].attach_stage == sketch.stages[3].attach_stage == cached.id
    assert str(cached.iters[int(sketch.stages[1].attach_iter)].name) == "k.0"
    names = " ".join(str(loop.name).replace("_c.", ".") for loop in cached.iters)
    assert names == "i.0 j.0 i.1 j.1 i.2 j.2 k.0 k.1 i.3 j.3 k.2 i.4 j.4"


def test_max_pool_needs_no_step():
    (sketch,) = _sketches(_task("test_max_pool", 16, 32))
    assert len(sketch.transform_steps) == 0


def test_matmul_sketch_has_the_tiling_structure():
    sketches = _sketches(_task("test_matmul", 512, 512, 512))
    lone = next(s for s in sketches if len(s.stages) == 3)
    names = [str(it.name) for it in lone.stages[2].iters]
    assert names == ["i.0", "j.0", "i.1", "j.1", "k.0", "i.2", "j.2", "k.1", "i.3", "j.3"]


def test_custom_rules_are_asked_first():
    policies = []

    def meets(policy, state, stage_id):
        policies.append(policy)
        return PreloadCustomSketchRule.APPLY_AND_SKIP_REST if stage_id == 2 else 0

    def apply(policy, state, stage_id):
        assert str(policy.search_task.workload_key) == '["test_matmul", 512, 512, 512]'
        return [[state, stage_id - 1]]

    policy = SketchPolicy(
        _task("test_matmul", 512, 512, 512),
        verbose=0,
        init_search_callbacks=[PreloadCustomSketchRule(meets, apply)],
    )
    (sketch,) = policy.generate_sketches()
    assert len(sketch.transform_steps) == 0
    assert all(seen.same_as(policy) for seen in policies)


@pytest.mark.parametrize(
    ("meets", "results", "message"),
    [
        (7, lambda state, stage_id: [], "meet_condition_func must return 0 .* got 7"),
        ("x", lambda state, stage_id: [], 'meet_condition_func must return 0 .* got "x"'),
        (1, lambda state, stage_id: [[state]], r"pairs \[state, next stage\], got a list of 1"),
        (1, lambda state, stage_id: "x", r'pairs \[state, next stage\], got "x"'),
        (1, lambda state, stage_id: [[stage_id, stage_id]], r"pairs \[state, next stage\], got"),
        (1, lambda state, stage_id: [[state, 9]], "next stage is 9, but the state has 3 stages"),
        (1, lambda state, stage_id: [[state, -2]], "next stage is -2"),
    ],
)
def test_custom_rules_that_return_something_else_are_refused(meets, results, message):
    rule = PreloadCustomSketchRule(
        lambda *_: meets, lambda policy, state, stage_id: results(state, stage_id), "mine"
    )
    policy = SketchPolicy(_task("test_matmul", 8, 8, 8), verbose=0, init_search_callbacks=[rule])
    with pytest.raises(ValueError, match=f"sketch rule mine: .*{message}"):
        policy.generate_sketches()


def test_custom_rules_that_never_get_on_are_ended():
    rule = PreloadCustomSketchRule(
        lambda *_: PreloadCustomSketchRule.APPLY_AND_SKIP_REST,
        lambda policy, state, stage_id: [[state, stage_id]],
        "mine",
    )
    policy = SketchPolicy(_task("test_matmul", 8, 8, 8), verbose=0, init_search_callbacks=[rule])
    with pytest.raises(RuntimeError, match="sketch rule mine: .* must go on to an earlier stage"):
        policy.generate_sketches()


def test_unknown_tiling_letters_are_refused():
    params = {"cpu_multi_level_tiling_structure": "SXS"}
    with pytest.raises(ValueError, match='structure "SXS"'):
        _sketches(_task("test_matmul", 512, 512, 512), params=params)
