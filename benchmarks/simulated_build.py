"""What `fleet.py` lets workers do on cores that are not there."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tvm.runtime.workers import Outcome

__all__ = ["build", "save"]


def save(path: Path, outcome: Outcome) -> None:
    """Keep what a build gave, for `build`."""
    path.with_suffix(".json").write_text(json.dumps(outcome.result))
    path.with_suffix(".o").write_bytes(outcome.blob)


def build(arguments: dict[str, Any], _: bytes) -> tuple[dict[str, Any], bytes]:
    """The result of a build, as late as it comes from a core that does nothing else.

    Parameters
    ----------
    arguments : `path` of what was saved and `seconds` that the build took; beside them those of
        `tvm.auto_scheduler.measure_jobs.build`, so that as much is sent.
    """
    due = time.monotonic() + arguments["seconds"]
    path = Path(arguments["path"])
    result = json.loads(path.with_suffix(".json").read_text()), path.with_suffix(".o").read_bytes()
    time.sleep(max(0.0, due - time.monotonic()))
    return result
