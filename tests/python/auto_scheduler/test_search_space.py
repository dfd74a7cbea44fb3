"""Search spaces: what is registered, who has none, and the table of feature columns."""

from __future__ import annotations

import pytest

import tvm
from testing_sketches import CASES, make_task
from tvm import auto_scheduler, felix
from tvm.auto_scheduler import LayoutRewriteOption
from tvm.felix import ffi
from tvm.target import Target, register_target_kind


def test_processors_have_the_space_of_ansor_and_the_one_of_felix():
    assert {("ansor", "cpu"), ("felix", "cpu")} <= set(auto_scheduler.search_spaces())


def test_a_target_without_a_space_is_refused_with_those_there_are():
    register_target_kind("spaceless", tvm.ext_dev(0).device_type, keys=["spaceless"])
    task = auto_scheduler.SearchTask(
        compute_dag=CASES["matmul"],
        target="spaceless",
        layout_rewrite_option=LayoutRewriteOption.NO_REWRITE,
    )
    message = (
        r'search space "felix": none is registered for the target spaceless.*'
        r'"ansor" of cpu.*"felix" of cpu'
    )
    with pytest.raises(ValueError, match=message):
        ffi.generate_all_sym_sketches(task)
    with pytest.raises(ValueError, match=message):
        auto_scheduler.feature_names(Target("spaceless"), "felix")


@pytest.mark.parametrize("name", ["matmul", "conv3x3", "depthwise", "softmax"])
def test_symbolic_tuners_can_use_the_space_of_ansor(name):
    task = felix.make_task(make_task(name), search_space="ansor").task
    assert len(task.sketches) >= 1
    assert task.failures == []
    for sketch in task.sketches:
        pack = sketch.fetch_features()
        assert list(pack.feature_names) == auto_scheduler.feature_names("llvm", "ansor")


def test_tiled_stages_are_held_by_another_one_in_the_space_of_felix_only():
    def caches(search_space):
        task = felix.make_task(make_task("matmul"), search_space=search_space).task
        return {"CHW" in sketch.backbone for sketch in task.sketches}

    assert caches("ansor") == {False, True}
    assert caches("felix") == {True}


def test_the_columns_of_a_space_have_names_of_their_own():
    names = auto_scheduler.feature_names("llvm", "felix")
    assert len(set(names)) == len(names)
    # Those that every target has come before those of processors.
    assert names.index("auto_unroll_max_step") < names.index("tile_vectors")
