"""Results that are written over operands nobody needs any more."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error, tir
from tvm.ir import GlobalVar, IRModule
from tvm.tir.buffer_mutator import BufferMutator

from ..analysis.dataflow_memory import inplace_opportunities
from ..block_builder import BlockBuilder
from ..expr import Binding, BindingBlock, Call, DataflowBlock, Function, MatchCast, VarBinding
from ..expr_functor import PyExprMutator
from ..op import call_tir_inplace, get_op
from ..struct_info import StructInfo, TupleStructInfo
from .graph_pass import graph_pass
from .legalize_ops import default_legalization

__all__ = ["DataflowUseInplaceCalls", "inplace_call"]


class _Renamed(BufferMutator):
    """A kernel's body with some buffers, and the variables of their memory, replaced."""

    def __init__(self, buffers: dict[tir.Buffer, tir.Buffer]) -> None:
        super().__init__()
        self._vars = {old.data: new.data for old, new in buffers.items()}
        self._buffers = dict(buffers)


def _over_arguments(kernel: tir.PrimFunc, indices: Sequence[int]) -> tir.PrimFunc:
    """A kernel whose last parameters, the results, are the parameters of these indices."""
    params = list(kernel.params)
    outputs = params[len(params) - len(indices) :]
    buffers = {
        kernel.buffer_map[output]: kernel.buffer_map[params[index]]
        for output, index in zip(outputs, indices)
    }
    body = _Renamed(buffers).visit(kernel.body)
    kept = params[: len(params) - len(indices)]
    return tir.PrimFunc(
        kept, body, kernel.ret_type, {p: kernel.buffer_map[p] for p in kept}, kernel.attrs
    )


def inplace_call(
    builder: BlockBuilder, call: Call, indices: Sequence[int]
) -> tuple[Call, GlobalVar]:
    """The call of an operator as one of a kernel that writes its results over arguments.

    Parameters
    ----------
    builder : takes the kernel, and that which it was made of.
    indices : for each result, the argument that it is written over.

    Returns
    -------
    The call, and the kernel that writes into memory of its own, of which nobody is told.

    Raises
    ------
    ValueError : the operator has no kernel for its operands, or as many results are needed as there
        are indices.
    """
    legalization = default_legalization(call)
    legal = None if legalization is None else builder.normalize(legalization(builder, call))
    if not isinstance(legal, Call) or not legal.op.same_as(get_op("call_tir")):
        raise error.ValueError(
            f"inplace_call: {call.op} has no kernel for operands "
            f"{', '.join(str(arg.struct_info) for arg in call.args)}"
        )
    info = legal.sinfo_args[0]
    infos: list[StructInfo] = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    if len(infos) != len(indices):
        raise error.ValueError(
            f"inplace_call: {call.op} has {len(infos)} results, got {len(indices)} indices"
        )
    source = legal.args[0]
    kernel = builder.get()[source]
    name = f"{source.name_hint}_inplace"
    gvar = builder.add_func(_over_arguments(kernel, indices), name)
    extents = legal.args[2] if len(legal.args) > 2 else None
    return call_tir_inplace(gvar, legal.args[1], list(indices), infos, extents), source


class _Writer(PyExprMutator):
    def __init__(self, mod: IRModule) -> None:
        super().__init__(mod)
        self._chosen: dict[Binding, int] = {}
        self.sources: list[GlobalVar] = []

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer = self._chosen
        bindings = list(block.bindings)
        _, equal = inplace_opportunities(block)
        self._chosen = {bindings[position]: arguments[0] for position, arguments in equal}
        result = super().visit_dataflow_block_(block)
        self._chosen = outer
        return result

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self._replaced(binding)
        if value is None:
            super().visit_var_binding_(binding)
        else:
            self.reemit_binding(binding, value)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self._replaced(binding)
        if value is None:
            super().visit_match_cast_(binding)
            return
        var = self.visit_var_def(binding.var)
        self.builder_.emit_normalized(MatchCast(var, value, binding.struct_info))

    def _replaced(self, binding: Binding) -> Call | None:
        index = self._chosen.get(binding)
        call = self.visit_expr_post_order(binding.value) if index is not None else None
        if index is None or not isinstance(call, Call) or default_legalization(call) is None:
            return None
        written, source = inplace_call(self.builder_, self.builder_.normalize(call), [index])
        self.sources.append(source)
        return self.builder_.normalize(written)


@graph_pass("DataflowUseInplaceCalls")
def DataflowUseInplaceCalls(mod: IRModule) -> IRModule:
    """The module with results of element by element operators written over an operand that nobody
    needs any more.

    In dataflow blocks, a call whose argument has the shape and type of its result, is read for the
    last time and shares its memory with nothing that is read later becomes a ``call_tir_inplace``
    of a kernel that the module has then. Parameters of functions, constants, and what a function
    gave that may be either are never written.
    """
    writer = _Writer(mod)
    before = {str(gvar.name_hint) for gvar in mod.functions}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            writer.builder_.update_func(gvar, writer.visit_expr(func))
    result = writer.builder_.finalize()
    made = {str(source.name_hint) for source in writer.sources} - before
    return result.with_functions(
        {gvar: func for gvar, func in result.functions.items() if str(gvar.name_hint) not in made}
    )
