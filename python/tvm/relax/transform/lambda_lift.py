"""Functions inside of functions as functions of the module."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis.variables import defined_symbolic_vars, free_symbolic_vars, free_vars
from ..expr import Call, Function, PrimValue, Var, VarBinding
from ..expr_functor import PyExprMutator, mutator
from ..op import invoke_closure, invoke_pure_closure, make_closure
from ..struct_info import FuncStructInfo, PrimStructInfo
from ..struct_info_relations import definable_tir_vars_in_struct_info
from .bind import bind_function
from .graph_pass import graph_pass

__all__ = ["LambdaLift"]


@dataclass
class _Lifted:
    """A function that stands in the module now.

    Attributes
    ----------
    name : there. captured : what it takes from around it, behind its own parameters, as the place
        that is being built calls it.
    """

    name: GlobalVar
    captured: list[RelayExpr]


@mutator
class _Lifter(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self._taken = {str(gvar.name_hint) for gvar in mod.functions}
        self._owner = ""
        # Functions that are called by their name here, with what they capture.
        self._direct: dict[Var, _Lifted] = {}

    def lift_all(self, gvar: GlobalVar, func: Function) -> None:
        """Lift what is inside of a function of the module."""
        self._owner = str(gvar.name_hint)
        self.builder_.update_func(gvar, self.visit_expr(func))

    def _fresh(self, local: str) -> GlobalVar:
        name = base = f"{self._owner}_{local}"
        number = 0
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return GlobalVar(name)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        if not isinstance(binding.value, Function):
            super().visit_var_binding_(binding)
            return
        own, func = binding.var, binding.value
        lifted = _Lifted(self._fresh(str(own.name_hint)), [])
        free = [v for v in free_vars(func) if not v.same_as(own) and v not in self._direct]
        # A function that captures may be called inside of another, which then captures the same.
        outer = [self.visit_expr(v) for v in free]
        inner = [Var(str(v.name_hint), now.struct_info) for v, now in zip(free, outer)]
        known = {e for v in inner for e in definable_tir_vars_in_struct_info(v.struct_info)}
        for extent in free_symbolic_vars(func):
            if extent not in known:
                outer.append(PrimValue(extent))
                inner.append(Var(str(extent.name), PrimStructInfo(value=extent)))
        before = {v: self._remap.get(v) for v in free}
        self._remap.update(zip(free, inner))
        self._direct[own] = _Lifted(lifted.name, list(inner))
        self.builder_.update_func(lifted.name, self._declared(func, inner))
        made = self.visit_expr(func)
        for v, old in before.items():
            if old is None:
                del self._remap[v]
            else:
                self._remap[v] = old
        gives_function = isinstance(func.ret_struct_info, FuncStructInfo)
        info = None if gives_function else made.ret_struct_info
        attrs = {k: v for k, v in (made.attrs or {}).items() if k != "global_symbol"}
        function = Function([*made.params, *inner], made.body, info, made.is_pure, attrs)
        extents = {e: tir.Var(e.name, e.dtype) for e in defined_symbolic_vars(function)}
        self.builder_.update_func(lifted.name, bind_function(function, {}, extents))
        if inner:
            del self._direct[own]
            self.reemit_binding(binding, make_closure(lifted.name, outer))
        else:
            self._direct[own] = lifted

    @staticmethod
    def _declared(func: Function, captured: list[Var]) -> Function:
        """What calls of a function need to know of it while it is being made."""
        params = [Var(str(p.name_hint), p.struct_info) for p in func.params]
        return Function.create_empty(
            [*params, *captured], func.ret_struct_info, is_pure=func.is_pure
        )

    def visit_var_(self, op: Var) -> RelayExpr:
        lifted = self._direct.get(op)
        if lifted is None:
            return super().visit_var_(op)
        if not lifted.captured:
            return lifted.name
        return self.builder_.emit(make_closure(lifted.name, lifted.captured))

    visit_dataflow_var_ = visit_var_

    def visit_call_(self, op: Call) -> RelayExpr:
        if not isinstance(op.op, Var):
            return super().visit_call_(op)
        args = [self.visit_expr(arg) for arg in op.args]
        lifted = self._direct.get(op.op)
        if lifted is not None:
            return Call(lifted.name, [*args, *lifted.captured], op.attrs, op.sinfo_args)
        info = op.op.struct_info
        pure = not isinstance(info, FuncStructInfo) or info.purity
        invoke = invoke_pure_closure if pure else invoke_closure
        return invoke(self.visit_expr(op.op), args, op.struct_info)


@graph_pass("LambdaLift")
def LambdaLift(mod: IRModule) -> IRModule:
    """The module with the functions inside of graph functions as private functions of their own.

    They are called after the function around and their own name. What they take from around them
    become parameters at the end; where they do, the function is made a closure, and calls of it, as
    of any function value, invoke one.
    """
    lifter = _Lifter(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            lifter.lift_all(gvar, func)
    return lifter.builder_.get()
