"""Placement of intermediate tensors."""

from hypothesis import given
from hypothesis import strategies as st

from tvm.relax.memory_plan import ALIGNMENT, Lifetime, plan_memory


@st.composite
def lifetimes(draw):
    first = draw(st.integers(0, 20))
    return Lifetime(draw(st.integers(1, 5000)), first, first + draw(st.integers(0, 5)))


@given(st.lists(lifetimes(), max_size=20))
def test_tensors_alive_together_do_not_overlap(tensors):
    offsets, total = plan_memory(tensors)
    for i, a in enumerate(tensors):
        assert offsets[i] % ALIGNMENT == 0
        assert offsets[i] + a.nbytes <= total
        for j, b in enumerate(tensors[:i]):
            apart = offsets[i] + a.nbytes <= offsets[j] or offsets[j] + b.nbytes <= offsets[i]
            assert apart or not a.overlaps(b), f"{a} at {offsets[i]} meets {b} at {offsets[j]}"


def test_chain_takes_the_two_largest_neighbours():
    chain = [Lifetime(64 * n, i, i + 1) for i, n in enumerate([1, 4, 3, 2, 4, 1])]
    assert plan_memory(chain)[1] == 64 * 7


def test_nothing_takes_no_memory():
    assert plan_memory([]) == ([], 0)
