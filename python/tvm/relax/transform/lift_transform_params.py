"""What follows from weights alone, as a function of its own that runs once."""

from __future__ import annotations

from tvm import tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis import contains_impure_call, free_vars
from ..analysis.dead_code import without_dead_code
from ..expr import (
    Binding,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from ..struct_info import TupleStructInfo
from ..struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in_struct_info
from .bundle_params import inputs_of
from .graph_pass import graph_pass

__all__ = ["LiftTransformParams"]


class _Split:
    """The bindings of a function that follow from its weights alone, and the rest.

    Attributes
    ----------
    lifted : those bindings, in order. outputs : the weights and the variables of such bindings that
        the rest reads: weights first.
    """

    def __init__(self, func: Function, inputs: int) -> None:
        self.weights = list(func.params)[inputs:]
        known: set[Var] = set(self.weights)
        extents: set[tir.Var] = set()
        for weight in self.weights:
            extents.update(definable_tir_vars_in_struct_info(weight.struct_info))
        self.lifted: list[Binding] = []
        lifted_vars: set[Var] = set()
        for block in func.body.blocks:
            for binding in block.bindings if isinstance(block, DataflowBlock) else ():
                if self._may_lift(binding, known, extents):
                    known.add(binding.var)
                    lifted_vars.add(binding.var)
                    self.lifted.append(binding)
        read: set[Var] = set(free_vars(func.body.body))
        for block in func.body.blocks:
            for binding in block.bindings:
                if binding.var not in lifted_vars:
                    read.update(free_vars(binding.value))
        self.outputs = [w for w in self.weights if w in read]
        self.outputs += [b.var for b in self.lifted if b.var in read]

    @staticmethod
    def _may_lift(binding: Binding, known: set[Var], extents: set[tir.Var]) -> bool:
        value = binding.value
        if isinstance(binding, MatchCast) or contains_impure_call(value):
            return False
        if isinstance(value, Call) and value.op.same_as(get_op("builtin.stop_lift_params")):
            return False
        read = free_vars(value)
        if not read or not all(var in known for var in read):
            return False
        used = [*tir_vars_in_struct_info(binding.var.struct_info)]
        if isinstance(value, Call):
            for part in [*value.args, *value.sinfo_args]:
                info = getattr(part, "struct_info", part)
                used += [] if info is None else tir_vars_in_struct_info(info)
        return all(extent in extents for extent in used)


@mutator
class _Rest(PyExprMutator):
    """The function without what was lifted; what that gives are parameters."""

    def __init__(self, mod: IRModule, split: _Split, inputs: int) -> None:
        super().__init__(mod)
        self._inputs = inputs
        self._outputs = split.outputs
        self._lifted = {b.var for b in split.lifted}

    def visit_function_(self, op: Function) -> Function:
        made = []
        for var in self._outputs:
            new = var if not isinstance(var, DataflowVar) and var not in self._lifted else Var(
                str(var.name_hint), var.struct_info
            )  # fmt: skip
            self.set_var_remap(var, new)
            made.append(new)
        params = [*list(op.params)[: self._inputs], *made]
        body = self.visit_with_new_scope(op.body, params)
        return Function(params, body, op.ret_struct_info, op.is_pure, op.attrs)

    def visit_binding(self, binding: Binding) -> None:
        if binding.var not in self._lifted:
            super().visit_binding(binding)

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if call.op.same_as(get_op("builtin.stop_lift_params")):
            return call.args[0]
        return call


@mutator
class _Lifted(PyExprMutator):
    """What was lifted, as a function of a tuple of weights."""

    def build(self, split: _Split) -> Function:
        bundle = Var("params", TupleStructInfo([w.struct_info for w in split.weights]))
        self._fields = {w: TupleGetItem(bundle, i) for i, w in enumerate(split.weights)}
        self.builder_.begin_scope([bundle])
        self.builder_.begin_dataflow_block()
        for weight in split.outputs:
            if weight in self._fields:
                self.visit_var_(weight)
        for binding in split.lifted:
            value = self.builder_.normalize(self.visit_expr(binding.value))
            var = DataflowVar(str(binding.var.name_hint), value.struct_info)
            self.builder_.emit_normalized(VarBinding(var, value))
            self.set_var_remap(binding.var, var)
        result = Tuple([self.visit_expr(var) for var in split.outputs])
        output = self.builder_.emit_output(result)
        block = self.builder_.end_block()
        self.builder_.end_scope()
        func = Function([bundle], SeqExpr([block], output), None, True, {"num_input": 0})
        return without_dead_code(func)

    def visit_var_(self, op: Var) -> RelayExpr:
        new = self.get_var_remap(op)
        if new.same_as(op) and op in self._fields:
            new = self.builder_.emit(self._fields[op], str(op.name_hint))
            self.set_var_remap(op, new)
        return new

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return self.visit_var_(op)


@graph_pass("relax.LiftTransformParams")
def LiftTransformParams(mod: IRModule) -> IRModule:
    """The module with what follows from weights alone in functions that run once.

    Weights are the parameters behind those that "num_input" counts; functions without that
    attribute stay as they are. For ``main`` there is a function ``main_transform_params`` then,
    which takes the weights as a tuple and gives what ``main`` takes behind its inputs from now on:
    weights that it reads as they are, then what was lifted, in order. What reads the result of
    ``builtin.stop_lift_params`` stays, and so do casts, calls that may have effects and what is
    outside of dataflow blocks.
    """
    functions = dict(mod.functions.items())
    for gvar, func in mod.functions.items():
        inputs = inputs_of(func) if isinstance(func, Function) else None
        if inputs is None:
            continue
        split = _Split(func, inputs)
        made = _Lifted(mod).build(split)
        name = f"{gvar.name_hint}_transform_params"
        if "global_symbol" in func.attrs:
            made = made.with_attr("global_symbol", name)
        functions[gvar] = _Rest(mod, split, inputs).visit_expr(func)
        functions[GlobalVar(name)] = made
    return mod.with_functions(functions)
