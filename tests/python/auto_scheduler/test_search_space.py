"""Search spaces: what is registered, who has none, and the table of feature columns."""

from __future__ import annotations

import pytest

import tvm
from testing_sketches import CASES, make_task
from tvm import auto_scheduler
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
    task = make_task(name)
    states, failures = ffi.generate_all_sym_sketches(task, 16, "ansor")
    assert failures == []
    assert len(states) >= 1
    for state in states:
        code, context = ffi.generate_code_for_state(task, state, True)
        pack = ffi.get_feature_pack(task, code, context, "ansor")
        assert list(pack.feature_names) == auto_scheduler.feature_names("llvm", "ansor")


def test_the_columns_of_a_space_have_names_of_their_own():
    names = auto_scheduler.feature_names("llvm", "felix")
    assert len(set(names)) == len(names)
    # Those that every target has come before those of processors.
    assert names.index("auto_unroll_max_step") < names.index("tile_vectors")
