"""What all program representations share: expressions, types, modules, passes."""

from __future__ import annotations

from . import _ffi_api, diagnostics, instrument, transform
from .adt import Constructor, TypeData
from .affine_type import TensorAffineType, TupleAffineType
from .attrs import Attrs, DictAttrs
from .base import (
    Node,
    SourceName,
    Span,
    assert_structural_equal,
    get_first_structural_mismatch,
    load_json,
    make_node,
    save_json,
    structural_equal,
    structural_hash,
)
from .container import Array, Map
from .env_func import EnvFunc
from .expr import BaseExpr, FloatImm, GlobalVar, IntImm, PrimExpr, Range, RelayExpr
from .function import BaseFunc, CallingConv
from .global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .module import IRModule
from .op import Op, register_intrin_lowering, register_op, register_op_attr
from .supply import GlobalVarSupply, NameSupply
from .type import (
    FuncType,
    GlobalTypeVar,
    PointerType,
    PrimType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeConstraint,
    TypeKind,
    TypeRelation,
    TypeVar,
)

__all__ = [
    "Array",
    "Attrs",
    "BaseExpr",
    "BaseFunc",
    "CallingConv",
    "Constructor",
    "DictAttrs",
    "DummyGlobalInfo",
    "EnvFunc",
    "FloatImm",
    "FuncType",
    "GlobalInfo",
    "GlobalTypeVar",
    "GlobalVar",
    "GlobalVarSupply",
    "IRModule",
    "IntImm",
    "Map",
    "NameSupply",
    "Node",
    "Op",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "RelayExpr",
    "SourceName",
    "Span",
    "TensorAffineType",
    "TensorType",
    "TupleAffineType",
    "TupleType",
    "Type",
    "TypeCall",
    "TypeConstraint",
    "TypeData",
    "TypeKind",
    "TypeRelation",
    "TypeVar",
    "VDevice",
    "assert_structural_equal",
    "diagnostics",
    "get_first_structural_mismatch",
    "instrument",
    "load_json",
    "make_node",
    "register_intrin_lowering",
    "register_op",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]
