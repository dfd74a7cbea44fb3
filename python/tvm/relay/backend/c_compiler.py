"""Parts of programs as C, for the compiler of the machine: the code generator "ccompiler"."""

from __future__ import annotations

import tvm
from tvm import tir
from tvm.ir import GlobalVar, IRModule, RelayExpr, TensorType
from tvm.runtime import Module, NDArray
from tvm.target import Target

from ..expr import Constant, Function, Var
from ..expr_functor import PostOrderMutator
from .interpreter import may_be_setting
from .te_compiler import TECompiler

__all__: list[str] = []


class _WithParameters(PostOrderMutator):
    """A function's body with a parameter for each array in it."""

    def __init__(self) -> None:
        super().__init__()
        self.params: list[Var] = []
        self.arrays: list[NDArray] = []

    def visit_constant(self, const: Constant) -> RelayExpr:
        if may_be_setting(const):
            return const
        shape = [int(extent) for extent in const.data.shape]
        self.params.append(
            Var(f"array{len(self.params)}", TensorType(shape, str(const.data.dtype)))
        )
        self.arrays.append(const.data)
        return self.params[-1]


def _bound(func: tir.PrimFunc, first: int, arrays: list[NDArray]) -> tir.PrimFunc:
    """A program that holds the arrays which it had as parameters from one on."""
    body, buffers = func.body, dict(func.buffer_map.items())
    params = list(func.params)
    for param, array in zip(params[first : first + len(arrays)], arrays):
        buffer = buffers.pop(param)
        body = tir.AllocateConst(buffer.data, str(array.dtype), list(array.shape), array, body)
    kept = params[:first] + params[first + len(arrays) :]
    return tir.PrimFunc(kept, body, func.ret_type, buffers, func.attrs)


@tvm._ffi.register_func("relay.ext.ccompiler")
def compile_function(func: Function) -> Module:
    """C source with the function under its `global_symbol`, and the arrays that it holds.

    The machine's compiler is called when the function first runs, and by `export_library`.

    Raises
    ------
    TypeError, ValueError : the function is no graph of known shapes.
    """
    lifted = _WithParameters()
    body = lifted.visit(func.body)
    kernel = TECompiler().lower(Function([*func.params, *lifted.params], body), Target("c"))
    program = _bound(kernel.funcs[kernel.prim_fn_var], len(func.params), lifted.arrays)
    name = str(func.attrs["global_symbol"])
    named = program.with_attr("global_symbol", name)
    return tvm.build(IRModule({GlobalVar(name): named}), target="c")
