"""Reading programs from within programs: what decorators of one's own are made of.

A function that calls `tvm.script.tir.prim_func`, and has the attribute `dispatch_token` "tir", is
such a decorator:

>>> def kernel(func):
...     return T.prim_func(func, private=True)
>>> kernel.dispatch_token = "tir"
"""

from . import diagnostics, dispatch, doc, entry, error, utils
from .entry import parse, scan_macro
from .error import ParserError

__all__ = [
    "ParserError",
    "diagnostics",
    "dispatch",
    "doc",
    "entry",
    "error",
    "parse",
    "scan_macro",
    "utils",
]
