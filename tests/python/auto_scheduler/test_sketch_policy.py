"""SketchPolicy: parameters, the order of a round, what it remembers, callbacks."""

from __future__ import annotations

import numpy as np
import pytest

from tvm import auto_scheduler
from tvm.auto_scheduler import (
    EmptyPolicy,
    MeasureInput,
    MeasureResult,
    PreloadMeasuredStates,
    PythonBasedModel,
    RandomModel,
    SketchPolicy,
)

SMALL = {"evolutionary_search_population": 64, "sample_init_min_population": 32}


def _matmul(n=64, **kwargs):
    return auto_scheduler.SearchTask(
        func="test_matmul", args=(n, n, n), target="llvm -num-cores=4", **kwargs
    )


def _result(seconds):
    return MeasureResult([seconds], 0, None, 0.1, 0.0)


def _failure():
    return MeasureResult([1e10], 2, "no compiler", 0.1, 0.0)


class Model(PythonBasedModel):
    """Prefers programs with few steps, and writes down what it is asked."""

    def __init__(self, events=None):
        super().__init__()
        self.events = [] if events is None else events
        self.updates = []

    def update(self, inputs, results):
        self.events.append("update")
        self.updates.append((list(inputs), list(results)))

    def predict(self, task, states):
        self.events.append("predict")
        return [-float(len(state.transform_steps)) - hash(state) % 1000 / 1000 for state in states]


def test_unknown_parameters_list_the_known_ones():
    with pytest.raises(
        ValueError, match="no parameter eps; known are .*eps_greedy, .*search_space"
    ):
        SketchPolicy(_matmul(), params={"eps": 0.1}, verbose=0)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"eps_greedy": 1.5}, ValueError, "eps_greedy is 1.5, but must be between 0 and 1"),
        ({"max_vectorize_size": 0}, ValueError, "max_vectorize_size is 0"),
        ({"eps_greedy": "a"}, TypeError, "eps_greedy must be a number"),
        ({"max_vectorize_size": 1.5}, TypeError, "max_vectorize_size must be an integer"),
        (
            {"evolutionary_search_mode": "fast"},
            ValueError,
            'mode is "fast", but must be "normal" or "potential-space"',
        ),
        ({"search_space": "x"}, ValueError, 'search space "x".*registered are .*"ansor" of cpu'),
    ],
)
def test_wrong_parameters_are_refused(params, error, message):
    with pytest.raises(error, match=message):
        SketchPolicy(_matmul(), params=params, verbose=0)


def test_default_parameters_are_those_of_ansor():
    defaults = SketchPolicy.DEFAULT_PARAMS
    assert defaults["eps_greedy"] == 0.05
    assert defaults["evolutionary_search_population"] == 2048
    assert defaults["cpu_multi_level_tiling_structure"] == "SSRSRS"


def test_a_round_searches_then_observes_and_trains(capfd):
    events = []
    policy = SketchPolicy(_matmul(), Model(events), params=SMALL, seed=1)
    proposed = policy.propose(8)
    assert events[0] == "predict"
    assert "update" not in events
    policy.observe(proposed, [_result(1.0 + i) for i in range(len(proposed))])
    assert events[-1] == "update"
    policy.propose(8)
    text = capfd.readouterr().out
    order = [text.index(word) for word in ("[ Search ]", "Generate Sketches", "Sample Initial")]
    assert order == sorted(order)
    assert text.count("Generate Sketches") == 1
    assert text.count("EvolutionarySearch") == 2
    assert text.index("EvolutionarySearch") < text.index("[ Train cost model ]")


def test_silent_policies_print_nothing(capfd):
    policy = SketchPolicy(_matmul(), params=SMALL, verbose=0)
    policy.observe(policy.propose(2), [_result(1.0), _failure()])
    assert capfd.readouterr().out == ""


def test_proposals_are_never_repeated():
    policy = SketchPolicy(_matmul(), Model(), params=SMALL, seed=2, verbose=0)
    seen = set()
    for _ in range(4):
        proposed = policy.propose(16)
        assert len(proposed) == 16
        hashes = {hash(measure_input.state) for measure_input in proposed}
        assert len(hashes) == 16
        assert not hashes & seen
        seen |= hashes
        policy.observe(proposed, [_result(1.0)] * 16)


def test_epsilon_is_the_share_of_random_programs():
    model = Model()
    policy = SketchPolicy(_matmul(), model, params={**SMALL, "eps_greedy": 0.25}, seed=3, verbose=0)
    proposed = policy.propose(16)
    scores = model.predict(None, [measure_input.state for measure_input in proposed])
    best = scores[:12]
    assert best == sorted(best, reverse=True)
    assert min(best) > max(scores[12:])


