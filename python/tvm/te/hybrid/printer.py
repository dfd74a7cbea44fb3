"""From a schedule to the text of a loop program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tir
from tvm.te.schedule import Schedule
from tvm.te.tensor import Tensor

__all__ = ["program_text"]

_LOOPS = {
    tir.ForKind.SERIAL: "range",
    tir.ForKind.PARALLEL: "parallel",
    tir.ForKind.VECTORIZED: "vectorize",
    tir.ForKind.UNROLLED: "unroll",
}
_OPERATORS = {
    tir.Add: "+",
    tir.Sub: "-",
    tir.Mul: "*",
    tir.FloorDiv: "//",
    tir.FloorMod: "%",
    tir.LT: "<",
    tir.LE: "<=",
    tir.GT: ">",
    tir.GE: ">=",
    tir.EQ: "==",
    tir.NE: "!=",
    tir.And: "and",
    tir.Or: "or",
}
_CALLS = {
    "exp", "log", "log2", "sqrt", "rsqrt", "tanh", "sin", "cos", "tan", "sigmoid", "erf", "floor",
    "ceil", "trunc", "likely",
}  # fmt: skip


class _Printer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.names: dict[Any, str] = {}
        # The first element of each axis of a buffer that holds a part of a tensor only.
        self.begins: dict[Any, list[Any]] = {}

    def name(self, thing: Any, hint: str) -> str:
        if thing not in self.names:
            base = re.sub(r"\W", "_", hint) or "v"
            base = base if base[0].isalpha() or base[0] == "_" else f"v{base}"
            taken, name, count = set(self.names.values()), base, 0
            while name in taken:
                count += 1
                name = f"{base}_{count}"
            self.names[thing] = name
        return self.names[thing]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def block(self, head: str, body: Any) -> None:
        self.line(head)
        self.depth += 1
        count = len(self.lines)
        self.stmt(body)
        if len(self.lines) == count:
            self.line("pass")
        self.depth -= 1

    def memory(self, buffer: Any, extents: Sequence[Any], kind: str) -> None:
        shape = ", ".join(self.expr(extent) for extent in extents)
        scope = f', "{buffer.scope}"' if kind == "allocate" else ""
        self.line(f'{self.name(buffer, buffer.name)} = {kind}(({shape},), "{buffer.dtype}"{scope})')

    def stmt(self, stmt: Any) -> None:
        if isinstance(stmt, tir.SeqStmt):
            for item in stmt.seq:
                self.stmt(item)
        elif isinstance(stmt, tir.For):
            kind = _LOOPS[tir.ForKind(int(stmt.kind))]
            var = self.name(stmt.loop_var, stmt.loop_var.name)
            end = self.expr(stmt.min + stmt.extent)
            self.block(f"for {var} in {kind}({self.expr(stmt.min)}, {end}):", stmt.body)
        elif isinstance(stmt, tir.BufferStore):
            self.line(f"{self.element(stmt)} = {self.expr(stmt.value)}")
        elif isinstance(stmt, tir.BufferRealize):
            self.begins[stmt.buffer] = [bound.min for bound in stmt.bounds]
            self.memory(stmt.buffer, [bound.extent for bound in stmt.bounds], "allocate")
            self.stmt(stmt.body)
        elif isinstance(stmt, tir.Allocate):
            # Memory of the program itself: accesses know it by its pointer.
            name = self.name(stmt.buffer_var, stmt.buffer_var.name)
            shape = ", ".join(self.expr(extent) for extent in stmt.extents)
            scope = stmt.buffer_var.type_annotation.storage_scope or "global"
            self.line(f'{name} = allocate(({shape},), "{stmt.dtype}", "{scope}")')
            self.stmt(stmt.body)
        elif isinstance(stmt, tir.IfThenElse):
            self.block(f"if {self.expr(stmt.condition)}:", stmt.then_case)
            if stmt.else_case is not None:
                self.block("else:", stmt.else_case)
        elif isinstance(stmt, tir.AssertStmt):
            message = f", {stmt.message.value!r}" if isinstance(stmt.message, tir.StringImm) else ""
            self.line(f"assert {self.expr(stmt.condition)}{message}")
            self.stmt(stmt.body)
        elif isinstance(stmt, tir.LetStmt):
            self.line(f"{self.name(stmt.var, stmt.var.name)} = {self.expr(stmt.value)}")
            self.stmt(stmt.body)
        elif isinstance(stmt, tir.AttrStmt):
            if stmt.attr_key in ("thread_extent", "virtual_thread"):
                tag = stmt.node.thread_tag
                var = self.name(stmt.node.var, stmt.node.var.name)
                self.block(f'for {var} in bind("{tag}", {self.expr(stmt.value)}):', stmt.body)
            else:
                self.stmt(stmt.body)
        elif not (isinstance(stmt, tir.Evaluate) and isinstance(stmt.value, tir.IntImm)):
            raise ValueError(f"hybrid program: no words for the statement\n{stmt}")

    def element(self, access: Any) -> str:
        begins = self.begins.get(access.buffer)
        indices = [
            index if begins is None else index - begins[i] for i, index in enumerate(access.indices)
        ]
        name = self.names.get(access.buffer.data) or self.name(access.buffer, access.buffer.name)
        return f"{name}[{', '.join(self.expr(tvm.arith.Analyzer().simplify(i)) for i in indices)}]"

    def expr(self, expr: Any) -> str:
        symbol = _OPERATORS.get(type(expr))
        if symbol is not None:
            return f"({self.expr(expr.a)} {symbol} {self.expr(expr.b)})"
        dtype = str(expr.dtype)
        if isinstance(expr, tir.IntImm):
            if dtype in ("int32", "bool"):
                return str(bool(expr.value) if dtype == "bool" else int(expr.value))
            return f"{dtype}({int(expr.value)})"
        if isinstance(expr, tir.FloatImm):
            return f"{dtype}({float(expr.value)!r})"
        if isinstance(expr, tir.Var):
            return self.name(expr, expr.name)
        if isinstance(expr, tir.BufferLoad):
            return self.element(expr)
        if isinstance(expr, tir.Cast):
            return f"{dtype}({self.expr(expr.value)})"
        if isinstance(expr, tir.Min | tir.Max):
            word = "min" if isinstance(expr, tir.Min) else "max"
            return f"{word}({self.expr(expr.a)}, {self.expr(expr.b)})"
        if isinstance(expr, tir.Div) and dtype.startswith("float"):
            return f"({self.expr(expr.a)} / {self.expr(expr.b)})"
        if isinstance(expr, tir.Not):
            return f"(not {self.expr(expr.a)})"
        if isinstance(expr, tir.Select):
            return self.choice(expr.condition, expr.true_value, expr.false_value)
        if isinstance(expr, tir.Call):
            name = str(expr.op.name).removeprefix("tir.")
            if name == "if_then_else":
                return self.choice(*expr.args)
            if name in _CALLS:
                return f"{name}({', '.join(self.expr(arg) for arg in expr.args)})"
            if name == "pow":
                return f"power({', '.join(self.expr(arg) for arg in expr.args)})"
            if name == "fabs":
                return f"abs({self.expr(expr.args[0])})"
        raise ValueError(f"hybrid program: no words for the expression {expr}")

    def choice(self, condition: Any, yes: Any, no: Any) -> str:
        return f"({self.expr(yes)} if {self.expr(condition)} else {self.expr(no)})"


def program_text(
    sch: Schedule, inputs: Sequence[Tensor | tir.Var], outputs: Sequence[Tensor], name: str
) -> str:
    """Text of a function ``name`` of ``inputs`` that returns ``outputs``.

    Extents that are no parameters are written as those of an input, ``a.shape[0]``.

    Raises
    ------
    ValueError : the loops hold something that the language has no words for.
    """
    func = tvm.driver.schedule_to_module(sch, [*inputs, *outputs])["main"]
    func = tvm.tir.transform.Simplify()(tvm.IRModule({"main": func}))["main"]
    # Numbers are parameters themselves, tensors have buffers.
    values = [func.buffer_map.get(param, param) for param in func.params]
    printer = _Printer()
    parameters = [printer.name(value, value.name) for value in values[: len(inputs)]]
    for value in values[: len(inputs)]:
        for axis, extent in enumerate([] if isinstance(value, tir.Var) else value.shape):
            if isinstance(extent, tir.Var):
                printer.names.setdefault(extent, f"{printer.names[value]}.shape[{axis}]")
    printer.line(f"def {name}({', '.join(parameters)}):")
    printer.depth += 1
    results = values[len(inputs) :]
    for buffer in results:
        printer.memory(buffer, buffer.shape, "output_tensor")
    printer.stmt(func.body)
    printer.line(f"return {', '.join(printer.names[buffer] for buffer in results)}")
    return "\n".join(printer.lines) + "\n"
