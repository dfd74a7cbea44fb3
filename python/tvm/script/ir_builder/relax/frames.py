"""The parts of a graph function that are open while bindings come."""

from __future__ import annotations

from typing import Any

from tvm import error, relax
from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr
from tvm.relax.struct_info_relations import narrower_struct_info

from ..base import IRBuilder, IRBuilderFrame
from ..ir import IRModuleFrame

__all__ = ["BindingBlockFrame", "BranchFrame", "FunctionFrame", "IfFrame"]


class _Renamed(relax.PyExprMutator):
    """A function whose variables have their last names, and outputs of dataflow blocks are seen."""

    def __init__(self, names: dict[relax.Var, str], outputs: set[relax.Var]) -> None:
        super().__init__()
        self._names = names
        self._outputs = outputs

    def visit_var_def_(self, var: relax.Var) -> relax.Var:
        if var not in self._names:
            return var
        return self._put(var, relax.Var(self._names[var], var.struct_info))

    def visit_dataflow_var_def_(self, var: relax.DataflowVar) -> relax.Var:
        name = self._names.get(var, str(var.name_hint))
        if var in self._outputs:
            return self._put(var, relax.Var(name, var.struct_info))
        if var not in self._names:
            return var
        return self._put(var, relax.DataflowVar(name, var.struct_info))

    def _put(self, var: relax.Var, new: relax.Var) -> relax.Var:
        self.set_var_remap(var, new)
        return new


class FunctionFrame(IRBuilderFrame):
    """A graph function.

    Parameters
    ----------
    is_pure : calls of it have no effects.
    is_private : it gets no global symbol by its name.
    """

    def __init__(self, is_pure: bool = True, is_private: bool = False) -> None:
        super().__init__()
        self.is_pure = is_pure
        self.is_private = is_private
        self.name: str | None = None
        self.params: list[relax.Var] = []
        self.attrs: dict[str, Any] | None = None
        self.ret_struct_info: relax.StructInfo | None = None
        self.output: RelayExpr | None = None
        self.names: dict[relax.Var, str] = {}
        self.outputs: set[relax.Var] = set()
        self.blocks: list[relax.BindingBlock] = []
        self.builder = relax.BlockBuilder()
        self._known: set[GlobalVar] = set()

    def opened(self) -> FunctionFrame:
        """The frame itself, with the functions of the module around in sight."""
        module = IRBuilder.current().find(IRModuleFrame)
        if module is not None:
            known: dict[GlobalVar, BaseFunc] = dict(module.functions)
            self._known = set(known)
            self.builder = relax.BlockBuilder(IRModule(known))
        self.builder.begin_scope([])
        self.builder.begin_binding_block()
        return self

    def rename(self, value: Any, name: str) -> bool:
        """Keep the name of a variable for the finished function; parameters have theirs."""
        if not isinstance(value, relax.Var):
            return False
        if not any(value.same_as(param) for param in self.params):
            self.names.setdefault(value, name)
        return True

    def close_block(self) -> None:
        """End the block of bindings that is open, if only to begin another one."""
        block = self.builder.end_block()
        if len(block.bindings):
            self.blocks.append(block)

    def closed(self) -> None:
        """Hand the function to the module around, or to the builder."""
        if self.output is None:
            raise error.ValueError(
                f"the function `{self.name or ''}` has no result; call R.func_ret_value in it"
            )
        self.close_block()
        self.builder.end_scope()
        builder = IRBuilder.current()
        func = self._finish()
        kernels = {
            var: kernel
            for var, kernel in self.builder.finalize().functions.items()
            if var not in self._known
        }
        if not builder.frames:
            if kernels:
                raise error.ValueError(
                    "R.emit_te adds a kernel to the module; open `with I.ir_module():` around"
                )
            builder.result = func
            return
        module = builder.frames[-1]
        if not isinstance(module, IRModuleFrame) or self.name is None:
            raise error.ValueError(
                "a function stands alone or in a module, where R.func_name gives it a name"
            )
        for var, kernel in kernels.items():
            if str(var.name_hint) in module.global_vars:
                raise error.ValueError(
                    f"R.emit_te: the module has a function `{var.name_hint}` already; give another "
                    "primfunc_name_hint"
                )
            module.global_vars[str(var.name_hint)] = var
            module.functions[var] = kernel
        var = module.global_vars.setdefault(self.name, GlobalVar(self.name))
        module.functions[var] = func

    def _finish(self) -> relax.Function:
        assert self.output is not None
        attrs = self.attrs or {}
        if self.name is not None and not self.is_private and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        known = relax.BlockBuilder._erased(self.output.struct_info, self.params)
        if self.ret_struct_info is not None:
            known = narrower_struct_info(self.ret_struct_info, known)
        func = relax.Function(
            self.params,
            relax.SeqExpr(self.blocks, self.output),
            known,
            self.is_pure,
            relax.expr.dict_attrs(attrs),
        )
        return _Renamed(self.names, self.outputs).visit_expr(func)


