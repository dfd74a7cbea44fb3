"""From a module whose values are not only tensors of fixed shapes to an executable."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error, tir
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr
from tvm.runtime import Device
from tvm.runtime.relax_vm import Executable
from tvm.target import Target

from .block_builder import BlockBuilder
from .exec_builder import ExecBuilder
from .expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .expr_functor import post_order_visit
from .op import has_op, op_spec
from .program_codegen import write_programs
from .rewriter import FunctionRewriter, graph_functions, uses_of
from .struct_info import TensorStructInfo, TupleStructInfo
from .transform import LambdaLift
from .transform.attach_symbol import with_symbols
from .transform.legalize_ops.common import is_computed, registered
from .transform.legalize_ops.legalize import compact_kernels

__all__ = [
    "compile_programs",
    "has_fixed_sizes",
    "has_known_shapes",
    "in_dataflow_blocks",
    "is_list_of_kernels",
]

_KERNEL_CALLS = ("relax.call_tir", "relax.call_dps_packed")


def is_list_of_kernels(mod: IRModule) -> bool:
    """Whether all graph functions take tensors, call kernels one after the other, and give tensors,
    so that kernels can be fused, and memory be planned once the sizes are known."""
    return all(_is_list(mod, func) for func in graph_functions(mod).values())


def has_fixed_sizes(mod: IRModule) -> bool:
    """Whether all tensors of such a module have shapes of numbers."""
    return all(map(_is_fixed, _infos(mod)))


def has_known_shapes(mod: IRModule) -> bool:
    """Whether all tensors of such a module have shapes that are known up to symbolic extents."""
    return all(map(_is_known, _infos(mod)))


def _infos(mod: IRModule) -> list[Any]:
    infos: list[Any] = []
    for func in graph_functions(mod).values():
        infos += [param.struct_info for param in func.params]
        infos += [b.var.struct_info for block in func.body.blocks for b in block.bindings]
    return infos


def _is_known(info: Any) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(map(_is_known, info.fields))
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return False
    return info.shape.struct_info.values is not None and str(info.dtype) != "void"


def _is_fixed(info: Any) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(_is_fixed(part) for part in info.fields)
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        return False
    extents = info.shape.struct_info.values
    return extents is not None and all(isinstance(e, (int, tir.IntImm)) for e in extents)


def _is_list(mod: IRModule, func: Function) -> bool:
    if not all(isinstance(param.struct_info, TensorStructInfo) for param in func.params):
        return False
    result = func.body.body.struct_info
    fields = result.fields if isinstance(result, TupleStructInfo) else [result]
    if not fields or not all(isinstance(field, TensorStructInfo) for field in fields):
        return False
    return all(
        isinstance(binding, VarBinding) and _is_listed(mod, binding.value)
        for block in func.body.blocks
        for binding in block.bindings
    )


def _is_listed(mod: IRModule, value: RelayExpr) -> bool:
    if isinstance(value, (Var, Constant, Tuple, TupleGetItem)):
        return True
    if not isinstance(value, Call):
        return False
    if isinstance(value.op, GlobalVar):
        callee = mod[value.op] if value.op in mod.functions else None
        return isinstance(callee, Function) and bool(callee.attrs.get("Primitive", 0))
    if not isinstance(value.op, Op):
        return False
    name = str(value.op.name)
    if name in _KERNEL_CALLS:
        if len(value.args) > 2 and all(isinstance(e, tir.IntImm) for e in value.args[2].values):
            return False
        operands = value.args[1].struct_info.fields
        return all(isinstance(info, TensorStructInfo) for info in operands)
    return has_op(value.op) or is_computed(value.op) or registered(name) is not None


class _OneBlock(FunctionRewriter):
    """All bindings of a list of kernels in one block of dataflow, since none has effects."""

    def run(self) -> Function:
        results = set(uses_of(self.func.body.body))
        bindings = []
        for block in self.func.body.blocks:
            for binding in block.bindings:
                old = binding.var
                kind = Var if old in results else DataflowVar
                new = kind(str(old.name_hint), old.struct_info)
                bindings.append(VarBinding(new, self.substitute(binding.value)))
                self._replaced[old] = new
        result = self.substitute(self.func.body.body)
        return Function(
            self.func.params,
            SeqExpr([DataflowBlock(bindings)], result),
            is_pure=self.func.is_pure,
            attrs=self.func.attrs,
        )


def in_dataflow_blocks(mod: IRModule) -> IRModule:
    """A module of lists of kernels with all bindings in blocks of dataflow, which are fused."""
    functions = dict(mod.functions.items())
    for gvar, func in graph_functions(mod).items():
        if any(not isinstance(block, DataflowBlock) for block in func.body.blocks):
            functions[gvar] = _OneBlock(func).run()
    return mod.with_functions(functions)


def compile_programs(mod: IRModule, target: Target) -> Executable:
    """An executable whose functions are programs; see :func:`tvm.relax.build`.

    Raises
    ------
    ValueError : the target is no processor, an operator has no kernel for its operands, or an
        extent has no value.
    """
    if target.get_target_device_type() != Device.kDLCPU:
        raise error.ValueError(
            f"relax.build: for {target.kind.name}, functions take and give tensors and "
            "call kernels one after the other; others, and those of open sizes, are compiled "
            "for processors"
        )
    mod = with_symbols(_legal(mod))
    builder = ExecBuilder()
    kernels = {g: f for g, f in mod.functions.items() if isinstance(f, tir.PrimFunc)}
    kernels.update(write_programs(mod, builder))
    if not kernels:
        return builder.get()
    library = tvm.build(IRModule(kernels), target=target)
    return builder.get(library, [str(gvar.name_hint) for gvar in kernels])


def _legal(mod: IRModule) -> IRModule:
    """The module with functions side by side, and kernels for operators."""
    views = {
        name: _as_it_is
        for func in graph_functions(mod).values()
        for name in _operator_names(func)
        if op_spec(name).is_view
    }
    return compact_kernels(LambdaLift()(mod), views)


def _as_it_is(builder: BlockBuilder, call: Call) -> Call:
    return call


def _operator_names(func: Function) -> set[str]:
    found: set[str] = set()

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Call) and has_op(expr.op):
            found.add(str(expr.op.name))

    post_order_visit(func, look)
    return found
