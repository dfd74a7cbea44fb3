"""Graph functions: parameters, blocks of bindings, and the result."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tvm import ir, relax, tir
from tvm.relax import StructInfo
from tvm.relax.analysis import BaseCheckResult, struct_info_base_check
from tvm.relax.struct_info_relations import narrower_struct_info

from . import relax_names as R
from .evaluator import OPERATORS, Dialect, Evaluator, unwrapped
from .ir_builder.tir.buffers import ScalarType
from .ir_builder.tir.expressions import meta_var
from .macro import Macro
from .options import decorator_options
from .reader import Surroundings, kind_of
from .relax_types import StructInfoMaker, SymbolicNames, info_of, naming
from .source import Source

__all__ = ["graph_member", "read_relax_function"]

_SPACES = ("nn", "ccl", "dist", "image", "grad", "vm", "memory", "builtin", "inspect")


def read_relax_function(
    source: Source, node: ast.FunctionDef, around: Surroundings
) -> relax.Function:
    """The function that a definition under ``@R.function`` describes.

    Raises
    ------
    DiagnosticError : the text is not a graph function; the message has its place.
    """
    builder = relax.BlockBuilder()
    for name, variable in around.functions.items():
        definition = around.definitions.get(name)
        if definition is not None:
            builder.update_func(variable, _signature(source, definition, around))
    return GraphReader(source, around, builder).function(node)


def _signature(source: Source, node: ast.FunctionDef, around: Surroundings) -> ir.BaseFunc:
    """A function of the module as others see it: without its body."""
    if node.name not in around.signatures:
        reader = GraphReader(source, around, relax.BlockBuilder())
        around.signatures[node.name] = reader.signature(node) or reader.tensor_signature(node)
    return around.signatures[node.name]


def _is_graph(value: Any) -> bool:
    return isinstance(value, ir.RelayExpr) and not isinstance(value, ir.PrimExpr)


@dataclass
class _Outputs:
    """The names that a dataflow block gives away."""

    names: frozenset[str]


class GraphReader(Evaluator):
    """Reads a function binding by binding; operands that have no name get one."""

    def __init__(self, source: Source, around: Surroundings, builder: relax.BlockBuilder) -> None:
        super().__init__(source, around)
        self._builder = builder
        self._symbols = SymbolicNames()
        self._attrs: dict[str, Any] = {}
        self._dialects["R"] = Dialect("R", graph_member)
        self._blocks: list[relax.BindingBlock] = []
        self._outputs: _Outputs | None = None

    def signature(self, node: ast.FunctionDef) -> relax.Function | None:
        """Parameters and result of a graph function; None for one of another kind."""
        kinds = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
        if "R.function" not in [self.construct(kind) for kind in kinds]:
            return None
        options = decorator_options(self, node, ("private", "pure", "name", "check_well_formed"))
        with naming(self._symbols):
            self._declare_extents(node)
            params = self._parameters(node)
            info = self._result(node) or relax.ObjectStructInfo()
        return relax.Function.create_empty(params, info, options.get("pure", True))

    def tensor_signature(self, node: ast.FunctionDef) -> tir.PrimFunc:
        """What a tensor function gives to who calls it by name."""
        kind = None if node.returns is None else self.value(node.returns)
        made = kind() if isinstance(kind, ScalarType) else kind
        result = made.type_annotation if isinstance(made, tir.Var) else made
        return tir.PrimFunc([], tir.Evaluate(0), result)

    def function(self, node: ast.FunctionDef, nested: bool = False) -> relax.Function:
        """The function of a definition; a nested one sees the names around it."""
        options = decorator_options(self, node, ("private", "pure", "name", "check_well_formed"))
        with naming(self._symbols):
            self._declare_extents(node)
            params = self._parameters(node)
            info = self._result(node)
            self._builder.begin_scope(params)
            body = self._body(node.body, node)
            self._builder.end_scope()
        attrs = self._attrs
        if not nested and not options.get("private", False) and "global_symbol" not in attrs:
            attrs = {"global_symbol": options.get("name", node.name), **attrs}
        with self.blaming(node):
            known = relax.BlockBuilder._erased(body.struct_info, params)
            self._check_result(node, info, known)
            if info is not None:
                known = narrower_struct_info(info, known)
            return relax.Function(
                params, body, known, options.get("pure", True), ir.DictAttrs(attrs)
            )

    def _check_result(
        self, node: ast.FunctionDef, said: StructInfo | None, known: StructInfo | None
    ) -> None:
        if said is not None and _contradict(said, known):
            raise self.error(
                node.returns or node,
                f"`{node.name}` says that it returns {said}, but what it returns is {known}",
            )

    def _declare_extents(self, node: ast.FunctionDef) -> None:
        # The body declares the symbolic extents, but the signature uses them first.
        for line in node.body:
            if isinstance(line, ast.Assign):
                self._declares(line)

    def _declares(self, line: ast.Assign) -> bool:
        """Whether a line declares variables such as ``n = T.int64()``."""
        target, value = line.targets[0], line.value
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        calls = value.elts if isinstance(value, ast.Tuple) else [value]
        if len(names) != len(calls):
            return False
        if not all((self.called(call) or "").startswith("T.") for call in calls):
            return False
        if any(
            isinstance(call, ast.Call) and call.args and self.called(call) != "T.Var"
            for call in calls
        ):
            return False
        for name, call in zip(names, calls):
            if not isinstance(name, ast.Name):
                raise self.error(name, "the name of a variable is needed")
            if name.id not in self._symbols:
                if name.id in self._scopes[0] and isinstance(self._scopes[0][name.id], tir.Var):
                    self._symbols[name.id] = self._scopes[0][name.id]
                else:
                    self._symbols[name.id] = self.make_var(name.id, call)
            self._scopes[-1][name.id] = self._symbols[name.id]
        return True

    def _parameters(self, node: ast.FunctionDef) -> list[relax.Var]:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(node, "parameters of an R.function are plain: no *, ** or defaults")
        params = []
        for argument in [*arguments.posonlyargs, *arguments.args]:
            kind = argument.annotation
            info = None if kind is None else self.struct_info(kind)
            params.append(relax.Var(argument.arg, info))
            self.define(argument.arg, params[-1])
        self._scopes[-1].update(
            {n: v for n, v in self._symbols.items() if n not in self._scopes[-1]}
        )
        return params

    def _result(self, node: ast.FunctionDef) -> StructInfo | None:
        return None if node.returns is None else self.struct_info(node.returns)

    def struct_info(self, node: ast.AST) -> StructInfo:
        """The struct info that an annotation describes."""
        info = info_of(unwrapped(self.value(node)))
        if not isinstance(info, StructInfo):
            raise self.error(
                node,
                f"{kind_of(node)} is not the type of a graph value",
                'there are R.Tensor((1, "m"), "float32"), R.Tuple, R.Shape, R.Prim, R.Callable and '
                "R.Object",
            )
        return info

    def _body(self, lines: Sequence[ast.stmt], node: ast.AST) -> relax.SeqExpr:
        """The blocks of some lines, and the value that they return."""
        outer, self._blocks = self._blocks, []
        self._builder.begin_binding_block()
        result: ir.RelayExpr | None = None
        for line in lines:
            if result is not None:
                raise self.error(line, "nothing follows the return of a graph function")
            if isinstance(line, ast.Return):
                if line.value is None:
                    raise self.error(line, "a graph function returns a value")
                result = self._operand(line.value)
            else:
                self._line(line)
        if result is None:
            name = getattr(node, "name", "the function")
            raise self.error(node, f"`{name}` returns nothing", "end it with `return value`")
        self._close()
        body = relax.SeqExpr(self._blocks, result)
        self._blocks = outer
        return body

    def expand(self, macro: Macro, node: ast.Call, bound: inspect.BoundArguments) -> Any:
        """Read the body of a macro here, with its parameters bound, and give what it returns."""
        if macro.dialect != "R.macro":
            raise self.error(node, f"{macro!r} is for tensor programs, not for graph functions")
        inner = GraphReader(macro.source, macro.around, self._builder)
        inner._symbols, inner._blocks = self._symbols, self._blocks
        # Nothing in it is known to the dataflow block around by its name.
        inner._outputs = None if self._outputs is None else _Outputs(frozenset())
        inner.bind_macro(macro, bound, self)
        *lines, last = macro.definition.body
        for line in lines:
            inner._line(line)
        if isinstance(last, ast.Return) and last.value is not None:
            return inner._operand(last.value)
        inner._line(last)
        return None

    def _close(self) -> None:
        block = self._builder.end_block()
        if len(block.bindings):
            self._blocks.append(block)

    def _operand(self, node: ast.AST) -> ir.RelayExpr:
        with self.blaming(node):
            value = self._graph(node, self.value(node))
            return self._builder.normalize_argument(self._builder.normalize(value))

    def _graph(self, node: ast.AST, value: Any) -> ir.RelayExpr:
        value = unwrapped(value)
        if _is_graph(value):
            return value
        if isinstance(value, (tuple, list, int, float, ir.PrimExpr)) and not isinstance(value, str):
            return R.value(value)
        raise self.error(
            node,
            f"{kind_of(node)} is not a graph expression",
            'operators are called by name, R.add(x, y); numbers are R.const(1.0, "float32")',
        )

    def _line(self, line: ast.stmt) -> None:
        match line:
            case ast.Assign(targets=[ast.Name(id="cls")], value=ast.Name()):
                return
            case ast.Assign() if self._declares(line):
                return
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign_name(name, None, value)
            case ast.Assign(targets=[ast.Tuple() | ast.List() as target], value=value):
                self._assign_parts(target, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign_name(name, line.annotation, value)
            case ast.With(items=[ast.withitem(optional_vars=None) as item]):
                self._with(line, item.context_expr)
            case ast.If():
                self._if(line)
            case ast.FunctionDef():
                self._nested(line)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                return
            case ast.Expr(value=ast.Call() as call):
                self._call_line(call)
            case _:
                raise self.error(
                    line,
                    f"`{ast.unparse(line).splitlines()[0]}` is not a line of a graph function",
                    "there are bindings, if, `with R.dataflow():`, R.output, functions and return",
                )

    def _call_line(self, call: ast.Call) -> None:
        what = self.construct(call.func)
        if what == "R.func_attr":
            self._attrs |= self.attributes(self.arguments(call, ("attrs",), 1)["attrs"])
        elif what == "R.output":
            if self._outputs is None:
                raise self.error(call, "R.output ends a dataflow block")
        else:
            # A call for its effect has a name too, which nothing uses.
            value = self.value(call)
            if value is not None:
                self._bind("_", None, call, value)

    def _with(self, line: ast.With, opening: ast.expr) -> None:
        what = self.called(opening)
        if what not in ("R.dataflow", "R.block") or self._outputs is not None:
            raise self.error(opening, f"{kind_of(opening)} is not a block of bindings here")
        self._close()
        known = dict(self._scopes[-1])
        if what == "R.dataflow":
            self._outputs = _Outputs(self._given_away(line))
            self._builder.begin_dataflow_block()
        else:
            self._builder.begin_binding_block()
        for inner in line.body:
            self._line(inner)
        if self._outputs is not None:
            bound = {
                name for name, value in self._scopes[-1].items() if isinstance(value, relax.Var)
            }
            missing = self._outputs.names - bound
            if missing:
                raise self.error(line, f"R.output names `{min(missing)}`, which is not bound here")
            # What is not an output ends with its block.
            for name, value in list(self._scopes[-1].items()):
                if isinstance(value, relax.DataflowVar) and known.get(name) is not value:
                    del self._scopes[-1][name]
        self._outputs = None
        block = self._builder.end_block()
        self._blocks.append(block)
        self._builder.begin_binding_block()

    def _given_away(self, line: ast.With) -> frozenset[str]:
        for inner in line.body:
            if isinstance(inner, ast.Expr) and self.called(inner.value) == "R.output":
                assert isinstance(inner.value, ast.Call)
                names = []
                for item in inner.value.args:
                    if not isinstance(item, ast.Name):
                        raise self.error(item, "R.output takes the names of values")
                    names.append(item.id)
                return frozenset(names)
        raise self.error(
            line, "the dataflow block gives nothing away", "end it with R.output(name)"
        )

    def _if(self, line: ast.If) -> None:
        if not line.orelse:
            raise self.error(line, "a conditional of a graph function needs an else")
        cond = self._operand(line.test)
        branches, names = [], []
        for lines in (line.body, line.orelse):
            branch, name = self._branch(lines, line)
            branches.append(branch)
            names.append(name)
        if names[0] != names[1]:
            raise self.error(
                line,
                f"the branches end with `{names[0]}` and `{names[1]}`",
                "the last lines of both bind one name, which has the value of the conditional",
            )
        self._bind(names[0], None, line, relax.If(cond, *branches))

    def _branch(self, lines: Sequence[ast.stmt], line: ast.If) -> tuple[relax.SeqExpr, str]:
        """The value of a branch, which its last line binds to a name."""
        outer, self._blocks = self._blocks, []
        self._builder.begin_scope([])
        self._builder.begin_binding_block()
        with self.scope():
            for inner in lines:
                self._line(inner)
        self._close()
        self._builder.end_scope()
        blocks, self._blocks = self._blocks, outer
        if not blocks:
            raise self.error(line, "a branch of a graph function binds its value to a name")
        *rest, last = blocks[-1].bindings
        value = last.value if isinstance(last, relax.VarBinding) else last.var
        if isinstance(last, relax.MatchCast):
            rest.append(last)
        kept = [type(blocks[-1])(rest)] if rest else []
        return relax.SeqExpr([*blocks[:-1], *kept], value), str(last.var.name_hint)

    def _nested(self, node: ast.FunctionDef) -> None:
        inner = GraphReader(self.source, self.around, self._builder)
        inner._symbols = self._symbols
        inner._scopes = [dict(scope) for scope in self._scopes]
        kind = inner.signature(node)
        if kind is None:
            raise self.error(node, f"`{node.name}` inside of a graph function is an R.function")
        var = relax.Var(node.name, kind.struct_info)
        inner = GraphReader(self.source, self.around, self._builder)
        inner._scopes = [*[dict(scope) for scope in self._scopes], {node.name: var}, {}]
        func = inner.function(node, nested=True)
        if node.returns is None:
            # Nobody knew what it returns before its body was read.
            var = relax.Var(node.name, func.struct_info)
        self._builder.emit_normalized(relax.VarBinding(var, func))
        self.define(node.name, var)

    def _assign_name(self, name: str, annotation: ast.AST | None, node: ast.expr) -> None:
        info = None if annotation is None else self.struct_info(annotation)
        value = self.value(node)
        if isinstance(value, meta_var):
            self.define(name, value.value)
        elif info is None and not self._is_bound(value):
            self.define(name, value)
        else:
            self._bind(name, info, node, value)

    def _is_bound(self, value: Any) -> bool:
        """Whether a value that is assigned becomes a binding; others are known while reading."""
        if isinstance(value, (tuple, list)):
            return bool(value) and all(self._is_bound(item) for item in value)
        return (_is_graph(value) and not isinstance(value, ir.GlobalVar | ir.Op)) or isinstance(
            value, R.Cast
        )

    def _assign_parts(self, target: ast.Tuple | ast.List, node: ast.expr) -> None:
        value = unwrapped(self.value(node))
        if isinstance(value, (tuple, list)) and not self._is_bound(value):
            self.unpack(target, value)
            return
        if not isinstance(value, (tuple, list)):
            whole = self._graph(node, value)
            with self.blaming(node):
                whole = self._builder.normalize_argument(self._builder.normalize(whole))
            fields = getattr(whole.struct_info, "fields", None)
            if fields is None or len(fields) != len(target.elts):
                raise self.error(target, f"{len(target.elts)} names need a tuple of as many values")
            value = [relax.TupleGetItem(whole, k) for k in range(len(fields))]
        if len(value) != len(target.elts):
            raise self.error(target, f"{len(target.elts)} names, but {len(value)} values")
        for name, item in zip(target.elts, value):
            if not isinstance(name, ast.Name):
                raise self.error(name, "the name of a variable is needed")
            self._bind(name.id, None, node, item)

    def _bind(self, name: str, info: StructInfo | None, node: ast.AST, value: Any) -> None:
        outputs = self._outputs
        make = relax.Var if outputs is None or name in outputs.names else relax.DataflowVar
        with self.blaming(node):
            if isinstance(value, R.Cast):
                operand = self._builder.normalize_argument(
                    self._builder.normalize(self._graph(node, value.value))
                )
                var = make(name, info or value.struct_info)
                binding: relax.Binding = relax.MatchCast(var, operand, value.struct_info)
            else:
                graph = self._graph(node, value)
                if info is not None and _says_nothing(graph):
                    graph = relax.Call(graph.op, graph.args, graph.attrs, [info])
                graph = self._builder.normalize(graph)
                known = graph.struct_info
                if info is not None and _contradict(info, known):
                    raise self.error(
                        node, f"`{name}` is said to be {info}, but its value is {known}"
                    )
                var = make(name, info or known)
                binding = relax.VarBinding(var, graph)
            self._builder.emit_normalized(binding)
        self.define(name, var)

    def _binary(self, node: ast.AST, kind: type[ast.AST], left: Any, right: Any) -> Any:
        if _is_graph(left) or _is_graph(right):
            with self.blaming(node):
                return OPERATORS[kind](left, right)
        return super()._binary(node, kind, left, right)

    def _unary(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.USub):
            value = self.value(node.operand)
            if _is_graph(value):
                return relax.op.negative(value)
        return super()._unary(node)

    def _item(self, node: ast.Subscript, base: Any) -> Any:
        if _is_graph(base):
            with self.blaming(node):
                return base[self.value(node.slice)]
        return super()._item(node, base)

    def call(self, node: ast.Call, callee: Any, what: str | None) -> Any:
        """What calling something with the arguments in the text gives."""
        if not _is_graph(callee):
            return super().call(node, _of_infos(callee), what)
        if isinstance(callee, ir.GlobalVar | ir.Op):
            return super().call(node, callee, what)
        found = self.arguments(node, (), 0, rest=True)
        assert not found
        with self.blaming(node):
            return relax.Call(callee, [R.value(self.value(arg)) for arg in node.args])

    def call_function(self, callee: ir.GlobalVar, args: list[Any], dtype: Any = None) -> Any:
        """A call of a function of the module."""
        return relax.Call(callee, [R.value(arg) for arg in args])

    def unknown(self, node: ast.AST, what: str) -> Exception:
        """The complaint about a construct that there is not."""
        if not what.startswith("R"):
            return super().unknown(node, what)
        import difflib

        space, _, name = what.rpartition(".")
        known = dir(getattr(R, space[2:])) if space != "R" else dir(R)
        close = difflib.get_close_matches(name, known, 1)
        way_out = f"did you mean `{space}.{close[0]}`?" if close else ""
        return self.error(node, f"there is no construct `{what}`", way_out)


def graph_member(name: str) -> Any:
    """What ``R.name`` is in a text; nothing of Python's can be reached from it."""
    if name in _SPACES:
        space = getattr(R, name)
        return Dialect(f"R.{name}", lambda part: _construct(space, part))
    return _construct(R, name)


