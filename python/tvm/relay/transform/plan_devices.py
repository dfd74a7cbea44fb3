"""Where each value of a program lives, and copies where it is used elsewhere."""

from __future__ import annotations

import tvm
from tvm import error
from tvm.ir import Constructor, FuncType, GlobalVar, IRModule, Op, RelayExpr, Type
from tvm.ir.transform import Pass, PassContext, module_pass
from tvm.target import CompilationConfig, VirtualDevice

from ..adt import Clause, Match, Pattern, pattern_vars
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
    attrs_record,
    set_checked_type,
    set_virtual_device,
)
from ..expr_functor import PostOrderMutator, PostOrderVisitor, rebuilt
from ..op.annotation import on_device
from .base import relay_functions
from .device_domains import Domain, domain_of_type

__all__ = ["PlanDevices"]


def _is_call_of(expr: RelayExpr, name: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == name


def _is_mark(expr: RelayExpr) -> bool:
    return _is_call_of(expr, "on_device")


def _both(mark: RelayExpr) -> RelayExpr:
    """A mark that places what it marks, as one that places the result too; others are returned."""
    if not _is_mark(mark) or mark.attrs["constrain_result"] or not mark.attrs["constrain_body"]:
        return mark
    placed = on_device(mark.args[0], mark.attrs["virtual_device"], True, True)
    return rebuilt(mark, Call(placed.op, placed.args, placed.attrs, mark.type_args))


class _Marks(PostOrderMutator):
    """Says what marks mean for what is around them.

    A bound variable lives where its value was said to be, a function gives its result where its
    body was, and so do fields of tuples. A variable of which a program says where it is may be used
    elsewhere. What programs branch on is wanted on the host.
    """

    def __init__(self, host: VirtualDevice) -> None:
        super().__init__()
        self._host = host

    def dispatch(self, expr: RelayExpr) -> RelayExpr:
        """The method's result, with the type that is known already."""
        new = super().dispatch(expr)
        untyped = isinstance(new, RelayExpr) and new.checked_type_ is None
        return rebuilt(expr, new) if untyped else new

    def _mark(self, value: RelayExpr, device: VirtualDevice, wanted: bool) -> RelayExpr:
        """A mark of where a value is, or else of where it is wanted."""
        mark = on_device(value, device, constrain_result=wanted, constrain_body=not wanted)
        type_ = value.checked_type
        return set_checked_type(Call(mark.op, mark.args, mark.attrs, [type_]), type_)

    def _place(self, var: Var, device: VirtualDevice) -> None:
        if not isinstance(var.checked_type, FuncType):
            self.memo_map[var] = self._mark(var, device, wanted=False)

    def visit_function(self, func: Function) -> RelayExpr:
        for param in func.params:
            if not param.virtual_device_.is_unconstrained:
                self._place(param, param.virtual_device_)
        body = self._last(self.visit(func.body))
        if body.same_as(func.body):
            return func
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs, func.span)

    def _last(self, body: RelayExpr) -> RelayExpr:
        """A body whose result is where its last expression is said to be."""
        lets = []
        while isinstance(body, Let):
            lets.append(body)
            body = body.body
        result = _both(body)
        if result.same_as(body):
            return lets[0] if lets else body
        for let in reversed(lets):
            result = rebuilt(let, Let(let.var, let.value, result, let.span))
        return result

    def visit_let(self, let: Let) -> RelayExpr:
        lets = []
        node: RelayExpr = let
        while isinstance(node, Let):
            value = _both(self.visit(node.value))
            if _is_mark(value) and value.attrs["constrain_result"]:
                self._place(node.var, value.attrs["virtual_device"])
            lets.append((node, value))
            node = node.body
        body = self.visit(node)
        for old, value in reversed(lets):
            same = value.same_as(old.value) and body.same_as(old.body)
            body = old if same else rebuilt(old, Let(old.var, value, body, old.span))
        return body

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        value = self.visit(item.tuple_value)
        if not _is_mark(value):
            return item if value.same_as(item.tuple_value) else rebuilt(
                item, TupleGetItem(value, item.index))  # fmt: skip
        field = rebuilt(item, TupleGetItem(value.args[0], item.index))
        return rebuilt(item, Call(value.op, [field], value.attrs, [item.checked_type_]))

    def _branched_on(self, value: RelayExpr) -> RelayExpr:
        return self._mark(value, self._host, wanted=True)

    def visit_if(self, iff: If) -> RelayExpr:
        cond = self._branched_on(self.visit(iff.cond))
        then, other = (self.visit(branch) for branch in (iff.true_branch, iff.false_branch))
        return rebuilt(iff, If(cond, then, other, iff.span))

    def visit_match(self, match: Match) -> RelayExpr:
        data = self._branched_on(self.visit(match.data))
        clauses = [Clause(c.lhs, self.visit(c.rhs)) for c in match.clauses]
        return rebuilt(match, Match(data, clauses, match.complete))


