"""A loss behind a function, and gradients of kernels written in te."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import Call, DataflowBlock, DataflowVar, Function, SeqExpr, Tuple, Var
from ..expr_functor import PyExprMutator
from ..op.gradients import te_gradients
from ..transform.graph_pass import graph_pass
from ..utils import copy_with_new_vars

__all__ = ["AppendLoss", "register_te_gradient"]


def _block_of(func: Function, what: str) -> DataflowBlock:
    blocks = func.body.blocks if isinstance(func.body, SeqExpr) else []
    if len(blocks) == 1 and isinstance(blocks[0], DataflowBlock):
        return blocks[0]
    raise error.ValueError(f"AppendLoss: {what} must be one dataflow block; see ConvertToDataflow")


class _Joiner(PyExprMutator):
    """Emits the bindings of two functions into one block."""

    def join(self, func: Function, loss: Function, count: int) -> Function:
        outputs = (
            list(func.body.body.fields) if isinstance(func.body.body, Tuple) else [func.body.body]
        )
        if not all(isinstance(out, Var) for out in outputs):
            raise error.ValueError("AppendLoss: what the function returns must be variables")
        if count > len(outputs) or count > len(loss.params):
            raise error.ValueError(
                f"AppendLoss: {count} results of {len(outputs)} for a loss of {len(loss.params)} "
                "parameters"
            )
        rest = outputs[count:]
        params = [*func.params, *loss.params[count:]]
        self.builder_.begin_scope(params)
        self.builder_.begin_dataflow_block()
        for binding in _block_of(func, "the function").bindings:
            var = binding.var
            if not isinstance(var, DataflowVar) and var not in rest:
                # It is read inside of the block only, now.
                self.set_var_remap(var, DataflowVar(str(var.name_hint), var.struct_info))
            self.visit_binding(binding)
        for param, out in zip(loss.params, outputs[:count]):
            self.set_var_remap(param, self.get_var_remap(out))
        for binding in _block_of(loss, "the loss").bindings:
            self.visit_binding(binding)
        block = self.builder_.end_block()
        self.builder_.end_scope()
        result = self.visit_expr(loss.body.body)
        whole = Tuple([result, *(self.visit_expr(out) for out in rest)]) if rest else result
        return Function(params, SeqExpr([block], whole), None, func.is_pure, func.attrs)

    def visit_var_def_(self, var: Var) -> Var:
        return self.get_var_remap(var)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        return self.get_var_remap(var)


@graph_pass("AppendLoss")
def AppendLoss(
    mod: IRModule,
    func_name: str,
    loss_function: Function,
    num_backbone_outputs: int = 1,
    new_func_name: str | None = None,
) -> IRModule:
    """The module with one more function, that gives the loss of what a function returns.

    Its parameters are those of the function and those of the loss behind the ones that take the
    function's results. It returns the loss, or a tuple of the loss and the results that it has not
    taken. Both functions are one dataflow block.

    Parameters
    ----------
    num_backbone_outputs : how many results of the function the loss takes, as its first parameters.
    new_func_name : ``<func_name>_loss`` by default.

    Raises
    ------
    ValueError : the functions have another form, or there are fewer results.
    """
    func = mod[func_name]
    name = new_func_name or f"{func_name}_loss"
    joined = _Joiner(mod).join(
        copy_with_new_vars(func), copy_with_new_vars(loss_function), num_backbone_outputs
    )
    functions: dict[Any, Any] = dict(mod.functions.items())
    functions[GlobalVar(name)] = joined.with_attr("global_symbol", name)
    return mod.with_functions(functions)


def register_te_gradient(te_grad_name: str, te_grad_func: Callable[..., Any] | None = None) -> Any:
    """Say how to differentiate calls of `relax.op.call_tir_with_grad`; also a decorator.

    Parameters
    ----------
    te_grad_name : the ``te_grad_name`` of the calls.
    te_grad_func : from the te tensors of the result's gradient and of the operands, and the call's
        ``te_grad_kwargs``, to a tensor for the only operand or a list with one for each.
    """

    def register(func: Callable[..., Any]) -> Callable[..., Any]:
        def differentiate(orig_var: Var, call: Call, output_grad: RelayExpr, ctx: Any) -> RelayExpr:
            settings = {str(k): v for k, v in dict(call.attrs["te_grad_kwargs"] or {}).items()}
            return ctx.emit_te(
                func, output_grad, *call.args[1].fields, primfunc_name_hint=te_grad_name, **settings
            )

        te_gradients[te_grad_name] = differentiate
        return func

    return register if te_grad_func is None else register(te_grad_func)
