"""What goes between a controller and its workers: commands, values and failures."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import error
from tvm.runtime.container import Array, Map, ShapeTuple
from tvm.runtime.data_type import DataType
from tvm.runtime.device import Device, cpu
from tvm.runtime.ndarray import NDArray, array

__all__ = ["Command", "Failure", "HostArray", "Register", "Shape", "pack", "unpack"]


@dataclass(frozen=True)
class Register:
    """Stands for the value that each worker keeps under a number."""

    number: int


@dataclass(frozen=True)
class HostArray:
    """An array of the controller itself, not a copy; only for a worker in the same process."""

    array: NDArray


@dataclass(frozen=True)
class Shape:
    """A ShapeTuple on its way; the object itself does not travel between processes."""

    extents: tuple[int, ...]


@dataclass(frozen=True)
class Command:
    """One step of a worker.

    Attributes
    ----------
    number : grows with every command of a session.
    action : "call" a function and keep the result in `register`; "get", "set" or "sync" and reply;
        "drop" registers; "resume" after a failure; "stop".
    function : what to call: a register, or the name of a global function.
    arguments : packed values.
    """

    number: int
    action: str
    register: int = -1
    function: Register | str = ""
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Failure:
    """An exception in a worker.

    Attributes
    ----------
    worker, command : where it was raised.
    classes : module and name of the exception's class and its bases, the nearest first.
    message : its text.
    trace : the formatted traceback.
    """

    worker: int
    command: int
    classes: tuple[tuple[str, str], ...]
    message: str
    trace: str

    @classmethod
    def of(cls, raised: BaseException, worker: int, command: int) -> Failure:
        """What there is to say about an exception that was just caught."""
        classes = tuple((base.__module__, base.__qualname__) for base in type(raised).__mro__)
        trace = "".join(traceback.format_exception(type(raised), raised, raised.__traceback__))
        return cls(worker, command, classes, str(raised), trace)

    def exception(self, named: bool = True) -> Exception:
        """The exception to raise in place of the original one.

        It has the same class, or the nearest base that this process knows and that takes a text.

        Parameters
        ----------
        named : begin the message with the worker's number.
        """
        prefix = f"worker {self.worker}: " if named else ""
        text = prefix + self.message
        for position, (module, name) in enumerate(self.classes):
            found = getattr(sys.modules.get(module), name, None)
            if found is Exception and position > 0:
                break
            raised = _instance(found, text)
            if raised is not None:
                return self._with_trace(raised)
            # A base says less than the class, so its name goes into the message.
            text = f"{prefix}{self.classes[0][1]}: {self.message}"
        return self._with_trace(error.TVMError(text))

    def _with_trace(self, raised: Exception) -> Exception:
        note = f"Raised in worker {self.worker}:\n{self.trace}"
        # Python prints notes from 3.11 on; the attribute can be set in 3.10 as well.
        raised.__notes__ = [note]  # type: ignore[attr-defined]
        return raised


def _instance(found: Any, text: str) -> Exception | None:
    """An exception of a class with that text, if it is such a class and takes just a text."""
    if not (isinstance(found, type) and issubclass(found, Exception)):
        return None
    try:
        raised = found(text)
    except Exception:
        # A constructor of its own, such as that of UnicodeDecodeError.
        return None
    return raised if raised.args == (text,) else None


def pack(value: Any) -> Any:
    """A value in the form in which it leaves its owner: arrays are copied, to the cpu.

    Raises
    ------
    TypeError : values of this type stay where they are. ValueError : so do such elements.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes, Device, Register)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, NDArray):
        # Raises for element types that have no form outside of this process.
        value.dtype.to_numpy()
        return value.copyto(cpu())
    if isinstance(value, np.ndarray):
        return array(value)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, np.dtype):
        return DataType(value)
    if isinstance(value, ShapeTuple):
        return Shape(tuple(value))
    if isinstance(value, (list, tuple, Array)):
        items = [pack(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, (dict, Map)):
        return {pack(key): pack(item) for key, item in value.items()}
    raise error.TypeError(
        f"a {type(value).__name__} cannot go from one worker to another; numbers, texts, bytes, "
        "types, devices, shapes, NDArrays and sequences and mappings of them can"
    )


def unpack(value: Any, registers: Mapping[int, Any] | None = None) -> Any:
    """What `pack` was given, arrays as copies of the receiver's own.

    Parameters
    ----------
    registers : values of the receiver, which replace references to registers.
    """
    if isinstance(value, Register):
        return None if registers is None else registers.get(value.number)
    if isinstance(value, HostArray):
        return value.array
    if isinstance(value, Shape):
        return ShapeTuple(value.extents)
    if isinstance(value, NDArray):
        # Workers in one process get the same packed array.
        return value.copyto(cpu())
    if isinstance(value, dict):
        return {unpack(key): unpack(item, registers) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(unpack(item, registers) for item in value)
    return value
