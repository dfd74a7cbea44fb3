"""Steps of a state as Python code: running it gives the same program."""

from __future__ import annotations

import pytest

import tvm
from tvm import auto_scheduler, te, topi


def code_of(dag, state):
    code = dag.print_python_code_from_state(state)
    assert code == tvm.get_global_func("auto_scheduler.ComputeDAGPrintPythonCodeFromState")(
        dag, state.state_object
    )
    return code


def assert_same_program(dag, state):
    """The schedule that the printed code makes lowers to what the steps lower to."""
    expected, args = dag.apply_steps_from_state(state)
    outputs = [t.op for t in dag.tensors if isinstance(t.op, te.ComputeOp)]
    schedule = te.create_schedule(outputs)
    code = code_of(dag, state)
    exec(code, {"s": schedule, "te": te})
    tvm.ir.assert_structural_equal(
        tvm.lower(schedule, args), tvm.lower(expected, args), map_free_vars=True
    )


def matmul_relu():
    a, b = te.placeholder((64, 32), name="A"), te.placeholder((32, 48), name="B")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute((64, 48), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return auto_scheduler.ComputeDAG([a, b, topi.nn.relu(c)])


def test_tiles_fusion_and_annotations():
    dag = matmul_relu()
    s = dag.get_init_state()
    c, relu = s.stage_ops[2], s.stage_ops[3]
    outer_i = s.split(relu, s[relu].iters[0], [4, 2])
    split = len(s.transform_steps) - 1
    outer_j = s.split(relu, s[relu].iters[3], [3, 4], inner_to_outer=False)
    order = [outer_i[0], outer_j[0], outer_i[1], outer_j[1], outer_i[2], outer_j[2]]
    s.reorder(relu, order)
    s.compute_at(c, relu, s[relu].iters[1])
    # The stage moves along with the loop that it is computed in.
    s.split(relu, s[relu].iters[1], [1])
    s.follow_split(c, s[c].iters[0], split, 2)
    s.unroll(c, s[c].iters[2])
    s.pragma(c, s[c].iters[0], "auto_unroll_max_step$64")
    fused = s.fuse(relu, s[relu].iters[0:1])
    s.parallel(relu, fused)
    s.vectorize(relu, s[relu].iters[-1])
    assert_same_program(dag, s)


def test_stages_that_are_added():
    dag = matmul_relu()
    s = dag.get_init_state()
    cache = s.cache_write(s.stage_ops[2], "local")
    c, relu = s.stage_ops[3], s.stage_ops[4]
    i, _ = s.split(relu, s[relu].iters[0], [8])
    s.compute_at(cache, relu, i)
    s.compute_inline(c)
    copy = s.cache_read(s.stage_ops[0], "global", [cache])
    assert s.stage_ops.index(copy) == 1
    assert_same_program(dag, s)


def test_operands_that_are_packed():
    dag = matmul_relu()
    s = dag.get_init_state()
    c = s.stage_ops[2]
    panels = s.cache_read(s.stage_ops[1], "global", [c], order=[1, 0])
    assert [int(extent) for extent in panels.output(0).shape] == [48, 32]
    outer, _ = s.split(c, s[c].iters[0], [8])
    s.compute_at(panels, c, outer)
    s.vectorize(panels, s[panels].iters[1])
    assert_same_program(dag, s)
    [step] = [t for t in s.transform_steps if str(t.type_key).endswith("PackReadStep")]
    assert (list(step.reader_stage_ids), list(step.order)) == ([2], [1, 0])


def test_rows_padded_by_the_length_of_a_split():
    dag = matmul_relu()
    s = dag.get_init_state()
    c, relu = s.stage_ops[2], s.stage_ops[3]
    s.compute_at(c, relu, s[relu].iters[0])
    s.split(c, s[c].iters[1], [4])
    steps = auto_scheduler.measure_record.steps_to_json(s)
    state = dag.replay_steps(
        auto_scheduler.measure_record.steps_from_json([*steps, ["FSA", 2, 0, 1]])
    )
    assert "storage_align(s[C].op.axis[0], 8, 4)" in dag.print_python_code_from_state(state)
    assert_same_program(dag, state)
    for wrong in ([2, 2, 1], [2, 0, 0]):
        with pytest.raises(tvm.error.TVMError, match="follow"):
            dag.replay_steps(
                auto_scheduler.measure_record.steps_from_json([*steps, ["FSA", *wrong]])
            )


def test_copies_made_trips_ahead():
    dag = matmul_relu()
    s = dag.get_init_state()
    c = s.stage_ops[2]
    tile = s.cache_read(s.stage_ops[1], "global", [c])
    outer, _ = s.split(c, s[c].iters[2], [4])
    s.compute_at(tile, c, outer)
    steps = auto_scheduler.measure_record.steps_to_json(s)

    def replayed(*step):
        return dag.replay_steps(auto_scheduler.measure_record.steps_from_json([*steps, step]))

    state = replayed("FA", 3, [2], [2])
    assert '"async_copy", 2)' in dag.print_python_code_from_state(state)
    assert_same_program(dag, state)
    with pytest.raises(ValueError, match="a length of the step FA .* is still open"):
        dag.print_python_code_from_state(replayed("FA", 3, [2], [0]))
    for wrong, message in (
        (["FA", 3, [1], [2]], "is not computed in a loop of C"),
        (["FA", 3, [], [2]], "needs copies and one length"),
        (["FA", 3, [2], [-1]], "must be >= 1"),
    ):
        with pytest.raises((ValueError, tvm.error.TVMError), match=message):
            replayed(*wrong)


def test_partial_sums():
    dag = matmul_relu()
    s = dag.get_init_state()
    c = s.stage_ops[2]
    outer, _ = s.split(c, s[c].iters[2], [8])
    partial = s.rfactor(c, outer, 2)
    s.parallel(partial, s[partial].iters[0])
    assert_same_program(dag, s)


def test_threads_of_a_gpu():
    dag = matmul_relu()
    s = dag.get_init_state()
    c, relu = s.stage_ops[2], s.stage_ops[3]
    s.compute_at(c, relu, s[relu].iters[1])
    s.bind(relu, s[relu].iters[0], "blockIdx.x")
    s.bind(relu, s[relu].iters[1], "threadIdx.x")
    code = code_of(dag, s)
    assert 'te.thread_axis("blockIdx.x")' in code
    assert_same_program(dag, s)


def test_every_sketch_of_a_convolution_with_numbers_in_it():
    data, kernel = te.placeholder((1, 8, 8, 4), name="d"), te.placeholder((3, 3, 4, 8), name="k")
    out = topi.nn.relu(topi.nn.conv2d_nhwc(data, kernel, 1, 1, 1))
    task = auto_scheduler.SearchTask(compute_dag=[data, kernel, out], target="llvm")
    for state in auto_scheduler.SketchPolicy(task).generate_sketches():
        steps = auto_scheduler.measure_record.steps_to_json(state)
        for step in steps:
            if step[0] == "SP":
                step[4] = [2 if n == 0 else 1 for n in range(len(step[4]))]
        filled = auto_scheduler.measure_record.steps_from_json(steps)
        assert_same_program(task.compute_dag, task.compute_dag.replay_steps(filled))


def test_an_open_length_is_refused():
    dag = matmul_relu()
    s = dag.get_init_state()
    s.split(2, s[2].iters[0], [None])
    with pytest.raises(ValueError, match="still open"):
        dag.print_python_code_from_state(s)
