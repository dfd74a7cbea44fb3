"""Evaluation at build time of everything that depends on constants only."""

from __future__ import annotations

import tvm
from tvm.ir import IRModule, RelayExpr
from tvm.runtime.relax_vm import VirtualMachine
from tvm.target import Target

from .. import op
from ..block_builder import BlockBuilder
from ..compile_fused import compile_fused
from ..expr import Call, Constant, Function, Tuple, TupleGetItem, Var
from ..rewriter import FunctionRewriter, map_functions, uses_of
from ..struct_info import TupleStructInfo
from .fuse_ops import FuseOps
from .graph_pass import graph_pass

__all__ = ["FoldConstant"]


def _is_foldable(value: RelayExpr, known: set[Var]) -> bool:
    if isinstance(value, Call) and not op.has_op(value.op):
        return False
    return isinstance(value, (Call, Tuple, TupleGetItem)) and known.issuperset(uses_of(value))


class _Replacer(FunctionRewriter):
    def __init__(self, func: Function, values: dict[Var, RelayExpr]) -> None:
        super().__init__(func)
        self._values_of = values

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        return self._values_of.get(var, value)


def _fold(func: Function) -> Function:
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
    results = _evaluate(foldable, [b.var for b in wanted])
    return _Replacer(func, dict(zip((b.var for b in wanted), results))).run()


def _evaluate(bindings: list, outputs: list[Var]) -> list[Constant]:
    """Values of the outputs, by building the bindings as a function without parameters."""
    builder = BlockBuilder()
    env: dict[Var, Var] = {}

    def localise(expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, Tuple):
            return Tuple([localise(item) for item in expr.fields])
        return env.get(expr, expr) if isinstance(expr, Var) else expr

    with builder.function("main", []):
        with builder.dataflow():
            for binding in bindings:
                value = binding.value
                if isinstance(value, Call):
                    args = [localise(arg) for arg in value.args]
                    value = Call(value.op, args, value.attrs, (), value.struct_info)
                elif isinstance(value, TupleGetItem):
                    value = TupleGetItem(localise(value.tuple_value), value.index)
                else:
                    value = localise(value)
                env[binding.var] = builder.emit(value)
            results = [builder.emit_output(env[var]) for var in outputs]
        builder.emit_func_output(Tuple(results))
    machine = VirtualMachine(compile_fused(FuseOps()(builder.get()), Target("llvm")), tvm.cpu())
    return [Constant(array) for array in machine["main"]()]


@graph_pass("relax.FoldConstant")
def FoldConstant(mod: IRModule) -> IRModule:
    """The module with values that depend on constants only replaced by constants.

    The values are computed on the host, by the code the build would make for them.
    """
    return map_functions(mod, _fold)
