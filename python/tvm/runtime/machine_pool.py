"""Virtual machines of one network for any number of threads."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

from .device import Device
from .packed_func import PackedFunc
from .relax_vm import Executable, VirtualMachine
from .threading import usable_cores

__all__ = ["MachinePool"]


# Nobody tells of a machine that an interrupt lost, so those that wait look again.
_LOST_SECONDS = 1.0


class _Machine:
    """A place for a virtual machine, which is made when it is first used."""

    def __init__(self) -> None:
        self.function: PackedFunc | None = None


class MachinePool:
    """A function of an executable, run by as many virtual machines as there are calls at a time.

    Machines share code and weights; each has buffers of its own. No more than `limit` are made:
    further calls wait. A process that is forked makes machines of its own, since those of its
    parent may be in the middle of a call.

    Parameters
    ----------
    executable : from ``relax.build`` or ``load_executable``.
    name : of the function.
    device : where the inputs and outputs are.
    limit : machines at most, which bounds the memory; by default the cores of this machine.

    Raises
    ------
    ValueError : the limit is less than 1.
    """

    def __init__(
        self,
        executable: Executable,
        name: str = "main",
        device: Device | None = None,
        limit: int | None = None,
    ) -> None:
        self.limit = usable_cores() if limit is None else limit
        if self.limit < 1:
            raise ValueError(f"MachinePool: limit must be >= 1, got {limit}")
        self._executable, self._name, self._device = executable, name, device
        self._reset()
        _all.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._waiting = 0
        self._free: list[_Machine] = []
        # An interrupt may come at any instruction and lose one; then it counts no more.
        self._machines: weakref.WeakSet[_Machine] = weakref.WeakSet()

    @property
    def size(self) -> int:
        """Machines that there are."""
        return len(self._machines)

    def __call__(self, *args: Any) -> Any:
        """Call the function; see `VirtualMachine.__getitem__`."""
        # Lists give and take one element as a whole, without a lock.
        try:
            machine = self._free.pop()
        except IndexError:
            machine = self._take()
        try:
            if machine.function is None:
                machine.function = VirtualMachine(self._executable, self._device)[self._name]
            return machine.function(*args)
        finally:
            self._free.append(machine)
            # Who waits says so before looking for a free machine, which came before this question.
            if self._waiting:
                with self._changed:
                    self._changed.notify()

    def _take(self) -> _Machine:
        with self._changed:
            self._waiting += 1
            try:
                while True:
                    try:
                        return self._free.pop()
                    except IndexError:
                        if self.size < self.limit:
                            break
                    self._changed.wait(_LOST_SECONDS)
            finally:
                self._waiting -= 1
            machine = _Machine()
            self._machines.add(machine)
            return machine


_all: weakref.WeakSet[MachinePool] = weakref.WeakSet()


def _forget_machines_of_parent() -> None:
    for pool in list(_all):
        pool._reset()


os.register_at_fork(after_in_child=_forget_machines_of_parent)
