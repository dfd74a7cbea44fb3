"""What the bound of processors reads beside what models learn from, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tvm import auto_scheduler, te, tir, topi
from tvm.auto_scheduler import _ffi_api
from tvm.auto_scheduler.search_space import learned_feature_names
from tvm.felix import ffi
from tvm.felix.bound import ProcessorBound
from tvm.felix.canonical import canonical_configs
from tvm.felix.features import TorchFeatures
from tvm.felix.sym_task import make_task
from tvm.target import Target

# Eight lanes, two multiply-adds a cycle, so that eight are under way.
TARGET = (
    "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-cores=1 "
    "-l1-cache-bytes=32768 -l2-cache-bytes=65536 -l3-cache-bytes=16777216"
)
LANES = 8
NAMES = auto_scheduler.feature_names(TARGET)


def features_of(tensors, schedule) -> np.ndarray:
    """Rows of one program, as logarithms; `schedule` takes its state and the last tensor."""
    task = auto_scheduler.SearchTask(compute_dag=tensors, target=TARGET)
    state = task.compute_dag.get_init_state()
    schedule(state, tensors[-1])
    program, _ = ffi.generate_code_for_state(task, state, False)
    return _ffi_api.LoopFeatures(task, program, None, "felix").numpy()


def columns_of(rows: np.ndarray, row: int = 0) -> dict[str, float]:
    return dict(zip(NAMES, np.expm1(rows[row])))


def slots_of(rows: np.ndarray) -> float:
    bound = ProcessorBound(NAMES, Target(TARGET), LANES, np.inf)
    return float(bound.slots(torch.from_numpy(rows[None])))


def tiles(rows: int, columns: int):
    """Tiles of a two-dimensional tensor, one after the other."""

    def schedule(state, tensor):
        i, j = state[tensor].iters[:2]
        io, ii = state.split(tensor, i, [rows])
        jo, ji = state.split(tensor, j, [columns])
        state.reorder(tensor, [io, jo, ii, ji])

    return schedule


def square() -> list[te.Tensor]:
    x = te.placeholder((512, 512), name="x")
    return [x, te.compute((512, 512), lambda i, j: x[i, j] * 2.0, name="y")]


def product(rows: int = 64) -> list[te.Tensor]:
    a, b = te.placeholder((rows, 64), name="a"), te.placeholder((64, 64), name="b")
    k = te.reduce_axis((0, 64), "k")
    return [a, b, te.compute((rows, 64), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")]


def test_models_learn_from_the_first_columns():
    learned = learned_feature_names(TARGET)
    assert NAMES[: len(learned)] == learned
    assert {"tile_visits", "last_tile_part", "l2_pieces"} <= set(NAMES[len(learned) :])
    gpu = Target("cuda -arch=sm_80")
    assert learned_feature_names(gpu) == auto_scheduler.feature_names(gpu)


def test_tiles_of_an_array_are_pieces_and_rows_are_not():
    # Of 64 x 16 elements 64 lines each are fetched into the second cache, of both arrays; whole
    # rows are one piece, and those that fit the cache together still are.
    narrow = columns_of(features_of(square(), tiles(64, 16)))["l2_pieces"]
    assert narrow == pytest.approx(2 * 64 * (512 // 64) * (512 // 16), rel=0.1)
    whole = columns_of(features_of(square(), tiles(64, 512)))["l2_pieces"]
    assert whole < narrow / 10


def test_what_lies_in_pieces_takes_longer():
    def slots(rows: int, columns: int) -> float:
        def schedule(state, tensor):
            tiles(rows, columns)(state, tensor)
            ji = state[tensor].iters[3]
            state.vectorize(tensor, state.split(tensor, ji, [LANES])[1])

        return slots_of(features_of(square(), schedule))

    assert slots(64, 16) > 1.2 * slots(2, 512)


def blocked_product(middle: int, unrolled: int = 4):
    """A register tile of some rows, blocks of 16 steps, and `middle` tiles for each block."""

    def schedule(state, tensor):
        i, j, k = state[tensor].iters
        io, im, ii = state.split(tensor, i, [middle, unrolled])
        jo, ji = state.split(tensor, j, [LANES])
        ko, ki = state.split(tensor, k, [16])
        state.reorder(tensor, [io, jo, ko, im, ki, ii, ji])
        state.unroll(tensor, ii)
        state.vectorize(tensor, ji)

    return schedule


def test_a_register_tile_is_visited_once_a_block_if_others_come_between():
    # 16 tiles of rows, 8 of columns.
    alone = columns_of(features_of(product(), blocked_product(1)))["tile_visits"]
    between = columns_of(features_of(product(), blocked_product(4)))["tile_visits"]
    assert round(alone) == 16 * 8
    assert round(between) == 16 * 8 * (64 // 16)
    # Without a loop of the reduction there is none to begin.
    x = te.placeholder((64, 64, 4), name="x")
    k = te.reduce_axis((0, 4), "k")
    sums = te.compute((64, 64), lambda i, j: te.sum(x[i, j, k], axis=k), name="sums")

    def unroll(state, tensor):
        state.unroll(tensor, state[tensor].iters[2])

    assert columns_of(features_of([x, sums], unroll))["tile_visits"] == 0


def ragged_product(height: int):
    """All rows in tiles of some height, which need not divide them."""

    def schedule(state, tensor):
        i, j, k = state[tensor].iters
        io, ii = state.split(tensor, i, [height])
        jo, ji = state.split(tensor, j, [LANES])
        state.reorder(tensor, [io, jo, k, ii, ji])
        state.unroll(tensor, ii)
        state.vectorize(tensor, ji)

    return schedule


@pytest.mark.parametrize("height, part, share", [(12, 7 / 12, 1 / 2), (6, 1 / 6, 1 / 4)])
def test_the_last_tile_of_rows(height, part, share):
    found = columns_of(features_of(product(19), ragged_product(height)))
    assert found["last_tile_part"] == pytest.approx(part)
    assert found["last_tile_share"] == pytest.approx(share)


def test_tiles_that_divide_have_no_last_one():
    found = columns_of(features_of(product(), blocked_product(1)))
    assert (found["last_tile_part"], found["last_tile_share"]) == (1, 0)


def test_few_accumulators_wait_for_their_sums():
    """Of 25 rows, tiles of 12 leave one, which takes as long as eight; tiles of 9 leave seven."""
    twelve = slots_of(features_of(product(25), ragged_product(12)))
    nine = slots_of(features_of(product(25), ragged_product(9)))
    assert nine < twelve
    # A tile of 16 accumulators does not wait, one of 4 does half of the time.
    deep = product(64)
    wide, narrow = (slots_of(features_of(deep, ragged_product(height))) for height in (16, 4))
    assert narrow > 1.3 * wide


def test_pixels_with_a_stride_are_loaded_one_by_one():
    data = te.placeholder((18, 18, 4), name="data")
    weight = te.placeholder((3, 3, 4, 8), name="weight")
    y, x, c = (te.reduce_axis((0, n), name) for n, name in ((3, "y"), (3, "x"), (4, "c")))
    conv = te.compute(
        (8, 8, 8),
        lambda h, w, f: te.sum(data[2 * h + y, 2 * w + x, c] * weight[y, x, c, f], axis=[y, x, c]),
        name="conv",
    )

    def schedule(state, tensor):
        h, w, f, y, x, c = state[tensor].iters
        wo, wi = state.split(tensor, w, [4])
        state.reorder(tensor, [h, wo, y, x, c, wi, f])
        state.unroll(tensor, wi)
        state.vectorize(tensor, f)

    found = columns_of(features_of([data, weight, conv], schedule))
    # Four pixels and a vector of weights, although the hull of the pixels is seven.
    assert round(found["tile_loads"]) == 5
    assert round(found["scalars_broadcast"] + found["vectors_loaded"]) == 8


def test_windows_are_first_tried_in_whole_rows_of_memory():
    data = te.placeholder((1, 56, 56, 144), name="data")
    weight = te.placeholder((3, 3, 144, 1), name="weight")
    task = make_task([data, weight, topi.nn.depthwise_conv2d_nhwc(data, weight, 1, 1, 1)], TARGET)
    sketch = task.task.sketches[-1]
    configs = canonical_configs(sketch, LANES, 16)
    whole = [c for c in configs if c["sp_3_0"] * c["sp_3_1"] * c["sp_3_2"] == 144]
    assert any(c["sp_2_0"] > 1 for c in whole) and len(whole) < len(configs)


def test_programs_with_knobs_and_with_numbers_agree():
    task = make_task(product(19), TARGET).task
    rng = np.random.default_rng(0)
    for sketch in task.sketches:
        features = TorchFeatures(sketch.fetch_features())
        for point in features.config_maker.make(3, rng):
            state = sketch.state_from_config(features.config(point))
            program, _ = ffi.generate_code_for_state(task.ansor_task, state, False)
            numbers = _ffi_api.LoopFeatures(
                task.ansor_task, program, features.pack.buffer_order, "felix"
            ).numpy()
            np.testing.assert_allclose(features.rows(point[None])[0], numbers, atol=1e-4)


def test_padding_is_no_reduction():
    x = te.placeholder((64, 64), name="x")
    padded = te.compute(
        (66, 66),
        lambda i, j: tir.if_then_else(
            tir.all(i >= 1, i < 65, j >= 1, j < 65), x[i - 1, j - 1], 0.0
        ),
        name="padded",
    )
    assert columns_of(features_of([x, padded], lambda state, tensor: None))["tile_visits"] == 0
