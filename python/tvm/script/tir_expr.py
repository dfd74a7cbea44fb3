"""Expressions of tensor programs, built exactly as they are written."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tvm import arith, ir, tir
from tvm.tir import _ffi_api

from .reader import Surroundings, is_number
from .source import Source
from .tir_constants import constant, fit, number
from .tir_types import TypeReader, is_dtype

__all__ = ["ExprReader", "Memory"]

# How an operator is written when both operands have one type, and how it brings types together.
_BINARY: Mapping[type[ast.AST], tuple[type[tir.PrimExpr], str]] = {
    ast.Add: (tir.Add, "_OpAdd"),
    ast.Sub: (tir.Sub, "_OpSub"),
    ast.Mult: (tir.Mul, "_OpMul"),
    ast.Div: (tir.Div, "_OpDiv"),
    ast.FloorDiv: (tir.FloorDiv, "_OpFloorDiv"),
    ast.Mod: (tir.FloorMod, "_OpFloorMod"),
    ast.Eq: (tir.EQ, "_OpEQ"),
    ast.NotEq: (tir.NE, "_OpNE"),
    ast.Lt: (tir.LT, "_OpLT"),
    ast.LtE: (tir.LE, "_OpLE"),
    ast.Gt: (tir.GT, "_OpGT"),
    ast.GtE: (tir.GE, "_OpGE"),
}
_BITWISE: Mapping[type[ast.AST], str] = {
    ast.LShift: "shift_left",
    ast.RShift: "shift_right",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
}
# Constructs that are operators with two operands.
_NAMED: Mapping[str, tuple[type[tir.PrimExpr], str]] = {
    "max": (tir.Max, "_OpMax"),
    "min": (tir.Min, "_OpMin"),
    "truncdiv": (tir.Div, "_OpTruncDiv"),
    "truncmod": (tir.Mod, "_OpTruncMod"),
    "floordiv": (tir.FloorDiv, "_OpFloorDiv"),
    "floormod": (tir.FloorMod, "_OpFloorMod"),
}
# Functions of tir that make expressions of others, under the same names.
_HELPERS = ("abs", "all", "any", "call_packed", "infinity", "max_value", "min_value")
# Calls whose first argument is their type, which nothing else in them tells.
_TYPE_FIRST = ("reinterpret", "tvm_struct_get", "type_annotation")
_TYPE_FIRST_PREFIXES = ("call_", "tvm_call_packed")


@dataclass(frozen=True)
class Memory:
    """An allocation: its pointer, and the buffer that indexing its name reads."""

    var: tir.Var
    buffer: tir.Buffer


@cache
def _intrinsics() -> frozenset[str]:
    prefix = "tir."
    return frozenset(
        name[len(prefix) :] for name in map(str, ir.Op.list_op_names()) if name.startswith(prefix)
    )


class ExprReader(TypeReader):
    """Reads expressions."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        self._lets: dict[tuple[str, str], tir.Var] = {}

    def expression(self, node: ast.AST) -> Any:
        """An expression; a plain number is a literal of int32, float32 or bool."""
        return self._literal(node, self.value(node))

    def expr(self, node: ast.AST, like: tir.PrimExpr | None = None) -> tir.PrimExpr:
        """An expression; a plain number takes the type of `like`."""
        value = self.value(node)
        if like is not None and is_number(value):
            with self.blaming(node):
                return fit(value, like)
        return self._literal(node, value)

    def _literal(self, node: ast.AST, value: Any) -> tir.PrimExpr:
        if isinstance(value, tir.PrimExpr):
            return value
        if is_number(value):
            with self.blaming(node):
                return number(value)
        if isinstance(value, str):
            return tir.StringImm(value)
        if isinstance(value, Memory):
            return value.var
        if isinstance(value, tir.Buffer):
            raise self.error(
                node,
                f"the buffer `{ast.unparse(node)}` is not a value",
                f"index it for an element, or use `{ast.unparse(node)}.data` for its pointer",
            )
        raise self.error(node, f"`{ast.unparse(node)}` is not an expression")

    # ---- forms ----

    def value(self, node: ast.AST) -> Any:
        """An expression, a plain number or text, or a buffer."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as constant):
                return constant
            case ast.Name():
                return self.lookup(node)
            case ast.BinOp():
                return self._chain(node)
            case ast.UnaryOp():
                return self._unary(node)
            case ast.BoolOp(op=op, values=operands):
                make = tir.And if isinstance(op, ast.And) else tir.Or
                result = self.expr(operands[0])
                for operand in operands[1:]:
                    with self.blaming(node):
                        result = make(result, self.expr(operand))
                return result
            case ast.Compare():
                return self._compare(node)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.IfExp():
                raise self.error(
                    node,
                    "`a if c else b` is not part of tensor programs",
                    "T.if_then_else(c, a, b) evaluates one of them, T.Select(c, a, b) both",
                )
        raise self.error(node, f"`{ast.unparse(node)}` is not an expression of tensor programs")

    def _chain(self, node: ast.BinOp) -> Any:
        # Operators group to the left, so a long sum is a deep tree; it is read without recursion.
        spine = [node]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        left = self.value(spine[-1].left)
        for link in reversed(spine):
            left = self._binary(link, link.op, link.left, left, self.value(link.right))
        return left

    def _binary(self, node: ast.AST, op: ast.AST, left_node: ast.AST, left: Any, right: Any) -> Any:
        both = is_number(left) and is_number(right) and isinstance(node, ast.BinOp)
        # Names have numbers only if the scope around gives them.
        if both and (not self.around.exact or isinstance(left_node, ast.Name)):
            return self.plain(node)
        if isinstance(op, ast.Pow):
            return self._combine(node, "pow", left, right)
        if type(op) in _BITWISE:
            return self._combine(node, _BITWISE[type(op)], left, right)
        if type(op) not in _BINARY:
            raise self.error(node, f"the operator of `{ast.unparse(node)}` is not part of scripts")
        exact, bringing = _BINARY[type(op)]
        a, b = self._operands(node, left, right)
        if isinstance(op, ast.Div) and not str(a.dtype).startswith(("float", "bfloat", "custom")):
            raise self.error(
                node,
                "dividing integers by `/` is ambiguous",
                "use `//`, which rounds down, or T.truncdiv, which rounds towards zero",
            )
        return self._exactly(node, exact, bringing, a, b)

    def _exactly(
        self, node: ast.AST, exact: Any, bringing: str, a: tir.PrimExpr, b: tir.PrimExpr
    ) -> tir.PrimExpr:
        with self.blaming(node):
            if str(a.dtype) == str(b.dtype):
                return exact(a, b)
            return getattr(_ffi_api, bringing)(a, b)

    def _operands(self, node: ast.AST, left: Any, right: Any) -> tuple[tir.PrimExpr, tir.PrimExpr]:
        """Both operands; a plain number takes the type of the other one."""
        with self.blaming(node):
            if is_number(left) and isinstance(right, tir.PrimExpr):
                return fit(left, right), right
            if is_number(right) and isinstance(left, tir.PrimExpr):
                return left, fit(right, left)
        return self._literal(node, left), self._literal(node, right)

    def _combine(self, node: ast.AST, intrinsic: str, left: Any, right: Any) -> tir.PrimExpr:
        a, b = self._operands(node, left, right)
        with self.blaming(node):
            return self._intrinsic_call(intrinsic, [a, b], None)

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.USub):
            if is_number(value):
                return -value
            with self.blaming(node):
                return _ffi_api._OpNeg(self._literal(node.operand, value))
        operand = self._literal(node.operand, value)
        with self.blaming(node):
            if isinstance(node.op, ast.Not):
                return tir.Not(operand)
            if isinstance(node.op, ast.Invert):
                return _ffi_api.bitwise_not(operand)
        return operand

    def _compare(self, node: ast.Compare) -> tir.PrimExpr:
        left = self.value(node.left)
        result: tir.PrimExpr | None = None
        for op, right_node in zip(node.ops, node.comparators):
            right = self.value(right_node)
            if type(op) not in _BINARY:
                raise self.error(node, f"`{ast.unparse(node)}` is not a comparison of scripts")
            exact, bringing = _BINARY[type(op)]
            a, b = self._operands(node, left, right)
            test = self._exactly(node, exact, bringing, a, b)
            result = test if result is None else tir.And(result, test)
            left = right
        assert result is not None
        return result

    def _subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Subscript):
            return self.metadata(node)
        base = self.value(node.value)
        if isinstance(base, tuple | list):
            index = self.integer(node.slice)
            if not -len(base) <= index < len(base):
                raise self.error(node, f"there are {len(base)} elements, not one of index {index}")
            return base[index]
        buffer = self.buffer_of(node.value, base)
        with self.blaming(node):
            return tir.BufferLoad(buffer, self.indices(node, buffer))

    def buffer_of(self, node: ast.AST, value: Any) -> tir.Buffer:
        """The buffer that a value is indexed as."""
        if isinstance(value, Memory):
            return value.buffer
        if isinstance(value, tir.Buffer):
            return value
        way_out = "declare a buffer over a pointer with T.Buffer(shape, dtype, data=pointer)"
        raise self.error(node, f"`{ast.unparse(node)}` is not a buffer", way_out)

    def indices(self, node: ast.Subscript, buffer: tir.Buffer) -> list[tir.PrimExpr]:
        """The indices in the brackets; ``[()]`` for a buffer without axes."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(items) != len(buffer.shape):
            raise self.error(
                node, f"`{buffer.name}` has {len(buffer.shape)} axes, here are {len(items)} indices"
            )
        indices = []
        for item, extent in zip(items, buffer.shape):
            if isinstance(item, ast.Slice):
                indices.append(self._vector_index(item))
            else:
                # A person's plain number is an index of the buffer's type, a printer's is int32.
                indices.append(self.expr(item, like=None if self.around.exact else extent))
        return indices

    def _vector_index(self, node: ast.Slice) -> tir.PrimExpr:
        """``start:stop:step`` as the vector of these indices."""
        if node.lower is None or node.upper is None:
            raise self.error(node, "a vector of indices needs both its ends, `start:stop`")
        start, stop = self.expr(node.lower), self.expr(node.upper)
        step = 1 if node.step is None else self.integer(node.step)
        with self.blaming(node):
            count = arith.Analyzer().simplify(stop - start)
        if not isinstance(count, tir.IntImm) or step == 0:
            raise self.error(node, f"the number of indices, {count}, is not known")
        return tir.Ramp(start, step, -(-int(count) // step))

    def _attribute(self, node: ast.Attribute) -> Any:
        what = self.construct(node)
        if what is not None:
            raise self.error(node, f"{what} is not a value; it is called, or stands elsewhere")
        base = self.value(node.value)
        if isinstance(base, Memory):
            base = base.buffer
        if isinstance(base, tir.Buffer):
            if node.attr == "data":
                return base.data
            if node.attr in ("shape", "strides"):
                return tuple(getattr(base, node.attr))
            if node.attr == "elem_offset":
                return base.elem_offset
            if node.attr == "dtype":
                return str(base.dtype)
        if isinstance(base, tir.PrimExpr) and node.attr == "dtype":
            return str(base.dtype)
        raise self.error(
            node,
            f"`{ast.unparse(node.value)}` has no `{node.attr}` in scripts",
            "a buffer has data, shape, strides, elem_offset and dtype",
        )

    # ---- calls ----

    def _call(self, node: ast.Call) -> Any:
        callee = node.func
        match callee:
            case ast.Attribute(value=ast.Name(id="cls"), attr=name):
                return self._function_call(node, self.global_var(name))
        if isinstance(callee, ast.Call) and self.called(callee) == "I.GlobalVar":
            return self._function_call(node, self.attribute(callee))
        what = self.construct(callee)
        if what is None:
            raise self.error(
                callee,
                f"`{ast.unparse(callee)}` cannot be called in a script",
                "T.exp and the like compute; cls.name calls a function of the module",
            )
        if not what.startswith("T."):
            raise self.error(callee, f"{what} is not part of tensor programs")
        name = what[2:]
        with self.blaming(node):
            if is_dtype(name):
                return self._typed(node, name)
            if name in _NAMED:
                return self._named(node, name)
            if name in _CALLS:
                return _CALLS[name](self, node)
            if name in _intrinsics():
                return self._intrinsic(node, name)
            if name in _HELPERS:
                values = [self.value(item) for item in node.args]
                return getattr(tir, name)(*values)
            if name == "call_intrin":
                dtype, op = self.dtype(node.args[0]), self.text(node.args[1])
                return tir.Call(dtype, op, [self.expr(arg) for arg in node.args[2:]])
        raise self.unknown(callee, what)

    def unknown(self, node: ast.AST, what: str) -> Exception:
        """The complaint about a construct that there is not."""
        import difflib

        known = {*_intrinsics(), *_NAMED, *_CALLS, *_HELPERS, "call_intrin"}
        close = difflib.get_close_matches(what.split(".", 1)[1], sorted(known), 1)
        way_out = f"did you mean `T.{close[0]}`?" if close else ""
        return self.error(node, f"there is no construct `{what}`", way_out)

    def _typed(self, node: ast.Call, dtype: str) -> tir.PrimExpr:
        """``T.float32(0)`` is a constant, ``T.float32(x)`` a conversion."""
        found = self.arguments(node, ("value",), 0)
        if "value" not in found:
            raise self.error(
                node,
                f"T.{dtype}() makes a variable, which needs a name",
                f"write `n = T.{dtype}()` on a line before",
            )
        value = self.value(found["value"])
        if isinstance(value, str):
            if value not in ("nan", "inf", "-inf"):
                raise self.error(node, f'T.{dtype} takes a number, "nan", "inf" or "-inf"')
            return _ffi_api._const_float(float(value), dtype)
        if is_number(value):
            return constant(value, dtype)
        return tir.Cast(dtype, self._literal(node, value))

    def _named(self, node: ast.Call, name: str) -> tir.PrimExpr:
        if any(keyword.arg == "axis" for keyword in node.keywords):
            raise self.error(
                node,
                f"T.{name} over an axis is an expression of te, not of a function",
                "write the reduction as a loop or a block with T.init()",
            )
        found = self.arguments(node, ("a", "b"), 2)
        a, b = self._operands(node, self.value(found["a"]), self.value(found["b"]))
        exact, bringing = _NAMED[name]
        return self._exactly(node, exact, bringing, a, b)

    def _intrinsic(self, node: ast.Call, name: str) -> tir.PrimExpr:
        args = list(node.args)
        dtype = None
        if name in _TYPE_FIRST or name.startswith(_TYPE_FIRST_PREFIXES):
            if not args:
                raise self.error(node, f'T.{name} begins with its type, for instance "int32"')
            dtype = self.dtype(args.pop(0))
        for keyword in node.keywords:
            if keyword.arg != "dtype" or dtype is not None:
                raise self.error(keyword, f"T.{name} has no argument `{keyword.arg}`")
            dtype = self.dtype(keyword.value)
        return self._intrinsic_call(name, [self.expr(arg) for arg in args], dtype)

    def _intrinsic_call(self, name: str, args: list[tir.PrimExpr], dtype: str | None) -> tir.Call:
        op = ir.Op.get(f"tir.{name}")
        expected = op.num_inputs
        if expected >= 0 and len(args) != expected:
            raise ValueError(f"T.{name} takes {expected} operands, here are {len(args)}")
        return tir.Call(dtype or str(_ffi_api.CallDType(op, args)), op, args)

    def _function_call(self, node: ast.Call, callee: ir.GlobalVar) -> tir.PrimExpr:
        args = [self.expr(arg) for arg in node.args]
        dtype = None
        for keyword in node.keywords:
            if keyword.arg != "dtype":
                raise self.error(keyword, f"a call has no argument `{keyword.arg}`")
            dtype = self.dtype(keyword.value)
        with self.blaming(node):
            return tir.Call(dtype or str(_ffi_api.CallDType(callee, args)), callee, args)

    def _cast(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("value", "dtype"), 2)
        return tir.Cast(self.dtype(found["dtype"]), self.expr(found["value"]))

    def _select(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("condition", "true_value", "false_value"), 3)
        true, false = self._operands(
            node, self.value(found["true_value"]), self.value(found["false_value"])
        )
        return tir.Select(self.expr(found["condition"]), true, false)

    def _ramp(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("base", "stride", "lanes"), 3)
        base = self.expr(found["base"])
        return tir.Ramp(base, self.expr(found["stride"], like=base), self.integer(found["lanes"]))

    def _broadcast(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("value", "lanes"), 2)
        return tir.Broadcast(self.expr(found["value"]), self.integer(found["lanes"]))

    def _shuffle(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("vectors", "indices"), 2)
        return tir.Shuffle(self.expr_list(found["vectors"]), self.expr_list(found["indices"]))

    def expr_list(self, node: ast.AST) -> list[tir.PrimExpr]:
        """The expressions of a list or tuple."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.error(node, f"a list is needed here, not `{ast.unparse(node)}`")
        return [self.expr(item) for item in node.elts]

    def _let(self, node: ast.Call) -> tir.PrimExpr:
        found = self.arguments(node, ("var", "value", "body", "type"), 3)
        value = self.expr(found["value"])
        with self.scope():
            var = self.new_var(found["var"], found.get("type"), str(value.dtype))
            if self.around.exact:
                # An expression that a program has twice is printed twice, with one variable.
                var = self._lets.setdefault((var.name, str(var.dtype)), var)
                self.define(var.name, var)
            return tir.Let(var, value, self.expr(found["body"]))

    def comm_reducer(self, node: ast.Call) -> tir.CommReducer:
        """``T.comm_reducer(lambda x, y: [x + y], [T.float32(0)])``."""
        found = self.arguments(node, ("combiner", "identity"), 2)
        identity = self.expr_list(found["identity"])
        combiner = found["combiner"]
        if not isinstance(combiner, ast.Lambda) or len(combiner.args.args) != 2 * len(identity):
            raise self.error(
                combiner, f"a lambda of {2 * len(identity)} variables is needed, two per value"
            )
        with self.scope():
            operands = []
            for argument, neutral in zip(combiner.args.args, [*identity, *identity]):
                var = tir.Var(argument.arg, str(neutral.dtype))
                self.define(argument.arg, var)
                operands.append(var)
            body = combiner.body
            result = self.expr_list(body) if isinstance(body, ast.List) else [self.expr(body)]
        half = len(identity)
        return tir.CommReducer(operands[:half], operands[half:], result, identity)


_CALLS: Mapping[str, Callable[[ExprReader, ast.Call], tir.PrimExpr]] = {
    "cast": ExprReader._cast,
    "Cast": ExprReader._cast,
    "Select": ExprReader._select,
    "Ramp": ExprReader._ramp,
    "ramp": ExprReader._ramp,
    "Broadcast": ExprReader._broadcast,
    "broadcast": ExprReader._broadcast,
    "Shuffle": ExprReader._shuffle,
    "Let": ExprReader._let,
    "StringImm": lambda self, node: tir.StringImm(
        self.text(self.arguments(node, ("value",), 1)["value"])
    ),
}
