"""Tensor programs: expressions, statements, functions, and passes over them."""

from __future__ import annotations

from . import analysis, functor, ir_builder, schedule, stmt_functor, transform, usmp
from .analysis import CallEffectKind
from .any_extent import Any
from .block import Block, BlockRealize, MatchBufferRegion, SBlock, SBlockRealize
from .block_dependence_info import BlockDependenceInfo
from .buffer import Buffer, BufferRegion, DataProducer, decl_buffer
from .builtin import *
from .data_layout import BijectiveLayout, Layout, bijective_layout, layout
from .expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    ExprOp,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    ProducerLoad,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    SizeVar,
    StringImm,
    Sub,
    Var,
    const,
    convert,
)
from .function import PrimFunc, TensorIntrin
from .functor import PyStmtExprMutator, PyStmtExprVisitor
from .index_map import IndexMap
from .op import *
from .ptx import *
from .schedule import (
    BlockRV,
    BlockScope,
    ExprRV,
    LoopRV,
    Schedule,
    ScheduleError,
    ScheduleState,
    StmtSRef,
    Trace,
)
from .statement import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Prefetch,
    ProducerRealize,
    ProducerStore,
    SeqStmt,
    Stmt,
    While,
    stmt_list,
    stmt_seq,
)
