"""What a controller holds of values that are in its workers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tvm.runtime.ndarray import NDArray

__all__ = ["DModule", "DPackedFunc", "DRef"]


class _Owner(Protocol):
    """What a reference asks of its session."""

    def call_packed(self, func: DRef, *args: Any) -> DRef: ...
    def _get(self, reg_id: int, worker_id: int) -> Any: ...
    def _set(self, reg_id: int, worker_id: int, value: Any) -> None: ...
    def _release(self, reg_id: int) -> None: ...
    def _function_of(self, module: DModule, name: str) -> DPackedFunc: ...


class DRef:
    """One value in each worker of a session, which the workers keep as long as this object lives.

    Attributes
    ----------
    session : whose workers have the values.
    reg_id : number under which they do.
    """

    def __init__(self, session: _Owner, reg_id: int) -> None:
        self.session = session
        self.reg_id = reg_id

    def debug_get_from_remote(self, worker_id: int) -> Any:
        """The value in one worker, once all earlier calls are through there; arrays are copied.

        None where the worker has no value, such as what was placed on worker 0 only.

        Raises
        ------
        ValueError : there is no such worker. TypeError : functions, modules and the like stay in
            their worker. Also what a call raised in any worker.
        """
        return self.session._get(self.reg_id, worker_id)

    def debug_copy_from(self, worker_id: int, value: NDArray | np.ndarray | Any) -> None:
        """Overwrite the value in one worker; if both are arrays, the elements.

        Raises
        ------
        ValueError : there is no such worker, or arrays differ in shape or type. Also what a call
            raised in any worker.
        """
        self.session._set(self.reg_id, worker_id, value)

    def __del__(self) -> None:
        self.session._release(self.reg_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(register {self.reg_id} of {self.session!r})"


class DPackedFunc(DRef):
    """A function in each worker; a call runs it in all of them."""

    def __call__(self, *args: Any) -> DRef:
        """Start the function in all workers; see `Session.call_packed`."""
        return self.session.call_packed(self, *args)


class DModule(DRef):
    """A compiled network in each worker, each with memory of its own."""

    def __getitem__(self, name: str) -> DPackedFunc:
        """A function of the network; a wrong name is reported at the next synchronisation."""
        return self.session._function_of(self, name)
