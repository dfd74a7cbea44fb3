"""The decorator of loop programs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from tvm.te.tensor import Tensor
from tvm.tir import PrimExpr

from .parser import parse
from .runtime import emulated

__all__ = ["script"]


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, list | tuple) or type(value).__name__ == "Array":
        return any(_is_symbolic(item) for item in value)
    return isinstance(value, Tensor | PrimExpr)


def _owned(value: Any) -> Any:
    """Arrays that the program may write without changing those of the caller."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, list | tuple):
        return type(value)(_owned(item) for item in value)
    return value


def script(func: Callable[..., Any]) -> Callable[..., Any]:
    """Make a loop program out of a function.

    Called with tensors of te, the function is read, not run, and gives the tensors it returns; its
    loops are ``tensor.op.axis`` and can be scheduled. Called with numpy arrays it runs as Python.

    The body may use ``range``, ``serial``, ``parallel``, ``vectorize``, ``unroll``, ``const_range``
    (written out while the program is read) and ``bind(thread_tag, extent)`` loops, ``if`` and
    ``else``, assignments to elements and scalar variables, ``output_tensor(shape, dtype)``,
    ``allocate(shape, dtype, scope)``, arithmetic, comparisons, math such as ``exp``, ``sqrt`` and
    ``tanh``, conversions such as ``float32(x)``, calls of functions that make tensors of the inputs
    (other loop programs for instance), and one ``return`` of output tensors at its end.
    A scalar variable lives in the block that assigns it first. Elements of an input may be
    assigned, which changes a copy that is the program's own. Calls at the top of the program may
    take what it has written so far: then the statements of the other program become a part of this
    one.

    ``op.body`` is the program over tensors: loops around `tir.ProducerStore`, in which memory is a
    `tir.ProducerRealize` and ``op.outputs`` stand for the results.

    Raises
    ------
    ValueError : the program uses something else; the message has file and line.

    Examples
    --------
    >>> import numpy as np
    >>> from tvm import te
    >>> @te.hybrid.script
    ... def outer_product(a, b):
    ...     c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    ...     for i in range(a.shape[0]):
    ...         for j in range(b.shape[0]):
    ...             c[i, j] = a[i] * b[j]
    ...     return c
    """

    if not isinstance(func, FunctionType):
        raise TypeError(f"hybrid.script: expected a function, got {type(func).__name__}")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if any(_is_symbolic(value) for value in [*args, *kwargs.values()]):
            return parse(func, args, kwargs)
        owned = {name: _owned(value) for name, value in kwargs.items()}
        return emulated(func)(*[_owned(value) for value in args], **owned)

    return wrapped
