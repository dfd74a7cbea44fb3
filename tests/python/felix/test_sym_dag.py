"""Tasks of equal structure are instances of one symbolic task."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tvm import auto_scheduler, felix, te, tir, topi
from tvm.felix import ffi, sym_task
from tvm.felix.sym_dag import SymbolicDAG
from tvm.felix.utils import AnsorTaskWeight, coalesce_dicts


def dag_of(*tensors):
    return auto_scheduler.ComputeDAG(list(tensors))


def dense(rows, depth, columns, relu=False):
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((columns, depth), name="w")
    product = topi.nn.dense(x, w)
    return dag_of(x, w, topi.nn.relu(product) if relu else product)


def conv(size, channels, filters, window=3, stride=1, padding=1, batch=1):
    x = te.placeholder((batch, *size, channels), name="x")
    w = te.placeholder((window, window, channels, filters), name="w")
    return dag_of(x, w, topi.nn.conv2d_nhwc(x, w, stride, padding, 1))


def softmax(rows, columns):
    x = te.placeholder((rows, columns), name="x")
    return dag_of(x, topi.nn.softmax(x))


def pool(size, channels, stride):
    x = te.placeholder((1, channels, size, size), name="x")
    return dag_of(x, topi.nn.pool2d(x, (3, 3), (stride, stride), (1, 1), (1, 1, 1, 1), "max"))


def flattened(height, width):
    x = te.placeholder((height, width), name="x")
    return dag_of(x, topi.nn.relu(topi.reshape(x, (height * width,))))


SIZES = st.integers(2, 70)
FAMILIES = {
    "dense": (dense, 3),
    "conv": (lambda h, w, c, f: conv((h, w), c, f), 4),
    "softmax": (softmax, 2),
    "pool": (lambda size, channels: pool(size, channels, 2), 2),
    "flattened": (flattened, 2),
}


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_structure_and_sizes_are_the_computation(family, data):
    make, count = FAMILIES[family]
    dag = make(*(data.draw(SIZES) for _ in range(count)))
    structure, sizes = SymbolicDAG.from_ansor(dag)
    assert structure.make_ansor_compute_dag(sizes).workload_key() == dag.workload_key()
    assert structure.flops(sizes) == float(dag.flop_ct)
    again, same = SymbolicDAG.from_ansor(structure.make_ansor_compute_dag(sizes))
    assert (again, same) == (structure, sizes)


@settings(max_examples=30, deadline=None)
@given(
    first=st.tuples(st.tuples(SIZES, SIZES), SIZES, SIZES),
    second=st.tuples(st.tuples(SIZES, SIZES), SIZES, SIZES),
)
def test_convolutions_of_other_sizes_have_one_structure(first, second):
    structure, sizes = SymbolicDAG.from_ansor(conv(*first))
    other, others = SymbolicDAG.from_ansor(conv(*second))
    # A bound of the border that is a number of channels by chance is still the border's.
    assert structure == other and set(sizes) == set(others)
    made = structure.make_ansor_compute_dag(others)
    assert made.workload_key() == conv(*second).workload_key()


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.tuples(*4 * [st.integers(3, 70)]), min_size=2, max_size=2))
def test_sizes_that_follow_from_others_are_solved_for(sizes):
    """What is left are the names that people give: height, width, channels, window, filters."""

    def strided(height, width, channels, filters):
        return conv((height, width), channels, filters, stride=2)

    def joined(first, second, third, width):
        pieces = [te.placeholder((rows, width), name="x") for rows in (first, second, third)]
        return dag_of(*pieces, topi.concatenate(pieces, 0))

    def reshaped(rows, first, second, _):
        x = te.placeholder((rows, first * second), name="x")
        return dag_of(x, topi.nn.relu(topi.reshape(x, (rows, first, second))))

    for make, count in ((strided, 6), (joined, 4)):
        (structure, values), (other, _) = (SymbolicDAG.from_ansor(make(*s)) for s in sizes)
        assert structure == other
        assert len(values) == count
        for s in sizes:
            dag = make(*s)
            found = SymbolicDAG.from_ansor(dag)[1]
            made = structure.make_ansor_compute_dag(found)
            assert made.workload_key() == dag.workload_key()
    # One divisor of an index may equal several extents; which one it is says where it is.
    (first, _), (square, _) = (
        SymbolicDAG.from_ansor(reshaped(r, a, a, 0)) for r, a in ((12, 10), (10, 10))
    )
    assert first == square


def test_sizes_that_do_not_fit_together_are_refused():
    structure, sizes = SymbolicDAG.from_ansor(conv((8, 8), 4, 4, window=3, padding=0))
    with pytest.raises(ValueError, match="do not fit together: an extent of conv2d_nhwc, .*be 0"):
        structure.make_ansor_compute_dag({**sizes, "s0": 2})


def test_what_belongs_together_and_what_does_not():
    def structure(dag):
        return SymbolicDAG.from_ansor(dag)[0]

    assert structure(dense(4, 32, 16)) == structure(dense(128, 768, 3072))
    assert hash(structure(dense(4, 32, 16))) == hash(structure(dense(128, 768, 3072)))
    assert structure(dense(4, 32, 16)) != structure(dense(4, 32, 16, relu=True))
    plain = structure(conv((56, 56), 64, 64))
    assert plain == structure(conv((28, 14), 128, 256))
    assert plain != structure(conv((56, 56), 64, 64, stride=2))
    assert plain != structure(conv((56, 56), 64, 64, padding=0))
    assert plain == structure(conv((56, 56), 64, 64, window=5))  # borders are as wide
    # A dimension of one is repeated, or not there: that is structure.
    assert plain != structure(conv((56, 56), 64, 64, batch=4))
    assert plain != structure(dense(4, 32, 16))


def test_sizes_have_names_that_loops_share():
    structure, sizes = SymbolicDAG.from_ansor(dense(4, 32, 16))
    assert sizes == {"s0": 4, "s1": 32, "s2": 16}
    text = str(structure.make_ansor_compute_dag())
    assert "x = PLACEHOLDER float32 [s0, s1]" in text
    assert "w = PLACEHOLDER float32 [s2, s1]" in text
    with pytest.raises(ValueError, match="the sizes are s0, s1, s2; got s0"):
        structure.make_ansor_compute_dag({"s0": 4})
    with pytest.raises(ValueError, match="s1 must be at least 1, got 0"):
        structure.make_ansor_compute_dag({"s0": 4, "s1": 0, "s2": 1})


def test_computations_without_a_structure_to_tell_are_refused():
    n = te.size_var("n")
    x = te.placeholder((n,), name="x")
    with pytest.raises(ValueError, match="no number"):
        SymbolicDAG.from_ansor(dag_of(x, topi.exp(x)))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(32, 48), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64)
        )

    def forward(self, x):
        return self.layers(x)


def test_extracted_tasks_are_grouped_by_structure(tmp_path):
    model, x = Layers().eval(), torch.randn(4, 32)
    path = tmp_path / "tasks.json"
    groups = felix.extract_tasks(model, x, save_to=path)
    assert sorted(len(group.instances) for group in groups) == [1, 2]
    [pair] = [group for group in groups if len(group.instances) == 2]
    assert sorted(i.idx for _, instances in groups for i in instances) == [0, 1, 2]
    for task, instance in pair.pairs:
        assert task.sizes == instance.sizes
        assert pair.task.get_flops(instance.sizes) == instance.flop == task.get_flops()
        assert task.sym_dag == pair.task.sym_dag
        assert task.sketches[0].parent_task is task
    assert pair.task.of(pair.instances[0]) is pair.task
    again = felix.load_tasks(path)
    assert [[i.sizes for i in group.instances] for group in again] == [
        [i.sizes for i in group.instances] for group in groups
    ]


def test_tasks_are_made_in_batches(capsys):
    tasks = [
        auto_scheduler.SearchTask(compute_dag=dag.tensors, target="llvm", desc=name)
        for name, dag in (("a", dense(4, 32, 16)), ("b", conv((8, 9), 3, 5)), ("c", dense(2, 3, 5)))
    ]
    found = [AnsorTaskWeight(task, weight) for weight, task in enumerate(tasks, 1)]
    first, second = felix.batch_create_tasks(found, progress=False)
    assert [(i.idx, i.weight) for i in first.instances] == [(0, 1), (2, 3)]
    assert [(i.idx, i.weight) for i in second.instances] == [(1, 2)]
    assert "a: 2 tasks\n  Dense(n=4, m=16, k=32)\n  s0 = 4, 2\n" in capsys.readouterr().out
    [again, _] = felix.batch_create_tasks(found, hash_match=False, print_tasks=False)
    assert [i.sizes for i in again.instances] == [i.sizes for i in first.instances]
    with pytest.raises(TypeError, match=r"felix\.AnsorTaskWeight\(task, 1\); got a SearchTask"):
        felix.batch_create_tasks(tasks)


def test_a_task_without_names_for_its_sizes_is_a_group_of_its_own(monkeypatch):
    def refuse(dag, hash_match=True):
        raise ValueError("another computation")

    monkeypatch.setattr(sym_task.SymbolicDAG, "from_ansor", staticmethod(refuse))
    tensors = list(dense(4, 32, 16).tensors)
    group = felix.make_task(tensors)
    assert group.instances[0].sizes == {}
    assert group.task.sym_dag == felix.make_task(tensors).task.sym_dag
    assert group.task.get_flops({}) == group.task.get_flops()


def test_tables_of_sizes():
    table = coalesce_dicts([{"s0": 4, "s1": 8}, {"s0": 2, "s1": 8}])
    assert table == ({"s0": (4, 2), "s1": (8, 8)}, {"s1": 8})
    assert coalesce_dicts([]) == ({}, {})
    with pytest.raises(ValueError, match="names"):
        coalesce_dicts([{"s0": 4}, {"s1": 4}])


def test_variables_are_replaced_by_name():
    n, m = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
    assert int(ffi.subst_by_name(n * 2 + m, {"n": 5, "m": 1, "k": 9})) == 11
    assert str(ffi.subst_by_name(n * m, {"n": 5})) == "m * 5"


def test_task_files_keep_the_limits_that_a_task_was_given(tmp_path):
    data, weight = te.placeholder((8, 16), name="data"), te.placeholder((12, 16), name="weight")
    tensors = [data, weight, topi.nn.dense(data, weight)]
    limits = auto_scheduler.HardwareParams(3, 16, 64, 0, 0, 0, 0, 0)
    task = auto_scheduler.SearchTask(
        compute_dag=tensors, target="llvm -num-cores=4", hardware_params=limits
    )
    felix.save_tasks([felix.make_task(task)], tmp_path / "tasks.json")
    [group] = sym_task.load_tasks(tmp_path / "tasks.json")
    assert group.task.ansor_task.hardware_params.as_list() == limits.as_list()
