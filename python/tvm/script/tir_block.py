"""Blocks: their axes, the regions they touch, and the buffers they make."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import ir, tir
from tvm.tir import _ffi_api

from .reader import Surroundings
from .source import Source
from .tir_buffer import DeclarationReader

__all__ = ["BlockParts", "BlockReader"]

_AXES = {
    "spatial": tir.IterVar.DataPar,
    "reduce": tir.IterVar.CommReduce,
    "scan": tir.IterVar.Ordered,
    "opaque": tir.IterVar.DimInfo,
    "DataPar": tir.IterVar.DataPar,
    "ThreadIndex": tir.IterVar.ThreadIndex,
    "CommReduce": tir.IterVar.CommReduce,
    "Ordered": tir.IterVar.Ordered,
    "Opaque": tir.IterVar.DimInfo,
    "Unrolled": tir.IterVar.Unrolled,
    "Vectorized": tir.IterVar.Vectorized,
    "Parallelized": tir.IterVar.Parallelized,
    "Tensorized": tir.IterVar.Tensorized,
}
# Letters of T.axis.remap.
_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


@dataclass
class BlockParts:
    """What the lines of a block say about it."""

    axes: list[tir.IterVar] = field(default_factory=list)
    values: list[tir.PrimExpr] = field(default_factory=list)
    reads: list[tir.BufferRegion] | None = None
    writes: list[tir.BufferRegion] | None = None
    predicate: tir.PrimExpr | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    buffers: list[tir.Buffer] = field(default_factory=list)
    matches: list[tir.MatchBufferRegion] = field(default_factory=list)
    init: tir.Stmt | None = None

    def realize(self, name: str, body: tir.Stmt) -> tir.BlockRealize:
        """The block around a body; accesses that the text leaves open are worked out."""
        block = _ffi_api.Block(
            self.axes,
            self.reads or [],
            self.writes or [],
            name,
            body,
            self.init,
            self.buffers,
            self.matches,
            self.annotations,
        )
        if self.reads is None or self.writes is None:
            reads, writes = tir.analysis.get_block_access_region(block)
            self.reads = list(reads) if self.reads is None else self.reads
            self.writes = list(writes) if self.writes is None else self.writes
            return self.realize(name, body)
        predicate = tir.const(True) if self.predicate is None else self.predicate
        return _ffi_api.BlockRealize(self.values, predicate, block)


class BlockReader(DeclarationReader, ABC):
    """Reads blocks; `lines` and `func_attr` are those of whole functions."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        self.loops: dict[tir.Var, ir.Range] = {}
        self.threads: dict[tir.Var, tir.IterVar] = {}
        self.blocks: list[BlockParts] = []
        # Variables that an attribute speaks of before their loop begins.
        self._announced: dict[str, tir.Var] = {}
        self.params: list[tir.Var] = []
        self.buffer_map: dict[tir.Var, tir.Buffer] = {}

    @abstractmethod
    def lines(self, nodes: Sequence[ast.stmt]) -> tir.Stmt:
        """The statement that several lines are."""

    @abstractmethod
    def func_attr(self, node: ast.Call) -> None:
        """Take the attributes of the function."""

    def _with_block(self, what: str, call: ast.Call, body: list[ast.stmt]) -> tir.Stmt | None:
        if what == "T.init":
            self.arguments(call, (), 0)
            if len(self.blocks) < 2:
                raise self.error(call, "T.init() stands in a block")
            self.blocks[-1].init = self.lines(body)
            return None
        found = self.arguments(call, ("name",), 0)
        name = self.text(found["name"]) if "name" in found else ""
        parts = BlockParts()
        self.blocks.append(parts)
        inside = self.lines(body)
        self.blocks.pop()
        with self.blaming(call):
            return parts.realize(name, inside)

    def block_line(self, node: ast.Call) -> bool:
        """Read a line about the block it stands in; False if it is another line."""
        what = self.construct(node.func)
        if what not in ("T.reads", "T.writes", "T.where", "T.block_attr"):
            return False
        if len(self.blocks) < 2:
            raise self.error(node, f"{what} stands in a block", 'open one with T.block("name")')
        block = self.blocks[-1]
        if what == "T.where":
            block.predicate = self.expr(self.arguments(node, ("predicate",), 1)["predicate"])
        elif what == "T.block_attr":
            values = self.arguments(node, ("attrs",), 1)["attrs"]
            block.annotations.update(self.attributes(values))
        else:
            items: list[ast.AST] = list(node.args)
            if len(items) == 1 and isinstance(items[0], ast.List | ast.Tuple):
                items = list(items[0].elts)
            regions = [self.region(item) for item in items]
            if what == "T.reads":
                block.reads = regions
            else:
                block.writes = regions
        return True

    def declare_in_block(self, name: str, node: ast.Call) -> bool:
        """Define a name as an axis, a buffer or a thread; False if the call is none of them."""
        what = self.construct(node.func) or ""
        if what.startswith("T.axis."):
            if what == "T.axis.remap":
                self.remap(node, ast.Tuple([ast.Name(name)], ast.Store()))
            else:
                self._axis(node, name, what[len("T.axis.") :])
        elif what == "T.alloc_buffer":
            buffer = self.buffer(node, name)
            self.blocks[-1].buffers.append(buffer)
            self.define(name, buffer)
        elif what == "T.match_buffer":
            source, buffer = self.matched(node, name)
            if isinstance(source, tir.BufferRegion):
                with self.blaming(node):
                    self.blocks[-1].matches.append(tir.MatchBufferRegion(buffer, source))
            elif isinstance(source, tir.Var) and any(source.same_as(p) for p in self.params):
                self.buffer_map[source] = buffer
            else:
                raise self.error(
                    node.args[0] if node.args else node,
                    "T.match_buffer is about a parameter of type T.handle, or a region of a buffer",
                )
            self.define(name, buffer)
        elif what == "T.env_thread":
            found = self.arguments(node, ("thread_tag", "dtype"), 1)
            tag = self.text(found["thread_tag"])
            dtype = self.dtype(found["dtype"]) if "dtype" in found else "int32"
            var = tir.Var(name, dtype)
            self.define_thread(name, tir.IterVar(None, var, tir.IterVar.ThreadIndex, tag))
        else:
            return False
        return True

    def loop_var(self, name: str, domain: ir.Range) -> tir.Var:
        """The variable of a loop: a new one, or the one an attribute around the loop has named."""
        var = self._announced.pop(name, None)
        dtype = str(domain.extent.dtype)
        return var if var is not None and str(var.dtype) == dtype else tir.Var(name, dtype)

    def define_thread(self, name: str, axis: tir.IterVar) -> None:
        """Let a name mean the index of a thread."""
        self.threads[axis.var] = axis
        self.define(name, axis.var)

    def iter_var(self, node: ast.Call) -> tir.IterVar:
        """``T.iter_var(x, T.Range(0, 8), "ThreadIndex", "threadIdx.x")``; a new name is defined."""
        found = self.arguments(node, ("var", "dom", "iter_type", "thread_tag", "dtype"), 4)
        domain = None
        dom = found["dom"]
        if isinstance(dom, ast.Call) and self.construct(dom.func) == "T.Range":
            ends = self.arguments(dom, ("begin", "end"), 2)
            domain = self.interval(ends["begin"], ends["end"])
        elif not (isinstance(dom, ast.Constant) and dom.value is None):
            raise self.error(dom, "a domain is T.Range(begin, end) or None")
        kind = self.text(found["iter_type"])
        if kind not in _AXES:
            raise self.error(found["iter_type"], f"there is no type of axes {kind!r}")
        dtype = "int32" if domain is None else str(domain.extent.dtype)
        if "dtype" in found:
            dtype = self.dtype(found["dtype"])
        name = found["var"]
        if isinstance(name, ast.Name) and self.is_defined(name.id):
            var = self.expr(name)
        else:
            var = self.new_var(name, None, dtype)
            self._announced[str(var.name)] = var
        with self.blaming(node):
            return tir.IterVar(domain, var, _AXES[kind], self.text(found["thread_tag"]))

    def _axis(self, node: ast.Call, name: str, kind: str) -> None:
        kind = _LETTERS.get(kind, kind)
        if kind not in _AXES:
            raise self.error(
                node.func, f"there is no T.axis.{kind}", "there are spatial, reduce, scan, opaque"
            )
        found = self.arguments(node, ("dom", "value"), 2)
        dom = found["dom"]
        if isinstance(dom, ast.Tuple):
            if len(dom.elts) != 2:
                raise self.error(dom, "a domain is an extent or (begin, end)")
            domain = self.interval(dom.elts[0], dom.elts[1])
        else:
            domain = self.interval(None, dom)
        value = self.expr(found["value"], like=domain.extent)
        self._add_axis(node, name, kind, domain, value)

    def _add_axis(
        self, node: ast.AST, name: str, kind: str, domain: ir.Range, value: tir.PrimExpr
    ) -> None:
        if len(self.blocks) < 2:
            raise self.error(node, "an axis belongs to a block", 'open one with T.block("name")')
        with self.blaming(node):
            var = tir.Var(name, str(domain.extent.dtype))
            self.blocks[-1].axes.append(tir.IterVar(domain, var, _AXES[kind]))
        self.blocks[-1].values.append(value)
        self.define(name, var)

    def remap(self, node: ast.Call, target: ast.Tuple) -> None:
        """``v_i, v_k = T.axis.remap("SR", [i, k])``: axes with the domains of loops."""
        found = self.arguments(node, ("kinds", "bindings"), 2)
        letters = self.text(found["kinds"])
        bindings = found["bindings"]
        items = bindings.elts if isinstance(bindings, ast.List | ast.Tuple) else [bindings]
        if not len(letters) == len(items) == len(target.elts):
            raise self.error(
                node,
                f"{len(target.elts)} names, {len(letters)} letters and {len(items)} loops; "
                "each axis needs one of each",
            )
        for name, letter, item in zip(target.elts, letters, items):
            if letter not in _LETTERS:
                raise self.error(
                    found["kinds"], f"there are no axes {letter!r}", "S is spatial, R is reduce"
                )
            if not isinstance(name, ast.Name):
                raise self.error(name, "the name of an axis is needed")
            value = self.expr(item)
            if not isinstance(value, tir.Var) or value not in self.loops:
                raise self.error(
                    item,
                    f"`{ast.unparse(item)}` is not a loop",
                    "T.axis.spatial(extent, value) takes any expression",
                )
            self._add_axis(node, name.id, _LETTERS[letter], self.loops[value], value)
