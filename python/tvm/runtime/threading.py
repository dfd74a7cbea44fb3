"""The thread pool of parallel loops."""

from __future__ import annotations

import os
from collections.abc import Sequence

from . import _ffi_api

__all__ = ["config_threadpool", "num_threads", "usable_cores"]

_AFFINITY = {"none": 0, "big": 1, "little": -1, "one_per_core": -2, "share_cores": -3}


def config_threadpool(
    threads: int = 0, affinity: str = "none", cores: Sequence[int] | None = None
) -> None:
    """Run parallel loops on this many threads, the calling one included.

    Parameters
    ----------
    threads : 0 is the default: ``TVM_NUM_THREADS`` if set, else ``OMP_NUM_THREADS``, else the
        processors this process may use, or those of the affinity.
    affinity : where threads run. "none" leaves it to the system, unless ``TVM_BIND_THREADS=1``
        makes it "big". "big" and "little" bind one thread to each processor with the highest or the
        lowest clock rate; "one_per_core" one thread to each of `cores`; with "share_cores" every
        thread may run on any of `cores`. The calling thread is bound as well.
    cores : numbers of processors.

    Raises
    ------
    ValueError : unknown affinity, or processors that are missing, superfluous or not allowed.
    """
    if affinity not in _AFFINITY:
        raise ValueError(
            f'config_threadpool: unknown affinity "{affinity}"; known: {", ".join(_AFFINITY)}'
        )
    _ffi_api.config_threadpool(_AFFINITY[affinity], threads, list(cores or ()))


def num_threads() -> int:
    """Threads that a parallel loop started here would use."""
    return _ffi_api.NumThreads()


def usable_cores() -> int:
    """Processors that this process may run on, which may be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