class _Analysis(PostOrderVisitor):
    """Domains of the values of a module, joined where a program says that they are one.

    Attributes
    ----------
    borders : body and result of marks and copies, which may live on different devices.
    """

    def __init__(self, functions: dict[str, Function], config: CompilationConfig) -> None:
        super().__init__()
        self._functions = functions
        self._config = config
        self._host = Domain(config.host_virtual_device)
        self._domains: dict[RelayExpr, Domain] = {}
        self.borders: list[tuple[Domain, Domain]] = []
        self.closures: list[Domain] = []

    def domain(self, expr: RelayExpr) -> Domain:
        """The domain of a value, which constants and operators have not: they are anywhere."""
        if isinstance(expr, GlobalVar):
            return self.domain(self._functions[str(expr.name_hint)])
        found = self._domains.get(expr)
        if found is None:
            found = self._domains[expr] = self._new(expr)
        return found

    def _new(self, expr: RelayExpr) -> Domain:
        if isinstance(expr, Function):
            result = domain_of_type(expr.body.checked_type, self._known(expr.virtual_device_))
            return Domain(parts=[*(self.domain(p) for p in expr.params), result])
        known = self._known(expr.virtual_device_) if isinstance(expr, Var) else VirtualDevice()
        return domain_of_type(expr.checked_type, known)

    def _known(self, device: VirtualDevice) -> VirtualDevice:
        return self._config.canonical_virtual_device(device)

    def _join(self, expr: RelayExpr, domain: Domain, where: str) -> None:
        """Demand that a value lives in a domain.

        Raises
        ------
        ValueError : it lives elsewhere.
        """
        if isinstance(expr, (Constant, Op, Constructor)):
            return
        own = self.domain(expr)
        if not own.join(domain):
            name = expr.name_hint if isinstance(expr, (Var, GlobalVar)) else _short(expr)
            raise error.ValueError(
                f"relay.PlanDevices: {where}: '{name}' is on {_device_text(own.device)}, and "
                f"{_device_text(domain.device)} is asked for; copy it by relay.device_copy, or "
                "mark it by relay.annotation.on_device, which copies where devices differ"
            )

    def visit_call(self, call: Call) -> None:
        super().visit_call(call)
        if _is_mark(call):
            device = self._known(call.attrs["virtual_device"])
            self._border(
                call,
                device if call.attrs["constrain_body"] else VirtualDevice(),
                device if call.attrs["constrain_result"] else VirtualDevice(),
            )
            if call.attrs["constrain_body"] and call.attrs["constrain_result"]:
                self._join(call.args[0], self.domain(call), "on_device")
        elif _is_call_of(call, "device_copy"):
            source, target = (
                self._known(call.attrs[f"{end}_virtual_device"]) for end in ("src", "dst")
            )
            self._border(call, source, target)
        elif isinstance(call.op, (Op, Constructor)):
            name = call.op.name if isinstance(call.op, Op) else call.op.name_hint
            for k, arg in enumerate(call.args):
                self._join(arg, self.domain(call), f"argument {k} of {name}")
        else:
            callee = self.domain(call.op)
            if not callee.is_function:
                # A value of a defined type that holds a function: all it takes and gives is there.
                for part in [*call.args, call]:
                    self._join(part, callee, "a call of a function of a value")
                return
            name = call.op.name_hint if isinstance(call.op, (Var, GlobalVar)) else "a function"
            for k, (arg, param) in enumerate(zip(call.args, callee.params)):
                self._join(arg, param, f"argument {k} of {name}")
            self._join(call, callee.result, f"the result of {name}")

    def _border(self, call: Call, body: VirtualDevice, result: VirtualDevice) -> None:
        inside = domain_of_type(call.args[0].checked_type, body)
        self._join(call.args[0], inside, str(call.op.name))
        self._join(call, domain_of_type(call.checked_type, result), str(call.op.name))
        self.borders.append((inside, self.domain(call)))

    def visit_tuple(self, tup: Tuple) -> None:
        super().visit_tuple(tup)
        for k, field in enumerate(tup.fields):
            self._join(field, self.domain(tup), f"field {k} of a tuple")

    def visit_tuple_getitem(self, item: TupleGetItem) -> None:
        super().visit_tuple_getitem(item)
        self._join(item, self.domain(item.tuple_value), f"field {item.index} of a tuple")

    def visit_let(self, let: Let) -> None:
        lets = []
        node: RelayExpr = let
        while isinstance(node, Let):
            if isinstance(node.value, Function):
                # It may call itself by the variable.
                self._join(node.value, self.domain(node.var), f"let %{node.var.name_hint}")
            self.visit(node.value)
            self._join(node.value, self.domain(node.var), f"let %{node.var.name_hint}")
            lets.append(node)
            node = node.body
        self.visit(node)
        for outer in lets:
            self._join(node, self.domain(outer), "the result of bindings")

    def visit_function(self, func: Function) -> None:
        domain = self.domain(func)
        self.closures.append(domain)
        super().visit_function(func)
        self._join(func.body, domain.result, "the result of a function")

    def visit_if(self, iff: If) -> None:
        super().visit_if(iff)
        self._join(iff.cond, self._host, "a condition")
        for branch in (iff.true_branch, iff.false_branch):
            self._join(branch, self.domain(iff), "a branch")

    def visit_match(self, match: Match) -> None:
        super().visit_match(match)
        self._join(match.data, self._host, "what is matched")
        for clause in match.clauses:
            for var in pattern_vars(clause.lhs):
                self._join(var, self._host, f"%{var.name_hint} of what is matched")
            self._join(clause.rhs, self.domain(match), "a clause")

    def visit_ref_create(self, ref: RefCreate) -> None:
        super().visit_ref_create(ref)
        self._join(ref.value, self.domain(ref), "the value of a cell")

    def visit_ref_read(self, read: RefRead) -> None:
        super().visit_ref_read(read)
        self._join(read, self.domain(read.ref), "the value of a cell")

    def visit_ref_write(self, write: RefWrite) -> None:
        super().visit_ref_write(write)
        self._join(write.value, self.domain(write.ref), "the value of a cell")
        self._join(write, self.domain(write.ref), "the value of a cell")

    def finish(self) -> None:
        """Give every domain a device: no copy where none is asked for, parameters to the device of
        the result, and all else to the default one."""
        for body, result in self.borders:
            if not (body.is_placed and result.is_placed):
                body.join(result)
        default = self._config.default_primitive_virtual_device
        for domain in [*map(self.domain, self._functions.values()), *self.closures]:
            domain.of_result().fill(default)
            for param in domain.params:
                param.fill(domain.device)
        for domain in self._domains.values():
            domain.fill(default)


