"""Reverse-mode differentiation of graph functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr

from .. import op
from ..analysis import remove_all_unused
from ..block_builder import BlockBuilder
from ..expr import (
    Call,
    Constant,
    DataflowBlock,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator
from ..fresh_variables import FreshVariables
from ..op.gradients import gradient_of, te_gradients
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .checkpoints import Checkpoints, Recomputed, is_call_of
from .graph_pass import graph_pass

__all__ = ["Gradient"]


def _is_float(info: StructInfo | None) -> bool:
    if isinstance(info, TupleStructInfo):
        return all(_is_float(field) for field in info.fields)
    return isinstance(info, TensorStructInfo) and "float" in str(info.dtype)


def _zeros(info: StructInfo) -> RelayExpr:
    if isinstance(info, TupleStructInfo):
        return Tuple([_zeros(field) for field in info.fields])
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        raise error.ValueError(f"Gradient: a gradient has the shape of its value, which is {info}")
    return op.zeros(info.shape, str(info.dtype))


def _field(value: RelayExpr, index: int) -> RelayExpr:
    return value.fields[index] if isinstance(value, Tuple) else TupleGetItem(value, index)


def _sum(a: RelayExpr, b: RelayExpr) -> RelayExpr:
    info = a.struct_info
    if isinstance(info, TupleStructInfo):
        return Tuple([_sum(_field(a, k), _field(b, k)) for k in range(len(info.fields))])
    return op.add(a, b)


class _Backward:
    """Emits gradients of values, the last value first."""

    def __init__(self, builder: BlockBuilder, again: Recomputed) -> None:
        self._builder = builder
        self._again = again
        self._gradients: dict[Var, Var] = {}

    def gradient(self, var: Var) -> Var | None:
        """What has been found for a variable so far."""
        return self._gradients.get(var)

    def add(self, value: RelayExpr, gradient: RelayExpr) -> None:
        """Count a gradient for a value: for each variable in it."""
        if isinstance(gradient, Call) and isinstance(gradient.struct_info, TupleStructInfo):
            # Its fields are read one by one.
            gradient = self._builder.emit(gradient)
        if isinstance(value, Tuple):
            for k, field in enumerate(value.fields):
                self.add(field, _field(gradient, k))
        elif isinstance(value, Var):
            known = self._gradients.get(value)
            self._emit(value, gradient if known is None else _sum(known, gradient))
        elif not isinstance(value, (Constant, ShapeExpr)):
            raise error.TypeError(f"Gradient: operands are variables and constants, got {value}")

    def _emit(self, var: Var, gradient: RelayExpr) -> None:
        self._gradients[var] = self._builder.emit(gradient, f"{var.name_hint}_adjoint")

    def binding(self, binding: VarBinding) -> None:
        """Hand the gradient of a variable on to what it was computed from."""
        gradient = self._gradients.get(binding.var)
        if gradient is None:
            return
        value = binding.value
        if isinstance(value, Call):
            self._call(binding.var, value, gradient)
        elif isinstance(value, TupleGetItem):
            self._get_item(value, gradient)
        elif isinstance(value, (Tuple, Var)):
            self.add(value, gradient)
        elif not isinstance(value, Constant):
            raise error.TypeError(f"Gradient: values of this kind have none: {value}")

    def _call(self, var: Var, call: Call, gradient: Var) -> None:
        if not isinstance(call.op, Op):
            return
        if is_call_of(call, "call_tir"):
            raise error.ValueError(
                f"Gradient: {var.name_hint} comes from a kernel; call it by call_tir_with_grad, "
                "with a gradient registered by relax.training.utils.register_te_gradient"
            )
        result, again = self._again.call(var, call)
        if is_call_of(call, "call_tir_with_grad"):
            self._kernel(result, again, call, gradient)
            return
        partials = list(gradient_of(call.op)(result, again, gradient, self._builder))
        if len(partials) != len(call.args):
            raise error.ValueError(
                f"{call.op.name}: a gradient of {len(partials)} parts for {len(call.args)} operands"
            )
        for operand, partial in zip(call.args, partials):
            if not is_call_of(partial, "grad.no_grad"):
                self.add(operand, partial)

    def _kernel(self, result: Var, again: Call, call: Call, gradient: Var) -> None:
        name = str(call.attrs["te_grad_name"])
        differentiate = te_gradients.get(name)
        if differentiate is None:
            raise error.ValueError(
                f"Gradient: there is no gradient {name}; register it by "
                "relax.training.utils.register_te_gradient"
            )
        partials = differentiate(result, again, gradient, self._builder)
        operands = call.args[1]
        if isinstance(partials.struct_info, TupleStructInfo):
            self.add(operands, partials)
        else:
            self.add(operands, Tuple([partials]))

    def _get_item(self, value: TupleGetItem, gradient: Var) -> None:
        whole = value.tuple_value
        assert isinstance(whole, Var)
        known = self._gradients.get(whole)
        start = _zeros(whole.struct_info) if known is None else known
        fields = [_field(start, k) for k in range(len(whole.struct_info.fields))]
        mine = gradient if known is None else _sum(fields[value.index], gradient)
        fields[value.index] = mine
        self._emit(whole, Tuple(fields))

    def output(self, var: Var) -> Var:
        """The gradient of a variable as a result."""
        if var not in self._gradients:
            self.add(var, _zeros(var.struct_info))
        return self._builder.emit_output(self._gradients[var], f"{var.name_hint}_adjoint_out")


def _target(result: RelayExpr, index: int) -> Var:
    """The value to differentiate: a result of the function.

    Raises
    ------
    ValueError : there is no such result, or it is no scalar of real numbers.
    """
    results = list(result.fields) if isinstance(result, Tuple) else [result]
    if not 0 <= index < len(results):
        raise error.ValueError(
            f"Gradient: target_index is {index}, the function has {len(results)} results"
        )
    target = results[index]
    info = target.struct_info
    if not isinstance(target, Var) or not isinstance(info, TensorStructInfo):
        raise error.ValueError(f"Gradient: the target must be a variable, got {target}")
    if info.ndim != 0 or not _is_float(info):
        raise error.ValueError(
            f"Gradient: the target must be a float scalar, {target.name_hint} is {info}"
        )
    return target


def _sources(func: Function, wanted: Sequence[Var] | None, copies: FreshVariables) -> list[Var]:
    """The variables of the copied function whose gradients are asked for.

    Raises
    ------
    ValueError : one is asked for twice, is not of the function, or has no gradient by its type.
    """
    if wanted is None:
        return list(func.params)
    found: list[Var] = []
    for var in wanted:
        copy = copies.get_var_remap(var)
        if copy.same_as(var):
            raise error.ValueError(f"Gradient: the function has no variable {var.name_hint}")
        if copy in found:
            raise error.ValueError(f"Gradient: the variable {var.name_hint} appears twice")
        if not _is_float(var.struct_info):
            raise error.ValueError(
                f"Gradient: only tensors of real numbers, and tuples of them, have gradients; "
                f"{var.name_hint} is {var.struct_info}"
            )
        found.append(copy)
    return found


class _WithoutGradients(PyExprMutator):
    """Calls of kernels that had a gradient, as plain ones."""

    def visit_call_(self, call: Call) -> RelayExpr:
        new = super().visit_call_(call)
        if not is_call_of(new, "call_tir_with_grad"):
            return new
        return Call(op.get_op("call_tir"), new.args, None, new.sinfo_args)


@graph_pass("Gradient")
def Gradient(
    mod: IRModule,
    func_name: str,
    require_grads: Var | Sequence[Var] | None = None,
    target_index: int = 0,
) -> IRModule:
    """The module with one more function, ``<func_name>_adjoint``, that also gives gradients.

    It returns a pair: what the function returns, and a tuple with the gradient of the target for
    each of the variables asked for. The function has one dataflow block, of operators with a
    gradient (`relax.op.register_gradient`) and of `call_tir_with_grad`. What stands between
    `relax.op.grad.start_checkpoint` and `end_checkpoint` is computed again instead of kept.

    Parameters
    ----------
    require_grads : variables of the function, float tensors or tuples of them; its parameters by
        default.
    target_index : which result to differentiate, a float tensor without dimensions.

    Raises
    ------
    ValueError : the function has another form, or the variables or the target are not such.
    NotImplementedError : an operator between the target and the variables has no gradient.
    """
    func = mod[func_name]
    if not isinstance(func, Function):
        raise error.ValueError(f"Gradient: {func_name} is no graph function")
    copies = FreshVariables()
    copy = copies.visit_expr(func)
    checkpoints = Checkpoints()
    plain = checkpoints.visit_expr(copy)
    wanted = [require_grads] if isinstance(require_grads, Var) else require_grads
    sources = [
        checkpoints.unmarked.get(var, var)
        for var in (plain.params if wanted is None else _sources(copy, wanted, copies))
    ]
    body = plain.body
    if not isinstance(body, SeqExpr) or len(body.blocks) != 1:
        raise error.ValueError(
            f"Gradient: {func_name} must be one dataflow block; see ConvertToDataflow"
        )
    (block,) = body.blocks
    if not isinstance(block, DataflowBlock):
        raise error.ValueError(
            f"Gradient: {func_name} must be one dataflow block; see ConvertToDataflow"
        )
    target = _target(body.body, target_index)
    builder = BlockBuilder(mod)
    adjoint = _differentiated(builder, plain, block, target, sources, checkpoints.kept)
    name = f"{func_name}_adjoint"
    # Gradients of kernels have added kernels.
    functions: dict[Any, Any] = dict(builder.get().functions.items())
    functions[GlobalVar(name)] = adjoint.with_attr("global_symbol", name)
    return mod.with_functions(functions)


def _differentiated(
    builder: BlockBuilder,
    func: Function,
    block: DataflowBlock,
    target: Var,
    sources: list[Var],
    kept: set[Var],
) -> Function:
    builder.begin_scope(list(func.params))
    builder.begin_dataflow_block()
    bindings: list[VarBinding] = []
    for binding in block.bindings:
        if not isinstance(binding, VarBinding):
            raise error.ValueError("Gradient: the function must be without match_cast")
        bindings.append(binding)
        builder.emit_normalized(binding)
    backward = _Backward(builder, Recomputed(builder, list(func.params), bindings, kept))
    info = target.struct_info
    backward.add(target, op.ones(info.shape, str(info.dtype)))
    for binding in reversed(bindings):
        backward.binding(binding)
    gradients = [backward.output(var) for var in sources]
    blocks = [builder.end_block()]
    builder.end_scope()
    result = Tuple([func.body.body, Tuple(gradients)])
    made = Function(func.params, SeqExpr(blocks, result), None, func.is_pure, func.attrs)
    return remove_all_unused(_WithoutGradients().visit_expr(made))
