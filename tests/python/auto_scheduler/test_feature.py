"""Per-store features: values of known programs, invalid programs, the packed form."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te
from tvm.auto_scheduler import MeasureInput, MeasureResult, _ffi_api, feature


def matmul(n, m, k):
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return [a, b, c]


def slog(x):
    return math.log2(x + 1)


def rows_of(state, task):
    names = feature.get_per_store_feature_names()
    [rows] = feature.get_per_store_features_from_states([state], task)
    return [dict(zip(names, map(float, row))) for row in rows]


@pytest.fixture
def tiled():
    """i in tiles of 16, j in vectors of 8, both outer loops parallel, k unrolled in between."""
    dag = auto_scheduler.ComputeDAG(matmul(512, 512, 512))
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="features", target="llvm")
    s = dag.get_init_state()
    c = s.stage_ops[2]
    i, j, k = s[c].iters
    io, ii = s.split(c, i, [16])
    jo, ji = s.split(c, j, [8])
    s.reorder(c, [io, jo, k, ji, ii])
    s.vectorize(c, ji)
    s.parallel(c, io)
    s.parallel(c, jo)
    s.unroll(c, k)
    return task, s


def test_there_are_164_columns_and_no_name_twice():
    names = feature.get_per_store_feature_names()
    assert len(names) == len(set(names)) == feature.DEFAULT_FEATURE_VEC_LEN == 164
    assert names[0] == "float_mad"
    assert names[5] == "float_mathfunc"
    assert names[147] == "arith_intensity_curve_0"
    assert names[163] == "auto_unroll_max_step"
    assert len(feature.get_per_store_feature_names(max_n_bufs=2)) == 164 - 3 * 18


def test_features_of_a_tiled_matrix_product(tiled):
    task, state = tiled
    [row] = rows_of(state, task)
    slots = {
        "C" if row[f"B{b}.acc_type.kReadWrite"] else "B" if row[f"B{b}.stride"] == 0 else "A": b
        for b in range(3)
    }
    expected = {
        f"B{slots['C']}.bytes": slog(512**3 * 4),
        f"B{slots['A']}.unique_bytes": slog(512**2 * 4),
        f"B{slots['B']}.unique_bytes": slog(512**2 * 4),
        f"B{slots['C']}.reuse_dis_iter": slog(8 * 16),
        f"B{slots['C']}.reuse_dis_bytes": slog((8 * 16 + 8 + 16) * 4),
        f"B{slots['C']}.reuse_ct": slog(512),
        f"B{slots['C']}.reuse_type.kLoopMultipleRead": 1.0,
        f"B{slots['A']}.stride": slog(512),
        "float_mad": slog(512**3),
        "vec_num": 1.0,
        "vec_len": slog(8),
        "vec_type.kPosMixed": 1.0,
        "unroll_num": 1.0,
        "parallel_num": slog(2),
        "parallel_prod": slog(512 * 512 / 16 / 8),
        "outer_prod": slog(512**3),
        "num_loops": slog(5),
        "is_gpu": 0.0,
        "blockIdx_x_len": 1.0,
        "B3.bytes": 0.0,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    # More work for each byte the further out the loops are taken in.
    curve = [row[f"arith_intensity_curve_{i}"] for i in range(10)]
    assert curve == sorted(curve)
    assert curve[-1] == pytest.approx(math.log2(512**3) / math.log2((3 * 512**2 + 0) * 4), rel=0.05)


def test_a_producer_in_its_consumers_loop_is_read_at_once():
    a = te.placeholder((64, 32), name="A")
    b = te.compute((64, 32), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((64, 32), lambda i, j: b[i, j] * 2.0, name="C")
    dag = auto_scheduler.ComputeDAG([a, c])
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="fused", target="llvm")
    s = dag.get_init_state()
    s.compute_at(b, c, s[c].iters[1])
    found = [
        (row[f"B{i}.reuse_dis_iter"], row[f"B{i}.reuse_dis_bytes"])
        for row in rows_of(s, task)
        for i in range(5)
        if row[f"B{i}.reuse_type.kSerialMultipleReadWrite"]
    ]
    assert found
    # One element is written and read in each trip, next to one element of A and of C.
    assert found == [pytest.approx((slog(1), slog(16)))] * len(found)


def test_an_unrolled_pragma_and_an_allocation_are_seen():
    a = te.placeholder((64, 32), name="A")
    b = te.compute((64, 32), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((64, 32), lambda i, j: b[i, j] * 2.0, name="C")
    dag = auto_scheduler.ComputeDAG([a, c])
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="row", target="llvm")
    s = dag.get_init_state()
    s.compute_at(b, c, s[c].iters[0])
    s.pragma(c, s[c].iters[0], "auto_unroll_max_step$64")
    producer, consumer = rows_of(s, task)
    assert producer["alloc_outer_prod"] == pytest.approx(slog(64))
    assert producer["alloc_size"] == pytest.approx(slog(32 * 4))
    assert producer["alloc_inner_prod"] == pytest.approx(slog(32))
    assert consumer["auto_unroll_max_step"] == pytest.approx(slog(64))


def test_states_are_lowered_alike_alone_and_in_parallel(tiled):
    task, state = tiled
    plain = task.compute_dag.get_init_state()
    states = [state, plain] * 20
    together = feature.get_per_store_features_from_states(states, task)
    for number, rows in enumerate(together):
        [alone] = feature.get_per_store_features_from_states([states[number]], task)
        np.testing.assert_array_equal(rows, alone)


@pytest.fixture
def gpu_task():
    def make(**limits):
        values = {
            "num_cores": -1,
            "vector_unit_bytes": 16,
            "cache_line_bytes": 64,
            "max_shared_memory_per_block": 49152,
            "max_local_memory_per_block": 1 << 30,
            "max_threads_per_block": 1024,
            "max_vthread_extent": 8,
            "warp_size": 32,
        }
        values.update(limits)
        return auto_scheduler.SearchTask(
            compute_dag=auto_scheduler.ComputeDAG(matmul(512, 512, 512)),
            target="cuda",
            hardware_params=auto_scheduler.HardwareParams(**values, target="cuda"),
        )

    return make


def bind_tiles(task, threads=16, vthreads=4):
    s = task.compute_dag.get_init_state()
    c = s.stage_ops[2]
    i, j, _ = s[c].iters
    fused = s.fuse(c, [i, j])
    parts = s.split(c, fused, [vthreads, threads])
    s.bind(c, parts[0], "blockIdx.x")
    s.bind(c, parts[1], "vthread")
    s.bind(c, parts[2], "threadIdx.x")
    return s


def test_threads_of_a_gpu_program_are_columns(gpu_task):
    task = gpu_task()
    [row] = rows_of(bind_tiles(task), task)
    assert row["is_gpu"] == 1.0
    assert row["blockIdx_x_len"] == pytest.approx(slog(512 * 512 / 64))
    assert row["vthread_len"] == pytest.approx(slog(4))
    assert row["threadIdx_x_len"] == pytest.approx(slog(16))
    assert row["threadIdx_y_len"] == pytest.approx(slog(1))


@pytest.mark.parametrize("limits", [{"max_threads_per_block": 8}, {"max_vthread_extent": 2}])
def test_a_gpu_program_beyond_the_limits_is_a_row_of_zeros(gpu_task, limits):
    task = gpu_task(**limits)
    [rows] = feature.get_per_store_features_from_states([bind_tiles(task)], task)
    assert rows.shape == (1, 164)
    assert not rows.any()


def shared_bytes(body):
    """What a lowered program of float32 allocates in shared memory."""
    sizes = []

    def add(node):
        if isinstance(node, tvm.tir.Allocate):
            scope = str(node.buffer_var.type_annotation.storage_scope)
            sizes.append(4 * math.prod(map(int, node.extents)) if scope == "shared" else 0)

    tvm.tir.stmt_functor.post_order_visit(body, add)
    return sum(sizes)


def test_random_gpu_programs_are_zeros_where_shared_memory_is_too_small(gpu_task):
    task = gpu_task()
    policy = auto_scheduler.SketchPolicy(
        task, params={"sample_init_min_population": 40}, seed=0, verbose=0
    )
    states = policy.sample_initial_population()[:40]
    lowered = [tvm.lower(*task.compute_dag.apply_steps_from_state(state)) for state in states]
    limit = task.target.gpu_facts["max_dynamic_shared_memory_per_block"]
    fits = [shared_bytes(mod["main"].body) <= limit for mod in lowered]
    rows = feature.get_per_store_features_from_states(states, task)
    assert [bool(np.any(row)) for row in rows] == fits
    assert 0 < sum(fits) < len(fits)


def test_throughputs_are_relative_to_the_best_of_the_task(tiled, tmp_path):
    task, state = tiled
    states = [state, task.compute_dag.get_init_state(), state]
    inputs = [MeasureInput(task, s) for s in states]
    results = [
        MeasureResult([2e-3, 4e-3], 0, None, 1, 1),
        MeasureResult([1e-3], 0, None, 1, 1),
        MeasureResult([1e10], 4, "crashed", 1, 1),
    ]
    rows, throughputs, tasks = feature.get_per_store_features_from_measure_pairs(inputs, results)
    assert [len(r) for r in rows] == [1, 1, 1]
    np.testing.assert_allclose(throughputs, [1 / 3, 1, 0], rtol=1e-6)
    assert tasks.tolist() == [0, 0, 0]
    skipped, _, _ = feature.get_per_store_features_from_measure_pairs(
        inputs, results, skip_first_n_feature_extraction=2
    )
    assert [bool(r.any()) for r in skipped] == [False, False, True]
    packed = tvm.get_global_func("auto_scheduler.GetPerStoreFeaturesFromMeasurePairsPAM")
    patterns, same, _ = feature.unpack_feature(packed(inputs, results, 0, 5))
    np.testing.assert_array_equal(patterns[1], rows[1])
    np.testing.assert_array_equal(same, throughputs)
    auto_scheduler.register_workload_tensors("features", task.compute_dag.tensors)
    log = tmp_path / "records.json"
    auto_scheduler.save_records(log, inputs, results)
    from_file, again, _ = feature.get_per_store_features_from_file(log, max_lines=2)
    np.testing.assert_array_equal(from_file[1], rows[1])
    assert len(again) == 2


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x01", struct.pack("i", -1), struct.pack("iiii", 1, 5, 0, 0), struct.pack("i", 1000)],
)
def test_bytes_that_are_no_features_are_refused(packed):
    with pytest.raises(ValueError, match="unpack_feature"):
        feature.unpack_feature(packed)


def test_a_cache_lowers_a_state_once(tiled, monkeypatch):
    task, state = tiled
    cache = feature.FeatureCache(capacity=2)
    plain = task.compute_dag.get_init_state()
    first = cache.get(task, [state, plain, state])
    asked = []
    original = feature.get_per_store_features_from_states
    monkeypatch.setattr(
        feature,
        "get_per_store_features_from_states",
        lambda states, task: asked.append(len(states)) or original(states, task),
    )
    second = cache.get(task, [plain, state])
    assert asked == [0]
    np.testing.assert_array_equal(second[1], first[0])
    assert first[2] is first[0]


def test_as_many_results_as_inputs_are_wanted(tiled):
    task, state = tiled
    with pytest.raises(ValueError, match="1 inputs but 0 results"):
        _ffi_api.GetPerStoreFeaturesFromMeasurePairs([MeasureInput(task, state)], [], 0, 5)
