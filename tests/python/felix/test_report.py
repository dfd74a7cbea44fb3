"""Tables of a tuning run: what they compare, and what they say of kernels that nobody searched."""

from __future__ import annotations

import pytest

from tvm.felix import report


def row(**changes):
    return {
        "operators": "nn.dense add",
        "flop": 2e6,
        "untuned_seconds": 9e-3,
        "library_seconds": 4e-3,
        "best_seconds": 2e-3,
        "keeps_library": False,
        "remembered": False,
        "measurements": 8,
        "errors": {},
        "note": "",
        **changes,
    }


def kept(**changes):
    return row(best_seconds=4e-3, keeps_library=True, **changes)


def test_seconds_before_and_after_are_measured_alike(capsys):
    # What the same program takes inside the network, with cold caches, is no gain of the search.
    assert report.untuned_seconds(kept()) == 4e-3
    assert report.untuned_seconds(row(library_seconds=None)) == 9e-3
    report.print_results([kept()])
    assert "9.000" not in capsys.readouterr().out


def test_a_kernel_that_the_budget_did_not_reach_is_marked(capsys):
    report.print_results([row(), kept(), kept(measurements=0)])
    text = capsys.readouterr().out
    assert "2.000 " in text and "4.000*" in text and "4.000†" in text
    assert "† the operator library's schedule: no other program was measured" in text
    report.print_results([row(), kept()])
    assert "†" not in capsys.readouterr().out


def test_the_table_says_why_a_task_was_not_searched_by_gradient(capsys):
    report.print_results([row(), row(note="searched by evolution")])
    assert "1: searched by evolution" in capsys.readouterr().out


def test_a_network_without_tasks_has_no_empty_table(capsys):
    report.print_results([])
    assert capsys.readouterr().out.startswith("Nothing to tune")


@pytest.mark.parametrize(("total", "says"), [(3e-3, "What is left is"), (1e-3, "more than the")])
def test_the_kernels_time_adds_up_or_the_text_says_why(capsys, total, says):
    kernel = {"calls": 2, "seconds": 1e-3, "flop": 10.0, "schedule": "records"}
    report.print_network_table(
        {
            "latency_seconds": {"untuned": 4e-3, "tuned": total, "pytorch": 5e-3},
            "kernels": [kernel],
            "max_abs_diff": 0.0,
            "max_rel_diff": 0.0,
        }
    )
    text = " ".join(capsys.readouterr().out.split())
    assert says in text
