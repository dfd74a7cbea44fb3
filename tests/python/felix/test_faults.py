"""Faults of every kind in a small tuning run; `make test-faults` injects a thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).resolve().parents[1] / "testing_faults.py"


@pytest.mark.slow
def test_faults_lose_nothing_double_nothing_and_leave_nothing_over():
    # In a process of its own: runs are forked from it, which must have no other threads.
    done = subprocess.run(
        [sys.executable, str(HARNESS), "--faults", str(N_FAULTS), "--jobs", "2"],
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


N_FAULTS = 15
