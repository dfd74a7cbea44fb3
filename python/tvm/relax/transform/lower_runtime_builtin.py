"""Operators for memory, shapes and closures as calls of the virtual machine's functions."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir import IRModule, RelayExpr

from ..expr import Call, ExternFunc, Function, Tuple
from ..expr_functor import PyExprMutator, mutator
from ..op import call_builtin_with_ctx, get_op
from ..op.builtin import vm
from ..struct_info import ObjectStructInfo, TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["LowerRuntimeBuiltin", "VMBuiltinLower"]


def _packed(name: str) -> Callable[[Call], Call]:
    """A call of the function of that name with the operator's operands."""

    def lower(call: Call) -> Call:
        return Call(ExternFunc(f"vm.builtin.{name}"), list(call.args), None, [call.struct_info])

    return lower


def _with_machine(name: str) -> Callable[[Call], Call]:
    """The same for a function that takes the machine, then operands one by one."""

    def lower(call: Call) -> Call:
        first, rest = call.args
        assert isinstance(rest, Tuple)
        infos = [call.struct_info] if not _is_nothing(call) else []
        function = ExternFunc(f"vm.builtin.{name}")
        return call_builtin_with_ctx(function, [first, *rest.fields], sinfo_args=infos or None)

    return lower


def _is_nothing(call: Call) -> bool:
    info = call.struct_info
    return isinstance(info, TupleStructInfo) and not len(info.fields)


def _alloc_storage(call: Call) -> Call:
    size, device, scope, dtype = call.args
    return vm.alloc_storage(size, device, dtype, scope)


def _view(call: Call) -> Call:
    left_out = [isinstance(arg, Tuple) and not len(arg.fields) for arg in call.args]
    nothing = Call(get_op("null_value"), [], None, (), ObjectStructInfo())
    args = [nothing if out else arg for out, arg in zip(left_out, call.args)]
    return Call(ExternFunc("runtime.TVMArrayCreateView"), args, None, [call.struct_info])


_LOWERED: dict[str, Callable[[Call], Call]] = {
    "memory.alloc_storage": _alloc_storage,
    "memory.alloc_tensor": lambda call: vm.alloc_tensor(*call.args),
    "memory.kill_storage": lambda call: vm.kill_object(call.args[0]),
    "memory.kill_tensor": lambda call: vm.kill_object(call.args[0]),
    "memory.view": _view,
    "memory.ensure_zero_offset": _packed("ensure_zero_offset"),
    "reshape": _packed("reshape"),
    "shape_of": _packed("shape_of"),
    "tensor_to_shape": _packed("tensor_to_shape"),
    "make_closure": _with_machine("make_closure"),
    "invoke_closure": _with_machine("invoke_closure"),
    "vm.call_tir_dyn": _with_machine("call_tir_dyn"),
}


@mutator
class _Lowering(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call):
            return call
        for name, lower in _LOWERED.items():
            if call.op.same_as(get_op(name)):
                return lower(self.builder_.normalize(call))
        return call


@graph_pass("LowerRuntimeBuiltin")
def LowerRuntimeBuiltin(mod: IRModule) -> IRModule:
    """The module with operators for memory, shapes and closures as the virtual machine's.

    Storage and tensors in it, and what lets go of them, become operators ``vm.*``; reshapes, shapes
    of tensors, closures and calls with symbolic extents become calls of functions ``vm.builtin.*``.
    Expects plain blocks, and functions that may have effects.
    """
    functions = {
        gvar: _Lowering(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)


VMBuiltinLower = LowerRuntimeBuiltin
"""The older name."""