def test_equal_seeds_give_equal_proposals():
    def proposals(seed):
        policy = SketchPolicy(_matmul(), params=SMALL, seed=seed, verbose=0)
        first = policy.propose(8)
        policy.observe(first, [_result(1.0 + i) for i in range(8)])
        return [str(i.state) for i in [*first, *policy.propose(8)]]

    assert proposals(7) == proposals(7)
    assert proposals(7) != proposals(8)


def test_small_spaces_end_in_bounded_time():
    task = auto_scheduler.SearchTask(func="test_max_pool", args=(4, 4), target="llvm -num-cores=4")
    policy = SketchPolicy(task, seed=0, verbose=0)
    seen = 0
    while proposed := policy.propose(64):
        seen += len(proposed)
        policy.observe(proposed, [_result(1.0)] * len(proposed))
    assert 0 < seen < 2000


def test_measured_programs_become_parents():
    policy = SketchPolicy(
        _matmul(), Model(), params={**SMALL, "eps_greedy": 0.0}, seed=4, verbose=0
    )
    proposed = policy.propose(4)
    policy.observe(proposed, [_failure(), _failure(), _failure(), _result(1e-3)])
    assert len(policy.propose(4)) == 4


def test_other_candidates_are_refused():
    policy = SketchPolicy(_matmul(), params=SMALL, verbose=0)
    inputs = policy.propose(1)
    with pytest.raises(ValueError, match="1 candidates but 2 results"):
        policy.observe(inputs, [_result(1.0)] * 2)


def test_preloaded_states_are_not_measured_again(tmp_path):
    path = tmp_path / "records.json"
    first = SketchPolicy(_matmul(), params=SMALL, seed=5, verbose=0)
    proposed = first.propose(16)
    other = auto_scheduler.SearchTask(func="test_matmul", args=(8, 8, 8), target="llvm")
    auto_scheduler.save_records(
        path,
        [*proposed, MeasureInput(other, other.compute_dag.get_init_state())],
        [_result(1.0)] * 17,
    )
    model = Model()
    again = SketchPolicy(
        _matmul(),
        model,
        params=SMALL,
        seed=5,
        verbose=0,
        init_search_callbacks=[PreloadMeasuredStates(path)],
    )
    assert not model.updates
    measured = {hash(measure_input.state) for measure_input in proposed}
    assert not measured & {hash(i.state) for i in again.propose(16)}


def test_preloading_needs_the_file_and_a_sketch_policy(tmp_path):
    missing = PreloadMeasuredStates(tmp_path / "missing.json")
    with pytest.raises(FileNotFoundError, match="missing.json"):
        SketchPolicy(_matmul(), verbose=0, init_search_callbacks=[missing])
    with pytest.raises(TypeError, match="prepares a SketchPolicy, not a .*EmptyPolicy"):
        EmptyPolicy(_matmul(), init_search_callbacks=[missing], verbose=0)


def test_the_empty_policy_proposes_the_plain_program_once():
    task = _matmul()
    policy = EmptyPolicy(task, verbose=0)
    (only,) = policy.propose(8)
    assert len(only.state.transform_steps) == 0
    assert policy.propose(8) == []


def test_random_scores_belong_to_programs():
    task = _matmul()
    policy = SketchPolicy(task, params=SMALL, seed=6, verbose=0)
    states = policy.sample_initial_population()[:20]
    model = RandomModel(seed=3)
    scores = model.predict(task, states)
    assert list(reversed(model.predict(task, states[::-1]))) == scores
    assert RandomModel(seed=4).predict(task, states) != scores
    assert all(0 <= score < 1 for score in scores)
    packed = model.predict_stages(task, states[:1])
    assert packed[0] == scores[0]
    assert int(packed[1]) == len(packed) - 2 == len(states[0].stages)
    np.testing.assert_allclose(sum(packed[2:]), scores[0], rtol=1e-5)


def test_models_must_define_what_is_asked_of_them():
    class Lazy(PythonBasedModel):
        def predict(self, task, states):
            return [0.0]

    policy = SketchPolicy(_matmul(), Lazy(), params=SMALL, seed=0, verbose=0)
    with pytest.raises(ValueError, match="predict must return .* scores .* 1 entries"):
        policy.propose(4)
    with pytest.raises(TypeError, match=r"Lazy does not define update\(inputs, results\)"):
        Lazy().update([], [])
