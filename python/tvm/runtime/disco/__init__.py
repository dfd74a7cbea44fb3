"""Several workers that run the same calls on their own data, driven by one controller.

A worker is a thread (`ThreadedSession`) or a process (`ProcessSession`) with a number of its own.
A call is sent to all of them and returns at once with a `DRef`, which stands for one value in each
worker. Workers exchange data by collective operations, such as `Session.allreduce`, and the
controller waits, and hears of errors, when it synchronises:

>>> session = ThreadedSession(num_workers=2)
>>> rank = session.get_global_func("runtime.disco.worker_rank")()
>>> [rank.debug_get_from_remote(worker) for worker in range(2)]
[0, 1]
>>> halves = session.scatter(np.array([[1, 2], [30, 40]], "float32"))
>>> total = session.allreduce(halves, session.empty((2,), "float32"), "sum")
>>> total.debug_get_from_remote(0).numpy()
array([31., 42.], dtype=float32)
>>> session.shutdown()
"""

from __future__ import annotations

from .builtin import disco_device, disco_worker_id
from .refs import DModule, DPackedFunc, DRef
from .session import ProcessSession, Session, ThreadedSession

__all__ = [
    "DModule",
    "DPackedFunc",
    "DRef",
    "ProcessSession",
    "Session",
    "ThreadedSession",
    "disco_device",
    "disco_worker_id",
]