def _short(expr: RelayExpr) -> str:
    """What tells a reader which expression is meant."""
    if isinstance(expr, Call):
        op = expr.op
        return str(getattr(op, "name", None) or getattr(op, "name_hint", "a function")) + "(...)"
    return type(expr).__name__


def _device_text(device: VirtualDevice) -> str:
    if device.device_type == -1:
        return f"memory '{device.memory_scope}'" if device.memory_scope else "no device"
    text = repr(tvm.runtime.Device(device.device_type, max(device.virtual_device_id, 0)))
    return text + (f" in memory '{device.memory_scope}'" if device.memory_scope else "")


class _Planned(PostOrderMutator):
    """The program with each value on its device.

    What is elsewhere than the expression around it is in a mark that says so, and what is used
    elsewhere than it lives is copied.
    """

    def __init__(self, analysis: _Analysis, config: CompilationConfig) -> None:
        super().__init__()
        self._analysis = analysis
        self._config = config
        self._known: dict[tuple[int, int, str, str], VirtualDevice] = {}
        self._copies: dict[tuple[RelayExpr, VirtualDevice, VirtualDevice], RelayExpr] = {}

    def _one(self, device: VirtualDevice) -> VirtualDevice:
        """One object for each device, which the text then has once."""
        full = self._config.canonical_virtual_device(device)
        key = (full.device_type, full.virtual_device_id, str(full.target), full.memory_scope)
        return self._known.setdefault(key, full)

    def _device(self, expr: RelayExpr) -> VirtualDevice:
        return self._one(self._analysis.domain(expr).device)

    def _finished(self, old: RelayExpr, new: RelayExpr, device: VirtualDevice) -> RelayExpr:
        return set_virtual_device(rebuilt(old, new), device)

    def _operator(
        self, name: str, value: RelayExpr, type_: Type, device: VirtualDevice, **settings: object
    ) -> RelayExpr:
        call = Call(Op.get(name), [value], attrs_record(settings), [type_])
        return set_virtual_device(set_checked_type(call, type_), device)

    def _placed(self, value: RelayExpr, type_: Type, device: VirtualDevice) -> RelayExpr:
        if isinstance(value, (Var, GlobalVar, Function)):
            return value  # They say it themselves.
        return self._operator(
            "on_device", value, type_, device,
            virtual_device=device, constrain_result=True, constrain_body=True,
        )  # fmt: skip

    def _child(self, around: VirtualDevice, wanted: VirtualDevice, expr: RelayExpr) -> RelayExpr:
        """A part of an expression that is on a device, wanted on the same or another one."""
        if isinstance(expr, (Op, Constructor)):
            return expr
        type_ = expr.checked_type
        if isinstance(expr, Constant):
            value = self._constant(expr, wanted)
            return value if wanted.same_as(around) else self._placed(value, type_, wanted)
        device = self._device(expr)
        if _is_mark(expr) or _is_call_of(expr, "device_copy"):
            value = self._child(around, device, expr.args[0])
        else:
            value = self.visit(expr)
            if not device.same_as(around):
                value = self._placed(value, type_, device)
        if device.same_as(wanted):
            return value
        copy = self._copies.get((value, device, wanted))
        if copy is None:
            copy = self._copies[value, device, wanted] = self._operator(
                "device_copy", value, type_, wanted,
                src_virtual_device=device, dst_virtual_device=wanted,
            )  # fmt: skip
        return copy if wanted.same_as(around) else self._placed(copy, type_, wanted)

    def _constant(self, const: Constant, device: VirtualDevice) -> RelayExpr:
        key = (const, device, device)
        found = self._copies.get(key)
        if found is None:
            new = self._finished(const, Constant(const.data, const.span), device)
            found = self._copies[key] = new
        return found

    def visit_constant(self, const: Constant) -> RelayExpr:
        return self._constant(const, self._one(self._config.default_primitive_virtual_device))

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        parts = super().visited_first(expr)
        return [
            inner
            for part in parts
            for inner in [_unmarked(part)]
            if not isinstance(inner, (Op, Constructor, Constant))
        ]

    def visit_var(self, var: Var) -> RelayExpr:
        return self._finished(
            var, Var(str(var.name_hint), var.type_annotation, var.span), self._device(var)
        )

    def visit_call(self, call: Call) -> RelayExpr:
        device = self._device(call)
        if _is_mark(call) or _is_call_of(call, "device_copy"):
            return self._child(device, device, call)
        if isinstance(call.op, (Op, Constructor)):
            wanted = [device] * len(call.args)
            op: RelayExpr = call.op
        else:
            callee = self._analysis.domain(call.op)
            params = callee.params if callee.is_function else [callee] * len(call.args)
            wanted = [self._one(param.device) for param in params]
            op = self._child(device, self._one(callee.device), call.op)
        args = [self._child(device, place, arg) for place, arg in zip(wanted, call.args)]
        new = Call(op, args, call.attrs, call.type_args, call.span)
        return self._finished(call, new, device)

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        return gvar

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        device = self._device(tup)
        new = Tuple([self._child(device, device, field) for field in tup.fields], tup.span)
        return self._finished(tup, new, device)

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        device = self._device(item)
        value = self._child(device, device, item.tuple_value)
        return self._finished(item, TupleGetItem(value, item.index, item.span), device)

    def visit_let(self, let: Let) -> RelayExpr:
        device = self._device(let)
        lets = []
        node: RelayExpr = let
        while isinstance(node, Let):
            var = self.visit(node.var)
            lets.append((node, var, self._child(device, self._device(node.var), node.value)))
            node = node.body
        body = self._child(device, device, node)
        for old, var, value in reversed(lets):
            body = self._finished(old, Let(var, value, body, old.span), device)
        return body

    def visit_if(self, iff: If) -> RelayExpr:
        device, host = self._device(iff), self._one(self._config.host_virtual_device)
        cond = self._child(device, host, iff.cond)
        then, other = (self._child(device, device, b) for b in (iff.true_branch, iff.false_branch))
        return self._finished(iff, If(cond, then, other, iff.span), device)

    def visit_match(self, match: Match) -> RelayExpr:
        device, host = self._device(match), self._one(self._config.host_virtual_device)
        data = self._child(device, host, match.data)
        clauses = [
            Clause(self._pattern(c.lhs), self._child(device, device, c.rhs)) for c in match.clauses
        ]
        return self._finished(match, Match(data, clauses, match.complete), device)

    def _pattern(self, pattern: Pattern) -> Pattern:
        for var in pattern_vars(pattern):
            self.visit(var)
        return self.visit_pattern(pattern)

    def visit_function(self, func: Function) -> RelayExpr:
        device = self._device(func)
        params = [self.visit(param) for param in func.params]
        body = self._child(device, device, func.body)
        new = Function(params, body, func.ret_type, func.type_params, func.attrs, func.span)
        return self._finished(func, new, device)

    def visit_ref_create(self, ref: RefCreate) -> RelayExpr:
        device = self._device(ref)
        return self._finished(ref, RefCreate(self._child(device, device, ref.value)), device)

    def visit_ref_read(self, read: RefRead) -> RelayExpr:
        device = self._device(read)
        return self._finished(read, RefRead(self._child(device, device, read.ref)), device)

    def visit_ref_write(self, write: RefWrite) -> RelayExpr:
        device = self._device(write)
        parts = [self._child(device, device, part) for part in (write.ref, write.value)]
        return self._finished(write, RefWrite(*parts), device)


