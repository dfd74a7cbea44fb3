"""Tensor programs: statements and functions, read into the builder."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from tvm import ir, tir

from .evaluator import Evaluator, unwrapped
from .ir_builder import tir as T
from .ir_builder.base import IRBuilder, IRBuilderFrame
from .ir_builder.tir.buffers import ScalarType
from .ir_builder.tir.expressions import meta_var
from .ir_builder.tir.frames import ForFrame, ScopeFrame, add_statement
from .ir_builder.tir.literals import expression, fit, is_number
from .macro import Macro
from .options import decorator_options
from .reader import Surroundings, kind_of
from .source import Source

__all__ = ["read_prim_func"]

_LOOPS = ("serial", "parallel", "vectorized", "unroll", "thread_binding", "grid")


def read_prim_func(source: Source, node: ast.FunctionDef, around: Surroundings) -> tir.PrimFunc:
    """The function that a definition under ``@T.prim_func`` describes.

    Raises
    ------
    DiagnosticError : the text is not a tensor program; the message has its place.
    """
    with IRBuilder() as builder:
        ProgramReader(source, around).function(node)
    return builder.get()


class ProgramReader(Evaluator):
    """Reads statements; a line that opens a scope reaches to the end of the lines around it."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        # Variables that an attribute speaks of before their loop begins.
        self._announced: dict[str, tir.Var] = {}

    # ---- functions ----

    def function(self, node: ast.FunctionDef) -> None:
        """Read a function into the builder."""
        options = decorator_options(
            self, node, ("private", "implicit_root", "name", "check_well_formed")
        )
        with (
            self.blaming(node),
            self._opened(
                node,
                T.prim_func(options.get("private", False), options.get("implicit_root", True)),
            ),
        ):
            T.func_name(options.get("name", node.name))
            self._parameters(node)
            self._result(node)
            self.lines(node.body)

    def _parameters(self, node: ast.FunctionDef) -> None:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(node, "parameters of a T.prim_func are plain: no *, ** or defaults")
        for argument in [*arguments.posonlyargs, *arguments.args]:
            kind = argument.annotation
            if kind is None:
                raise self.error(
                    argument,
                    f"parameter `{argument.arg}` has no type",
                    f'for instance `{argument.arg}: T.Buffer((8,), "float32")`, or T.handle',
                )
            made = self.value(kind)
            if not isinstance(made, tir.Buffer):
                made = self.variable(argument.arg, kind, made)
            with self.blaming(argument):
                self.define(argument.arg, T.arg(argument.arg, made))

    def _result(self, node: ast.FunctionDef) -> None:
        # A function without a result may say so, as Python's do.
        kind = None if node.returns is None else self.value(node.returns)
        if kind is not None:
            assert node.returns is not None
            with self.blaming(node.returns):
                made = kind() if isinstance(kind, ScalarType) else kind
                T.func_ret(made.type_annotation if isinstance(made, tir.Var) else made)

    # ---- lines ----

    def lines(self, nodes: Sequence[ast.stmt]) -> None:
        """Read several lines, whose names end with them."""
        with self.scope():
            for node in nodes:
                self.line(node)

    def line(self, node: ast.stmt) -> None:
        """Read one statement."""
        match node:
            case ast.For():
                self._for(node)
            case ast.Assign():
                self._assign(node)
            case ast.Expr(value=value):
                self._expression_line(node, value)
            case ast.With():
                self._with(node)
            case ast.If():
                self._if(node)
            case ast.AnnAssign(target=ast.Name() as target, value=value):
                self._annotated(node, target.id, value)
            case ast.AugAssign():
                self._update(node)
            case ast.While():
                self._no_else(node)
                condition = self.expr(node.test)
                with self._opened(node, T.While(condition)):
                    self.lines(node.body)
            case ast.Assert():
                message = "assertion failed" if node.msg is None else self.value(node.msg)
                condition = self.expr(node.test)
                self._enter_to_end(node, T.Assert(condition, message))
            case ast.Return(value=ast.expr() as value):
                with self.blaming(node):
                    T.evaluate(tir.ret(self.expr(value)))
            case ast.Pass():
                return
            case _:
                raise self.error(
                    node,
                    f"`{ast.unparse(node).splitlines()[0]}` is not a statement of tensor programs",
                    "there are for, while, if, with, assert, stores and calls of T",
                )

    def _opened(self, node: ast.AST, frame: IRBuilderFrame) -> _Opened:
        return _Opened(self, node, frame)

    def _enter_to_end(self, node: ast.AST, frame: IRBuilderFrame) -> Any:
        with self.blaming(node):
            return frame.enter_to_end()

    # ---- control ----

    def _no_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "loops of scripts have no else")

    def _for(self, node: ast.For) -> None:
        self._no_else(node)
        frame = self._loop(node.iter)
        if not isinstance(frame, ForFrame):
            raise self.error(
                node.iter,
                f"{kind_of(node.iter)} is not something to loop over",
                f"there are range, T.{', T.'.join(_LOOPS)}",
            )
        target = node.target
        if isinstance(target, ast.Name) and len(frame.variables) > 1:
            self._for_all(node, target.id, frame)
            return
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(names) != len(frame.variables):
            if len(frame.variables) == 1:
                raise self.error(target, "this loop has one variable")
            raise self.error(
                node.iter,
                f"T.grid of {len(frame.variables)} extents needs as many variables, here are "
                f"{len(names)}",
            )
        with self.scope():
            for position, name in enumerate(names):
                if not isinstance(name, ast.Name):
                    raise self.error(name, "the name of a variable is needed")
                var = self._announced.pop(name.id, None)
                if var is not None and str(var.dtype) == str(frame.variables[position].dtype):
                    frame.variables[position] = var
                else:
                    IRBuilder.name(name.id, frame.variables[position])
                self.define(name.id, frame.variables[position])
            with self._opened(node, frame):
                self.lines(node.body)

    def _for_all(self, node: ast.For, name: str, frame: ForFrame) -> None:
        """Loops whose variables have one name together, as a tuple."""
        for position, var in enumerate(frame.variables):
            IRBuilder.name(f"{name}_{position}", var)
        with self.scope():
            self.define(name, tuple(frame.variables))
            with self._opened(node, frame):
                self.lines(node.body)

    def _loop(self, node: ast.expr) -> Any:
        is_range = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and not self.is_defined("range")
        )
        if not is_range:
            return self.value(node)
        assert isinstance(node, ast.Call)
        if len(node.args) not in (1, 2):
            raise self.error(node, "range takes one or two ends here, and no step")
        return self.call(node, T.serial, "range")

    def _if(self, node: ast.If) -> None:
        condition = self.expr(node.test)
        with self._opened(node, T.If(condition)):
            with self._opened(node, T.Then()):
                self.lines(node.body)
            if node.orelse:
                with self._opened(node, T.Else()):
                    self.lines(node.orelse)

    # ---- scopes ----

    def _with(self, node: ast.With) -> None:
        with self.scope():
            opened: list[_Opened] = []
            try:
                for item in node.items:
                    frame = self._frame(item.context_expr)
                    context = self._opened(item.context_expr, frame)
                    value = context.__enter__()
                    opened.append(context)
                    if item.optional_vars is not None:
                        self._bind_names(item.optional_vars, value)
                self.lines(node.body)
            except BaseException as reason:
                for context in reversed(opened):
                    context.__exit__(type(reason), reason, None)
                raise
            for context in reversed(opened):
                context.__exit__(None, None, None)

    def _frame(self, node: ast.expr) -> IRBuilderFrame:
        unknown = isinstance(node, ast.Call) and not self._may_open(node)
        value = None if unknown else self.value(node)
        if not isinstance(value, IRBuilderFrame):
            raise self.error(
                node,
                f"{kind_of(node)} is not a scope",
                "there are T.block, T.init, T.LetStmt, T.attr, T.allocate, T.decl_buffer, "
                "T.realize, T.Assert and T.launch_thread",
            )
        return value

    def _may_open(self, node: ast.Call) -> bool:
        return not isinstance(node.func, ast.Name) or self._is_known(node.func.id)

    def _bind_names(self, target: ast.AST, value: Any) -> None:
        if isinstance(target, ast.Name):
            self.define(target.id, IRBuilder.name(target.id, value))
            self._name_view(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, Iterable):
            for name, item in zip(target.elts, value):
                self._bind_names(name, item)
        else:
            raise self.error(target, "the name of a variable is needed")

    def _name_view(self, name: str, value: Any) -> None:
        view = self._buffer(value) if isinstance(value, tir.Var) else None
        if view is not None:
            IRBuilder.name(name, view)

    # ---- lines ----

    def _expression_line(self, node: ast.stmt, value: ast.expr) -> None:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return
        result = self.value(value)
        if result is None:
            return
        if isinstance(result, IRBuilderFrame):
            if isinstance(result, ForFrame):
                raise self.error(value, f"{kind_of(value)} stands in a `for`")
            self._enter_to_end(value, result)
            return
        with self.blaming(value):
            if isinstance(result, tir.Stmt):
                add_statement(result)
            else:
                T.evaluate(unwrapped(result))

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "a line of a script has one target")
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id == "cls" and isinstance(node.value, ast.Name):
            return
        value = self.value(node.value)
        if isinstance(target, ast.Subscript):
            self._store(node, target, node.value, value)
        elif isinstance(target, ast.Name):
            self.define(target.id, self._bound(node, target.id, node.value, value))
        elif isinstance(target, ast.Tuple | ast.List):
            self._several(node, target, value)
        else:
            raise self.error(target, f"{kind_of(target)} cannot be assigned to")

    def _several(self, node: ast.Assign, target: ast.Tuple | ast.List, value: Any) -> None:
        if isinstance(value, IRBuilderFrame):
            value = self._enter_to_end(node.value, value)
        values = list(value) if isinstance(value, Iterable) else None
        if values is None or len(values) != len(target.elts):
            count = "one value" if values is None else f"{len(values)} values"
            raise self.error(
                node,
                f"{len(target.elts)} names need as many values, here is {count}",
                "for instance `n, m = T.int32(), T.int64()`",
            )
        written = node.value
        parts = [written] * len(values)
        # With `*items` among the values, the part that each name has is not told apart.
        if isinstance(written, ast.Tuple | ast.List) and len(written.elts) == len(values):
            parts = written.elts
        for name, part, item in zip(target.elts, parts, values):
            if isinstance(name, ast.Tuple | ast.List):
                self._several(ast.copy_location(ast.Assign([name], part), node), name, item)
            elif isinstance(name, ast.Name):
                self.define(name.id, self._bound(node, name.id, part, item))
            else:
                raise self.error(name, f"{kind_of(name)} cannot be assigned to")

    def _bound(self, node: ast.AST, name: str, written: ast.AST, value: Any) -> Any:
        """What a name means to which a value is assigned; a computed value gets a variable."""
        if isinstance(value, meta_var):
            return value.value
        if isinstance(value, IRBuilderFrame):
            if isinstance(value, ForFrame) or not isinstance(value, ScopeFrame):
                raise self.error(written, f"{kind_of(written)} has no value")
            made = self._enter_to_end(written, value)
            if made is None:
                raise self.error(written, f"{kind_of(written)} has no value")
            IRBuilder.name(name, made)
            self._name_view(name, made)
            return made
        if isinstance(value, tir.Buffer | tir.IterVar):
            return IRBuilder.name(name, value)
        if isinstance(value, tir.Var) and not str(value.name):
            # Made by this line, without a name so far.
            return IRBuilder.name(name, value)
        if isinstance(value, list | tuple):
            kinds = type(value)
            return kinds(
                self._bound(node, f"{name}_{position}", written, item)
                for position, item in enumerate(value)
            )
        if not self.around.exact and not self._is_computed(value):
            return value
        with self.blaming(written):
            bound = expression(value)
            var = tir.Var(name, str(bound.dtype))
            T.LetStmt(bound, var=var).enter_to_end()
        return var

    def _is_computed(self, value: Any) -> bool:
        return (
            isinstance(value, ir.PrimExpr | str) or is_number(value) or hasattr(value, "asobject")
        )

    def _annotated(self, node: ast.AnnAssign, name: str, written: ast.expr | None) -> None:
        kind = self.value(node.annotation)
        if written is None:
            self.define(name, self.variable(name, node.annotation, kind))
            return
        value = unwrapped(self.value(written))
        var = self.variable(name, node.annotation, kind)
        with self.blaming(written):
            if is_number(value):
                bound = fit(value, var)
            else:
                bound = expression(value)
        with self.blaming(node):
            T.LetStmt(bound, var=var).enter_to_end()
        self.define(name, var)

    def _store(self, node: ast.AST, target: ast.Subscript, written: ast.AST, value: Any) -> None:
        buffer = self.buffer_of(target.value, self.value(target.value))
        places = self.indices(target, buffer)
        with self.blaming(node):
            element = tir.BufferLoad(buffer, places)
            stored = expression(unwrapped(value), element)
            if not self.around.exact and str(stored.dtype) != str(element.dtype):
                # A person's value is converted to what the buffer has; a printed one is exact.
                stored = stored.astype(str(element.dtype))
            add_statement(tir.BufferStore(buffer, stored, places))

    def _update(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Subscript):
            raise self.error(
                node,
                f"{kind_of(node.target)} cannot be changed",
                "a variable of a script has one value; a buffer of one element can change",
            )
        load = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        value = ast.BinOp(ast.copy_location(load, node.target), node.op, node.value)
        written = ast.copy_location(value, node)
        self._store(node, node.target, written, self.value(written))

    # ---- constructs that depend on where they stand ----

    def _announce(self, node: ast.Call) -> tir.IterVar | None:
        """``T.iter_var(x, ...)`` of a name that the loop inside of it introduces."""
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Name) or self.is_defined(first.id):
            return None
        found = self.arguments(node, ("var", "dom", "iter_type", "thread_tag", "dtype"), 4)
        dom = self.value(found["dom"])
        dtype = self.dtype(found["dtype"]) if "dtype" in found else None
        with self.blaming(node):
            made = T.iter_var(
                first.id, dom, self.text(found["iter_type"]), self.text(found["thread_tag"]), dtype
            )
        self.define(first.id, made.var)
        self._announced[first.id] = made.var
        return made

    def _let_scope(self, node: ast.Call) -> ScopeFrame | None:
        """``T.let(x, value)`` of a new name."""
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Name) or self.is_defined(first.id):
            return None
        found = self.arguments(node, ("var", "value", "type"), 2)
        value = self.expr(found["value"])
        if "type" in found:
            var = self.make_var(first.id, found["type"])
        else:
            var = tir.Var(first.id, str(value.dtype))
        self.define(first.id, var)
        with self.blaming(node):
            return T.LetStmt(value, var=var)

    def special(self, what: str, node: ast.Call) -> Any:
        """What a construct gives that introduces a name; None where it does not."""
        if what == "T.iter_var":
            return self._announce(node)
        if what == "T.let":
            return self._let_scope(node)
        return super().special(what, node)

    def expand(self, macro: Macro, node: ast.Call, bound: inspect.BoundArguments) -> None:
        """Read the body of a macro here, with its parameters bound."""
        if macro.dialect != "T.macro":
            raise self.error(node, f"{macro!r} is for graph functions, not for tensor programs")
        inner = ProgramReader(macro.source, macro.around)
        inner.bind_macro(macro, bound, self)
        inner.lines(macro.definition.body)


class _Opened:
    """A frame around lines of the text; its errors have the place of the line that opens it."""

    def __init__(self, reader: ProgramReader, node: ast.AST, frame: IRBuilderFrame) -> None:
        self._reader = reader
        self._node = node
        self._frame = frame

    def __enter__(self) -> Any:
        with self._reader.blaming(self._node):
            return self._frame.__enter__()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        with self._reader.blaming(self._node):
            self._frame.__exit__(kind, value, trace)
