"""Builds graph functions one binding at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import tvm
from tvm import error, tir
from tvm.ir import BaseFunc, GlobalVar, IRModule, Op, RelayExpr

from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    const,
    dict_attrs,
)
from .op import call_tir_with_grad, has_op, has_rule, infer_struct_info
from .struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)
from .struct_info_relations import (
    definable_tir_vars_in_struct_info,
    derive_call_ret_struct_info,
    erase_to_well_defined,
    narrower_struct_info,
    struct_info_lca,
)
from .te_calls import te_call

__all__ = ["BlockBuilder", "NameSupply", "is_leaf"]

_LEAVES = (
    Var, Constant, ShapeExpr, GlobalVar, ExternFunc, Op, PrimValue, StringImm, DataTypeImm,
)  # fmt: skip


def is_leaf(expr: RelayExpr) -> bool:
    """Whether an expression may be an operand; a tuple may if its fields may."""
    if isinstance(expr, Tuple):
        return all(is_leaf(field) for field in expr.fields)
    return isinstance(expr, _LEAVES)


class NameSupply:
    """Names that have not been used: ``add``, then ``add1``, ``add2``."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """The hint itself the first time, then with a number."""
        name = hint
        while name in self._used:
            self._next[hint] = self._next.get(hint, 0) + 1
            name = f"{hint}{self._next[hint]}"
        self._used.add(name)
        return name


@dataclass
class _Block:
    is_dataflow: bool
    bindings: list[Binding] = field(default_factory=list)

    def finish(self) -> BindingBlock:
        return DataflowBlock(self.bindings) if self.is_dataflow else BindingBlock(self.bindings)


@dataclass
class _Scope:
    """A function being built with ``bb.function``."""

    name: str
    params: list[Var] | None
    attrs: dict[str, Any]
    private: bool
    pure: bool
    blocks: list[BindingBlock] = field(default_factory=list)
    output: RelayExpr | None = None
    gvar: GlobalVar | None = None


def _update(expr: RelayExpr, info: StructInfo) -> None:
    """Write what has been inferred on an expression that had nothing written on it."""
    tvm.get_global_func("relax.UpdateStructInfo")(expr, info)


class BlockBuilder:
    """Builds graph functions, one binding at a time, and brings expressions into normal form.

    In normal form operands are variables, constants and the like, so that every other value has a
    name, and everything has struct info.

    >>> bb = relax.BlockBuilder()
    >>> x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    >>> with bb.function("main", [x]):
    ...     with bb.dataflow():
    ...         y = bb.emit(relax.op.nn.relu(x))
    ...         out = bb.emit_output(relax.op.add(y, x))
    ...     bb.emit_func_output(out)
    >>> mod = bb.finalize()
    """

    _stack: ClassVar[list[BlockBuilder]] = []

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function scope is open, the innermost one; None if there is none."""
        return BlockBuilder._stack[-1] if BlockBuilder._stack else None

    def __init__(self, mod: IRModule | None = None) -> None:
        self._functions: dict[GlobalVar, BaseFunc] = {}
        # The module that was given out last: what it says beside its functions stays.
        self._module = IRModule() if mod is None else mod.clone()
        self._global_names = NameSupply()
        self._names = NameSupply()
        self._by_hash: dict[int, list[GlobalVar]] = {}
        self._scope: _Scope | None = None
        self._open: list[_Block] = []
        self._bound: dict[Var, RelayExpr] = {}
        self._extents: list[set[tir.Var]] = []
        for gvar, func in mod.functions.items() if mod is not None else ():
            self._functions[gvar] = func
            self._global_names.fresh(str(gvar.name_hint))

    @contextmanager
    def function(
        self,
        name: str,
        params: Sequence[Var] | Var | None = None,
        attrs: Mapping[str, Any] | None = None,
        private: bool = False,
        pure: bool = True,
    ) -> Iterator[None]:
        """Scope of one function; ``emit_func_output`` inside it ends the function.

        A function may be built inside of the scope of another one, whose values it does not see and
        which goes on afterwards.

        Parameters
        ----------
        params : the parameters, unless they are given to ``emit_func_output``.
        attrs : attributes of the function.
        private : whether it gets no ``global_symbol``: nobody outside of the module calls it.
        pure : whether calls of it have no effects. A call of a function of the runtime in it makes
            it impure.

        Raises
        ------
        ValueError : the scope ends without an output, or a private function has a
            ``global_symbol``.
        """
        if private and "global_symbol" in (attrs or {}):
            raise error.ValueError(
                f"BlockBuilder.function: '{name}' is private, so it has no global_symbol"
            )
        if isinstance(params, Var):
            params = [params]
        known = None if params is None else [_parameter(p) for p in params]
        scope = _Scope(name, known, dict(attrs or {}), private, pure)
        around = self._scope, self._names, self._open, self._extents
        self._scope, self._names, self._open, self._extents = scope, NameSupply(), [], []
        self.begin_scope(known)
        self.begin_binding_block()
        BlockBuilder._stack.append(self)
        try:
            yield
        finally:
            BlockBuilder._stack.pop()
            self._scope, self._names, self._open, self._extents = around
        if scope.gvar is None:
            raise error.ValueError(
                f"BlockBuilder.function: '{name}' has no output; call emit_func_output in its scope"
            )

    @contextmanager
    def testing_scope(self, def_vars: Sequence[tir.Var]) -> Iterator[None]:
        """A scope to try out normal forms in, without a function.

        Parameters
        ----------
        def_vars : symbolic extents that are visible in it.
        """
        self.begin_scope([Var("extents", ShapeStructInfo(list(def_vars)))])
        self.begin_dataflow_block()
        try:
            yield
        finally:
            self._open.pop()
            self.end_scope()

    def _finish(self, scope: _Scope) -> Function:
        assert scope.output is not None
        params = scope.params or []
        attrs = dict(scope.attrs)
        if not scope.private:
            attrs = {"global_symbol": scope.name, **attrs}
        info = self._erased(scope.output.struct_info, params)
        body = SeqExpr(scope.blocks, scope.output)
        return Function(params, body, info, is_pure=scope.pure, attrs=dict_attrs(attrs))

    @staticmethod
    def _erased(info: StructInfo | None, params: Sequence[Var]) -> StructInfo | None:
        """What is known of a result for those who know the parameters only."""
        if info is None:
            return None
        extents = {
            var: var
            for param in params
            if param.struct_info is not None
            for var in definable_tir_vars_in_struct_info(param.struct_info)
        }
        return erase_to_well_defined(info, extents, {param: param for param in params})

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """Scope of one dataflow block: bindings without side effects."""
        scope = self._current("dataflow")
        if self.current_block_is_dataflow():
            raise error.ValueError("BlockBuilder.dataflow: dataflow blocks do not nest")
        self._close_into(scope)
        self.begin_dataflow_block()
        try:
            yield
        finally:
            self._close_into(scope)
            self.begin_binding_block()

    def _close_into(self, scope: _Scope) -> None:
        block = self.end_block()
        if len(block.bindings):
            scope.blocks.append(block)

    def emit(self, expr: RelayExpr, name_hint: str = "") -> Var:
        """Bind an expression to a new variable; nested calls get variables of their own."""
        return self._bind(expr, name_hint, is_output=False)

    def emit_output(self, output: RelayExpr | Sequence[RelayExpr], name_hint: str = "") -> Var:
        """Bind an expression to a variable that stays visible after the dataflow block."""
        if not self._open or not self._open[-1].is_dataflow:
            raise error.ValueError(
                "BlockBuilder.emit_output: only inside a dataflow block; use emit"
            )
        if not isinstance(output, RelayExpr):
            output = Tuple(list(output))
        return self._bind(output, name_hint, is_output=True)

    def match_cast(self, value: RelayExpr, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Bind a value to a variable of which more is known; that is checked when it runs."""
        value = self.normalize_argument(self.normalize(value))
        block = self._block("match_cast")
        make = DataflowVar if block.is_dataflow else Var
        hint = name_hint or ("lv" if block.is_dataflow else "gv")
        var = make(self._names.fresh(hint), struct_info)
        self.emit_normalized(MatchCast(var, value, struct_info))
        return var

    def emit_normalized(self, binding: Binding) -> None:
        """Add a binding whose value is in normal form already."""
        self._block("emit_normalized").bindings.append(binding)
        self._names.fresh(str(binding.var.name_hint))
        if isinstance(binding, VarBinding):
            self._bound[binding.var] = binding.value
        else:
            self._declare(binding.struct_info)

    def call_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
        """The call of a te function as one kernel, which is added to the module.

        Parameters
        ----------
        func : from te tensors to a te tensor or a list of them. Graph expressions among the
            arguments, also inside of lists and dictionaries, become placeholders (or, if they are
            shapes or scalars, what they hold); everything else is passed on.
        primfunc_name_hint : name of the kernel; that of the function by default.
        primfunc_attrs : attributes of the kernel; None leaves out one that topi gives.
        """
        return te_call(self, func, args, kwargs)

    def call_te_with_grad(
        self,
        func: Callable[..., Any],
        *args: Any,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Call:
        """The call of a te function as a kernel whose gradient is a te function, too.

        Parameters
        ----------
        func, args, kwargs : as in :meth:`call_te`.
        te_grad_name, te_grad_kwargs : of the gradient, as in `relax.op.call_tir_with_grad`.
        """

        def make_call(kernel: GlobalVar, values: Tuple, info: Any, extents: Any) -> Call:
            return call_tir_with_grad(kernel, values, info, te_grad_name, te_grad_kwargs, extents)

        return te_call(self, func, args, kwargs, make_call)

    def emit_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Bind the result of :meth:`call_te`."""
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def emit_func_output(
        self,
        output: RelayExpr | Sequence[RelayExpr],
        params: Sequence[Var] | Var | None = None,
    ) -> GlobalVar:
        """End the function with a result.

        Parameters
        ----------
        output : an expression, or several for a tuple. A value local to a dataflow block is made
            an output of that block.
        params : the parameters, unless ``function`` has them.

        Returns
        -------
        The function's name in the module, which calls of it use.

        Raises
        ------
        ValueError : the parameters are given twice or not at all, or the function has ended.
        """
        scope = self._current("emit_func_output")
        if scope.gvar is not None:
            raise error.ValueError(
                f"BlockBuilder.emit_func_output: '{scope.name}' has its result already"
            )
        if isinstance(params, Var):
            params = [params]
        if params is not None:
            if scope.params is not None:
                raise error.ValueError(
                    f"BlockBuilder.emit_func_output: '{scope.name}' has its parameters already"
                )
            scope.params = [_parameter(p) for p in params]
        if scope.params is None:
            raise error.ValueError(
                f"BlockBuilder.emit_func_output: '{scope.name}' has no parameters; give params "
                "here or to function (an empty list for none)"
            )
        if not isinstance(output, RelayExpr):
            output = Tuple([_operand(item) for item in output])
        result = self.normalize_argument(self.normalize(output))
        scope.output = self._visible(result, scope)
        self._close_into(scope)
        self.begin_binding_block()
        scope.gvar = GlobalVar(self._global_names.fresh(scope.name))
        self._enter(scope.gvar, self._finish(scope))
        return scope.gvar

    def _visible(self, expr: RelayExpr, scope: _Scope) -> RelayExpr:
        """The value as something usable outside of dataflow blocks."""
        if isinstance(expr, Tuple):
            fields = [self._visible(item, scope) for item in expr.fields]
            same = all(a.same_as(b) for a, b in zip(fields, expr.fields))
            return expr if same else Tuple(fields)
        if not isinstance(expr, DataflowVar):
            return expr
        for k, block in enumerate(scope.blocks):
            if any(binding.var.same_as(expr) for binding in block.bindings):
                var = Var(str(expr.name_hint), expr.struct_info)
                expose = tvm.get_global_func("relax.DataflowBlockWithOutput")
                scope.blocks[k] = expose(block, expr, var)
                return var
        raise error.ValueError(
            f"BlockBuilder.emit_func_output: '{expr.name_hint}' is not bound in '{scope.name}'"
        )

    def add_func(self, func: BaseFunc, name: str) -> GlobalVar:
        """Add a function under the name, numbered if it is taken.

        A function that is in the module already keeps the name that it has.
        """
        same = self._by_hash.setdefault(tvm.ir.structural_hash(func), [])
        for gvar in same:
            if gvar in self._functions and tvm.ir.structural_equal(self._functions[gvar], func):
                return gvar
        gvar = self._add(func, name)
        same.append(gvar)
        return gvar

    def _add(self, func: BaseFunc, name: str) -> GlobalVar:
        gvar = GlobalVar(self._global_names.fresh(name))
        self._enter(gvar, func)
        return gvar

    def _enter(self, gvar: GlobalVar, func: BaseFunc) -> None:
        """Make a function that of a name, which says what is known of it."""
        self._functions[gvar] = func
        if isinstance(func, Function):
            _update(gvar, func.struct_info)

    def update_func(self, gv: GlobalVar, updated_func: BaseFunc) -> None:
        """Replace a function of the module."""
        for known in self._functions:
            if known.name_hint == gv.name_hint:
                gv = known
        self._enter(gv, updated_func)

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that no variable of the function has."""
        return self._names.fresh(name_prefix)

    def finalize(self) -> IRModule:
        """The module built so far, with every function whose output is known.

        It is the one that was given out before as long as no function is added or replaced, so that
        infos and attributes that are set on it stay.
        """
        known = self._module.functions
        same = len(known) == len(self._functions) and all(
            gvar in known and known[gvar].same_as(func) for gvar, func in self._functions.items()
        )
        if not same:
            self._module = self._module.with_functions(self._functions)
        return self._module

    get = finalize

    def _function_of(self, gvar: GlobalVar) -> BaseFunc | None:
        found = self._functions.get(gvar)
        if found is not None:
            return found
        for known, func in self._functions.items():
            if known.name_hint == gvar.name_hint:
                return func
        return None

    def begin_binding_block(self) -> None:
        """Open a block: from now on bindings go there."""
        self._open.append(_Block(is_dataflow=False))

    def begin_dataflow_block(self) -> None:
        """Open a dataflow block."""
        self._open.append(_Block(is_dataflow=True))

    def end_block(self) -> BindingBlock:
        """The innermost open block, which this closes."""
        return self._open.pop().finish()

    # What TVM calls them, and mutators of users do.
    _begin_binding_block = begin_binding_block
    _begin_dataflow_block = begin_dataflow_block
    _end_block = end_block

    def current_block_is_dataflow(self) -> bool:
        """Whether the innermost open block is a dataflow block."""
        return bool(self._open) and self._open[-1].is_dataflow

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Open the scope of a function or a branch, in which symbolic extents are visible."""
        self._extents.append(set())
        for param in params or ():
            self._names.fresh(str(param.name_hint))
            if param.struct_info is not None:
                self._declare(param.struct_info)

    def end_scope(self) -> None:
        """Close the innermost scope."""
        self._extents.pop()

    def _declare(self, info: StructInfo) -> None:
        if self._extents:
            self._extents[-1].update(definable_tir_vars_in_struct_info(info))

    def lookup_binding(self, var: Var) -> RelayExpr | None:
        """What a variable was bound to here; None for parameters and others."""
        return self._bound.get(var)

    def _current(self, method: str) -> _Scope:
        if self._scope is None:
            raise error.ValueError(f"BlockBuilder.{method}: only inside bb.function(...)")
        return self._scope

    def _block(self, method: str) -> _Block:
        if not self._open:
            raise error.ValueError(f"BlockBuilder.{method}: only inside bb.function(...)")
        return self._open[-1]

    def _bind(self, expr: RelayExpr, name_hint: str, is_output: bool) -> Var:
        block = self._block("emit")
        value = self.normalize(_operand(expr))
        if isinstance(value, SeqExpr):
            value = self.inline_sequence(value)
        if isinstance(value, Call) and isinstance(value.op, ExternFunc) and self._scope:
            if block.is_dataflow:
                raise error.ValueError(
                    f"BlockBuilder.emit: '{value.op.global_symbol}' may have side effects and "
                    "cannot be called in a dataflow block; emit it outside, or use "
                    "call_pure_packed or call_dps_packed"
                )
            self._scope.pure = False
        local = block.is_dataflow and not is_output
        make = DataflowVar if local else Var
        hint = name_hint or ("lv" if local else "gv")
        var = make(self._names.fresh(hint), value.struct_info)
        block = self._open[-1]
        block.bindings.append(VarBinding(var, value))
        self._bound[var] = value
        return var

    def normalize(self, expr: RelayExpr) -> RelayExpr:
        """The expression with operands that are bound, and with struct info.

        Operands that need a name are emitted into the open block. An expression that is in normal
        form is returned as it is.

        Raises
        ------
        ValueError, TypeError : an operator does not take these operands, or operands need names and
            no block is open.
        """
        if isinstance(expr, _LEAVES):
            return expr
        if isinstance(expr, Tuple):
            return self._normal_tuple(expr)
        if isinstance(expr, Call):
            return self._normal_call(expr)
        if isinstance(expr, TupleGetItem):
            value = self.normalize_argument(self.normalize(expr.tuple_value))
            if value.same_as(expr.tuple_value) and expr.struct_info is not None:
                return expr
            new = TupleGetItem(value, expr.index)
            if new.struct_info is None:
                _update(new, ObjectStructInfo())
            return new
        if isinstance(expr, If):
            return self._normal_if(expr)
        if isinstance(expr, SeqExpr):
            return self._normal_sequence(expr)
        if isinstance(expr, Function):
            return self._normal_function(expr)
        raise error.TypeError(
            f"BlockBuilder.normalize: {type(expr).__name__} is no graph expression"
        )

    def normalize_argument(self, expr: RelayExpr) -> RelayExpr:
        """A value in normal form as an operand: bound to a variable if it is no leaf."""
        if is_leaf(expr):
            return expr
        if not self._open:
            raise error.ValueError(
                "BlockBuilder.normalize: an operand needs a name, but no function is open; emit it "
                "inside bb.function(...)"
            )
        return self.emit(expr)

    def _argument(self, expr: RelayExpr) -> RelayExpr:
        return self.normalize_argument(self.normalize(expr))

    def _normal_tuple(self, expr: Tuple) -> Tuple:
        fields = [self._argument(item) for item in expr.fields]
        same = all(a.same_as(b) for a, b in zip(fields, expr.fields))
        new = expr if same else Tuple(fields)
        if new.struct_info is None and all(f.struct_info is not None for f in fields):
            new = Tuple(fields)
        return new

    def _normal_call(self, expr: Call) -> Call:
        callee = self._argument(expr.op) if not isinstance(expr.op, Op) else expr.op
        args = [self._argument(arg) for arg in expr.args]
        same = callee.same_as(expr.op) and all(a.same_as(b) for a, b in zip(args, expr.args))
        if same and expr.struct_info is not None:
            return expr
        call = Call(callee, args, expr.attrs, expr.sinfo_args)
        return Call(callee, args, expr.attrs, expr.sinfo_args, self._result_info(call))

    def _result_info(self, call: Call) -> StructInfo:
        callee = call.op
        if isinstance(callee, Op):
            if has_rule(callee) or has_op(callee):
                return infer_struct_info(call)
            # Operators of programs: the attribute is a function of the call and this builder.
            rule = callee.get_attr("FInferStructInfo")
            if rule is not None:
                return rule(call, self)
        elif isinstance(callee, GlobalVar):
            func = self._function_of(callee)
            if isinstance(func, Function):
                return derive_call_ret_struct_info(func.struct_info, call, self)
            if isinstance(func, tir.PrimFunc):
                return func.struct_info.ret
        else:
            info = callee.struct_info
            if isinstance(info, FuncStructInfo):
                return derive_call_ret_struct_info(info, call, self)
        if len(call.sinfo_args) == 1:
            return call.sinfo_args[0]
        if len(call.sinfo_args):
            return TupleStructInfo(call.sinfo_args)
        if isinstance(callee, Var):
            return ObjectStructInfo()
        raise error.ValueError(
            f"BlockBuilder.emit: nothing says what a call of {call.op} returns; give sinfo_args"
        )

    def _normal_if(self, expr: If) -> If:
        cond = self._argument(expr.cond)
        branches = [self._in_scope(branch) for branch in (expr.true_branch, expr.false_branch)]
        same = cond.same_as(expr.cond) and all(
            a.same_as(b) for a, b in zip(branches, (expr.true_branch, expr.false_branch))
        )
        if same and expr.struct_info is not None:
            return expr
        first, second = (self._erased_branch(branch) for branch in branches)
        info = None if first is None or second is None else struct_info_lca(first, second)
        return If(cond, branches[0], branches[1], info)

    def _erased_branch(self, branch: RelayExpr) -> StructInfo | None:
        info = branch.struct_info
        if info is None:
            return None
        inner = {
            var
            for block in branch.blocks
            for binding in block.bindings
            if isinstance(binding, MatchCast)
            for var in definable_tir_vars_in_struct_info(binding.struct_info)
        }
        visible = set().union(*self._extents)
        hidden = inner - visible
        if not hidden:
            return info
        return erase_to_well_defined(info, {var: var for var in visible}, {})

    def _in_scope(self, expr: RelayExpr, params: Sequence[Var] | None = None) -> SeqExpr:
        """A body in normal form, as a sequence of blocks of its own."""
        self.begin_scope(params)
        new = self.as_sequence(expr if isinstance(expr, SeqExpr) else expr)
        self.end_scope()
        return new

    def as_sequence(self, expr: RelayExpr) -> SeqExpr:
        """An expression as a sequence of blocks in normal form."""
        if isinstance(expr, SeqExpr):
            return self._normal_sequence(expr)
        self.begin_binding_block()
        body = self._argument(expr)
        block = self.end_block()
        return _sequence([block] if len(block.bindings) else [], body)

    def _normal_sequence(self, expr: SeqExpr) -> SeqExpr:
        blocks: list[BindingBlock] = []
        changed = False
        for block in expr.blocks:
            new = self._normal_block(block)
            changed = changed or len(new) != 1 or not new[0].same_as(block)
            blocks.extend(new)
        self.begin_binding_block()
        body = self._argument(expr.body)
        rest = self.end_block()
        if len(rest.bindings):
            blocks.append(rest)
        if not changed and body.same_as(expr.body) and not len(rest.bindings):
            return expr
        return _sequence(merged_blocks(blocks), body)

    def _normal_block(self, block: BindingBlock) -> list[BindingBlock]:
        """The blocks that a block becomes: a sequence that is bound to a variable is spliced in."""
        result: list[BindingBlock] = []
        dataflow = isinstance(block, DataflowBlock)
        changed = False

        def begin() -> None:
            self.begin_dataflow_block() if dataflow else self.begin_binding_block()

        def close() -> None:
            new = self.end_block()
            if len(new.bindings):
                result.append(new)

        begin()
        for binding in block.bindings:
            value = self.normalize(binding.value)
            if isinstance(value, SeqExpr):
                close()
                result.extend(value.blocks)
                begin()
                value = value.body
                changed = True
            if isinstance(binding, MatchCast):
                value = self.normalize_argument(value)
                new: Binding = (
                    binding
                    if value.same_as(binding.value)
                    else MatchCast(binding.var, value, binding.struct_info)
                )
                if binding.var.struct_info is None:
                    _update(binding.var, binding.struct_info)
            else:
                new = binding if value.same_as(binding.value) else VarBinding(binding.var, value)
                if binding.var.struct_info is None and value.struct_info is not None:
                    _update(binding.var, value.struct_info)
            changed = changed or not new.same_as(binding)
            self.emit_normalized(new)
        close()
        if not changed and len(result) == 1 and len(result[0].bindings) == len(block.bindings):
            return [block]
        return result

    def inline_sequence(self, expr: SeqExpr) -> RelayExpr:
        """Put the bindings of a sequence into the open block, and give what follows them."""
        for block in expr.blocks:
            for binding in block.bindings:
                self.emit_normalized(binding)
        return expr.body

    def _normal_function(self, func: Function) -> Function:
        body = self._in_scope(func.body, func.params)
        info = func.ret_struct_info
        erased = self._erased(body.struct_info, func.params)
        info = erased if info is None else narrower_struct_info(info, erased)
        kept = info is not None and info.same_as(func.ret_struct_info)
        if kept and body.same_as(func.body):
            return func
        return Function(func.params, body, info, func.is_pure, func.attrs)


def _sequence(blocks: Sequence[BindingBlock], body: RelayExpr) -> SeqExpr:
    return SeqExpr(blocks, body)


def merged_blocks(blocks: Sequence[BindingBlock]) -> list[BindingBlock]:
    """Blocks of one kind that follow each other as one."""
    result: list[BindingBlock] = []
    for block in blocks:
        if result and type(result[-1]) is type(block):
            result[-1] = type(block)([*result[-1].bindings, *block.bindings])
        else:
            result.append(block)
    return result


def _parameter(param: Any) -> Var:
    if isinstance(param, DataflowVar) or not isinstance(param, Var):
        raise error.TypeError(f"BlockBuilder.function: parameters are variables, got {param}")
    return param


def _operand(value: Any) -> RelayExpr:
    """Python's sequences and numbers as graph values."""
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (list, tuple)):
        return Tuple([_operand(item) for item in value])
    if isinstance(value, tir.PrimExpr):
        return PrimValue(value)
    return const(value)
