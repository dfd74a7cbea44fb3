"""Parts of programs for other compilers: marked, and made functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import GlobalVar, IRModule, Op, RelayExpr
from tvm.ir.transform import Pass, PassContext, module_pass

from ..analysis.infer import infer_module
from ..expr import (
    Call,
    Constant,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PostOrderMutator, operands, post_order_visit
from ..op.annotation import compiler_begin, compiler_end
from ..op.registry import settings_of
from .base import expression_pass, relay_functions

__all__ = ["AnnotateTarget", "PartitionGraph", "Regions", "compiler_of", "mark_of"]


def mark_of(expr: Any) -> str:
    """The name of a mark, "compiler_begin" or "compiler_end"; "" for what is none."""
    name = str(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else ""
    return name.removeprefix("annotation.") if name.startswith("annotation.compiler_") else ""


def compiler_of(mark: RelayExpr) -> str:
    """The compiler that a mark is for."""
    return str(settings_of(mark)["compiler"])


class _Annotator(PostOrderMutator):
    """Marks around everything that is computed, each use with its own; functions are taken or left
    as a whole. What was marked for a compiler stays its."""

    def __init__(self, targets: Sequence[str], include_non_call_ops: bool) -> None:
        super().__init__()
        self._targets = targets
        self._others = include_non_call_ops
        # For new expressions whose operands are marked, the compiler.
        self._target_of: dict[RelayExpr, str] = {}

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, Function):
            return [_unmarked(a) for a in expr.args]
        return [_unmarked(o) for o in super().visited_first(expr)]

    def _taker(self, call: Call) -> str:
        if isinstance(call.op, Function):
            name = str(call.op.attrs["Composite"]) if _has(call.op, "Composite") else ""
            return next((t for t in self._targets if name.startswith(f"{t}.")), "default")
        for target in self._targets:
            supported = call.op.get_attr(f"target.{target}")
            if supported is not None and supported(call):
                return target
        return "default"

    def _ended(self, expr: RelayExpr) -> RelayExpr:
        """A use of an expression, by the old one, behind the mark of its end."""
        new = self.visit(_unmarked(expr))
        target = self._target_of.get(new)
        return new if target is None else compiler_end(new, target)

    def _begun(self, exprs: Sequence[RelayExpr], target: str) -> list[RelayExpr]:
        return [compiler_begin(self._ended(e), target) for e in exprs]

    def _noted(self, new: RelayExpr, target: str) -> RelayExpr:
        if not isinstance(new, Call) or len(new.args):
            self._target_of[new] = target
        return new

    def _common(self, exprs: Sequence[RelayExpr]) -> str:
        """The compiler that has all of some expressions, else "default"."""
        found = {self._target_of.get(self.visit(_unmarked(e)), "default") for e in exprs}
        return found.pop() if len(found) == 1 else "default"

    def visit_call(self, call: Call) -> RelayExpr:
        if mark_of(call):
            return self.visit(_unmarked(call))
        if not isinstance(call.op, (Op, Function)) or (
            isinstance(call.op, Function) and not _has(call.op, "Composite")
        ):
            op = self.visit(call.op)
            new = Call(op, [self._part(a) for a in call.args], call.attrs, call.type_args)
            return self._noted(new, "default") if self._others else new
        given = {compiler_of(a) for a in call.args if mark_of(a)} - {"default"}
        target = given.pop() if given else self._taker(call)
        args = self._begun(call.args, target)
        return self._noted(Call(call.op, args, call.attrs, call.type_args), target)

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        if not self._others or not len(tup.fields):
            return Tuple([self._ended(f) for f in tup.fields])
        target = self._common(tup.fields)
        return self._noted(Tuple(self._begun(tup.fields, target)), target)

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        if not self._others:
            return TupleGetItem(self._ended(item.tuple_value), item.index)
        target = self._common([item.tuple_value])
        value = self._begun([item.tuple_value], target)[0]
        return self._noted(TupleGetItem(value, item.index), target)

    def visit_function(self, func: Function) -> RelayExpr:
        if _has(func, "Composite"):
            return func
        for param in func.params:
            self.visit(param)
        body = self._ended(func.body)
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            bindings.append((node.var, self._ended(node.value)))
            node = node.body
        body = self._ended(node)
        for var, value in reversed(bindings):
            body = Let(var, value, body)
        return body

    def _part(self, expr: RelayExpr) -> RelayExpr:
        """An operand of what is no operator: of a region where those are in some."""
        return self._begun([expr], "default")[0] if self._others else self._ended(expr)

    def visit_if(self, iff: If) -> RelayExpr:
        return If(*(self._ended(p) for p in (iff.cond, iff.true_branch, iff.false_branch)))

    def visit_ref_create(self, ref: RefCreate) -> RelayExpr:
        new = RefCreate(self._part(ref.value))
        return self._noted(new, "default") if self._others else new

    def visit_ref_read(self, read: RefRead) -> RelayExpr:
        new = RefRead(self._part(read.ref))
        return self._noted(new, "default") if self._others else new

    def visit_ref_write(self, write: RefWrite) -> RelayExpr:
        new = RefWrite(self._part(write.ref), self._part(write.value))
        return self._noted(new, "default") if self._others else new


def _unmarked(expr: RelayExpr) -> RelayExpr:
    while mark_of(expr):
        expr = expr.args[0]
    return expr


def _has(func: Any, key: str) -> bool:
    return isinstance(func, Function) and func.attrs is not None and key in func.attrs


def AnnotateTarget(targets: str | Sequence[str], include_non_call_ops: bool = True) -> Pass:
    """Mark what other compilers take, and what is left for this one, the compiler "default", by
    ``compiler_begin`` and ``compiler_end``.

    A compiler takes a call whose operator has the attribute "target.<compiler>", a function of the
    call that says so, and a function whose "Composite" name starts with "<compiler>.".

    Parameters
    ----------
    targets : compilers; the first that takes a call gets it.
    include_non_call_ops : mark tuples and their fields too, for the compiler that has their
        operands, and calls of functions and cells.
    """
    names = [targets] if isinstance(targets, str) else [str(t) for t in targets]

    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        return _Annotator(names, include_non_call_ops).visit(func)

    return expression_pass(rewrite, 0, "AnnotateTarget")


class Regions:
    """Which region each expression between marks is in; marks themselves are in none.

    Parameters
    ----------
    default : whether what is marked for "default" is in regions too.
    """

    def __init__(self, body: RelayExpr, default: bool = False) -> None:
        self.order: list[RelayExpr] = []
        post_order_visit(body, self.order.append)
        self._parent: dict[RelayExpr, RelayExpr] = {}
        self.compiler: dict[RelayExpr, str] = {}
        self.outputs: dict[RelayExpr, list[RelayExpr]] = {}
        for expr in reversed(self.order):
            if mark_of(expr) == "compiler_end" and (default or compiler_of(expr) != "default"):
                self._enter(expr.args[0], compiler_of(expr))
        for expr in self.order:
            if mark_of(expr) == "compiler_end" and (region := self.of(expr.args[0])) is not None:
                outputs = self.outputs.setdefault(region, [])
                if not any(expr.args[0].same_as(o) for o in outputs):
                    outputs.append(expr.args[0])

    def _enter(self, root: RelayExpr, compiler: str) -> None:
        pending = [root]
        while pending:
            expr = pending.pop()
            self._parent.setdefault(expr, expr)
            self.compiler[expr] = compiler
            for operand in operands(expr):
                if mark_of(operand) or not operands(operand):
                    continue
                known = operand in self._parent
                self._parent.setdefault(operand, operand)
                self.join(operand, expr)
                if not known:
                    pending.append(operand)

    def of(self, expr: RelayExpr) -> RelayExpr | None:
        """What stands for the region of an expression, None outside of regions."""
        if expr not in self._parent:
            return None
        while not self._parent[expr].same_as(expr):
            expr = self._parent[expr]
        return expr

    def join(self, a: RelayExpr, b: RelayExpr) -> None:
        """Make the regions of two expressions one."""
        first, second = self.of(a), self.of(b)
        assert first is not None and second is not None
        if not first.same_as(second):
            self._parent[first] = second


class _Inside(PostOrderMutator):
    """The body of a region's function, with a parameter for each value that comes in."""

    def __init__(self, bind_constants: bool) -> None:
        super().__init__()
        self._bind_constants = bind_constants
        self.inputs: list[RelayExpr] = []
        self.params: list[Var] = []

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if mark_of(expr) == "compiler_begin":
            return []
        if isinstance(expr, Call) and isinstance(expr.op, Function):
            return list(expr.args)
        return super().visited_first(expr)

    def _param(self, source: RelayExpr) -> RelayExpr:
        for known, param in zip(self.inputs, self.params):
            if known.same_as(source):
                return param
        self.inputs.append(source)
        self.params.append(Var(f"i{len(self.params)}", source.checked_type))
        return self.params[-1]

    def visit_var(self, var: Var) -> RelayExpr:
        return self._param(var)

    def visit_function(self, func: Function) -> RelayExpr:
        return func

    def visit_call(self, call: Call) -> RelayExpr:
        mark = mark_of(call)
        if mark == "compiler_begin":
            source = call.args[0]
            if isinstance(source, Constant) and self._bind_constants:
                return source
            return self._param(source)
        return self.visit(call.args[0]) if mark else super().visit_call(call)


