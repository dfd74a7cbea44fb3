"""Passes over graph functions, or over their dataflow blocks, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error
from tvm.ir import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, module_pass, pass_decorator

from ..expr import BindingBlock, DataflowBlock, DataflowVar, Function, Var
from ..expr_functor import PyExprMutator

__all__ = ["DataflowBlockPass", "FunctionPass", "dataflowblock_pass", "function_pass"]

FunctionPass = ModulePass
"""A pass over the graph functions of a module one by one."""

DataflowBlockPass = ModulePass
"""A pass over the dataflow blocks of a module one by one."""

_OverModule = Callable[[IRModule, PassContext], IRModule]


def _decorator(
    over_module: Callable[[Callable[..., Any]], _OverModule],
    method: str,
    target: Any,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
) -> Any:
    """What makes passes of functions, or of classes with a method of that name.

    Parameters
    ----------
    over_module : from what is done to one function or block to what is done to a module.
    """
    if opt_level is None:
        raise error.ValueError("relax.transform: a pass needs its opt_level")

    def pass_of(run: Callable[..., Any], pass_name: str) -> Pass:
        return module_pass(
            over_module(run),
            opt_level=opt_level,
            name=pass_name,
            required=list(required or ()),
            traceable=traceable,
        )

    make = pass_decorator(pass_of, method, name)
    return make if target is None else make(target)


def _over_functions(run: Callable[..., Any]) -> _OverModule:
    def over_module(mod: IRModule, ctx: PassContext) -> IRModule:
        functions = {
            gvar: run(func, mod, ctx) if isinstance(func, Function) else func
            for gvar, func in mod.functions.items()
        }
        return mod.with_functions(functions)

    return over_module


class _Blocks(PyExprMutator):
    def __init__(self, mod: IRModule, run: Callable[[DataflowBlock], DataflowBlock]) -> None:
        super().__init__(mod)
        self._run = run

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        new = self._run(block)
        outputs = {b.var for b in new.bindings if not isinstance(b.var, DataflowVar)}
        lost = [var for var in _outputs(block) if var not in outputs]
        if lost:
            names = ", ".join(str(var.name_hint) for var in lost)
            raise error.ValueError(
                f"relax.transform.dataflowblock_pass: the pass leaves out {names}, which code "
                "outside of the block may read; keep variables that are outputs of a block"
            )
        return super().visit_dataflow_block_(new)


def _outputs(block: DataflowBlock) -> list[Var]:
    return [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]


def _over_blocks(run: Callable[..., Any]) -> _OverModule:
    def over_module(mod: IRModule, ctx: PassContext) -> IRModule:
        def of_function(func: Function, mod: IRModule, ctx: PassContext) -> Function:
            return _Blocks(mod, lambda block: run(block, mod, ctx)).visit_expr(func)

        return _over_functions(of_function)(mod, ctx)

    return over_module


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """A pass from a function ``(Function, IRModule, PassContext) -> Function``; also a decorator.

    A class is accepted too: its instances are passes, made with the arguments of its constructor
    and run through its method ``transform_function``.

    Raises
    ------
    ValueError : opt_level is missing.

    Examples
    --------
    >>> @relax.transform.function_pass(opt_level=1)
    ... def tag(func, mod, ctx):
    ...     return func.with_attr("tag", 1)
    """
    return _decorator(
        _over_functions, "transform_function", pass_func, opt_level, name, required, traceable
    )


def dataflowblock_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """A pass from ``(DataflowBlock, IRModule, PassContext) -> DataflowBlock``; also a decorator.

    A class is accepted too: its instances are passes, made with the arguments of its constructor
    and run through its method ``transform_dataflowblock``.

    Raises
    ------
    ValueError : opt_level is missing, or, when it runs, an output of a block is left out.
    """
    return _decorator(
        _over_blocks, "transform_dataflowblock", pass_func, opt_level, name, required, traceable
    )
