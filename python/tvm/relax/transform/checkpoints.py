"""Values of a function that its gradient keeps, and those that it computes again."""

from __future__ import annotations

from tvm import error
from tvm.ir import RelayExpr

from ..block_builder import BlockBuilder
from ..expr import Binding, Call, DataflowVar, Function, Var, VarBinding
from ..expr_functor import PyExprMutator, post_order_visit

__all__ = ["Checkpoints", "Recomputed", "is_call_of"]


def is_call_of(value: RelayExpr, name: str) -> bool:
    """Whether a value is a call of the operator ``relax.<name>``."""
    return isinstance(value, Call) and str(getattr(value.op, "name", "")) == f"relax.{name}"


class Checkpoints(PyExprMutator):
    """Takes the marks `start_checkpoint` and `end_checkpoint` off a function.

    Kept are parameters, what a mark of a start stands on, and what is computed from nothing but
    kept values and what stands behind a mark of an end.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: set[Var] = set()
        self.unmarked: dict[Var, Var] = {}
        self._ended: set[Var] = set()

    def visit_function_(self, func: Function) -> RelayExpr:
        self.kept.update(func.params)
        return super().visit_function_(func)

    def visit_binding(self, binding: Binding) -> None:
        value = binding.value
        starts = is_call_of(value, "grad.start_checkpoint")
        if not starts and not is_call_of(value, "grad.end_checkpoint"):
            read: list[Var] = []
            post_order_visit(value, lambda e: read.append(e) if isinstance(e, Var) else None)
            if all(var in self.kept or var in self._ended for var in read):
                self.kept.add(binding.var)
            super().visit_binding(binding)
            return
        if not isinstance(value.args[0], Var):
            raise error.TypeError("Gradient: marks of checkpoints stand around variables")
        original = self.visit_expr(value.args[0])
        leaves = not isinstance(binding.var, DataflowVar)
        if leaves and isinstance(original, DataflowVar):
            out = self.builder_.emit_output(original, str(original.name_hint))
            self.set_var_remap(binding.var, out)
        else:
            self.set_var_remap(binding.var, original)
        self.unmarked[binding.var] = original
        if starts:
            self.kept.add(original)
        else:
            self._ended.add(binding.var)


class Recomputed(PyExprMutator):
    """Values of the function for its gradient: kept ones as they are, others computed again."""

    def __init__(
        self,
        builder: BlockBuilder,
        params: list[Var],
        bindings: list[VarBinding],
        kept: set[Var],
    ) -> None:
        super().__init__()
        self.builder_ = builder
        self._known: dict[Var, Var] = {param: param for param in params}
        self._values: dict[Var, RelayExpr] = {}
        for binding in bindings:
            self._values[binding.var] = binding.value
            if binding.var in kept:
                self._known[binding.var] = binding.var

    def call(self, var: Var, value: Call) -> tuple[Var, Call]:
        """The variable that stands for one of the function, and the call that gives it."""
        args = [self.visit_expr(arg) for arg in value.args]
        same = all(a.same_as(b) for a, b in zip(args, value.args))
        new = value if same else Call(value.op, args, value.attrs, value.sinfo_args)
        if var not in self._known:
            self._known[var] = self.builder_.emit(new, f"{var.name_hint}_cp")
            bound = self.builder_.lookup_binding(self._known[var])
            assert isinstance(bound, Call)
            new = bound
        return self._known[var], new

    def visit_var_(self, op: Var) -> RelayExpr:
        if op not in self._known:
            value = self.visit_expr(self._values[op])
            self._known[op] = self.builder_.emit(value, f"{op.name_hint}_cp")
        return self._known[op]

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return self.visit_var_(op)
