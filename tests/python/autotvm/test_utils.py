"""Small things that tuners share."""

import multiprocessing

import pytest

from tvm import autotvm, tir
from tvm.autotvm import utils
from tvm.autotvm.task.space import get_factors, get_pow2s


def _squared(value):
    return value * value


def test_ranks_samples_and_names():
    assert utils.get_rank([0.5, 2.0, 1.0]).tolist() == [3, 1, 2]
    drawn = utils.sample_ints(3, 9, 6)
    assert sorted(drawn) == [3, 4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match="no 4 different integers"):
        utils.sample_ints(0, 3, 4)
    assert utils.get_func_name(_squared) == "_squared"
    assert utils.get_const_int(tir.const(3, "int32")) == 3
    assert utils.get_const_tuple([tir.const(3, "int32"), 4]) == (3, 4)
    with utils.EmptyContext():
        assert utils.format_si_prefix(2e9, "G") == 2.0
    assert autotvm.utils is utils


def test_arguments_are_mapped_in_batches():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        found = utils.pool_map(_squared, list(range(5)), 2, verbose=True, pool=pool)
    assert found.tolist() == [0, 1, 4, 9, 16]
    assert utils.pool_map(_squared, [], 2) is None


def test_factors_and_powers():
    assert get_factors(12) == [1, 2, 3, 4, 6, 12] and get_factors(1) == [1]
    assert get_pow2s(16) == [1, 2, 4, 8, 16] and get_pow2s(15) == [1, 2, 4, 8]


def test_the_outermost_context_forgets():
    context = autotvm.DispatchContext.current
    context.update("llvm", ("mine", 1), "kept")
    assert context.recorded("llvm", ("mine", 1)) == "kept"
    with autotvm.apply_history_best(None):
        autotvm.task.clear_fallback_cache("llvm", ("mine", 1))
    assert context.recorded("llvm", ("mine", 1)) is None
