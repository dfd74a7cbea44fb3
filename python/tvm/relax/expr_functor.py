"""Walks over graph expressions: one that only looks, and one that builds anew.

A subclass overrides what concerns it; ``super()`` of the method, or :meth:`visit_expr` of the
parts, does the rest.
Kinds of expressions have a method each: ``visit_call_``, ``visit_var_``, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tvm
from tvm import error
from tvm.ir import GlobalVar, IRModule, Op, PrimExpr, RelayExpr

from .block_builder import BlockBuilder
from .dtensor import DTensorStructInfo
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    Id,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .struct_info_relations import narrower_struct_info

__all__ = [
    "ExprFunctor",
    "ExprVisitor",
    "PyExprMutator",
    "PyExprVisitor",
    "map_struct_info",
    "mutator",
    "post_order_visit",
    "visitor",
]

_METHODS: dict[type, str] = {
    Constant: "visit_constant_",
    Tuple: "visit_tuple_",
    DataflowVar: "visit_dataflow_var_",
    Var: "visit_var_",
    ShapeExpr: "visit_shape_expr_",
    ExternFunc: "visit_extern_func_",
    GlobalVar: "visit_global_var_",
    Function: "visit_function_",
    Call: "visit_call_",
    SeqExpr: "visit_seq_expr_",
    If: "visit_if_",
    Op: "visit_op_",
    TupleGetItem: "visit_tuple_getitem_",
    PrimValue: "visit_prim_value_",
    StringImm: "visit_string_imm_",
    DataTypeImm: "visit_data_type_imm_",
}


def _method_of(expr: RelayExpr) -> str:
    name = _METHODS.get(type(expr))
    if name is None:
        raise error.TypeError(f"relax: {type(expr).__name__} is not a graph expression")
    return name


C = TypeVar("C", bound=type)


def visitor(cls: C) -> C:
    """A decorator that TVM asks for; a class here needs none and is left as it is."""
    return cls


def mutator(cls: C) -> C:
    """A decorator that TVM asks for; a class here needs none and is left as it is."""
    return cls


class ExprFunctor:
    """A function of graph expressions, with a method for each kind that it is defined for.

    Names of methods are those of :class:`PyExprVisitor`, and nothing is visited by itself.

    Examples
    --------
    >>> class Depth(relax.ExprFunctor):
    ...     def visit_call_(self, op):
    ...         return 1 + max(map(self.visit_expr, op.args))
    ...     def visit_var_(self, op):
    ...         return 0
    """

    def _chosen(self, what: object, name: str) -> Any:
        method = getattr(self, name, None)
        if method is None:
            raise error.TypeError(
                f"{type(self).__name__} is not defined for {type(what).__name__}; add a method "
                f"{name}"
            )
        return method(what)

    def visit_expr(self, expr: RelayExpr) -> Any:
        """The value for an expression.

        Raises
        ------
        TypeError : there is no method for its kind.
        """
        return self._chosen(expr, _method_of(expr))

    def visit_binding(self, binding: Binding) -> Any:
        """The value for a binding of either kind."""
        cast = isinstance(binding, MatchCast)
        return self._chosen(binding, "visit_match_cast_" if cast else "visit_var_binding_")

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """The value for a block of either kind."""
        dataflow = isinstance(block, DataflowBlock)
        return self._chosen(block, "visit_dataflow_block_" if dataflow else "visit_binding_block_")

    def visit_var_def(self, var: Var) -> Any:
        """The value for the definition of a variable of either kind."""
        dataflow = isinstance(var, DataflowVar)
        return self._chosen(var, "visit_dataflow_var_def_" if dataflow else "visit_var_def_")


class PyExprVisitor:
    """Looks at every part of an expression, definitions before uses."""

    def visit_expr(self, expr: RelayExpr) -> None:
        """Look at an expression of any kind."""
        getattr(self, _method_of(expr))(expr)

    def visit_span(self, span: Any) -> None:
        """Look at the place of an expression in a text."""

    def visit_constant_(self, op: Constant) -> None:
        """Look at a constant."""

    def visit_global_var_(self, op: GlobalVar) -> None:
        """Look at the name of a function."""

    def visit_extern_func_(self, op: ExternFunc) -> None:
        """Look at a function of the runtime."""

    def visit_op_(self, op: Op) -> None:
        """Look at an operator."""

    def visit_string_imm_(self, op: StringImm) -> None:
        """Look at a text."""

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        """Look at an element type."""

    def visit_var_(self, op: Var) -> None:
        """Look at a use of a variable."""

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        """Look at a use of a variable of a dataflow block."""

    def visit_prim_value_(self, op: PrimValue) -> None:
        """Look at a scalar."""
        self.visit_prim_expr(op.value)

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        """Look at a shape."""
        for value in op.values:
            self.visit_prim_expr(value)

    def visit_tuple_(self, op: Tuple) -> None:
        """Look at a tuple."""
        for item in op.fields:
            self.visit_expr(item)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        """Look at a field of a tuple."""
        self.visit_expr(op.tuple_value)

    def visit_call_(self, op: Call) -> None:
        """Look at a call."""
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)
        for info in op.sinfo_args:
            self.visit_struct_info(info)

    def visit_if_(self, op: If) -> None:
        """Look at a conditional."""
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        """Look at blocks and what follows them."""
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_function_(self, op: Function) -> None:
        """Look at a function."""
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)
        if op.ret_struct_info is not None:
            self.visit_struct_info(op.ret_struct_info)

    def visit_binding(self, binding: Binding) -> None:
        """Look at a binding of either kind."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Look at a binding."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Look at a binding that says what is known of its value."""
        self.visit_struct_info(binding.struct_info)
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_binding_block(self, block: BindingBlock) -> None:
        """Look at a block of either kind."""
        if isinstance(block, DataflowBlock):
            self.visit_dataflow_block_(block)
        else:
            self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        """Look at a block."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        """Look at a dataflow block."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def(self, var: Var) -> None:
        """Look at the definition of a variable of either kind."""
        if isinstance(var, DataflowVar):
            self.visit_dataflow_var_def_(var)
        else:
            self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> None:
        """Look at the definition of a variable."""
        if var.struct_info is not None:
            self.visit_struct_info(var.struct_info)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        """Look at the definition of a variable of a dataflow block."""
        if var.struct_info is not None:
            self.visit_struct_info(var.struct_info)

    def visit_struct_info(self, info: StructInfo) -> None:
        """Look at struct info: its extents, and variables that hold shapes."""
        if isinstance(info, TensorStructInfo):
            if info.shape is not None:
                self.visit_expr(info.shape)
        elif isinstance(info, DTensorStructInfo):
            self.visit_struct_info(info.tensor_sinfo)
        elif isinstance(info, ShapeStructInfo):
            for value in info.values or ():
                self.visit_prim_expr(value)
        elif isinstance(info, PrimStructInfo):
            if info.value is not None:
                self.visit_prim_expr(info.value)
        elif isinstance(info, TupleStructInfo):
            for field in info.fields:
                self.visit_struct_info(field)
        elif isinstance(info, FuncStructInfo) and info.params is not None:
            for field in [*info.params, info.ret]:
                self.visit_struct_info(field)

    def visit_prim_expr(self, expr: PrimExpr) -> None:
        """Look at a scalar expression, such as an extent."""


