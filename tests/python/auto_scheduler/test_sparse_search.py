"""A sparse product searched with a rule of one's own and arrays that measurements must use."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import auto_scheduler, te, topi
from tvm.auto_scheduler import PreloadCustomSketchRule, _ffi_api
from tvm.auto_scheduler.loop_state import State
from tvm.auto_scheduler.task_input import names_of_inputs
from tvm.topi.sparse.utils import random_bsr_matrix

M, N, K, R, C = 32, 64, 48, 8, 2


@auto_scheduler.register_workload("test_sparse_dense")
def sparse_dense(m, n, k, data_shape, indices_shape, indptr_shape):
    x = te.placeholder((m, k))
    data = te.placeholder(data_shape)
    indices = te.placeholder(indices_shape, "int32")
    indptr = te.placeholder(indptr_shape, "int32")
    bias = te.placeholder((m, n))
    product = topi.nn.sparse_dense(topi.nn.relu(x), data, indices, indptr)
    out = te.compute((m, n), lambda i, j: product[i, j] + bias[i, j], name="BiasAdd")
    return [x, data, indices, indptr, bias, topi.nn.relu(out)]


def meets(policy, state, stage_id):
    state = State(state, policy.search_task.compute_dag)
    ours = str(state.stages[stage_id].op.tag).startswith("sparse_dense_sp_rhs_bsrmm")
    return PreloadCustomSketchRule.APPLY_AND_SKIP_REST if ours else PreloadCustomSketchRule.PASS


def apply(policy, state, stage_id):
    """Tiles of the consumer, with the blocks that a tile needs computed inside of it."""
    task = policy.search_task
    state = State(state, task.compute_dag)
    product = state.stages[stage_id].op
    if str(product.tag).endswith("block"):
        return [state.state_object, stage_id - 1]
    blocks = state.stages[stage_id - 1].op
    consumers = _ffi_api.SearchPolicyUtilsGetConsumers(task, state.state_object, stage_id)
    [(consumer_id, _)] = consumers.items()
    assert _ffi_api.SearchPolicyUtilsIsElementwiseMatch(
        task, state.state_object, stage_id, consumer_id
    )
    consumer = state.stages[consumer_id].op
    state.compute_inline(product)
    i, block, within, row, column = state[blocks].iters
    m, n = state[consumer].iters
    i0, i1, i2 = state.split(blocks, i, [None, None])
    m0, m1 = state.follow_split(consumer, m, len(state.transform_steps) - 1, 1)
    j0, j1 = state.split(blocks, block, [None])
    n0, n1 = state.follow_split(consumer, n, len(state.transform_steps) - 1, 1)
    state.reorder(blocks, [i0, j0, i1, j1, row, i2, within, column])
    state.reorder(consumer, [m0, n0, m1, n1])
    state.compute_at(blocks, consumer, n0)
    return [[state.state_object, stage_id - 2]]


@pytest.fixture
def weight():
    return random_bsr_matrix(N, K, R, C, density=0.6, seed=0)


def named_arrays(weight):
    sizes = [N, K, R, C, len(weight.indices), len(weight.indptr)]
    prefix = "_".join(["sparse_dense_bsr", *map(str, sizes), "W"])
    arrays = {"data": weight.data, "indices": weight.indices, "indptr": weight.indptr}
    return {f"{prefix}_{part}": tvm.nd.array(array) for part, array in arrays.items()}


def test_a_sparse_product_is_searched_with_a_rule_of_ones_own(weight, tmp_path):
    task = auto_scheduler.SearchTask(
        func="test_sparse_dense",
        args=(M, N, K, weight.data.shape, weight.indices.shape, weight.indptr.shape),
        target="llvm",
        task_inputs=named_arrays(weight),
    )
    small = {
        "sample_init_min_population": 4,
        "evolutionary_search_population": 8,
        "evolutionary_search_num_iters": 1,
    }
    policy = auto_scheduler.SketchPolicy(
        task,
        params=small,
        verbose=0,
        init_search_callbacks=[PreloadCustomSketchRule(meets, apply, "sparse product")],
    )
    log = str(tmp_path / "sparse.json")
    options = auto_scheduler.TuningOptions(
        num_measure_trials=3, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)]
    )
    task.tune(options, policy)
    assert any("T_sparse_dense_block = ..." in str(sketch) for sketch in policy.generate_sketches())
    schedule, args = task.apply_best(log)
    function = tvm.build(schedule, args, "llvm")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((M, K)).astype("float32")
    bias = rng.standard_normal((M, N)).astype("float32")
    arrays = [x, weight.data, weight.indices, weight.indptr, bias, np.empty((M, N), "float32")]
    arrays = [tvm.nd.array(array) for array in arrays]
    function(*arrays)
    expected = np.maximum(np.maximum(x, 0) @ weight.toarray().T + bias, 0)
    np.testing.assert_allclose(arrays[-1].numpy(), expected, rtol=1e-4, atol=1e-4)


def test_sparse_matrices_are_found_by_what_is_computed_from_them(weight):
    tensors = sparse_dense(M, N, K, weight.data.shape, weight.indices.shape, weight.indptr.shape)
    names = names_of_inputs(tensors)
    assert [names[name] for name in named_arrays(weight)] == [1, 2, 3]
    elements = [te.placeholder((7,), name="e"), te.placeholder((7,), "int32", name="c")]
    starts, x = te.placeholder((5,), "int32", name="s"), te.placeholder((3, 6), name="x")
    product = topi.nn.sparse_dense(x, *elements, starts)
    assert (
        names_of_inputs([x, *elements, starts, product])["sparse_dense_csr_4_6_7_5_W_indptr"] == 3
    )


def test_check_functions_name_inputs():
    @auto_scheduler.register_task_input_check_func("test_input_check")
    def check(tensors):
        return {tensors[0]: "first", te.placeholder((1,), name="stranger"): "other"}

    try:
        a = te.placeholder((2,), name="A")
        names = names_of_inputs([a, te.compute((2,), lambda i: a[i], name="B")])
        assert names == {"A": 0, "B": 1, "first": 0}
        with pytest.raises(RuntimeError, match="'test_input_check' is registered already"):
            auto_scheduler.register_task_input_check_func("test_input_check", check)
        with pytest.raises(ValueError, match="check_func: the name must be a string, got int"):
            auto_scheduler.register_task_input_check_func(3)
    finally:
        auto_scheduler.register_task_input_check_func(
            "test_input_check", lambda tensors: {}, override=True
        )


def test_random_blocks_fill_their_share():
    matrix = random_bsr_matrix(32, 12, 4, 3, density=0.25, dtype="float64", seed=1)
    assert matrix.shape == (32, 12) and matrix.data.shape == (8, 4, 3)
    assert matrix.dtype == "float64" and matrix.has_sorted_indices
    assert np.count_nonzero(matrix.toarray()) == 8 * 12
    for wrong in ((30, 12, 4, 3, 0.5), (32, 12, 4, 0, 0.5)):
        with pytest.raises(ValueError, match="do not fill a matrix"):
            random_bsr_matrix(*wrong)
    with pytest.raises(ValueError, match=r"density is above 0 and at most 1, got 1\.5"):
        random_bsr_matrix(32, 12, 4, 3, 1.5)
