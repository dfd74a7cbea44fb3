"""Assignments of least cost, against trying all of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvm.autotvm.graph_tuner.assignment import Assignment


def _problem(seed, nodes, edges):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, nodes)
    problem = Assignment({n: rng.random(sizes[n]) for n in range(nodes)})
    for _ in range(edges):
        one, other = rng.integers(0, nodes, 2)
        problem.add(int(one), int(other), rng.random((sizes[one], sizes[other])))
    return problem, sizes


def _least(problem, sizes):
    return min(
        problem.cost_of(dict(enumerate(chosen)))
        for chosen in itertools.product(*(range(size) for size in sizes))
    )


@given(seed=st.integers(0, 10**6), nodes=st.integers(1, 6), edges=st.integers(0, 10))
@settings(max_examples=60, deadline=None)
def test_dynamic_programming_finds_the_least_cost(seed, nodes, edges):
    problem, sizes = _problem(seed, nodes, edges)
    assert problem.cost_of(problem.exact()) == pytest.approx(_least(problem, sizes))


@given(seed=st.integers(0, 10**6), nodes=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_reductions_find_the_least_cost_of_chains_and_trees(seed, nodes):
    problem, sizes = _problem(seed, nodes, 0)
    rng = np.random.default_rng(seed + 1)
    for node in range(1, nodes):
        parent = int(rng.integers(0, node))
        problem.add(parent, node, rng.random((sizes[parent], sizes[node])))
    assert problem.cost_of(problem.reduced()) == pytest.approx(_least(problem, sizes))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_reductions_choose_for_every_node_of_a_dense_graph(seed):
    problem, sizes = _problem(seed, 6, 40)
    chosen = problem.reduced()
    assert all(0 <= chosen[node] < size for node, size in enumerate(sizes))
    assert problem.cost_of(chosen) <= 1.5 * _least(problem, sizes)


def test_dynamic_programming_refuses_graphs_that_need_huge_tables():
    problem = Assignment({node: np.zeros(20) for node in range(8)})
    for one, other in itertools.combinations(range(8), 2):
        problem.add(one, other, np.zeros((20, 20)))
    with pytest.raises(RuntimeError, match=r"take PBQPTuner, or fewer schedules"):
        problem.exact()
    assert len(problem.reduced()) == 8
