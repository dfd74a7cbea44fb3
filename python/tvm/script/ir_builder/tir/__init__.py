"""Tensor programs under construction: the names of ``T`` in scripts."""

from __future__ import annotations

from functools import cache
from typing import Any

import tvm
from tvm import tir
from tvm.ir import Range

from .block import axis, block, block_attr, init, reads, where, writes
from .buffers import (
    Buffer,
    Ptr,
    alloc_buffer,
    buffer,
    env_thread,
    handle,
    is_dtype,
    iter_var,
    match_buffer,
    scalar_type,
    var,
)
from .buffers import make_target as target
from .expressions import (
    Broadcast,
    Cast,
    Let,
    Ramp,
    Select,
    Shuffle,
    Tuple,
    call_intrin,
    cast,
    checked_call,
    comm_reducer,
    index_map,
    intrinsic,
    meta_var,
    typed_call,
)
from .function import arg, func_attr, func_name, func_ret, prim_func
from .statements import (
    Assert,
    Else,
    If,
    LetStmt,
    Then,
    While,
    allocate,
    allocate_const,
    attr,
    buffer_store,
    decl_buffer,
    evaluate,
    grid,
    launch_thread,
    let,
    parallel,
    prefetch,
    realize,
    serial,
    thread_binding,
    unroll,
    vectorized,
)

# Other spellings, for those who know TVM's.
ramp = Ramp
sblock = block
sblock_attr = block_attr
broadcast = Broadcast
inline = meta_var
buffer_decl = buffer
ptr = Ptr
boolean = scalar_type("bool")

StringImm = tir.StringImm
dtype = tvm.DataType

# Classes and functions of tvm.tir that scripts name as they are.
_NODES = frozenset(tir.expr.__all__) - {"convert"}
_FUNCTIONS = frozenset(tir.op.__all__)
# Those whose first argument is the type of their result, which may also be given by its name.
_TYPED = frozenset(
    {
        "call_extern",
        "call_llvm_intrin",
        "call_llvm_pure_intrin",
        "call_pure_extern",
        "reinterpret",
    }
)


@cache
def intrinsics() -> frozenset[str]:
    """The names of all intrinsics of tensor programs."""
    prefix = "tir."
    names = map(str, tvm.ir.Op.list_op_names())
    return frozenset(name[len(prefix) :] for name in names if name.startswith(prefix))


def __getattr__(name: str) -> Any:
    found = lookup(name)
    if found is None:
        raise AttributeError(f"there is no construct `T.{name}`")
    return found


def lookup(name: str) -> Any:
    """What ``T.name`` is beyond the names of this module: an element type, a function of
    ``tvm.tir``, an intrinsic; None for other names."""
    if is_dtype(name):
        return scalar_type(name)
    if name in _TYPED:
        return typed_call(getattr(tir, name))
    if name in _FUNCTIONS:
        return checked_call(getattr(tir, name))
    if name in intrinsics():
        return intrinsic(name)
    if name in _NODES:
        return getattr(tir, name)
    return None
