"""Graph functions built by calls: what is between ``with R.function():`` and its end.

Beside the functions of this package, the names of the dialect are here: operators (``R.add``),
annotations (``R.Tensor``), and values (``R.const``, ``R.tuple``).
"""

from __future__ import annotations

from tvm.script.relax_names import *

from .frames import BindingBlockFrame, BranchFrame, FunctionFrame, IfFrame
from .function import (
    Else,
    If,
    Then,
    arg,
    dataflow,
    emit,
    emit_match_cast,
    emit_te,
    emit_var_binding,
    func_attr,
    func_name,
    func_ret_struct_info,
    func_ret_value,
    function,
    output,
)
