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


def test_chain_of_equal_tensors_takes_two_of_them():
    chain = [Lifetime(640, i, i + 1) for i in range(6)]
    assert plan_memory(chain)[1] == 2 * 640


def test_small_tensors_use_gaps_between_large_ones():
    large, small = Lifetime(640, 0, 1), Lifetime(64, 2, 3)
    assert plan_memory([small, large, small])[1] == 640


def test_nothing_takes_no_memory():
    assert plan_memory([]) == ([], 0)
