"""Frames of statements, blocks and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, ir, tir
from tvm.tir import _ffi_api

from ..base import F, IRBuilder, IRBuilderFrame
from ..ir import IRModuleFrame, decl_function
from .literals import constant

__all__ = [
    "BlockFrame",
    "BlockInitFrame",
    "ElseFrame",
    "ForFrame",
    "IfFrame",
    "PrimFuncFrame",
    "ScopeFrame",
    "TIRFrame",
    "ThenFrame",
    "add_statement",
    "require",
]

# Bits of the annotation of a block whose reads, or writes, nobody has worked out so far.
_READS_OPEN, _WRITES_OPEN = 1, 2
_ACCESS_OPEN = "tir.script_parsing_detect_access"


def _sequence(parts: Sequence[tir.Stmt]) -> tir.Stmt:
    if not parts:
        return tir.Evaluate(0)
    if len(parts) == 1:
        return parts[0]
    flat: list[tir.Stmt] = []
    for part in parts:
        # A function that a program calls while it is read may add several statements at once.
        flat += part.seq if isinstance(part, tir.SeqStmt) else [part]
    return tir.SeqStmt(flat)


def add_statement(stmt: tir.Stmt) -> None:
    """Put a statement where the program is being built."""
    builder = IRBuilder.current()
    if not builder.frames:
        builder.result = stmt
        return
    frame = builder.frames[-1]
    if not isinstance(frame, TIRFrame):
        raise error.ValueError("a statement stands in a function; open `with T.prim_func():`")
    frame.stmts.append(stmt)


def require(kind: type[F], what: str, opening: str) -> F:
    """The innermost frame, which has to be of a class."""
    builder = IRBuilder.current()
    frame = builder.frames[-1] if builder.frames else None
    if not isinstance(frame, kind):
        raise error.ValueError(f"{what} stands directly in {opening}")
    return frame


class TIRFrame(IRBuilderFrame):
    """A frame with statements in it."""

    def __init__(self) -> None:
        super().__init__()
        self.stmts: list[tir.Stmt] = []

    def body(self) -> tir.Stmt:
        """The statements as one."""
        return _sequence(self.stmts)


class ScopeFrame(TIRFrame):
    """A statement around others: `make` gets them as one; the name after ``as`` is `value`."""

    def __init__(self, make: Callable[[tir.Stmt], tir.Stmt], value: Any = None) -> None:
        super().__init__()
        self._make = make
        self._value = value

    def opened(self) -> Any:
        return self._value

    def closed(self) -> None:
        add_statement(self._make(self.body()))


class ForFrame(TIRFrame):
    """A loop, or a nest of loops around one body.

    Parameters
    ----------
    variables : one a loop, the outermost first.
    domains : their ranges.
    make : the nest around a body.
    """

    def __init__(
        self,
        variables: list[tir.Var],
        domains: Sequence[ir.Range],
        make: Callable[[tir.Stmt], tir.Stmt],
    ) -> None:
        super().__init__()
        # The list that `make` knows as well: a variable may be replaced before the loop opens.
        self.variables = variables
        self.domains = list(domains)
        self._make = make

    def opened(self) -> Any:
        return self.variables[0] if len(self.variables) == 1 else self.variables

    def closed(self) -> None:
        add_statement(self._make(self.body()))


class IfFrame(TIRFrame):
    """A branch; its cases are a ThenFrame and at most one ElseFrame inside."""

    def __init__(self, condition: tir.PrimExpr) -> None:
        super().__init__()
        self.condition = condition
        self.then_case: tir.Stmt | None = None
        self.else_case: tir.Stmt | None = None

    def closed(self) -> None:
        if self.stmts:
            raise error.ValueError("T.If holds `with T.Then():` and `with T.Else():` only")
        if self.then_case is None:
            raise error.ValueError("T.If needs a `with T.Then():` in it")
        add_statement(tir.IfThenElse(self.condition, self.then_case, self.else_case))


class ThenFrame(TIRFrame):
    """What a branch does if its condition holds."""

    def __enter__(self) -> Any:
        if require(IfFrame, "T.Then", "a T.If").then_case is not None:
            raise error.ValueError("T.If has two T.Then")
        return super().__enter__()

    def closed(self) -> None:
        require(IfFrame, "T.Then", "a T.If").then_case = self.body()


class ElseFrame(TIRFrame):
    """What a branch does otherwise."""

    def __enter__(self) -> Any:
        frame = require(IfFrame, "T.Else", "a T.If")
        if frame.then_case is None or frame.else_case is not None:
            raise error.ValueError("T.If has one T.Then and after it at most one T.Else")
        return super().__enter__()

    def closed(self) -> None:
        require(IfFrame, "T.Else", "a T.If").else_case = self.body()


class BlockFrame(TIRFrame):
    """A block; its axes, regions and buffers are said by lines inside."""

    def __init__(self, name: str = "", no_realize: bool = False) -> None:
        super().__init__()
        self.name = name
        self.no_realize = no_realize
        self.axes: list[tir.IterVar] = []
        self.values: list[tir.PrimExpr] = []
        self.reads: list[tir.BufferRegion] | None = None
        self.writes: list[tir.BufferRegion] | None = None
        # Whether the program said them.
        self.reads_said = self.writes_said = False
        self.predicate: tir.PrimExpr | None = None
        self.annotations: dict[str, Any] | None = None
        self.buffers: list[tir.Buffer] = []
        self.matches: list[tir.MatchBufferRegion] = []
        self.init: tir.Stmt | None = None

    def closed(self) -> None:
        function = IRBuilder.current().find(PrimFuncFrame)
        block = self.finish(function is not None)
        if function is not None and IRBuilder.current().frames[-1] is function:
            function.said_regions = (self.reads_said, self.writes_said)
        add_statement(block)

    def finish(self, complete: bool) -> tir.Stmt:
        """The block; `complete` works regions out that nothing says."""
        annotations = self.annotations or {}
        body = self.body()
        self.reads_said, self.writes_said = self.reads is not None, self.writes is not None
        open_bits = _READS_OPEN * (not self.reads_said) + _WRITES_OPEN * (not self.writes_said)
        if open_bits and complete:
            reads, writes, _ = tir.analysis.get_block_access_region(self._block(body, annotations))
            self.reads = list(reads) if self.reads is None else self.reads
            self.writes = list(writes) if self.writes is None else self.writes
        elif open_bits:
            annotations = {**annotations, _ACCESS_OPEN: constant(open_bits, "int64")}
        block = self._block(body, annotations)
        if self.no_realize:
            return block
        predicate = tir.const(True) if self.predicate is None else self.predicate
        return _ffi_api.BlockRealize(self.values, predicate, block)

    def _block(self, body: tir.Stmt, annotations: dict[str, Any]) -> tir.Block:
        return _ffi_api.Block(
            self.axes,
            self.reads or [],
            self.writes or [],
            self.name,
            body,
            self.init,
            self.buffers,
            self.matches,
            annotations,
        )


class BlockInitFrame(TIRFrame):
    """What a block does in the first iteration over its reduction axes."""

    def __enter__(self) -> Any:
        if require(BlockFrame, "T.init()", "a block").init is not None:
            raise error.ValueError("a block has one T.init()")
        return super().__enter__()

    def closed(self) -> None:
        require(BlockFrame, "T.init()", "a block").init = self.body()


class PrimFuncFrame(TIRFrame):
    """A function of tensor programs.

    Parameters
    ----------
    is_private : it gets no global symbol by its name.
    implicit_root : a block around the function's blocks goes without saying.
    """

    def __init__(self, is_private: bool = False, implicit_root: bool = True) -> None:
        super().__init__()
        self.is_private = is_private
        self.implicit_root = implicit_root
        self.name: str | None = None
        self.params: list[tir.Var] = []
        self.buffer_map: dict[tir.Var, tir.Buffer] = {}
        self.ret_type: ir.Type | None = None
        self.attrs: dict[str, Any] | None = None
        self.root_buffers: list[tir.Buffer] = []
        self.root_matches: list[tir.MatchBufferRegion] = []
        # Of the last block that stands in the function itself: whether it said what it accesses.
        self.said_regions = (True, True)

    def closed(self) -> None:
        builder = IRBuilder.current()
        func = self.finish()
        if not builder.frames:
            builder.result = func
            return
        frame = builder.frames[-1]
        if not isinstance(frame, IRModuleFrame) or self.name is None:
            raise error.ValueError(
                "a function stands alone or in a module, where T.func_name gives it a name"
            )
        var = frame.global_vars.get(self.name) or decl_function(self.name)
        frame.functions[var] = func

    def finish(self) -> tir.PrimFunc:
        """The function."""
        attrs = self.attrs or {}
        if self.name is not None and not self.is_private and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        return tir.PrimFunc(
            self.params, self._with_root(), self.ret_type, self.buffer_map, attrs or None
        )

    def _with_root(self) -> tir.Stmt:
        body = self.body()
        if not (self.root_buffers or self.root_matches):
            if isinstance(body, tir.BlockRealize) and not len(body.iter_values):
                return self._as_root(body)
            if not self.implicit_root or not _has_blocks(body):
                return body
        root = BlockFrame("root")
        root.stmts = [body]
        root.reads, root.writes = [], []
        root.buffers, root.matches = self.root_buffers, self.root_matches
        return root.finish(complete=True)

    def _as_root(self, realize: tir.BlockRealize) -> tir.BlockRealize:
        """The block around a whole function, which accesses nothing unless the program says so:
        what its arguments are is known of the function."""
        reads_said, writes_said = self.said_regions
        block = realize.block
        root = _ffi_api.Block(
            block.iter_vars,
            block.reads if reads_said else [],
            block.writes if writes_said else [],
            block.name_hint,
            block.body,
            block.init,
            block.alloc_buffers,
            block.match_buffers,
            block.annotations,
        )
        return _ffi_api.BlockRealize(realize.iter_values, realize.predicate, root)


def _has_blocks(body: tir.Stmt) -> bool:
    found: list[tir.Block] = []

    def visit(node: Any) -> bool:
        if isinstance(node, tir.Block):
            found.append(node)
        return not found and not isinstance(node, ir.PrimExpr)

    tir.stmt_functor.pre_order_visit(body, visit)
    return bool(found)
