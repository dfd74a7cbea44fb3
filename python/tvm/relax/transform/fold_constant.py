"""Evaluation at build time of everything that depends on constants only."""

from __future__ import annotations

import tvm
from tvm import tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target

from .. import op
from ..analysis import remove_all_unused
from ..block_builder import BlockBuilder
from ..compile_fused import compile_fused
from ..expr import Call, Constant, Function, PrimValue, ShapeExpr, Tuple, TupleGetItem, Var
from ..op.rules import known_shape, number
from ..rewriter import FunctionRewriter, map_functions, uses_of
from ..struct_info import TupleStructInfo, tensor_fields
from .attach_symbol import with_symbols
from .fuse_ops import FuseOps
from .graph_pass import graph_pass

__all__ = ["FoldConstant"]


def _is_foldable(value: RelayExpr, known: set[Var]) -> bool:
    if isinstance(value, Call) and not op.has_op(value.op) and not _is_kernel_call(value):
        return False
    if isinstance(value, Call) and not _is_fixed(value):
        return False
    return isinstance(value, (Call, Tuple, TupleGetItem)) and known.issuperset(uses_of(value))


def _is_kernel_call(call: Call) -> bool:
    """Whether it calls a kernel for fixed sizes."""
    return call.op.same_as(op.get_op("call_tir")) and len(call.args) == 2


def _is_fixed(call: Call) -> bool:
    """Whether a call asks for no open sizes, and the shapes of what it gives are numbers."""
    scalars = [v for arg in call.args for v in _scalars_of(arg)]
    if any(isinstance(v, PrimExpr) and tir.analysis.undefined_vars(v) for v in scalars):
        return False
    shapes = [known_shape(info) for info in tensor_fields(call.struct_info)]
    return all(s is not None and all(number(e) is not None for e in s) for s in shapes)


def _scalars_of(arg: RelayExpr) -> list[PrimExpr]:
    """Numbers of the host among the operands of a call."""
    if isinstance(arg, PrimValue):
        return [arg.value]
    return list(arg.values) if isinstance(arg, ShapeExpr) else []


class _Replacer(FunctionRewriter):
    def __init__(self, func: Function, values: dict[Var, RelayExpr]) -> None:
        super().__init__(func)
        self._values_of = values

    def _rewrite_binding(self, var: Var, old_value: RelayExpr) -> None:
        if var in self._values_of:
            self._replaced[var] = self._values_of[var]
        else:
            super()._rewrite_binding(var, old_value)


def _fold(mod: IRModule, func: Function) -> Function:
    known: set[Var] = set()
    bindings = [b for block in func.body.blocks for b in block.bindings]
    foldable = []
    for binding in bindings:
        if _is_foldable(binding.value, known):
            known.add(binding.var)
            foldable.append(binding)
    # Only what the rest of the function reads is worth keeping as a constant.
    remaining = [b.value for b in bindings if b.var not in known] + [func.body.body]
    read = {var for value in remaining for var in uses_of(value)}
    wanted = [
        b
        for b in foldable
        if b.var in read and not isinstance(b.value.struct_info, TupleStructInfo)
    ]
    if not wanted:
        return func
    results = _evaluate(mod, foldable, [b.var for b in wanted])
    replaced = _Replacer(func, dict(zip((b.var for b in wanted), results))).run()
    return remove_all_unused(replaced)


def _evaluate(mod: IRModule, bindings: list, outputs: list[Var]) -> list[Constant]:
    """Values of the outputs, by building the bindings as a function without parameters."""
    builder = BlockBuilder()
    env: dict[Var, Var] = {}

    def localise(expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, Tuple):
            return Tuple([localise(item) for item in expr.fields])
        if isinstance(expr, GlobalVar):
            # With a pattern, kernels would be grouped for `FuseTIR` and not compiled one by one.
            return builder.add_func(mod[expr].without_attr("op_pattern"), str(expr.name_hint))
        return env.get(expr, expr) if isinstance(expr, Var) else expr

    with builder.function("main", []):
        with builder.dataflow():
            for binding in bindings:
                value = binding.value
                if isinstance(value, Call):
                    args = [localise(arg) for arg in value.args]
                    infos = value.sinfo_args
                    value = Call(value.op, args, value.attrs, infos, value.struct_info)
                elif isinstance(value, TupleGetItem):
                    value = TupleGetItem(localise(value.tuple_value), value.index)
                else:
                    value = localise(value)
                env[binding.var] = builder.emit(value)
            results = [builder.emit_output(env[var]) for var in outputs]
        builder.emit_func_output(Tuple(results))
    fused = with_symbols(FuseOps()(builder.get()))
    machine = VirtualMachine(compile_fused(fused, Target("llvm")), tvm.cpu())
    return [Constant(array) for array in machine["main"]()]


@graph_pass("FoldConstant")
def FoldConstant(mod: IRModule) -> IRModule:
    """The module with values that depend on constants only replaced by constants.

    The values are computed on the host, by the code the build would make for them. Operators and
    kernels (`call_tir`) of fixed sizes are folded; what only they read is gone.
    """
    return map_functions(mod, lambda func: _fold(mod, func))