def _unmarked(expr: RelayExpr) -> RelayExpr:
    while _is_mark(expr) or _is_call_of(expr, "device_copy"):
        expr = expr.args[0]
    return expr


def planned(mod: IRModule, config: CompilationConfig) -> IRModule:
    """The module as `PlanDevices` makes it."""
    mod = infer_module(mod)
    marks = _Marks(config.host_virtual_device)
    functions = {str(gv.name_hint): marks.visit(func) for gv, func in relay_functions(mod)}
    analysis = _Analysis(functions, config)
    for func in functions.values():
        analysis.visit(func)
    analysis.finish()
    rewriter = _Planned(analysis, config)
    result = mod.clone()
    for name, func in functions.items():
        result[name] = rewriter.visit(func)
    return result


def PlanDevices(config: CompilationConfig) -> Pass:
    """Decide where each value of a program lives, from what its marks say, and copy what is used
    elsewhere; after RFC 38 of TVM, "Unified device/target/memory scope planning".

    The arguments and the result of an operator are on one device, as are a variable and its value,
    the branches of a choice and what is chosen, a tuple, a cell or a value of a defined type and
    all that is in it. What a program branches on is on the host, where it is copied if need be.
    A call `relay.annotation.on_device` says where its body is, its result, or both, and values are
    copied between the two. What nothing decides is on the device of the result for parameters, and
    otherwise on the default one. Constants are wherever they are used.

    Afterwards every expression has its device as `virtual_device_`; what is elsewhere than the
    expression around it is marked by `on_device` with both constraints, and copies are calls of
    `relay.device_copy`.

    Parameters
    ----------
    config : of `tvm.target.make_compilation_config`.

    Raises
    ------
    ValueError : a value would have to live in two places, or a mark names a device for which there
        is no target.
    """

    @module_pass(opt_level=0, name="PlanDevices", required=["InferType"])
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        return planned(mod, config)

    return run
