"""Scratch memory for functions of external code generators."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis import called_global_vars
from ..expr import BindingBlock, Call, DataflowBlock, Function, Var, VarBinding
from ..expr_functor import PyExprMutator
from ..op.builtin import builtin
from ..struct_info import TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["AllocateWorkspace"]

_SIZE = "WorkspaceSize"


def _attr(func: object, name: str) -> object:
    attrs = func.attrs if isinstance(func, Function) else None
    return None if attrs is None else attrs.get(name, None)


def _is_external(func: object) -> bool:
    return _attr(func, "Codegen") is not None or _attr(func, "Composite") is not None


class _Taker(PyExprMutator):
    """Functions that need scratch memory, with a parameter for it."""

    def __init__(self, mod: IRModule, size: int) -> None:
        super().__init__(mod)
        self._info = TensorStructInfo([size], "uint8")
        self._given: Var | None = None
        self._takers: set[Var] = set()
        self._count = 0

    def visit_function_(self, op: Function) -> RelayExpr:
        if not _is_external(op) or _attr(op, _SIZE) is None:
            return super().visit_function_(op)
        name = "workspace" if not self._count else f"workspace_{self._count}"
        self._count += 1
        param = Var(name, self._info)
        outer = self._given
        if _attr(op, "Codegen") is not None:
            self._given = param
        params = [*op.params, param]
        body = self.visit_with_new_scope(op.body, params)
        self._given = outer
        attrs = {k: v for k, v in op.attrs.items() if k != _SIZE}
        return Function(params, body, op.ret_struct_info, op.is_pure, attrs)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Function) and _attr(value, "Composite") and _attr(value, _SIZE):
            self._takers.add(binding.var)
        super().visit_var_binding_(binding)

    def visit_call_(self, op: Call) -> RelayExpr:
        if not isinstance(op.op, Var) or op.op not in self._takers or self._given is None:
            return super().visit_call_(op)
        args = [self.visit_expr(arg) for arg in op.args]
        return Call(self.visit_expr(op.op), [*args, self._given], op.attrs, op.sinfo_args)


class _Provider(PyExprMutator):
    """A function that allocates the memory in its first dataflow block and hands it on."""

    def __init__(self, mod: IRModule, takers: dict[GlobalVar, GlobalVar], size: int) -> None:
        super().__init__(mod)
        self._takers = takers
        self._size = size
        self._memory: Var | None = None

    def provided(self, func: Function) -> Function:
        """The function with memory for those that it calls."""
        self._memory = None
        return self.visit_expr(func)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.builder_.begin_dataflow_block()
        if self._memory is None:
            call = builtin.alloc_tensor([self._size], "uint8", 0)
            self._memory = self.builder_.emit(call, "workspace_main")
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_.end_block()

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if call.op not in self._takers or self._memory is None:
            return call
        args = [*call.args, self._memory]
        return Call(self._takers[call.op], args, call.attrs, call.sinfo_args)


def _calls(func: Function, takers: dict[GlobalVar, GlobalVar]) -> bool:
    return any(gvar in takers for gvar in called_global_vars(func))


@graph_pass("AllocateWorkspace")
def AllocateWorkspace(mod: IRModule) -> IRModule:
    """The module with scratch memory handed to functions that ask for it.

    A function for an external code generator (attribute "Codegen") asks by the attribute
    "WorkspaceSize", a number of bytes, and so do the patterns in it (attribute "Composite"). Each
    gets a last parameter of as many bytes as the largest of them needs; functions that call them
    allocate it once, in their first dataflow block. The attribute goes away.
    """
    asking = {g: f for g, f in mod.functions.items() if _attr(f, _SIZE) is not None}
    if not asking:
        return mod
    size = max(int(func.attrs[_SIZE]) for func in asking.values())
    taker = _Taker(mod, size)
    takers: dict[GlobalVar, GlobalVar] = {}
    functions = {g: f for g, f in mod.functions.items() if g not in asking}
    for gvar, func in asking.items():
        # What is known of a function is known by its name, so a new type needs a new name object.
        takers[gvar] = GlobalVar(str(gvar.name_hint))
        functions[takers[gvar]] = taker.visit_expr(func)
    made = mod.with_functions(functions)
    provider = _Provider(made, takers, size)
    for gvar, func in made.functions.items():
        if isinstance(func, Function) and not _is_external(func) and _calls(func, takers):
            functions[gvar] = provider.provided(func)
    return made.with_functions(functions)
