"""Other expressions in the place of those that patterns find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tvm import error
from tvm.ir import RelayExpr

from ..analysis import free_vars, get_var2val
from ..analysis.dead_code import without_dead_code
from ..block_builder import BlockBuilder, is_leaf
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator
from .context import PatternContext
from .pattern import DFPattern

__all__ = ["rewrite_bindings", "rewrite_call", "with_values"]

Rewriter = Callable[[RelayExpr, Mapping[DFPattern, RelayExpr]], RelayExpr]


class _CallRewriter(PyExprMutator):
    def __init__(self, pattern: DFPattern, rewriter: Rewriter) -> None:
        super().__init__()
        self._pattern = pattern
        self._rewriter = rewriter
        self._values: dict[Var, RelayExpr] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, (Call, Tuple, TupleGetItem)):
            found = self._pattern.extract_matched_expr(value, self._values)
            if found is not None:
                value = self.builder_.normalize(self._rewriter(value, found))
        self.reemit_binding(binding, value)
        self._values[self.get_var_remap(binding.var)] = value

    def visit_match_cast_(self, binding: MatchCast) -> None:
        super().visit_match_cast_(binding)
        self._values[self.get_var_remap(binding.var)] = self.visit_expr(binding.value)


def rewrite_call(pattern: DFPattern, rewriter: Rewriter, func: Function) -> Function:
    """The function with other values bound where a pattern matches.

    Parameters
    ----------
    pattern : looked for at every binding, through the variables that it reads.
    rewriter : from the value that matched, and what each part of the pattern stands for, to what
        is bound instead; the value itself to leave it.
    func : is looked through from its beginning on; later matches see what has been put earlier.

    Returns
    -------
    The function without bindings that nothing needs any more; the given one if nothing matched.

    Examples
    --------
    >>> x = wildcard()
    >>> pattern = is_op("relax.add")(x, x)
    >>> def double(call, found):
    ...     return relax.op.multiply(found[x], relax.const(2.0))
    >>> func = rewrite_call(pattern, double, mod["main"])
    """
    new = _CallRewriter(pattern, rewriter).visit_expr(func)
    return func if new.same_as(func) else without_dead_code(new)


BindingsRewriter = Callable[
    [Mapping[DFPattern, Var], Mapping[Var, RelayExpr]], Mapping[Var, RelayExpr]
]


def rewrite_bindings(ctx: PatternContext, rewriter: BindingsRewriter, func: Function) -> Function:
    """The function with other values for variables that patterns of a context stand for together.

    Parameters
    ----------
    ctx : what is looked for in each dataflow block, again after each change until nothing is found.
    rewriter : from the variable that each pattern stands for, and what variables are bound to, to
        new values for variables of the block; an empty mapping to leave them. Values may read each
        other's parts; what they share by being one object is computed once.
    func : is not changed.

    Returns
    -------
    The function without bindings that nothing needs any more; the given one if nothing matched.

    Raises
    ------
    ValueError : new values need each other in a circle.
    """
    blocks: list[BindingBlock] = []
    changed = False
    for block in func.body.blocks:
        new = block
        if isinstance(block, DataflowBlock):
            done: set[Var] = set()
            while True:
                next_block = _rewritten(ctx, rewriter, func, blocks, new, done)
                if next_block is None:
                    break
                new, changed = _without_unread(next_block), True
        blocks.append(new)
    if not changed:
        return func
    body = SeqExpr(blocks, func.body.body)
    made = Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
    return without_dead_code(made)


def _rewritten(
    ctx: PatternContext,
    rewriter: BindingsRewriter,
    func: Function,
    before: list[BindingBlock],
    block: DataflowBlock,
    done: set[Var],
) -> DataflowBlock | None:
    """The block after one change; None if there is nothing to change."""
    matched = ctx.match_dfb(block)
    if matched is None:
        return None
    values = get_var2val(Function(func.params, SeqExpr([*before, block], func.body.body)))
    replacements = {
        var: value
        for var, value in rewriter(matched, values).items()
        if var not in done and not (var in values and value.same_as(values[var]))
    }
    if not replacements:
        return None
    done.update(replacements)
    return with_values(block, replacements, [*func.params, *values])


def with_values(
    block: DataflowBlock, replacements: Mapping[Var, RelayExpr], known: Sequence[Var]
) -> DataflowBlock:
    """The block with other values bound to some of its variables.

    Parameters
    ----------
    replacements : the values, which need not be in normal form; what they share by being one object
        is computed once. Bindings move behind what they read.
    known : variables whose names new ones keep clear of.

    Raises
    ------
    ValueError : new values need each other in a circle.
    """
    builder = BlockBuilder()
    with builder.testing_scope([]):
        for var in known:
            builder.get_unique_name(str(var.name_hint))
        made: dict[Var, RelayExpr] = {}
        placed = _Placed(builder)
        for var, value in replacements.items():
            made[var] = placed.value(value)
        helpers = builder.end_block()
        builder.begin_dataflow_block()
    bindings: list[Binding] = [*helpers.bindings]
    for binding in block.bindings:
        if binding.var in made:
            bindings.append(VarBinding(binding.var, made[binding.var]))
        else:
            bindings.append(binding)
    return DataflowBlock(_in_order(bindings))


class _Placed:
    """Values in normal form, whose operands are emitted, each object once."""

    def __init__(self, builder: BlockBuilder) -> None:
        self._builder = builder
        self._operands: list[tuple[RelayExpr, Var]] = []

    def value(self, expr: RelayExpr) -> RelayExpr:
        if isinstance(expr, Call):
            args = [self._operand(arg) for arg in expr.args]
            expr = Call(expr.op, args, expr.attrs, expr.sinfo_args)
        elif isinstance(expr, Tuple):
            expr = Tuple([self._operand(field) for field in expr.fields])
        elif isinstance(expr, TupleGetItem):
            expr = TupleGetItem(self._operand(expr.tuple_value), expr.index)
        return self._builder.normalize(expr)

    def _operand(self, expr: RelayExpr) -> RelayExpr:
        if is_leaf(expr):
            return expr
        for known, var in self._operands:
            if known.same_as(expr):
                return var
        var = self._builder.emit(self.value(expr))
        self._operands.append((expr, var))
        return var


def _in_order(bindings: list[Binding]) -> list[Binding]:
    """Bindings in their order as far as possible, but each after those whose variable it reads."""
    by_var = {binding.var: binding for binding in bindings}
    result: list[Binding] = []
    state: dict[Var, bool] = {}

    def place(binding: Binding) -> None:
        if binding.var in state:
            if not state[binding.var]:
                raise error.ValueError(
                    f"rewrite_bindings: the new value of '{binding.var.name_hint}' needs itself"
                )
            return
        state[binding.var] = False
        for var in free_vars(binding.value):
            if var in by_var:
                place(by_var[var])
        state[binding.var] = True
        result.append(binding)

    for binding in bindings:
        place(binding)
    return result


def _without_unread(block: DataflowBlock) -> DataflowBlock:
    read: set[Var] = set()
    kept: list[Binding] = []
    for binding in reversed(list(block.bindings)):
        if not isinstance(binding.var, DataflowVar) or binding.var in read:
            kept.append(binding)
            read.update(free_vars(binding.value))
    return DataflowBlock(kept[::-1])
