"""Changes to the bindings of one dataflow block, one after another."""

from __future__ import annotations

import tvm
from tvm import error
from tvm.ir import IRModule, RelayExpr

from .analysis import free_vars
from .block_builder import BlockBuilder
from .expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from .expr_functor import PyExprMutator, mutator

__all__ = ["DataflowBlockRewrite"]


@mutator
class _Replaced(PyExprMutator):
    def __init__(self, old: Var, new: Var) -> None:
        super().__init__()
        self.set_var_remap(old, new)


@tvm._ffi.register_func("relax.DataflowBlockWithOutput")
def _block_with_output(block: DataflowBlock, local: DataflowVar, output: Var) -> DataflowBlock:
    """The block with a variable of its own made one that is seen outside, under the same name.

    Registered for `BlockBuilder`, which stands below the mutators.
    """
    replaced = _Replaced(local, output)
    bindings: list[Binding] = []
    for binding in block.bindings:
        if binding.var.same_as(local):
            cast = isinstance(binding, MatchCast)
            new = (
                MatchCast(output, binding.value, binding.struct_info)
                if cast
                else VarBinding(output, binding.value)
            )
            bindings.append(new)
        else:
            bindings += replaced.visit_binding_block(DataflowBlock([binding])).bindings
    return DataflowBlock(bindings)


class DataflowBlockRewrite:
    """Edits a dataflow block of a function; neither is changed, the results are new ones.

    Parameters
    ----------
    dfb : a block of the function.
    root_fn : the function.

    Raises
    ------
    ValueError : the function has no such block.
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        places = [i for i, block in enumerate(root_fn.body.blocks) if block.same_as(dfb)]
        if not places:
            raise error.ValueError("DataflowBlockRewrite: the function does not have this block")
        self._original = root_fn
        self._place = places[0]
        self._func = root_fn
        self._builder = BlockBuilder()
        for param in root_fn.params:
            self._builder.get_unique_name(str(param.name_hint))
        for block in root_fn.body.blocks:
            for binding in block.bindings:
                self._builder.get_unique_name(str(binding.var.name_hint))

    def mutated_dfb(self) -> DataflowBlock:
        """The block as it is by now."""
        return self._func.body.blocks[self._place]

    def mutated_root_fn(self) -> Function:
        """The function as it is by now."""
        return self._func

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """The module with the function as it is by now.

        Raises
        ------
        ValueError : the module does not have the function that this began with.
        """
        functions = dict(irmodule.functions.items())
        for gvar, func in functions.items():
            if func.same_as(self._original):
                functions[gvar] = self._func
                return irmodule.with_functions(functions)
        raise error.ValueError("DataflowBlockRewrite: the module does not have this function")

    def _set(self, bindings: list[Binding]) -> None:
        blocks: list[BindingBlock] = list(self._func.body.blocks)
        blocks[self._place] = DataflowBlock(bindings)
        func = self._func
        body = SeqExpr(blocks, func.body.body)
        self._func = Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Let everything that reads one variable read another one."""
        self._func = _Replaced(old_var, new_var).visit_expr(self._func)

    def add(
        self, expr: RelayExpr | Binding, name: str | None = None, is_dfvar: bool = False
    ) -> None:
        """Add a binding at the end of the block.

        Parameters
        ----------
        expr : a binding, or a value to bind.
        name : of the variable; a new one by default.
        is_dfvar : whether the variable is local to the block.
        """
        if isinstance(expr, Binding):
            self._set([*self.mutated_dfb().bindings, expr])
            return
        made = DataflowVar if is_dfvar else Var
        value = self._builder.normalize(expr)
        hint = name or self._builder.get_unique_name("lv" if is_dfvar else "gv")
        self._set([*self.mutated_dfb().bindings, VarBinding(made(hint, value.struct_info), value)])

    def _readers(self) -> set[Var]:
        read = set(free_vars(self._func.body.body))
        for block in self._func.body.blocks:
            for binding in block.bindings:
                read.update(free_vars(binding.value))
        return read

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable of the block that nothing reads.

        Parameters
        ----------
        allow_undef : whether the variable may be one that the block does not bind.

        Raises
        ------
        ValueError : the variable is read, or the block does not bind it.
        """
        bindings = list(self.mutated_dfb().bindings)
        kept = [b for b in bindings if not b.var.same_as(var)]
        if len(kept) == len(bindings):
            if allow_undef:
                return
            raise error.ValueError(
                f"remove_unused: the block does not bind '{var.name_hint}'; with allow_undef=True "
                "that is no error"
            )
        if var in self._readers():
            raise error.ValueError(f"remove_unused: '{var.name_hint}' is read")
        self._set(kept)

    def remove_all_unused(self) -> None:
        """Remove bindings of the block that nothing reads, again until all are read."""
        while True:
            read = self._readers()
            bindings = list(self.mutated_dfb().bindings)
            kept = [b for b in bindings if b.var in read]
            if len(kept) == len(bindings):
                return
            self._set(kept)
