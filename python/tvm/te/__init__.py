"""Tensor expressions: what to compute, and schedules: how."""

from tvm.tir import (
    IndexMap,
    Select,
    abs,
    acos,
    acosh,
    add,
    all,
    any,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    ceildiv,
    comm_reducer,
    const,
    cos,
    cosh,
    div,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    fmod,
    if_then_else,
    indexdiv,
    indexmod,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max,
    max_value,
    min,
    min_value,
    multiply,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    subtract,
    sum,
    tan,
    tanh,
    trace,
    trunc,
    truncdiv,
    truncmod,
)

from .autodiff import gradient
from .create_primfunc import create_prim_func
from .operation import (
    compute,
    extern,
    extern_primfunc,
    placeholder,
    reduce_axis,
    replace_tensors,
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
    InferTensorizeRegion,
    IterVarAttr,
    MatchTensorizeBody,
    Rebase,
    Schedule,
    ScheduleOps,
    SchedulePostProcRewriteForTensorCore,
    SchedulePostProcToPrimFunc,
    Singleton,
    Split,
    Stage,
    create_schedule,
)
from .specialized_condition import SpecializedCondition
from .tag import tag_scope
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

AXIS_SEPARATOR = IndexMap.AXIS_SEPARATOR

prod = comm_reducer(lambda x, y: x * y, lambda dtype: const(1, dtype), name="prod")

from . import hybrid  # noqa: E402 - its programs use all of the above
