"""Exceptions raised by the compiler, each also the built-in exception of its kind.

The kind tells who has to act: the caller (`ValueError`, `TypeError`, ...), a search for which a
transformation is not legal here (`ScheduleError`), or us (`InternalError`).
"""

from __future__ import annotations

import builtins

from tvm._ffi import register_error

__all__ = [
    "AssertionError",
    "AttributeError",
    "DiagnosticError",
    "IndexError",
    "InternalError",
    "KeyError",
    "MemoryError",
    "NotImplementedError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "RPCError",
    "RPCSessionTimeoutError",
    "RecursionError",
    "RuntimeError",
    "ScheduleError",
    "TVMError",
    "TypeError",
    "ValueError",
]


@register_error
class TVMError(builtins.RuntimeError):
    """Base of all errors raised by the compiler and the runtime."""

    # Where C++ raised it ("src/ir/op.cc:52"); empty for errors raised in Python.
    backtrace: str = ""


@register_error
class InternalError(TVMError):
    """A broken invariant inside the compiler: a bug to report, whatever the input was."""


@register_error
class ScheduleError(TVMError):
    """A schedule transformation that is not legal for this program."""


@register_error
class ValueError(TVMError, builtins.ValueError):
    """A value the called function cannot work with."""


@register_error
class TypeError(TVMError, builtins.TypeError):
    """A value of the wrong type, with the position of the argument."""


@register_error
class KeyError(TVMError, builtins.KeyError):
    """A name that is not there, with the names that are."""

    # The built-in one shows its message quoted, as if it were the key.
    __str__ = builtins.Exception.__str__


@register_error
class IndexError(TVMError, builtins.IndexError):
    """A position outside a sequence."""


@register_error
class AssertionError(TVMError, builtins.AssertionError):
    """A condition that a program asserts and that does not hold."""


@register_error
class AttributeError(TVMError, builtins.AttributeError):
    """A field an object does not have."""


@register_error
class DiagnosticError(TVMError):
    """A source text with errors; the message shows each with its line."""


@register_error
class RuntimeError(TVMError):
    """A failure of the machine or of a compiled function."""


@register_error
class RecursionError(TVMError, builtins.RecursionError):
    """A program nested more deeply than the stack of the thread allows."""


@register_error
class MemoryError(TVMError, builtins.MemoryError):
    """Not enough memory."""


@register_error
class NotImplementedError(TVMError, builtins.NotImplementedError):
    """Something the given backend or object does not support."""


@register_error
class OpError(TVMError):
    """Base of errors about operators that importers read."""


@register_error
class OpNotImplemented(OpError, NotImplementedError):
    """An operator no importer or backend knows."""


@register_error
class OpAttributeRequired(OpError, AttributeError):
    """An attribute that an operator must have is missing."""


@register_error
class OpAttributeInvalid(OpError, AttributeError):
    """The value of an operator's attribute is not one that it may have."""


@register_error
class OpAttributeUnImplemented(OpError, NotImplementedError):
    """The value of an operator's attribute is one that no importer or backend knows."""


@register_error
class RPCError(TVMError):
    """A connection to another process or machine that cannot be made, or broke."""


@register_error
class RPCSessionTimeoutError(RPCError, builtins.TimeoutError):
    """A session whose time was over, or whose other end did not answer in time."""
