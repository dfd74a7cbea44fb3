"""Which operands of kernels may be stored otherwise, since they are weights."""

from __future__ import annotations

from tvm import tir
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import Call, Constant, Function, Tuple, Var
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from .bundle_params import inputs_of
from .dead_code import DeadCodeElimination
from .graph_pass import graph_pass

__all__ = ["AttachAttrLayoutFreeBuffers"]


@mutator
class _Attacher(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self._mod = mod
        self._weights: set[Var] = set()
        self._kernels: dict[tuple[GlobalVar, tuple[int, ...]], GlobalVar] = {}

    def visit_function_(self, op: Function) -> RelayExpr:
        count = inputs_of(op)
        self._weights = set() if count is None else set(list(op.params)[count:])
        return super().visit_function_(op)

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not call.op.same_as(get_op("call_tir")) or not isinstance(call.args[1], Tuple):
            return call
        kernel = self._mod.functions.get(call.args[0])
        free = tuple(
            i
            for i, arg in enumerate(call.args[1].fields)
            if isinstance(arg, Constant) or (isinstance(arg, Var) and arg in self._weights)
        )
        if not free or not isinstance(kernel, tir.PrimFunc):
            return call
        key = (call.args[0], free)
        if key not in self._kernels:
            marked = kernel.with_attr("layout_free_buffers", list(free))
            name = str(call.args[0].name_hint)
            self._kernels[key] = self.builder_.add_func(marked, name)
        args = [self._kernels[key], *list(call.args)[1:]]
        return Call(call.op, args, call.attrs, call.sinfo_args)


@graph_pass("AttachAttrLayoutFreeBuffers")
def AttachAttrLayoutFreeBuffers(mod: IRModule) -> IRModule:
    """The module with "layout_free_buffers" on kernels that are given weights.

    Weights are constants, and parameters behind those that "num_input" counts. The attribute lists
    their positions among a kernel's parameters; schedules may then store them anew
    (`meta_schedule`'s ``RewriteLayout``). Kernels that nobody calls any more are gone.
    """
    attacher = _Attacher(mod)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            attacher.builder_.update_func(gvar, attacher.visit_expr(func))
    return DeadCodeElimination()(attacher.builder_.get())
