"""Some of the random programs of `make test-fuzz`, and what it writes of one that fails."""

from __future__ import annotations

import pytest

import testing_fuzz

N_PROGRAMS = 240


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, N_PROGRAMS, N_PROGRAMS // 4))
def test_random_programs_compute_what_their_references_do(first, tmp_path):
    assert testing_fuzz.run_cases(range(first, first + N_PROGRAMS // 4), tmp_path) == []


def test_a_failure_is_written_as_a_small_program(tmp_path, monkeypatch):
    def wrong_from_three_on(seed, size):
        assert size < 3, f"size {size} is wrong"

    monkeypatch.setitem(testing_fuzz.FAMILIES, "graph_passes", wrong_from_three_on)
    seed = next(s for s in range(100) if testing_fuzz.random.Random(s).randint(1, 12) > 3)
    text = testing_fuzz.run_case("graph_passes", seed, tmp_path / "out")
    assert "size 3 is wrong" in text
    program = (tmp_path / "out" / f"graph_passes_{seed}.py").read_text()
    assert f"testing_fuzz.graph_passes({seed}, 3)" in program
    compile(program, "program", "exec")
