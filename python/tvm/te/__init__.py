"""Tensor expressions: what to compute, and schedules: how."""

from tvm.tir import (
    Select,
    abs,
    all,
    any,
    ceil,
    const,
    div,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    if_then_else,
    indexdiv,
    indexmod,
    isnan,
    log,
    max_value,
    min_value,
    power,
    round,
    rsqrt,
    sigmoid,
    sqrt,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)

from .operation import compute, extern, placeholder, reduce_axis, size_var, thread_axis, var
from .reduction import comm_reducer, max, min, prod, sum
from .schedule import (
    AutoInlineBroadcast,
    AutoInlineElemWise,
    AutoInlineInjective,
    Fuse,
    InferBound,
    IterVarAttr,
    Rebase,
    Schedule,
    ScheduleOps,
    SchedulePostProcToPrimFunc,
    Singleton,
    Split,
    Stage,
    create_schedule,
)
from .tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, Tensor, TensorSlice