ExprVisitor = PyExprVisitor


class _Enter(PyExprVisitor):
    def __init__(self, look: Callable[[RelayExpr], None]) -> None:
        self._look = look

    def visit_expr(self, expr: RelayExpr) -> None:
        super().visit_expr(expr)
        self._look(expr)

    def visit_var_def(self, var: Var) -> None:
        pass

    def visit_struct_info(self, info: StructInfo) -> None:
        pass


def post_order_visit(expr: RelayExpr, fvisit: Callable[[RelayExpr], None]) -> None:
    """Call a function for every part of an expression, parts before wholes.

    Variables are visited where they are read, once for each time.
    """
    _Enter(fvisit).visit_expr(expr)


def map_struct_info(
    info: StructInfo,
    extent: Callable[[PrimExpr], PrimExpr],
    shape: Callable[[RelayExpr], RelayExpr],
) -> StructInfo:
    """Struct info with every extent, and every variable that holds a shape, replaced.

    What has nothing to replace comes back as the same object.
    """
    if isinstance(info, PrimStructInfo):
        if info.value is None:
            return info
        value = extent(info.value)
        return info if value.same_as(info.value) else PrimStructInfo(str(info.dtype), value)
    if isinstance(info, ShapeStructInfo):
        values = [extent(v) for v in info.values or ()]
        same = all(a.same_as(b) for a, b in zip(values, info.values or ()))
        return info if same else ShapeStructInfo(values)
    if isinstance(info, TensorStructInfo):
        if info.shape is None:
            return info
        if isinstance(info.shape, ShapeExpr):
            values = [extent(v) for v in info.shape.values]
            if all(a.same_as(b) for a, b in zip(values, info.shape.values)):
                return info
            return TensorStructInfo(values, str(info.dtype), info.vdevice)
        new = shape(info.shape)
        if new.same_as(info.shape):
            return info
        return TensorStructInfo(new, str(info.dtype), info.vdevice)
    if isinstance(info, DTensorStructInfo):
        tensor = map_struct_info(info.tensor_sinfo, extent, shape)
        return info if tensor.same_as(info.tensor_sinfo) else info.with_tensor(tensor)
    if isinstance(info, TupleStructInfo):
        fields = [map_struct_info(field, extent, shape) for field in info.fields]
        same = all(a.same_as(b) for a, b in zip(fields, info.fields))
        return info if same else TupleStructInfo(fields)
    if isinstance(info, FuncStructInfo) and info.params is not None:
        fields = [map_struct_info(f, extent, shape) for f in [*info.params, info.ret]]
        if all(a.same_as(b) for a, b in zip(fields, [*info.params, info.ret])):
            return info
        return FuncStructInfo(fields[:-1], fields[-1], info.purity)
    return info