class _Cutter(PostOrderMutator):
    """Calls of new functions in the place of regions."""

    def __init__(self, regions: Regions, mod: IRModule, prefix: str, name: str,
                 bind_constants: bool) -> None:  # fmt: skip
        super().__init__()
        self._regions, self._mod = regions, mod
        self._prefix, self._name, self._bind_constants = prefix, name, bind_constants
        self._made: dict[RelayExpr, tuple[GlobalVar, list[RelayExpr]]] = {}
        self._calls: dict[RelayExpr, Call] = {}

    def _region(self, expr: RelayExpr) -> RelayExpr | None:
        return self._regions.of(expr.args[0]) if mark_of(expr) == "compiler_end" else None

    def _function(self, region: RelayExpr) -> tuple[GlobalVar, list[RelayExpr]]:
        """The function of a region, and the values that it gets."""
        if region not in self._made:
            inside = _Inside(self._bind_constants)
            results = [inside.visit(o) for o in self._regions.outputs[region]]
            compiler = self._regions.compiler[region]
            symbol = f"{self._prefix}_{compiler}_{self._name}_{len(self._made)}"
            attrs = {"Primitive": 1, "Inline": 1, "Compiler": compiler, "global_symbol": symbol}
            body = results[0] if len(results) == 1 else Tuple(results)
            gvar = GlobalVar(symbol)
            self._mod[gvar] = Function(inside.params, body, attrs=attrs)
            self._made[region] = gvar, inside.inputs
        return self._made[region]

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        region = self._region(expr)
        return super().visited_first(expr) if region is None else self._function(region)[1]

    def visit_call(self, call: Call) -> RelayExpr:
        region = self._region(call)
        if region is None:
            return self.visit(call.args[0]) if mark_of(call) else super().visit_call(call)
        if region not in self._calls:
            gvar, inputs = self._function(region)
            self._calls[region] = Call(gvar, [self.visit(i) for i in inputs])
        outputs = self._regions.outputs[region]
        if len(outputs) == 1:
            return self._calls[region]
        place = next(k for k, o in enumerate(outputs) if o.same_as(call.args[0]))
        return TupleGetItem(self._calls[region], place)


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """Make what is between ``compiler_begin`` and ``compiler_end`` global functions for compilers.

    They have the attributes "Compiler" and "global_symbol", which `relay.build` gives them to
    ``relay.ext.<compiler>`` by. Marks of the compiler "default" are dropped.

    Parameters
    ----------
    mod_name : in the functions' names, "tvmgen_<mod_name>_<compiler>_main_<number>".
    bind_constants : keep constants inside of the functions; otherwise they are arguments.
    """

    @module_pass(opt_level=0, name="PartitionGraph")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        mod = infer_module(mod)
        result = mod.clone()
        for gvar, func in relay_functions(mod):
            if _has(func, "Compiler"):
                continue
            name = str(gvar.name_hint)
            regions = Regions(func.body)
            cutter = _Cutter(regions, result, f"tvmgen_{mod_name}", name, bind_constants)
            body = cutter.visit(func.body)
            result[name] = Function(func.params, body, func.ret_type, func.type_params, func.attrs)
        return infer_module(result)

    return run
