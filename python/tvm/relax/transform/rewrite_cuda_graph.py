"""Runs of kernels over fixed memory as functions of their own, which a device may replay whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import tir
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr
from tvm.transform import PassContext

from ..analysis import free_vars
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
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
from ..expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..op import call_builtin_with_ctx, get_op
from ..struct_info import ShapeStructInfo, StructInfo
from ..struct_info_relations import tir_vars_in_struct_info
from .bind import bind_function
from .bundle_params import inputs_of
from .graph_pass import graph_pass

__all__ = ["RewriteCUDAGraph"]

_EXTENTS = "relax.rewrite_cuda_graph.capture_symbolic_vars"

# Operators of these beginnings make or forget memory; none of them starts work on a device.
_NO_WORK = ("relax.memory.", "relax.builtin.", "relax.vm.")


@dataclass
class _Region:
    """Bindings that go into a function of their own.

    Attributes
    ----------
    inputs : variables from around it, in the order of their first use. extents : symbolic extents
        that it needs. outputs : its variables that others read.
    """

    bindings: list[VarBinding] = field(default_factory=list)
    inputs: list[Var] = field(default_factory=list)
    extents: list[tir.Var] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)

    def variables(self) -> list[Var]:
        """What it binds."""
        return [binding.var for binding in self.bindings]


def _is_call(value: RelayExpr, *names: str) -> bool:
    return isinstance(value, Call) and any(value.op.same_as(get_op(name)) for name in names)


def _storage_of_results(func: Function) -> set[Var]:
    """Storage of tensors that a function gives, which the caller may keep."""
    made: dict[Var, Binding] = {}
    todo: list[Var] = []

    @visitor
    class Look(PyExprVisitor):
        def visit_var_binding_(self, binding: VarBinding) -> None:
            made[binding.var] = binding
            super().visit_var_binding_(binding)

    def results(expr: RelayExpr) -> list[Var]:
        return free_vars(expr.body) if isinstance(expr, SeqExpr) else free_vars(expr)

    Look().visit_expr(func)
    todo = results(func.body)
    seen: set[Var] = set()
    while todo:
        var = todo.pop()
        if var in seen:
            continue
        seen.add(var)
        value = made[var].value if var in made else None
        is_name = isinstance(value, (Var, Tuple, TupleGetItem))
        if value is not None and (is_name or _is_call(value, "memory.alloc_tensor", "reshape")):
            todo += free_vars(value)
    return {
        var for var in seen if var in made and _is_call(made[var].value, "memory.alloc_storage")
    }


@visitor
class _Planner(PyExprVisitor):
    """Finds what has a fixed place in memory, and the runs of kernels over that alone."""

    def __init__(self, mod: IRModule, func: Function) -> None:
        self._mod = mod
        self._func = func
        self._fixed: set[Var] = set()
        self._extents: set[tir.Var] = set()
        self._kept = _storage_of_results(func)
        self._region: _Region | None = None
        self._region_of: dict[Var, _Region] = {}
        self.storages: list[VarBinding] = []
        self.regions: list[_Region] = []
        count = inputs_of(func)
        names = set((func.attrs or {}).get(_EXTENTS, ()))
        for position, param in enumerate(func.params):
            extents = tir_vars_in_struct_info(param.struct_info)
            self._extents.update(e for e in extents if str(e.name) in names)
            if count is not None and position >= count:
                # Weights stay where they are, and so do their extents.
                self._fixed.add(param)
                self._extents.update(extents)

    def run(self) -> None:
        """Plan the function."""
        self.visit_expr(self._func)
        for region in self.regions:
            for var in region.variables():
                if self._is_read_outside(var, region):
                    region.outputs.append(var)

    def _is_read_outside(self, var: Var, region: _Region) -> bool:
        own = {id(binding.value) for binding in region.bindings}
        found = False

        @visitor
        class Look(PyExprVisitor):
            def visit_var_binding_(self, binding: VarBinding) -> None:
                if id(binding.value) not in own:
                    super().visit_var_binding_(binding)

            def visit_var_(self, op: Var) -> None:
                nonlocal found
                found = found or op.same_as(var)

            visit_dataflow_var_ = visit_var_

            def visit_var_def(self, var: Var) -> None:
                pass

        Look().visit_expr(self._func)
        return found

    def visit_binding_block_(self, block: BindingBlock) -> None:
        outer, self._region = self._region, None
        for binding in block.bindings:
            self.visit_binding(binding)
        self._close()
        self._region = outer

    visit_dataflow_block_ = visit_binding_block_

    def _close(self) -> None:
        region, self._region = self._region, None
        if region is not None:
            self.regions.append(region)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._close()
        super().visit_match_cast_(binding)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if _is_call(value, "memory.alloc_storage"):
            if self._is_constant_size(value) and binding.var not in self._kept:
                self.storages.append(binding)
                self._fixed.add(binding.var)
            return
        if _is_call(value, "builtin.alloc_tensor"):
            return
        if not self._may_lift(value):
            self._close()
            super().visit_var_binding_(binding)
            return
        if self._region is None and self._is_work(value):
            self._region = _Region()
        self._fixed.add(binding.var)
        if self._region is not None:
            self._add(self._region, binding)

    @staticmethod
    def _is_constant_size(call: Call) -> bool:
        size = call.args[0]
        return isinstance(size, ShapeExpr) and all(isinstance(n, tir.IntImm) for n in size.values)

    def _add(self, region: _Region, binding: VarBinding) -> None:
        own = set(region.variables())
        parts: list[Any] = [binding.value]
        for var in free_vars(binding.value):
            parts.append(var)
            if var not in own and var not in region.inputs:
                region.inputs.append(var)
        for part in parts:
            for extent in self._extents_of(part):
                if extent not in region.extents:
                    region.extents.append(extent)
        region.bindings.append(binding)

    def _extents_of(self, expr: RelayExpr) -> list[tir.Var]:
        parts: Sequence[RelayExpr] = ()
        if isinstance(expr, Call):
            parts = expr.args
        elif isinstance(expr, Tuple):
            parts = expr.fields
        if isinstance(expr, ShapeExpr):
            return [v for n in expr.values for v in tir.analysis.undefined_vars(n)]
        if isinstance(expr, PrimValue):
            return list(tir.analysis.undefined_vars(expr.value))
        if isinstance(expr, Var):
            return list(tir_vars_in_struct_info(expr.struct_info))
        return [v for part in parts for v in self._extents_of(part)]

    def _is_work(self, value: RelayExpr) -> bool:
        """Whether a binding starts work on a device, rather than naming memory."""
        if not isinstance(value, Call):
            return False
        if isinstance(value.op, Op):
            name = str(value.op.name)
            idle = ("relax.reshape", "relax.null_value", "relax.call_builtin_with_ctx")
            return not name.startswith(_NO_WORK) and name not in idle
        return True

    def _may_lift(self, value: RelayExpr) -> bool:
        if isinstance(value, Call):
            callee = value.op
            if isinstance(callee, GlobalVar) and not isinstance(
                self._mod.functions.get(callee), tir.PrimFunc
            ):
                return False
            if isinstance(callee, ExternFunc) and str(callee.global_symbol).startswith(
                "vm.builtin"
            ):
                return False
            if not isinstance(callee, (GlobalVar, ExternFunc, Op)):
                return False
            return all(self._is_fixed(arg) for arg in value.args)
        if isinstance(value, (Var, Constant)):
            return self._is_fixed(value)
        if isinstance(value, Tuple):
            return self._is_fixed(value)
        return isinstance(value, TupleGetItem) and self._is_fixed(value.tuple_value)

    def _is_fixed(self, expr: RelayExpr) -> bool:
        if isinstance(expr, (Constant, DataTypeImm, StringImm, GlobalVar, ExternFunc)):
            return True
        if isinstance(expr, Tuple):
            return all(self._is_fixed(part) for part in expr.fields)
        if isinstance(expr, Var):
            known = all(extent in self._extents for extent in self._extents_of(expr))
            return expr in self._fixed and known
        if isinstance(expr, (ShapeExpr, PrimValue)):
            return all(extent in self._extents for extent in self._extents_of(expr))
        return False


@mutator
class _Outlined(PyExprMutator):
    """Bindings as a function of what they need, which gives a tuple of what others read."""

    def build(self, region: _Region) -> Function:
        params = []
        for var in region.inputs:
            params.append(Var(str(var.name_hint), var.struct_info))
            self.set_var_remap(var, params[-1])
        if region.extents:
            params.append(Var("shape_expr", ShapeStructInfo(list(region.extents))))
        self.builder_.begin_scope(params)
        self.builder_.begin_binding_block()
        for binding in region.bindings:
            self.visit_binding(binding)
        result = self.builder_.emit(Tuple([self.visit_expr(var) for var in region.outputs]))
        block = self.builder_.end_block()
        self.builder_.end_scope()
        func = Function(params, SeqExpr([block], result), None, True, {"relax.force_pure": True})
        own = {extent: tir.Var(extent.name, extent.dtype) for extent in region.extents}
        return bind_function(func, {}, own)

    def visit_var_def(self, var: Var) -> Var:
        new = Var(str(var.name_hint), var.struct_info)
        self.set_var_remap(var, new)
        return new


@dataclass
class _Plan:
    """What becomes of a function: the place of each storage in the common one, and its regions."""

    storages: list[VarBinding]
    regions: list[_Region]
    slots: dict[Var, int] = field(default_factory=dict)


def _share(plans: Sequence[_Plan]) -> list[VarBinding]:
    """Storage for all functions, which do not run at the same time: the largest of each rank."""

    def size(binding: VarBinding) -> int:
        return int(binding.value.args[0].values[0])

    common: list[VarBinding] = []
    kinds = sorted({str(b.value.args[2].value) for plan in plans for b in plan.storages})
    for kind in kinds:
        own = [
            sorted(
                (b for b in plan.storages if str(b.value.args[2].value) == kind),
                key=size,
                reverse=True,
            )
            for plan in plans
        ]
        for rank in range(max(map(len, own))):
            alike = [(plan, bs[rank]) for plan, bs in zip(plans, own) if rank < len(bs)]
            for plan, binding in alike:
                plan.slots[binding.var] = len(common)
            common.append(max((b for _, b in alike), key=size))
    return common


@mutator
class _Launcher(PyExprMutator):
    """A function that takes its storage from the common one and launches its regions."""

    def __init__(
        self, mod: IRModule, plan: _Plan, alloc: tuple[GlobalVar, StructInfo] | None,
        captures: Sequence[tuple[GlobalVar, StructInfo, int]],
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self._plan = plan
        self._alloc = alloc
        self._captures = {r.bindings[0].var: (r, c) for r, c in zip(plan.regions, captures)}
        self._lifted = {var for region in plan.regions for var in region.variables()}
        self._results: dict[Var, TupleGetItem] = {}
        self._memory: Var | None = None

    def visit_binding(self, binding: Binding) -> None:
        var = binding.var
        if var in self._plan.slots:
            self._storage(var)
            return
        launched = self._captures.get(var)
        if launched is not None:
            self._launch(*launched)
        if var in self._results:
            self.set_var_remap(var, self.builder_.emit(self._results[var], str(var.name_hint)))
        if var not in self._lifted:
            super().visit_binding(binding)

    def _storage(self, var: Var) -> Var:
        new = self.get_var_remap(var)
        if not new.same_as(var):
            return new
        assert self._alloc is not None
        if self._memory is None:
            gvar, info = self._alloc
            self._memory = self.builder_.emit(
                call_builtin_with_ctx(
                    "vm.builtin.cuda_graph.get_cached_alloc",
                    Tuple([gvar, PrimValue(0)]),
                    sinfo_args=info,
                )
            )
        field_of = TupleGetItem(self._memory, self._plan.slots[var])
        new = self.builder_.emit(field_of, str(var.name_hint))
        self.set_var_remap(var, new)
        return new

    def _launch(self, region: _Region, capture: tuple[GlobalVar, StructInfo, int]) -> None:
        gvar, info, number = capture
        args: list[RelayExpr] = [
            self._storage(var) if var in self._plan.slots else self.visit_expr(var)
            for var in region.inputs
        ]
        extents = [ShapeExpr(list(region.extents))] if region.extents else []
        call = call_builtin_with_ctx(
            "vm.builtin.cuda_graph.run_or_capture",
            Tuple([gvar, Tuple([*args, *extents]), PrimValue(number), *extents]),
            sinfo_args=info,
        )
        results = self.builder_.emit(call)
        for position, var in enumerate(region.outputs):
            self._results[var] = TupleGetItem(results, position)


@graph_pass("RewriteCUDAGraph")
def RewriteCUDAGraph(mod: IRModule) -> IRModule:
    """The module with runs of kernels over fixed memory as functions, if the configuration has
    ``relax.backend.use_cuda_graph``; else the module.

    Expects storage planned by `StaticPlanBlockMemory` and plain calls of kernels. Storage of
    constant size, of which no result is a part, moves to ``cuda_graph_alloc``, which runs once:
    functions share it, so they must not run at the same time. Weights, the parameters behind those
    that "num_input" counts, stay where they are as well. Consecutive calls of kernels over such
    memory alone become a function ``<name>_cuda_graph_capture`` that
    ``vm.builtin.cuda_graph.run_or_capture`` runs. Symbolic extents are taken along if weights have
    them or the function's attribute "relax.rewrite_cuda_graph.capture_symbolic_vars" names them.
    """
    if not PassContext.current().config.get("relax.backend.use_cuda_graph", False):
        return mod
    plans: dict[GlobalVar, _Plan] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            planner = _Planner(mod, func)
            planner.run()
            plans[gvar] = _Plan(planner.storages, planner.regions)
    builder = _Outlined(mod).builder_
    alloc = None
    common = _share(list(plans.values()))
    if common:
        outputs = [binding.var for binding in common]
        made = _Outlined(mod).build(_Region(common, outputs=outputs))
        alloc = builder.add_func(made, "cuda_graph_alloc"), made.ret_struct_info
    number = 0
    for gvar, plan in plans.items():
        captures = []
        for region in plan.regions:
            made = _Outlined(mod).build(region)
            # What the call gives is in the caller's extents.
            info = Tuple([*region.outputs]).struct_info
            name = f"{gvar.name_hint}_cuda_graph_capture"
            captures.append((builder.add_func(made, name), info, number))
            number += 1
        if plan.storages or plan.regions:
            launcher = _Launcher(builder.get(), plan, alloc, captures)
            builder.update_func(gvar, launcher.visit_expr(mod[gvar]))
    return builder.finalize()
