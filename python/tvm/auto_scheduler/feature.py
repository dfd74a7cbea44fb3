"""Per-store features of programs (Ansor, OSDI 2020, section 5.2), the input of cost models."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tvm._ffi

from . import _ffi_api
from .loop_state import State, StateObject, state_object_of
from .measure_node import MeasureInput, MeasureResult
from .search_task import SearchTask

__all__ = [
    "DEFAULT_FEATURE_VEC_LEN",
    "DEFAULT_MAX_N_BUFS",
    "FeatureCache",
    "get_per_store_feature_names",
    "get_per_store_features_from_file",
    "get_per_store_features_from_measure_pairs",
    "get_per_store_features_from_states",
    "unpack_feature",
]

# Buffers of a store that a row describes, and the columns of such a row.
DEFAULT_MAX_N_BUFS = 5
DEFAULT_FEATURE_VEC_LEN = 164


def unpack_feature(byte_arr: bytes) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Features in the packed form that crosses from C++, as arrays.

    Returns
    -------
    features : one array a program, float32, shape (n_stores, n_columns); a program that cannot be
        lowered or does not fit the device is a single row of zeros.
    normalized_throughputs : float32, shape (n_programs,); best cost of its task over its own, 0 for
        a failed one; empty where there are no measurements.
    task_ids : int32, shape (n_programs,), or empty.

    Raises
    ------
    ValueError : the bytes are not what their own sizes say.
    """
    if len(byte_arr) < 4 or len(byte_arr) % 4:
        raise ValueError(f"unpack_feature: {len(byte_arr)} bytes are no packed features")
    integers = np.frombuffer(byte_arr, dtype=np.int32)
    floats = integers.view(np.float32)
    n = int(integers[0])
    if not 0 <= n <= len(integers) - 3:
        raise ValueError(f"unpack_feature: {len(byte_arr)} bytes cannot hold {n} programs")
    sizes = integers[1 : n + 3].astype(np.int64)
    bounds = n + 3 + np.concatenate([[0], np.cumsum(sizes)])
    if (sizes < 0).any() or bounds[-1] != len(integers):
        raise ValueError(
            f"unpack_feature: sizes ask for {bounds[-1]} values, the bytes hold {len(integers)}"
        )
    features = []
    for begin, end in zip(bounds[:n], bounds[1 : n + 1]):
        if begin == end:
            features.append(np.zeros((1, DEFAULT_FEATURE_VEC_LEN), dtype=np.float32))
            continue
        n_rows = int(floats[begin])
        if n_rows < 1 or (end - begin - 1) % n_rows:
            raise ValueError(f"unpack_feature: {end - begin - 1} values are not {n_rows} rows")
        features.append(floats[begin + 1 : end].reshape(n_rows, -1))
    throughputs = floats[bounds[n] : bounds[n + 1]]
    task_ids = integers[bounds[n + 1] : bounds[n + 2]]
    return features, throughputs, task_ids


def get_per_store_feature_names(max_n_bufs: int | None = None) -> list[str]:
    """Names of the columns; 164 for five buffers."""
    return [
        str(name) for name in _ffi_api.GetPerStoreFeatureNames(max_n_bufs or DEFAULT_MAX_N_BUFS)
    ]


def get_per_store_features_from_states(
    states: Sequence[State | StateObject], task: SearchTask, max_n_bufs: int | None = None
) -> list[np.ndarray]:
    """Features of states, each float32 of shape (n_stores, n_columns).

    States are lowered on all cores; an illegal one gives a single row of zeros.
    """
    packed = _ffi_api.GetPerStoreFeaturesFromStates(
        [state_object_of(state) for state in states], task, max_n_bufs or DEFAULT_MAX_N_BUFS
    )
    return unpack_feature(packed)[0]


def get_per_store_features_from_measure_pairs(
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
    skip_first_n_feature_extraction: int = 0,
    max_n_bufs: int | None = None,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Features of measured programs with throughputs and task numbers, see `unpack_feature`.

    Programs before `skip_first_n_feature_extraction` get no features (a row of zeros) but count for
    throughputs and task numbers.
    """
    packed = _ffi_api.GetPerStoreFeaturesFromMeasurePairs(
        list(inputs),
        list(results),
        skip_first_n_feature_extraction,
        max_n_bufs or DEFAULT_MAX_N_BUFS,
    )
    return unpack_feature(packed)


@tvm._ffi.register_func("auto_scheduler.GetPerStoreFeaturesFromFile")
def _packed_features_from_file(filename: str, max_lines: int, max_n_bufs: int) -> bytes:
    from .measure_record import RecordReader

    inputs, results = RecordReader(filename).read_lines(max_lines if max_lines >= 0 else None)
    return _ffi_api.GetPerStoreFeaturesFromMeasurePairs(inputs, results, 0, max_n_bufs)


def get_per_store_features_from_file(
    filename: str | Path, max_lines: int | None = None, max_n_bufs: int | None = None
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Features of the programs of a record file, see `unpack_feature`.

    Raises
    ------
    FileNotFoundError : there is no such file.
    ValueError : a record cannot be read; the message says which line.
    """
    return unpack_feature(
        _packed_features_from_file(
            str(filename),
            -1 if max_lines is None else max_lines,
            max_n_bufs or DEFAULT_MAX_N_BUFS,
        )
    )


class FeatureCache:
    """Features by state, so that a state that stays in a population is lowered once.

    Parameters
    ----------
    capacity : states kept; those not asked for the longest time go first.
    """

    def __init__(self, capacity: int = 20000) -> None:
        self.capacity = capacity
        self._features: OrderedDict[tuple[str, StateObject], np.ndarray] = OrderedDict()

    def get(self, task: SearchTask, states: Sequence[State | StateObject]) -> list[np.ndarray]:
        """What `get_per_store_features_from_states` gives."""
        where = f"{task.workload_key} {task.target} {task.layout_rewrite_option}"
        keys = [(where, state_object_of(state)) for state in states]
        missing = list({key: None for key in keys if key not in self._features})
        computed = get_per_store_features_from_states([state for _, state in missing], task)
        found = dict(zip(missing, computed))
        rows = []
        for key in keys:
            if key in self._features:
                self._features.move_to_end(key)
            else:
                self._features[key] = found[key]
            rows.append(self._features[key])
        while len(self._features) > self.capacity:
            self._features.popitem(last=False)
        return rows
