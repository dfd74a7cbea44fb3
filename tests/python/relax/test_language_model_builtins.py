"""Functions of the registry that programs of language models call: rows of keys, penalties."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm.runtime import ShapeTuple


def builtin(name: str) -> tvm.runtime.PackedFunc:
    return tvm.get_global_func(f"vm.builtin.{name}")


def rows(*values: float) -> tvm.nd.NDArray:
    return tvm.nd.array(np.array(values, "float32").reshape(-1, 1))


def cache_of(*values: float) -> tvm.runtime.Object:
    first = rows(*values)
    return builtin("attention_kv_cache_create")(first, ShapeTuple([2, 1]), len(values))


def shown(cache: tvm.runtime.Object) -> list[float]:
    return builtin("attention_kv_cache_view")(cache).numpy().ravel().tolist()


def test_rows_are_replaced_all_at_once() -> None:
    cache = builtin("attention_kv_cache_update")(cache_of(1, 2), rows(3, 4))
    assert shown(cache) == [3, 4]
    with pytest.raises(ValueError, match="the cache has 2 rows, 1 are given"):
        builtin("attention_kv_cache_update")(cache, rows(5))


def test_a_full_window_writes_over_its_oldest_rows() -> None:
    override = builtin("attention_kv_cache_window_override")
    empty = builtin("attention_kv_cache_create")(rows(0), ShapeTuple([1, 1]), 0)
    cache = override(empty, rows(1, 2, 3), 4)
    assert shown(cache) == [1, 2, 3]
    assert shown(override(cache, rows(4, 5), 4)) == [5, 2, 3, 4]
    assert shown(override(cache, rows(6, 7, 8, 9), 4)) == [9, 6, 7, 8]
    with pytest.raises(ValueError, match="5 rows for a window of 4"):
        override(cache, rows(1, 2, 3, 4, 5), 4)
    builtin("attention_kv_cache_array_clear")([cache])
    assert shown(override(cache, rows(1), 4)) == [1]


def test_the_first_rows_of_a_window_may_stay() -> None:
    override = builtin("attention_kv_cache_window_override_with_sinks")
    empty = builtin("attention_kv_cache_create")(rows(0), ShapeTuple([1, 1]), 0)
    cache = override(empty, rows(1, 2, 3), 4, 1)
    assert shown(override(cache, rows(4, 5, 6), 4, 1)) == [1, 5, 6, 4]
    with pytest.raises(ValueError, match="4 rows for a window of 4, of which 1 stay"):
        override(cache, rows(1, 2, 3, 4), 4, 1)


def test_tokens_that_were_there_become_less_likely() -> None:
    logits = tvm.nd.array(np.array([[2.0, -2.0, 1.0, 0.0]], "float32"))
    tokens = tvm.nd.array(np.array([0, 1], "int32"))
    builtin("apply_repetition_penalty")(logits, tokens, 2.0)
    assert logits.numpy().tolist() == [[1, -4, 1, 0]]
    counts = tvm.nd.array(np.array([3, 1], "int32"))
    builtin("apply_presence_and_frequency_penalty")(logits, tokens, counts, 0.5, 0.25)
    assert logits.numpy().tolist() == [[-0.25, -4.75, 1, 0]]
    with pytest.raises(ValueError, match="token 9 of 4"):
        builtin("apply_repetition_penalty")(logits, tvm.nd.array(np.array([9], "int32")), 2.0)
    with pytest.raises(ValueError, match="tokens and counts are int32"):
        builtin("apply_repetition_penalty")(logits, tvm.nd.array(np.array([1], "int64")), 2.0)


def test_logits_become_probabilities_in_place() -> None:
    values = np.array([[1.0, 2.0, 4.0]], "float32")
    logits = tvm.nd.array(values)
    builtin("apply_softmax_with_temperature")(logits, 0.5)
    expected = np.exp(2 * values) / np.exp(2 * values).sum()
    np.testing.assert_allclose(logits.numpy(), expected, rtol=1e-5)