def _variable(var: Var | Id) -> Var:
    return var.var if isinstance(var, Id) else var


class PyExprMutator:
    """Builds an expression anew; what does not change comes back as the same object.

    Attributes
    ----------
    builder_ : the BlockBuilder that new bindings go to. In a method called for a binding,
        ``self.builder_.emit`` puts bindings in front of it.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remap: dict[Var, RelayExpr] = {}

    def visit_expr(self, expr: RelayExpr) -> RelayExpr:
        """What becomes of an expression of any kind, in normal form."""
        return self.builder_.normalize(getattr(self, _method_of(expr))(expr))

    def visit_expr_post_order(self, expr: RelayExpr) -> RelayExpr:
        """The expression with its parts replaced, itself not yet: for overriding methods."""
        return getattr(PyExprMutator, _method_of(expr))(self, expr)

    def visit_constant_(self, op: Constant) -> RelayExpr:
        """What becomes of a constant."""
        return op

    def visit_global_var_(self, op: GlobalVar) -> RelayExpr:
        """What becomes of the name of a function."""
        return op

    def visit_extern_func_(self, op: ExternFunc) -> RelayExpr:
        """What becomes of a function of the runtime."""
        return op

    def visit_op_(self, op: Op) -> RelayExpr:
        """What becomes of an operator."""
        return op

    def visit_string_imm_(self, op: StringImm) -> RelayExpr:
        """What becomes of a text."""
        return op

    def visit_data_type_imm_(self, op: DataTypeImm) -> RelayExpr:
        """What becomes of an element type."""
        return op

    def visit_var_(self, op: Var) -> RelayExpr:
        """What becomes of a use of a variable."""
        return self._remap.get(op, op)

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        """What becomes of a use of a variable of a dataflow block."""
        return self._remap.get(op, op)

    def visit_prim_value_(self, op: PrimValue) -> RelayExpr:
        """What becomes of a scalar."""
        value = self.visit_prim_expr(op.value)
        return op if value.same_as(op.value) else PrimValue(value)

    def visit_shape_expr_(self, op: ShapeExpr) -> RelayExpr:
        """What becomes of a shape."""
        values = [self.visit_prim_expr(v) for v in op.values]
        return op if _same(values, op.values) else ShapeExpr(values)

    def visit_tuple_(self, op: Tuple) -> RelayExpr:
        """What becomes of a tuple."""
        fields = [self.visit_expr(item) for item in op.fields]
        return op if _same(fields, op.fields) else Tuple(fields)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelayExpr:
        """What becomes of a field of a tuple."""
        value = self.visit_expr(op.tuple_value)
        return op if value.same_as(op.tuple_value) else TupleGetItem(value, op.index)

    def visit_call_(self, op: Call) -> RelayExpr:
        """What becomes of a call."""
        callee = self.visit_expr(op.op)
        args = [self.visit_expr(arg) for arg in op.args]
        infos = [self.visit_struct_info(info) for info in op.sinfo_args]
        same = callee.same_as(op.op) and _same(args, op.args) and _same(infos, op.sinfo_args)
        # What is known of the result follows from the operands, so it is found out again.
        return op if same else Call(callee, args, op.attrs, infos)

    def visit_if_(self, op: If) -> RelayExpr:
        """What becomes of a conditional."""
        cond = self.visit_expr(op.cond)
        branches = [self.visit_with_new_scope(b) for b in (op.true_branch, op.false_branch)]
        if cond.same_as(op.cond) and _same(branches, [op.true_branch, op.false_branch]):
            return op
        return If(cond, *branches)

    def visit_seq_expr_(self, op: SeqExpr) -> RelayExpr:
        """What becomes of blocks and what follows them."""
        blocks = []
        for block in op.blocks:
            new = self.visit_binding_block(block)
            if len(new.bindings):
                blocks.append(new)
        self.builder_.begin_binding_block()
        body = self.builder_.normalize_argument(self.visit_expr(op.body))
        rest = self.builder_.end_block()
        if len(rest.bindings):
            blocks.append(rest)
        same = _same(blocks, op.blocks) and body.same_as(op.body)
        return op if same else SeqExpr(blocks, body)

    def visit_function_(self, op: Function) -> RelayExpr:
        """What becomes of a function."""
        params = [self.visit_var_def(param) for param in op.params]
        body = self.visit_with_new_scope(op.body, params)
        info = op.ret_struct_info
        if info is not None:
            known = self.builder_._erased(body.struct_info, params)
            info = narrower_struct_info(self.visit_struct_info(info), known)
        kept = info is None or info.same_as(op.ret_struct_info)
        if _same(params, op.params) and body.same_as(op.body) and kept:
            return op
        return Function(params, body, info, op.is_pure, op.attrs)

    def visit_with_new_scope(self, expr: RelayExpr, params: list[Var] | None = None) -> RelayExpr:
        """What becomes of the body of a function or branch, as a sequence of blocks."""
        self.builder_.begin_scope(params)
        new = self.visit_expr(expr)
        new = self.builder_.as_sequence(new)
        self.builder_.end_scope()
        return new

    def visit_binding(self, binding: Binding) -> None:
        """Emit what becomes of a binding."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        else:
            self.visit_var_binding_(binding)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Emit what becomes of a binding."""
        value = self.visit_expr(binding.value)
        self.reemit_binding(binding, value)

    def reemit_binding(self, binding: VarBinding, value: RelayExpr) -> None:
        """Emit a binding with a new value; its variable is kept if it fits."""
        if isinstance(value, SeqExpr):
            value = self.builder_.inline_sequence(value)
        var = self.visit_var_def(binding.var)
        if value.same_as(binding.value) and var.same_as(binding.var):
            self.builder_.emit_normalized(binding)
            return
        var = self.with_struct_info(var, value.struct_info)
        if not var.same_as(binding.var):
            self._remap[binding.var] = var
        self.builder_.emit_normalized(VarBinding(var, value))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Emit what becomes of a binding that says what is known of its value."""
        value = self.builder_.normalize_argument(self.visit_expr(binding.value))
        info = self.visit_struct_info(binding.struct_info)
        var = self.visit_var_def(binding.var)
        if (
            value.same_as(binding.value)
            and info.same_as(binding.struct_info)
            and var.same_as(binding.var)
        ):
            self.builder_.emit_normalized(binding)
            return
        var = self.with_struct_info(var, info)
        if not var.same_as(binding.var):
            self._remap[binding.var] = var
        self.builder_.emit_normalized(MatchCast(var, value, info))

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        """What becomes of a block of either kind."""
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        """What becomes of a block."""
        self.builder_.begin_binding_block()
        return self._rebuilt(block)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        """What becomes of a dataflow block."""
        self.builder_.begin_dataflow_block()
        return self._rebuilt(block)

    def _rebuilt(self, block: BindingBlock) -> BindingBlock:
        for binding in block.bindings:
            self.visit_binding(binding)
        new = self.builder_.end_block()
        return block if _same(new.bindings, block.bindings) else new

    def visit_var_def(self, var: Var) -> Var:
        """What becomes of the definition of a variable of either kind."""
        if isinstance(var, DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Var:
        """What becomes of the definition of a variable."""
        return self._redefined(var)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        """What becomes of the definition of a variable of a dataflow block."""
        return self._redefined(var)

    def _redefined(self, var: Var) -> Var:
        if var.struct_info is None:
            return var
        info = self.visit_struct_info(var.struct_info)
        if info.same_as(var.struct_info):
            return var
        new = type(var)(str(var.name_hint), info)
        self._remap[var] = new
        return new

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        """What becomes of struct info."""
        return map_struct_info(info, self.visit_prim_expr, self.visit_expr)

    def visit_prim_expr(self, expr: PrimExpr) -> PrimExpr:
        """What becomes of a scalar expression, such as an extent."""
        return expr

    def set_var_remap(self, var: Var | Id, new: RelayExpr) -> None:
        """Say what stands for a variable, or for the one of this ``vid``, from now on."""
        self._remap[_variable(var)] = new

    def get_var_remap(self, var: Var | Id) -> RelayExpr:
        """What stands for a variable, or for the one of this ``vid``; itself by default."""
        var = _variable(var)
        return self._remap.get(var, var)

    def lookup_binding(self, var: Var) -> RelayExpr | None:
        """What a variable is bound to in a block that is open or was built, None if not known."""
        return self.builder_.lookup_binding(var)

    def with_struct_info(self, var: Var, info: StructInfo | None) -> Var:
        """A variable of the same name with this struct info; the same one if it has that."""
        if info is None or (var.struct_info is not None and (
            var.struct_info.same_as(info) or tvm.ir.structural_equal(var.struct_info, info)
        )):  # fmt: skip
            return var
        return type(var)(str(var.name_hint), info)


def _same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(x.same_as(y) for x, y in zip(a, b))