class BindingBlockFrame(IRBuilderFrame):
    """A dataflow block, whose bindings have no effects."""

    def __init__(self, function: FunctionFrame) -> None:
        super().__init__()
        self.function = function
        self.output_vars: list[relax.Var] | None = None

    def opened(self) -> BindingBlockFrame:
        """The frame itself; its `output_vars` are there when it has ended."""
        if self.function.builder.current_block_is_dataflow():
            raise error.ValueError("R.dataflow: dataflow blocks do not nest")
        self.function.close_block()
        self.function.builder.begin_dataflow_block()
        return self

    def closed(self) -> None:
        """Go on in an ordinary block."""
        if self.output_vars is None:
            raise error.ValueError("the dataflow block gives nothing away; end it with R.output")
        self.function.close_block()
        self.function.builder.begin_binding_block()


class IfFrame(IRBuilderFrame):
    """A choice between two sequences of bindings, whose last ones have one name.

    `var` is the value of the conditional, when the frame has ended.
    """

    def __init__(self, condition: RelayExpr, function: FunctionFrame) -> None:
        super().__init__()
        self.condition = condition
        self.function = function
        self.branches: dict[str, tuple[relax.SeqExpr, str]] = {}
        self.var: relax.Var | None = None

    def opened(self) -> IfFrame:
        """The frame itself."""
        if self.function.builder.current_block_is_dataflow():
            raise error.ValueError("R.If: a dataflow block has no branches; end it before")
        return self

    def closed(self) -> None:
        """Bind the value of the branch that is taken."""
        missing = [f"R.{name}" for name in ("Then", "Else") if name not in self.branches]
        if missing:
            raise error.ValueError(f"R.If needs a branch `with {missing[0]}():`")
        (then, name), (other, other_name) = self.branches["Then"], self.branches["Else"]
        if name != other_name:
            raise error.ValueError(
                f"the branches of R.If end with `{name}` and `{other_name}`; give both last values "
                "one name with IRBuilder.name"
            )
        self.var = self.function.builder.emit(relax.If(self.condition, then, other))
        self.function.names[self.var] = name


class BranchFrame(IRBuilderFrame):
    """One of the two sequences of a conditional; its last binding is its value."""

    def __init__(self, name: str, choice: IfFrame) -> None:
        super().__init__()
        self.name = name
        self.choice = choice
        self._around: list[relax.BindingBlock] = []

    def opened(self) -> BranchFrame:
        """The frame itself."""
        if self.name in self.choice.branches:
            raise error.ValueError(f"R.If has one branch R.{self.name}")
        function = self.choice.function
        self._around, function.blocks = function.blocks, []
        function.builder.begin_scope([])
        function.builder.begin_binding_block()
        return self

    def closed(self) -> None:
        """Hand the sequence to the conditional."""
        function = self.choice.function
        function.close_block()
        function.builder.end_scope()
        blocks, function.blocks = function.blocks, self._around
        if not blocks or not isinstance(blocks[-1].bindings[-1], relax.VarBinding):
            raise error.ValueError(f"R.{self.name}: the last line of a branch emits its value")
        *rest, last = blocks[-1].bindings
        kept = [type(blocks[-1])(rest)] if rest else []
        name = function.names.get(last.var, str(last.var.name_hint))
        self.choice.branches[self.name] = relax.SeqExpr([*blocks[:-1], *kept], last.value), name