def _construct(space: Any, name: str) -> Any:
    found = None if name.startswith("_") else getattr(space, name, None)
    module = getattr(found, "__module__", None) or ""
    if isinstance(found, StructInfoMaker):
        return found
    is_ours = module.startswith(("tvm.relax", "tvm.script.relax", "tvm.runtime"))
    return found if callable(found) and is_ours else None


def _of_infos(callee: Any) -> Any:
    """A construct that is given struct info where the text has a name such as ``R.Object``."""

    def info(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(info(item) for item in value)
        return info_of(value)

    def call(*args: Any, **named: Any) -> Any:
        return callee(*map(info, args), **{key: info(value) for key, value in named.items()})

    if not isinstance(callee, FunctionType):
        return callee
    call.__name__ = callee.__name__
    return call


def _contradict(said: StructInfo, known: StructInfo | None) -> bool:
    """Whether a value of which something is known cannot be what is said of it."""
    if known is None:
        return False
    return struct_info_base_check(said, known) == BaseCheckResult.FAIL_L0


def _says_nothing(value: ir.RelayExpr) -> bool:
    """Whether only the annotation of a binding can say what a call gives."""
    return (
        isinstance(value, relax.Call)
        and isinstance(value.op, relax.ExternFunc)
        and not len(value.sinfo_args)
    )
