"""ComputeDAG: order, FLOP, text, keys."""

from __future__ import annotations

import pytest

from tvm import auto_scheduler, te, tir, topi


def _dag(name, *args):
    return auto_scheduler.ComputeDAG(auto_scheduler.make_workload_key(name, args))


def test_operations_are_in_topological_order():
    dag = _dag("test_conv_relu", 8, 8, 4, 8, 3, 1, 1)
    position = {op.name: i for i, op in enumerate(dag.ops)}
    for op in dag.ops:
        for tensor in op.input_tensors:
            assert position[tensor.op.name] < position[op.name]
    assert len(dag.ops) == 7


@pytest.mark.parametrize(
    ("workload", "flop"),
    [
        (("test_matmul", 8, 16, 32), 2 * 8 * 16 * 32),
        # Convolution, bias and relu; padding only moves elements.
        (("test_conv_relu", 8, 8, 4, 16, 3, 1, 1), 8 * 8 * 16 * (2 * 4 * 9 + 2)),
        (("test_row_min", 4, 64), 4 * 64),
    ],
)
def test_flop_counts_arithmetic_on_elements(workload, flop):
    assert _dag(*workload).flop_ct == flop


def test_flop_attribute_replaces_the_count():
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2.0, name="B", attrs={"FLOP": tir.const(77, "int32")})
    assert auto_scheduler.ComputeDAG([a, b]).flop_ct == 77


def test_equal_computations_have_equal_keys():
    first, second = _dag("test_matmul", 8, 16, 32), _dag("test_matmul", 8, 16, 32)
    assert first.workload_key() == second.workload_key()


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_keys_tell_dtypes_apart(dtype):
    def double(dtype):
        a = te.placeholder((4,), dtype=dtype, name="A")
        return auto_scheduler.ComputeDAG([a, te.compute((4,), lambda i: a[i] + a[i], name="B")])

    assert double("float32").workload_key() != double(dtype).workload_key()


def test_keys_tell_windows_apart_that_no_input_shape_shows():
    def window(size):
        a = te.placeholder((8,), name="A")
        r = te.reduce_axis((0, size), name="r")
        b = te.compute((4,), lambda i: te.sum(a[i + r], axis=[r]), name="B")
        return auto_scheduler.ComputeDAG([a, b])

    assert window(2).workload_key() != window(3).workload_key()


def test_text_has_a_line_for_each_operation():
    text = str(_dag("test_matmul", 4, 5, 6))
    assert "A = PLACEHOLDER float32 [4, 6]" in text
    assert "C(i:4, j:5) += " in text
    assert "over (k:6)" in text


def test_inputs_that_are_not_listed_are_refused():
    a, b, c = auto_scheduler.workload_key_to_tensors('["test_matmul", 4, 5, 6]')
    with pytest.raises(ValueError, match="input B is read but is not among the tensors"):
        auto_scheduler.ComputeDAG([a, c])


def test_inputs_without_output_are_refused():
    a, _, _ = auto_scheduler.workload_key_to_tensors('["test_matmul", 4, 5, 6]')
    with pytest.raises(ValueError, match="none of the 1 tensors is computed"):
        auto_scheduler.ComputeDAG([a])


def test_keys_of_workloads_outlive_how_expressions_are_written():
    # Records have these keys; another form of any expression would lose what was measured.
    A = te.placeholder((4, 56, 56, 48), name="A")
    W = te.placeholder((3, 3, 48, 112), name="W")
    D = topi.nn.relu(topi.nn.conv2d_nhwc(A, W, 2, 1, 1))
    E = te.compute(
        D.shape,
        lambda n, h, w, c: tir.Select(
            tir.all(h // 2 * 3 < 40, w % 3 == 0),
            D[n, h, w, c] * 2.0 / 3.0,
            te.exp(D[n, h, w, c]),
        ),
        name="E",
    )
    H = te.compute(
        (4,),
        lambda i: (
            tir.Let(tir.Var("q"), i * 2, i + 1.5)
            + tir.const(True).astype("float32")
            + tir.infinity("float32")
        ),
        name="H",
    )
    G = te.compute((4,), lambda i: tir.const(1.0, "float32"), name="G")
    expected = {
        "7148cd75f8f897fbf62f50bee64288b5": [A, W, E],
        "3f4689fdafed3db9e0ce55720d882d45": [A, W, topi.argmax(E, axis=3)],
        "53990c384ddd0eb9e231c633996d9de0": [G],
        "0c59f6853fa2a630030bfffdc9f3e5e4": [H],
    }
    for key, tensors in expected.items():
        assert auto_scheduler.ComputeDAG(tensors).hash_key() == key
