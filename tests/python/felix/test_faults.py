"""Faults of every kind in a small tuning run; `make test-faults` injects a thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[1] / "testing_faults.py"
N_FAULTS = 9  # twice, so that there is one of each kind


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, N_FAULTS])
def test_faults_lose_nothing_double_nothing_and_leave_nothing_over(first):
    # In a process of its own: runs are forked from it, which must have no other threads.
    done = subprocess.run(
        # Ray nodes are lost in test_fleet.py.
        [sys.executable, str(HARNESS), "--seed", str(first), "--faults", str(N_FAULTS), "--no-ray"],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"{N_FAULTS} faults, 0 records lost, 0 doubled, 0 processes or files left over, "
        "0 other problems"
    )
