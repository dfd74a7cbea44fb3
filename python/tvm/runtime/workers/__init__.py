"""Worker processes: how they are started and watched, and how one talks to them.

Builders, runners, sessions of several processes and remote machines share the wire format of `wire`
and the environment of `child_environment`. Nothing that comes over a wire is unpickled.
"""

from __future__ import annotations

from .pool import Job, Outcome, WorkerPool, child_environment

__all__ = ["Job", "Outcome", "WorkerPool", "child_environment"]
