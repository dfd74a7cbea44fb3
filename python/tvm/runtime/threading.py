"""The thread pool of parallel loops."""

from __future__ import annotations

from . import _ffi_api

__all__ = ["config_threadpool", "num_threads"]


def config_threadpool(threads: int = 0) -> None:
    """Run parallel loops on this many threads, the calling one included.

    Parameters
    ----------
    threads : 0 is the default: ``TVM_NUM_THREADS`` if set, else the processors this process may
        use.
    """
    _ffi_api.config_threadpool(threads)


def num_threads() -> int:
    """Threads that a parallel loop started here would use."""
    return _ffi_api.NumThreads()
