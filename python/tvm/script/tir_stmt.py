"""Statements of tensor programs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tvm import ir, tir
from tvm.tir import _ffi_api

from .tir_block import BlockReader
from .tir_expr import Memory

__all__ = ["StmtReader"]

# Makes a statement of what follows to the end of the lines around.
Opening = Callable[[tir.Stmt], tir.Stmt]

_LOOPS = {
    "serial": tir.ForKind.SERIAL,
    "parallel": tir.ForKind.PARALLEL,
    "vectorized": tir.ForKind.VECTORIZED,
    "unroll": tir.ForKind.UNROLLED,
    "thread_binding": tir.ForKind.THREAD_BINDING,
}
# Alignment of memory that programs allocate, in bytes.
_ALLOCATION_ALIGNMENT = 64


class StmtReader(BlockReader):
    """Reads statements; a line that opens a scope reaches to the end of the lines around it."""

    def lines(self, nodes: Sequence[ast.stmt]) -> tir.Stmt:
        """The statement that several lines are."""
        parts: list[tir.Stmt | Opening] = []
        with self.scope():
            for node in nodes:
                part = self.line(node)
                if part is not None:
                    parts.append(part)
        done: list[tir.Stmt] = []
        for part in reversed(parts):
            done = [part, *done] if isinstance(part, tir.Stmt) else [part(_sequence(done))]
        return _sequence(done)

    def line(self, node: ast.stmt) -> tir.Stmt | Opening | None:
        """One statement, or what opens a scope; None for declarations."""
        match node:
            case ast.For():
                return self._for(node)
            case ast.While():
                self._no_else(node)
                condition = self.expr(node.test)
                with self.blaming(node):
                    return tir.While(condition, self.lines(node.body))
            case ast.If():
                return self._if(node)
            case ast.With():
                return self._with(node)
            case ast.Assign():
                return self._assign(node)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                return self._bind(node, target.id, node.annotation, value)
            case ast.AugAssign():
                return self._update(node)
            case ast.Assert():
                message = ast.Constant("assertion failed") if node.msg is None else node.msg
                return self._assert(node, node.test, message)
            case ast.Pass():
                return None
            case ast.Expr(value=ast.Constant(value=str())):
                return None
            case ast.Expr(value=ast.Call() as call):
                return self._statement_call(call)
        raise self.error(
            node,
            f"`{ast.unparse(node).splitlines()[0]}` is not a statement of tensor programs",
            "there are for, while, if, with, assert, stores and calls of T",
        )

    # ---- control ----

    def _no_else(self, node: ast.For | ast.While) -> None:
        if node.orelse:
            raise self.error(node.orelse[0], "loops of scripts have no else")

    def _for(self, node: ast.For) -> tir.Stmt:
        self._no_else(node)
        call = node.iter
        plain_range = (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "range"
            and not self.is_defined("range")
        )
        kind = "serial" if plain_range else (self.called(call) or "").removeprefix("T.")
        if not isinstance(call, ast.Call) or kind not in (*_LOOPS, "grid"):
            raise self.error(
                call,
                f"`{ast.unparse(call)}` is not something to loop over",
                f"there are range, T.grid and T.{', T.'.join(_LOOPS)}",
            )
        if kind == "grid":
            return self._grid(node, call)
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "this loop has one variable")
        names = ("start", "stop") if len(call.args) > 1 else ("stop",)
        found = self.arguments(call, (*names, "thread", "annotations"), len(names))
        domain = self.interval(found.get("start"), found["stop"])
        annotations = self.attributes(found["annotations"]) if "annotations" in found else {}
        var = self.loop_var(node.target.id, domain)
        thread = None
        if kind == "thread_binding":
            if "thread" not in found:
                raise self.error(call, 'the thread is missing, for instance thread="threadIdx.x"')
            thread = self._thread(found["thread"], str(var.dtype))
        with self.scope():
            self.define(node.target.id, var)
            self.loops[var] = domain
            body = self.lines(node.body)
        with self.blaming(node):
            return _ffi_api.For(
                var, domain.min, domain.extent, int(_LOOPS[kind]), body, thread, annotations
            )

    def _thread(self, node: ast.AST, dtype: str) -> tir.IterVar:
        if isinstance(node, ast.Call):
            return self.iter_var(node)
        tag = self.text(node)
        return tir.IterVar(None, tir.Var(tag, dtype), tir.IterVar.ThreadIndex, tag)

    def _grid(self, node: ast.For, call: ast.Call) -> tir.Stmt:
        if isinstance(node.target, ast.Tuple):
            targets = node.target.elts
        else:
            targets = [node.target]
        if call.keywords or len(targets) != len(call.args) or not targets:
            raise self.error(
                call,
                f"T.grid of {len(call.args)} extents needs as many variables, not {len(targets)}",
            )
        loops = []
        for target, extent in zip(targets, call.args):
            if not isinstance(target, ast.Name):
                raise self.error(target, "the name of a loop variable is needed")
            domain = self.interval(None, extent)
            loops.append((self.loop_var(target.id, domain), domain))
        with self.scope():
            for var, domain in loops:
                self.define(var.name, var)
                self.loops[var] = domain
            body = self.lines(node.body)
        with self.blaming(node):
            for var, domain in reversed(loops):
                body = tir.For(var, domain.min, domain.extent, tir.ForKind.SERIAL, body)
        return body

    def _if(self, node: ast.If) -> tir.Stmt:
        # A long chain of elif is read without recursion.
        branches = [node]
        while len(branches[-1].orelse) == 1 and isinstance(branches[-1].orelse[0], ast.If):
            branches.append(branches[-1].orelse[0])
        tests = [self.expr(branch.test) for branch in branches]
        bodies = [self.lines(branch.body) for branch in branches]
        otherwise = self.lines(branches[-1].orelse) if branches[-1].orelse else None
        for branch, test, body in zip(reversed(branches), reversed(tests), reversed(bodies)):
            with self.blaming(branch):
                otherwise = tir.IfThenElse(test, body, otherwise)
        assert otherwise is not None
        return otherwise

    # ---- scopes ----

    def _with(self, node: ast.With) -> tir.Stmt | None:
        with self.scope():
            openings = []
            for item in node.items:
                what = self.called(item.context_expr)
                if what == "T.block" or what == "T.init":
                    if len(node.items) != 1 or item.optional_vars is not None:
                        raise self.error(node, f"{what} stands alone in its `with`, without `as`")
                    assert isinstance(item.context_expr, ast.Call)
                    return self._with_block(what, item.context_expr, node.body)
                name = item.optional_vars
                if name is not None and not isinstance(name, ast.Name):
                    raise self.error(name, "the name of a variable is needed")
                opening = None
                if isinstance(item.context_expr, ast.Call):
                    opening = self.opening(item.context_expr, None if name is None else name.id)
                if opening is None:
                    raise self.error(
                        item.context_expr,
                        f"`{ast.unparse(item.context_expr)}` is not a scope",
                        "there are T.block, T.init, T.let, T.attr, T.allocate, T.realize, T.Assert "
                        "and T.launch_thread",
                    )
                openings.append(opening)
            body = self.lines(node.body)
        for opening in reversed(openings):
            body = opening(body)
        return body

    def opening(self, node: ast.Call, name: str | None) -> Opening | None:
        """What a call opens, under `name` if it has one; None for other calls."""
        what = self.construct(node.func)
        if what == "T.attr":
            return self._attr(node)
        if what == "T.allocate":
            return self._allocate(node, name)
        if what == "T.launch_thread":
            return self._launch(node, name)
        if what == "T.realize":
            return self._realize(node)
        if what == "T.let":
            found = self.arguments(node, ("var", "value", "type"), 2)
            value = self.expr(found["value"])
            var = self.new_var(found["var"], found.get("type"), str(value.dtype))
            return self._guarded(node, lambda body: tir.LetStmt(var, value, body))
        if what == "T.Assert":
            found = self.arguments(node, ("condition", "message"), 2)
            return self._assert(node, found["condition"], found["message"])
        return None

    def _guarded(self, node: ast.AST, make: Opening) -> Opening:
        def opening(body: tir.Stmt) -> tir.Stmt:
            with self.blaming(node):
                return make(body)

        return opening

    def _assert(self, node: ast.AST, test: ast.AST, message: ast.AST) -> Opening:
        condition, text = self.expr(test), self.expr(message)
        return self._guarded(node, lambda body: tir.AssertStmt(condition, text, body))

    def _attr(self, node: ast.Call) -> Opening:
        found = self.arguments(node, ("node", "attr_key", "value"), 3)
        about = self._attr_node(found["node"])
        key, value = self.text(found["attr_key"]), self.expr(found["value"])
        return self._guarded(node, lambda body: _ffi_api.AttrStmt(about, key, value, body))

    def _attr_node(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        if isinstance(node, ast.List):
            return [self._attr_node(item) for item in node.elts]
        what = self.called(node)
        if isinstance(node, ast.Call) and what == "T.iter_var":
            return self.iter_var(node)
        if isinstance(node, ast.Call) and what == "T.comm_reducer":
            return self.comm_reducer(node)
        if isinstance(node, ast.Call) and what in ("I.node", "T.target"):
            return self.attribute(node)
        value = self.value(node)
        if isinstance(value, tir.Buffer):
            return value
        return self._literal(node, value)

    def _allocate(self, node: ast.Call, name: str | None) -> Opening:
        if name is None:
            raise self.error(node, "memory needs a name: `A = T.allocate(...)`")
        found = self.arguments(
            node,
            ("extents", "dtype", "scope", "condition", "annotations", "type"),
            2,
        )
        extents, dtype = self.expr_list(found["extents"]), self.dtype(found["dtype"])
        scope = self.text(found["scope"]) if "scope" in found else ""
        annotations = self.attributes(found["annotations"]) if "annotations" in found else {}
        condition = self.expr(found["condition"]) if "condition" in found else tir.const(True)
        element = "int8" if dtype.startswith("bool") else dtype
        with self.blaming(node):
            if "type" in found:
                var = self.make_var(name, found["type"])
            else:
                var = tir.Var(name, ir.PointerType(ir.PrimType(element), scope))
            view = tir.Buffer(var, dtype, extents, (), None, name, _ALLOCATION_ALIGNMENT)
        self.define(name, Memory(var, view))
        return self._guarded(
            node,
            lambda body: _ffi_api.Allocate(var, dtype, extents, condition, body, annotations),
        )

    def _launch(self, node: ast.Call, name: str | None) -> Opening:
        found = self.arguments(node, ("thread", "extent"), 2)
        extent = self.expr(found["extent"])
        thread = found["thread"]
        if isinstance(thread, ast.Name) and self.is_defined(thread.id):
            axis = self.threads.get(self.expr(thread))
            if axis is None:
                raise self.error(thread, f"`{thread.id}` is not a thread made by T.env_thread")
        else:
            tag = self.text(thread)
            var = tir.Var(name or tag, str(extent.dtype))
            axis = tir.IterVar(None, var, tir.IterVar.ThreadIndex, tag)
            if name is not None:
                self.define_thread(name, axis)
        tag = str(axis.thread_tag)
        key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
        return self._guarded(node, lambda body: _ffi_api.AttrStmt(axis, key, extent, body))

    def _realize(self, node: ast.Call) -> Opening:
        found = self.arguments(node, ("region", "scope", "condition"), 1)
        region = self.region(found["region"])
        condition = self.expr(found["condition"]) if "condition" in found else tir.const(True)
        return self._guarded(
            node, lambda body: tir.BufferRealize(region.buffer, region.region, condition, body)
        )

    # ---- lines ----

    def _assign(self, node: ast.Assign) -> tir.Stmt | Opening | None:
        if len(node.targets) != 1:
            raise self.error(node, "a line of a script has one target")
        target = node.targets[0]
        if isinstance(target, ast.Subscript):
            return self._store(node, target, node.value)
        if isinstance(target, ast.Tuple):
            self._several(node, target, node.value)
            return None
        if not isinstance(target, ast.Name):
            raise self.error(target, f"`{ast.unparse(target)}` cannot be assigned to")
        name = target.id
        if isinstance(node.value, ast.Name) and name == "cls":
            return None
        if isinstance(node.value, ast.Call):
            opening = self.opening(node.value, name)
            if opening is not None:
                if self.construct(node.value.func) not in ("T.allocate", "T.launch_thread"):
                    raise self.error(node, f"`{ast.unparse(node.value.func)}` has no value")
                return opening
            if self.declare(name, node.value):
                return None
        return self._bind(node, name, None, node.value)

    def _several(self, node: ast.Assign, target: ast.Tuple, value: ast.AST) -> None:
        if self.called(value) == "T.axis.remap":
            assert isinstance(value, ast.Call)
            self.remap(value, target)
            return
        if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
            raise self.error(
                node,
                f"{len(target.elts)} names need as many values",
                "for instance `n, m = T.int32(), T.int64()`",
            )
        for name, item in zip(target.elts, value.elts):
            if not isinstance(name, ast.Name) or not self.declare(name.id, item):
                raise self.error(item, f"`{ast.unparse(item)}` does not declare a variable")

    def declare(self, name: str, node: ast.AST) -> bool:
        """Define a name as what a call declares; False if it is no declaration."""
        made = self.declared(name, node)
        if made is not None:
            self.define(name, made)
            return True
        return isinstance(node, ast.Call) and self.declare_in_block(name, node)

    def _bind(
        self, node: ast.AST, name: str, annotation: ast.AST | None, value: ast.AST
    ) -> Opening:
        result = self.expr(value)
        with self.blaming(node):
            if annotation is None:
                var = tir.Var(name, str(result.dtype))
            else:
                var = self.make_var(name, annotation)
                if str(var.dtype) != str(result.dtype) and isinstance(value, ast.Constant):
                    result = self.expr(value, like=var)
        self.define(name, var)
        return self._guarded(node, lambda body: tir.LetStmt(var, result, body))

    def _store(self, node: ast.AST, target: ast.Subscript, value: ast.AST) -> tir.Stmt:
        buffer = self.buffer_of(target.value, self.value(target.value))
        indices = self.indices(target, buffer)
        with self.blaming(node):
            element = tir.BufferLoad(buffer, indices)
            return tir.BufferStore(buffer, self.expr(value, like=element), indices)

    def _update(self, node: ast.AugAssign) -> tir.Stmt:
        if not isinstance(node.target, ast.Subscript):
            raise self.error(
                node,
                f"`{ast.unparse(node.target)}` cannot be changed",
                "a variable of a script has one value; a buffer of one element can change",
            )
        load = ast.Subscript(node.target.value, node.target.slice, ast.Load())
        value = ast.BinOp(ast.copy_location(load, node.target), node.op, node.value)
        return self._store(node, node.target, ast.copy_location(value, node))

    def _statement_call(self, node: ast.Call) -> tir.Stmt | Opening | None:
        what = self.construct(node.func)
        if what == "T.evaluate":
            value = self.expr(self.arguments(node, ("value",), 1)["value"])
            return tir.Evaluate(value)
        if what == "T.prefetch" and node.args and isinstance(node.args[0], ast.Subscript):
            region = self.region(self.arguments(node, ("region",), 1)["region"])
            return tir.Prefetch(region.buffer, region.region)
        if what == "T.func_attr":
            self.func_attr(node)
            return None
        if self.block_line(node):
            return None
        opening = self.opening(node, None)
        return tir.Evaluate(self.expr(node)) if opening is None else opening


def _sequence(parts: list[tir.Stmt]) -> tir.Stmt:
    if not parts:
        return tir.Evaluate(0)
    return parts[0] if len(parts) == 1 else tir.SeqStmt(parts)
