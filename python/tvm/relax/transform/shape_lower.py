"""Symbolic extents as numbers on a heap, which functions of the virtual machine read and write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tvm
from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr

from ..analysis import BaseCheckResult, struct_info_base_check, tir_vars_in_struct_info
from ..expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, PyExprVisitor
from ..op import call_builtin_with_ctx, null_value
from ..shape_codes import MakeShapeCode, MatchShapeCode
from ..struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from .graph_pass import graph_pass

__all__ = ["VMShapeLower"]

_NOTHING = TupleStructInfo([])


@dataclass
class _Slot:
    """The place of an extent on the heap; `known` once it has a value there."""

    index: int
    expr: PrimExpr
    known: bool = False


@dataclass(frozen=True)
class _Match:
    """A value whose extents must be those of a pattern."""

    value: RelayExpr
    pattern: Sequence[PrimExpr]
    context: str


class _Slots(PyExprVisitor):
    """All extents of a function but numbers, in the order in which they come."""

    def __init__(self, func: Function) -> None:
        self.all: list[_Slot] = []
        for param in func.params:
            self._add_info(param.struct_info)
        self.visit_expr(func.body)
        self._add_info(func.ret_struct_info)

    def find(self, expr: PrimExpr) -> _Slot | None:
        """The slot of an equal expression over the same variables."""
        for slot in self.all:
            if slot.expr.same_as(expr) or tvm.ir.structural_equal(slot.expr, expr):
                return slot
        return None

    def _add(self, expr: PrimExpr) -> None:
        if not isinstance(expr, tir.IntImm) and self.find(expr) is None:
            self.all.append(_Slot(len(self.all), expr))

    def _add_info(self, info: StructInfo | None) -> None:
        if isinstance(info, TupleStructInfo):
            for part in info.fields:
                self._add_info(part)
        for extent in _pattern(info) or ():
            self._add(extent)

    def visit_function_(self, op: Function) -> None:
        """A function inside has a heap of its own."""

    def visit_struct_info(self, info: StructInfo) -> None:
        """What is known of a value needs no number unless something checks it."""

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self.visit_expr(binding.value)
        self._add_info(binding.struct_info)

    def visit_prim_expr(self, expr: PrimExpr) -> None:
        if not isinstance(expr, tir.FloatImm):
            self._add(expr)


def _pattern(info: StructInfo | None) -> list[PrimExpr] | None:
    """The extents that a value must have, None if nothing is known of them."""
    if isinstance(info, TensorStructInfo):
        return list(info.shape.values) if isinstance(info.shape, ShapeExpr) else None
    if isinstance(info, ShapeStructInfo):
        return None if info.values is None else list(info.values)
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return [info.value]
    return None


def _number(value: int) -> PrimValue:
    return PrimValue(tir.const(int(value), "int64"))


class _Lowering(PyExprMutator):
    def __init__(self, mod: IRModule, with_contexts: bool) -> None:
        super().__init__(mod)
        self._with_contexts = with_contexts
        self._heap: Var
        self._slots: _Slots

    def lower(self, gvar: GlobalVar, func: Function) -> Function:
        """The function with a heap, its parameters checked first, its result last."""
        self._slots = _Slots(func)
        builder = self.builder_
        builder.begin_scope(list(func.params))
        blocks: list[BindingBlock] = []
        builder.begin_binding_block()
        self._make_heap()
        self._check_params(str(gvar.name_hint), func)
        for block in func.body.blocks:
            if isinstance(block, DataflowBlock):
                blocks += [builder.end_block(), self.visit_binding_block(block)]
                builder.begin_binding_block()
            else:
                for binding in block.bindings:
                    self.visit_binding(binding)
        result = builder.normalize_argument(self.visit_expr(func.body.body))
        if func.ret_struct_info is not None:
            context = f"fn={gvar.name_hint}, loc=return, annotation={func.ret_struct_info}"
            todo = self._check(func.ret_struct_info, func.body.body, False, False, context)
            self._match(todo, final=True)
        blocks.append(builder.end_block())
        builder.end_scope()
        body = SeqExpr([block for block in blocks if len(block.bindings)], result)
        return Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)

    def _make_heap(self) -> None:
        value, info = null_value(), ObjectStructInfo()
        if self._slots.all:
            info = TensorStructInfo(None, "int64", ndim=1)
            size = [_number(len(self._slots.all))]
            value = call_builtin_with_ctx("vm.builtin.alloc_shape_heap", size, sinfo_args=info)
        self._heap = Var("shape_heap", info)
        self.builder_.emit_normalized(VarBinding(self._heap, self.builder_.normalize(value)))

    def _check_params(self, name: str, func: Function) -> None:
        # Parameters behind the inputs are weights, which the program that loads them looks at.
        num_inputs = int((func.attrs or {}).get("num_input", len(func.params)))
        todo = []
        for i, param in enumerate(func.params):
            info = param.struct_info
            context = f"fn={name}, loc=param[{i}], param={param.name_hint}, annotation={info}"
            todo += self._check(info, param, True, i >= num_inputs, context)
        self._settle(todo)

    # Checks

    def _call(self, name: str, *args: RelayExpr, info: StructInfo = _NOTHING) -> Call:
        return Call(ExternFunc(f"vm.builtin.{name}"), list(args), None, [info])

    def _do(self, name: str, *args: RelayExpr) -> None:
        self.builder_.emit(self._call(name, *args), "_")

    def _context(self, context: str) -> StringImm:
        return StringImm(f"ErrorContext({context}) " if self._with_contexts else "")

    def _check(
        self,
        info: StructInfo,
        value: RelayExpr,
        always: bool,
        dynamic_only: bool,
        context: str,
    ) -> list[_Match]:
        """Check what does not depend on extents, and return what does."""
        known = value.struct_info
        if not always and struct_info_base_check(info, known) == BaseCheckResult.PASS:
            return []
        if dynamic_only and not tir_vars_in_struct_info(info):
            return []
        text = self._context(context)
        if isinstance(info, TensorStructInfo):
            if always or not _covers(TensorStructInfo(None, info.dtype, ndim=info.ndim), known):
                dtype = DataTypeImm(str(info.dtype))
                self._do("check_tensor_info", value, _number(info.ndim), dtype, text)
        elif isinstance(info, ShapeStructInfo):
            if always or not _covers(ShapeStructInfo(ndim=info.ndim), known):
                self._do("check_shape_info", value, _number(info.ndim), text)
        elif isinstance(info, PrimStructInfo):
            if always or not _covers(PrimStructInfo(info.dtype), known):
                self._do("check_prim_value_info", value, DataTypeImm(str(info.dtype)), text)
        elif isinstance(info, FuncStructInfo):
            if always or not _covers(FuncStructInfo.opaque_func(), known):
                self._do("check_func_info", value, text)
        elif isinstance(info, TupleStructInfo):
            return self._check_tuple(info, value, always, dynamic_only, context)
        pattern = _pattern(info)
        return [] if pattern is None else [_Match(value, pattern, context)]

    def _check_tuple(
        self,
        info: TupleStructInfo,
        value: RelayExpr,
        always: bool,
        dynamic_only: bool,
        context: str,
    ) -> list[_Match]:
        if always or not isinstance(value.struct_info, TupleStructInfo):
            count = _number(len(info.fields))
            self._do("check_tuple_info", value, count, self._context(context))
        todo: list[_Match] = []
        for i, part in enumerate(info.fields):
            if dynamic_only and not tir_vars_in_struct_info(part):
                continue
            if isinstance(value, Tuple):
                item: RelayExpr = value.fields[i]
            else:
                anything = ObjectStructInfo()
                item = self._call("tuple_getitem", value, _number(i), info=anything)
                item = self.builder_.emit(item)
            todo += self._check(part, item, always, dynamic_only, context)
        return todo

    # Extents

    def _settle(self, todo: list[_Match]) -> None:
        """Give variables their values, compute what follows from them, and compare the rest."""
        left = self._match(todo, final=False)
        self._compute()
        self._match(left, final=True)

    def _match(self, todo: list[_Match], final: bool) -> list[_Match]:
        """Match what can be matched; returns what has extents without a value.

        Parameters
        ----------
        final : whether all extents must have one.
        """
        left = []
        for item in todo:
            codes = [self._match_code(extent, final) for extent in item.pattern]
            waits = [code == MatchShapeCode.NO_OP for code, _ in codes]
            if any(waits):
                left.append(item)
            if all(waits):
                continue
            is_scalar = isinstance(item.value.struct_info, PrimStructInfo)
            count = [] if is_scalar else [_number(len(codes))]
            flat = [_number(number) for pair in codes for number in pair]
            name = "match_prim_value" if is_scalar else "match_shape"
            self._do(name, item.value, self._heap, *count, *flat, self._context(item.context))
        return left

    def _match_code(self, extent: PrimExpr, final: bool) -> tuple[MatchShapeCode, int]:
        if isinstance(extent, tir.IntImm):
            return MatchShapeCode.ASSERT_EQUAL_TO_IMM, int(extent.value)
        slot = self._slot(extent)
        if slot.known:
            return MatchShapeCode.ASSERT_EQUAL_TO_LOAD, slot.index
        if isinstance(extent, tir.Var):
            slot.known = True
            return MatchShapeCode.STORE_TO_HEAP, slot.index
        if final:
            raise _without_value(extent)
        return MatchShapeCode.NO_OP, 0

    def _slot(self, extent: PrimExpr) -> _Slot:
        slot = self._slots.find(extent)
        if slot is None:
            raise _without_value(extent)
        return slot

    def _compute(self) -> None:
        """A kernel for the expressions whose variables all have values by now."""
        known = {slot.expr: slot.index for slot in self._slots.all
                 if slot.known and isinstance(slot.expr, tir.Var)}  # fmt: skip
        ready = [
            slot
            for slot in self._slots.all
            if not slot.known
            and not isinstance(slot.expr, tir.Var)
            and all(var in known for var in tir.analysis.undefined_vars(slot.expr))
        ]
        if not ready:
            return
        size = tir.const(len(self._slots.all), "int64")
        heap, handle = tir.decl_buffer((size,), "int64", "H"), tir.Var("heap", "handle")

        def at(index: int) -> PrimExpr:
            return tir.const(index, "int64")

        values = {var: tir.BufferLoad(heap, [at(index)]) for var, index in known.items()}
        stores = []
        for slot in ready:
            value = tir.stmt_functor.substitute(slot.expr, values)
            stores.append(tir.BufferStore(heap, value, [at(slot.index)]))
            slot.known = True
        body = stores[0] if len(stores) == 1 else tir.SeqStmt(stores)
        func = tir.PrimFunc([handle], body, buffer_map={handle: heap})
        kernel = self.builder_.add_func(func.with_attr("tir.is_host_func", 1), "shape_func")
        self.builder_.emit(Call(kernel, [self._heap]), "_")

    def _load(self, extent: PrimExpr) -> list[PrimValue]:
        if isinstance(extent, tir.IntImm):
            return [_number(MakeShapeCode.USE_IMM), _number(extent.value)]
        slot = self._slot(extent)
        if not slot.known:
            raise _without_value(extent)
        return [_number(MakeShapeCode.LOAD_SHAPE), _number(slot.index)]

    # Expressions

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        """What is known of values stays."""
        return info

    def visit_function_(self, op: Function) -> RelayExpr:
        """A function inside stays; `LambdaLift` puts such functions side by side."""
        return op

    def visit_shape_expr_(self, op: ShapeExpr) -> RelayExpr:
        if all(isinstance(extent, tir.IntImm) for extent in op.values):
            return op
        codes = [code for extent in op.values for code in self._load(extent)]
        info = ShapeStructInfo(ndim=len(op.values))
        return self._call("make_shape", self._heap, _number(len(op.values)), *codes, info=info)

    def visit_prim_value_(self, op: PrimValue) -> RelayExpr:
        if isinstance(op.value, (tir.IntImm, tir.FloatImm)):
            return op
        return self._call("make_prim_value", self._heap, *self._load(op.value), info=op.struct_info)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.builder_.normalize_argument(self.visit_expr(binding.value))
        context = f"match_cast, struct_info={binding.struct_info}"
        self._settle(self._check(binding.struct_info, value, False, False, context))
        super().visit_match_cast_(binding)


def _covers(general: StructInfo, known: StructInfo) -> bool:
    return struct_info_base_check(general, known) == BaseCheckResult.PASS


def _without_value(extent: PrimExpr) -> Exception:
    return error.ValueError(
        f"relax.VMShapeLower: nothing gives the extent {extent} a value before it is needed; take "
        "it from the shape of a parameter, or from a match_cast"
    )


@graph_pass("VMShapeLower")
def VMShapeLower(mod: IRModule, emit_err_ctx: bool = True) -> IRModule:
    """The module with extents on a heap of each function: no shape in it is symbolic any more.

    Functions ``vm.builtin.check_*`` and ``match_shape`` check parameters, casts and results and
    give variables their values, kernels ``shape_func`` compute what follows from them, and
    ``make_shape`` and ``make_prim_value`` take shapes and numbers from the heap. Expects functions
    side by side, and such as may have effects (`RemovePurityChecking`).

    Parameters
    ----------
    emit_err_ctx : whether messages say which parameter or cast is meant.

    Raises
    ------
    ValueError : an extent has no value where it is needed.
    """
    lowering = _Lowering(mod, emit_err_ctx)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            lowering.builder_.update_func(gvar, lowering.lower(gvar, func))
    return lowering.builder_.finalize()
