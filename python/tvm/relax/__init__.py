"""The graph level: networks as functions of tensors, their passes, and their execution."""

from tvm.runtime.relax_vm import Executable, VirtualMachine, load_executable

from . import analysis, expr, op, struct_info, transform
from .block_builder import BlockBuilder
from .compile_fused import GroupSchedule, schedules_from
from .expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
)
from .extract import extract_tasks
from .fused_group import FusedGroup, fused_groups
from .struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .vm_build import build

__all__ = [
    "BindingBlock",
    "BlockBuilder",
    "Call",
    "Constant",
    "DataflowBlock",
    "DataflowVar",
    "Executable",
    "Expr",
    "ExternFunc",
    "Function",
    "FusedGroup",
    "GlobalVar",
    "GroupSchedule",
    "ObjectStructInfo",
    "PrimStructInfo",
    "SeqExpr",
    "ShapeExpr",
    "ShapeStructInfo",
    "StructInfo",
    "TensorStructInfo",
    "Tuple",
    "TupleGetItem",
    "TupleStructInfo",
    "Var",
    "VarBinding",
    "VirtualMachine",
    "analysis",
    "build",
    "const",
    "expr",
    "extract_tasks",
    "fused_groups",
    "load_executable",
    "op",
    "schedules_from",
    "struct_info",
    "transform",
]
