"""Tensor expressions: what to compute, and schedules: how."""

from tvm.tir import (
    Select,
    abs,
    all,
    any,
    ceil,
    comm_reducer,
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
    max,
    max_value,
    min,
    min_value,
    power,
    round,
    rsqrt,
    sigmoid,
    sqrt,
    sum,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)

from .create_primfunc import create_prim_func
from .operation import (
    compute,
    extern,
    extern_primfunc,
    placeholder,
    reduce_axis,
    scan,
    size_var,
    thread_axis,
    var,
)
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
from .tensor import (
    ComputeOp,
    ExternOp,
    HybridOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorComputeOp,
    TensorSlice,
)
from .tensor_intrin import TensorIntrin, TensorIntrinCall, decl_tensor_intrin

prod = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype), name="prod")

from . import hybrid  # noqa: E402 - its programs use all of the above
