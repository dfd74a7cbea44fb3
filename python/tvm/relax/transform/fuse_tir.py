"""Functions that call kernels one after the other as single kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr
from tvm.tir.buffer_mutator import BufferMutator

from ..expr import Call, Function, ShapeExpr, Tuple, TupleGetItem, Var
from ..expr_functor import PyExprMutator
from ..op import call_tir
from ..struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor_fields,
)
from .dead_code import DeadCodeElimination
from .graph_pass import graph_pass

__all__ = ["FuseTIR"]

_CALL_TIR = "relax.call_tir"

_Value = Any  # A buffer, or a list of values for a tuple.


class _Inliner(BufferMutator):
    """The body of a kernel over other buffers, with loops and blocks of its own."""

    def __init__(self, taken: set[str]) -> None:
        super().__init__()
        self._taken = taken

    def bind_var(self, var: tir.Var) -> tir.Var:
        if var.type_annotation is not None and str(var.dtype) == "handle":
            return tir.Var(str(var.name), var.type_annotation)
        return type(var)(str(var.name), str(var.dtype))

    def give(self, old: tir.Buffer, new: tir.Buffer) -> None:
        """Say which buffer stands for a parameter, and so what its extents are."""
        self._buffers[old] = new
        self._vars[old.data] = new.data
        for extent, value in zip(old.shape, new.shape):
            if isinstance(extent, tir.Var) and extent not in self._vars:
                self._vars[extent] = _as(value, str(extent.dtype))

    def give_scalar(self, old: tir.Var, value: PrimExpr) -> None:
        """Say what a scalar parameter is."""
        self._vars[old] = _as(value, str(old.dtype))

    def map_buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        self.bound(buffer.data)
        return super().map_buffer(buffer)

    def visit_block_(self, op: tir.Block) -> tir.Stmt:
        new = super().visit_block_(op)
        name, number = str(op.name_hint), 0
        while name in self._taken:
            number += 1
            name = f"{op.name_hint}_{number}"
        self._taken.add(name)
        return tir.Block(
            new.iter_vars, new.reads, new.writes, name, new.body, new.init, new.alloc_buffers,
            new.match_buffers, new.annotations,
        )  # fmt: skip


def _as(value: PrimExpr, dtype: str) -> PrimExpr:
    return value if str(value.dtype) == dtype else value.astype(dtype)


class _Fused:
    """One kernel for a function that calls kernels."""

    def __init__(self, func: Function, mod: IRModule) -> None:
        self._mod = mod
        self._values: dict[Var, _Value] = {}
        self._allocated: list[tir.Buffer] = []
        self._stmts: list[tir.Stmt] = []
        self._block_names = {"root"}
        inputs: list[tir.Buffer] = []
        extents: list[tir.Var] = []
        for param in func.params:
            if isinstance(param.struct_info, ShapeStructInfo):
                extents += list(param.struct_info.values)
                continue
            buffers = self._declared(param.struct_info, str(param.name_hint))
            self._values[param] = buffers
            inputs += _flat(buffers)
        for block in func.body.blocks:
            for binding in block.bindings:
                self._values[binding.var] = self._computed(binding.value, binding.var)
        outputs = _flat(self._value(func.body.body))
        given = {id(buffer) for buffer in inputs}
        if any(id(buffer) in given for buffer in outputs):
            raise error.ValueError("FuseTIR: a fused function gives one of its parameters")
        results = {id(buffer) for buffer in outputs}
        inner = [buffer for buffer in self._allocated if id(buffer) not in results]
        buffer_map = {tir.Var(f"p_{b.name}", "handle"): b for b in [*inputs, *outputs]}
        whole = self._stmts[0] if len(self._stmts) == 1 else tir.SeqStmt(self._stmts)
        root = tir.Block([], [], [], "root", whole, None, inner)
        body = tir.BlockRealize([], tir.const(True, "bool"), root)
        self.func = tir.PrimFunc(
            [*buffer_map, *extents], body, buffer_map=buffer_map, attrs={"tir.noalias": True}
        )

    def _declared(self, info: StructInfo, name: str) -> _Value:
        if isinstance(info, TupleStructInfo):
            return [self._declared(field, f"{name}_{i}") for i, field in enumerate(info.fields)]
        if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
            raise error.ValueError(f"FuseTIR: kernels take tensors of known shape, got {info}")
        return tir.decl_buffer(list(info.shape.values), str(info.dtype), name)

    def _value(self, expr: RelayExpr) -> _Value:
        if isinstance(expr, Tuple):
            return [self._value(item) for item in expr.fields]
        if isinstance(expr, TupleGetItem):
            return self._value(expr.tuple_value)[expr.index]
        return self._values[expr]

    def _computed(self, value: RelayExpr, var: Var) -> _Value:
        if not isinstance(value, Call):
            return self._value(value)
        if str(getattr(value.op, "name", "")) != _CALL_TIR:
            raise error.ValueError(f"FuseTIR: a fused function calls kernels only, not {value.op}")
        kernel = self._mod[str(value.args[0].name_hint)]
        results = self._declared(value.struct_info, str(var.name_hint))
        self._allocated += _flat(results)
        operands = [*_flat(self._value(value.args[1])), *_flat(results)]
        inliner = _Inliner(self._block_names)
        tensors = [param for param in kernel.params if param in kernel.buffer_map]
        scalars = [param for param in kernel.params if param not in kernel.buffer_map]
        extents = list(value.args[2].values) if len(value.args) > 2 else []
        for param, scalar in zip(scalars, extents):
            inliner.give_scalar(param, scalar)
        for param, buffer in zip(tensors, operands):
            inliner.give(kernel.buffer_map[param], buffer)
        body = kernel.body
        if isinstance(body, tir.BlockRealize) and not len(body.block.iter_vars):
            self._allocated += [inliner.buffer(b) for b in body.block.alloc_buffers]
            body = body.block.body
        new = inliner.visit(body)
        self._stmts += list(new.seq) if isinstance(new, tir.SeqStmt) else [new]
        return results


def _flat(value: _Value) -> list[tir.Buffer]:
    if isinstance(value, list):
        return [buffer for item in value for buffer in _flat(item)]
    return [value]


class _Calls(PyExprMutator):
    """Calls of functions that have become kernels."""

    def __init__(self, mod: IRModule, kernels: dict[str, GlobalVar]) -> None:
        super().__init__(mod)
        self._kernels = kernels

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, GlobalVar):
            return call
        kernel = self._kernels.get(str(call.op.name_hint))
        if kernel is None:
            return call
        tensors: list[RelayExpr] = []
        extents: list[PrimExpr] = []
        for arg in call.args:
            if isinstance(arg.struct_info, ShapeStructInfo):
                extents += list(arg.struct_info.values)
            else:
                tensors += self._fields(arg)
        info = op.struct_info
        outputs: Any = tensor_fields(info) if isinstance(info, TupleStructInfo) else info
        return call_tir(kernel, tensors, outputs, ShapeExpr(extents) if extents else None)

    def _fields(self, arg: RelayExpr) -> Sequence[RelayExpr]:
        info = arg.struct_info
        if not isinstance(info, TupleStructInfo):
            return [arg]
        if isinstance(arg, Tuple):
            return [field for item in arg.fields for field in self._fields(item)]
        parts = [self.builder_.emit(TupleGetItem(arg, i)) for i in range(len(info.fields))]
        return [field for part in parts for field in self._fields(part)]


def _is_fused(func: Function) -> bool:
    if "Primitive" not in func.attrs or "Codegen" in func.attrs:
        return False
    return "Composite" not in func.attrs or all(
        isinstance(binding.value, Call) and str(getattr(binding.value.op, "name", "")) == _CALL_TIR
        for block in func.body.blocks
        for binding in block.bindings
    )


@graph_pass("FuseTIR")
def FuseTIR(mod: IRModule) -> IRModule:
    """The module with one kernel for each function of attribute "Primitive".

    The kernel has the blocks of those that the function calls, one after the other, and what they
    hand on in memory of its own. Kernels that nothing calls any more are gone. A function that
    `FuseOpsByPattern` made of operators, or for another compiler, stays.

    Raises
    ------
    ValueError : such a function calls other functions too, takes what is no tensor, or gives one of
        its parameters.
    """
    made: dict[str, tuple[GlobalVar, tir.PrimFunc]] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and _is_fused(func):
            name = str(gvar.name_hint)
            made[name] = (GlobalVar(name), _Fused(func, mod).func)
    if not made:
        return mod
    calls = _Calls(mod, {name: gvar for name, (gvar, _) in made.items()})
    functions: dict[GlobalVar, Any] = {}
    for gvar, func in mod.functions.items():
        name = str(gvar.name_hint)
        if name in made:
            functions[made[name][0]] = made[name][1]
        else:
            functions[gvar] = calls.visit_expr(func) if isinstance(func, Function) else func
    return DeadCodeElimination()(mod.with_functions(functions))
