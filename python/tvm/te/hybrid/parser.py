"""From the syntax tree of a loop program to an operation of te."""

from __future__ import annotations

import ast
import inspect
import operator
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tvm.error
from tvm import tir
from tvm.ir import Range
from tvm.te import _ffi_api
from tvm.te.operation import placeholder
from tvm.te.tensor import HybridOp, Tensor
from tvm.tir import IntImm, IterVar, PrimExpr
from tvm.tir.ir_builder import IRBuilder

from .runtime import DTYPES, LOOP_KINDS, MATH, max_num_threads

__all__ = ["parse"]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: tir.power(a, b) if _is_expr(a, b) else a**b,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: lambda x: x,
    ast.Invert: operator.invert,
    ast.Not: lambda x: tir.Not(x) if _is_expr(x) else not x,
}
_DTYPES = {name: name for name in DTYPES} | {"int": "int32", "float": "float32"}


def _is_expr(*values: Any) -> bool:
    return any(isinstance(value, PrimExpr) for value in values)


def _plain(value: Any) -> Any:
    """Integer constants as Python's, which can be computed with while the program is read."""
    return int(value) if isinstance(value, IntImm) and str(value.dtype) == "int32" else value


class _Elements:
    """A tensor that the program reads, and unless it is an input writes, element by element."""

    def __init__(self, builder: IRBuilder, tensor: Tensor, is_input: bool = False) -> None:
        self.builder = builder
        self.tensor = tensor
        self.is_input = is_input

    def __getitem__(self, indices: Sequence[Any]) -> PrimExpr:
        return tir.ProducerLoad(self.tensor, indices)

    def __setitem__(self, indices: Sequence[Any], value: Any) -> None:
        name, dtype = self.tensor.op.name, str(self.tensor.dtype)
        if isinstance(value, PrimExpr) and str(value.dtype) != dtype:
            raise TypeError(
                f"store to {name} of {dtype}: the value {value} has dtype {value.dtype}; convert "
                "it with astype"
            )
        self.builder.emit(tir.ProducerStore(self.tensor, value, indices))


class _Scalar:
    """A scalar variable: memory for one element."""

    def __init__(self, cell: _Elements) -> None:
        self.cell = cell


class _Parser:
    def __init__(self, func: Callable[..., Any], values: Mapping[str, Any]) -> None:
        self.func = func
        self.name = func.__name__
        self.builder = tir.ir_builder.create()
        self.inputs: list[_Elements] = []
        self.outputs: dict[str, _Elements] = {}
        self.memory: list[_Elements] = []
        self.returned: list[str] | None = None
        captured = inspect.getclosurevars(func)
        self.outside = {**captured.globals, **captured.nonlocals}
        self.left: set[str] = set()
        lines, self.first_line = inspect.getsourcelines(func)
        tree = ast.parse(textwrap.dedent("".join(lines)))
        definition = tree.body[0]
        assert isinstance(definition, ast.FunctionDef)
        self.definition = definition
        self.here: Any = self.definition
        assigned = [
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        self.times_assigned = Counter(assigned)
        self.scopes: list[dict[str, Any]] = [
            {name: self._argument(value) for name, value in values.items()}
        ]
        for name in _elements_assigned(tree):
            given = self.scopes[0].get(name)
            if isinstance(given, _Elements):
                self.scopes[0][name] = self._copied(given, name)

    def error(self, message: str) -> tvm.error.ValueError:
        """The complaint, with the place in the program."""
        line = self.first_line + self.here.lineno - 1
        where = f"{inspect.getsourcefile(self.func)}:{line}: {self.name}: "
        return tvm.error.ValueError(where + message)

    # ---- names ----

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list | tuple) or type(value).__name__ == "Array":
            return [self._argument(item) for item in value]
        if not isinstance(value, Tensor):
            return _plain(value)
        self.inputs.append(_Elements(self.builder, value, is_input=True))
        return self.inputs[-1]

    def _memory(self, name: str, shape: Sequence[Any], dtype: str, scope: str) -> _Elements:
        """Memory of the program, until the end of this block."""
        tensor = placeholder(shape, dtype, name)
        bounds = [Range.from_min_extent(0, extent) for extent in tensor.shape]
        self.builder.emit(
            lambda body: tir.ProducerRealize(tensor, bounds, tir.const(True), body, scope)
        )
        self.memory.append(_Elements(self.builder, tensor))
        return self.memory[-1]

    def _copied(self, given: _Elements, name: str) -> _Elements:
        """Memory that begins as an input: tensors are values, which no program changes."""
        shape = given.tensor.shape
        memory = self._memory(name, shape, str(given.tensor.dtype), "global")

        def copy(indices: list[Any]) -> None:
            axis = len(indices)
            if axis == len(shape):
                memory[indices] = given[indices]
                return
            with self.builder.for_range(0, shape[axis], name=f"{name}_i{axis}") as i:
                copy([*indices, i])

        copy([])
        return memory

    def _lookup(self, name: str) -> Any:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.left:
            raise self.error(
                f"{name} is used outside of the block that assigns it first; assign it before"
            )
        if name in self.outside:
            value = self._argument(self.outside[name])
            self.scopes[0][name] = value
            return value
        raise self.error(f"name {name} is not defined")

    @contextmanager
    def _block(self, scope: Any) -> Any:
        with scope as value:
            self.scopes.append({})
            yield value
            self.left.update(self.scopes.pop())

    # ---- statements ----

    def run(self) -> Any:
        self._statements(self.definition.body, top=True)
        if self.returned is None:
            self.here = self.definition
            raise self.error("no return at the end; return the output tensors")
        missing = set(self.outputs) - set(self.returned)
        if missing:
            raise self.error(f"output tensors {sorted(missing)} are not returned")
        op = _ffi_api.HybridOp(
            self.name,
            "",
            {},
            [each.tensor for each in self.inputs],
            [self.outputs[name].tensor for name in self.returned],
            self.builder.get(),
        )
        results = [op.output(i) for i in range(op.num_outputs)]
        return results if len(results) > 1 else results[0]

    def _statements(self, body: Sequence[ast.stmt], top: bool = False) -> None:
        for position, node in enumerate(body):
            self.here = node
            if isinstance(node, ast.Return):
                if not top or position != len(body) - 1:
                    raise self.error("return must be the last statement of the program")
                self._return(node)
                continue
            visit = getattr(self, f"_{type(node).__name__.lower()}", None)
            if visit is None:
                raise self.error(
                    f"{type(node).__name__.lower()} statements are not a part of the language"
                )
            try:
                visit(node)
            except (TypeError, ValueError, IndexError) as error:
                if str(error).startswith(inspect.getsourcefile(self.func) or ""):
                    raise
                raise self.error(str(error)) from error

    def _return(self, node: ast.Return) -> None:
        items = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        self.returned = []
        for item in items:
            if not isinstance(item, ast.Name) or item.id not in self.outputs:
                raise self.error(
                    "return names of output tensors, made by output_tensor(shape, dtype)"
                )
            if item.id in self.returned:
                raise self.error(f"{item.id} is returned twice")
            self.returned.append(item.id)

    def _while(self, node: ast.While) -> None:
        raise self.error(
            "while loops are not a part of the language; use a for loop with a known end"
        )

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            raise self.error("an expression has no effect here; assign its value")

    def _assert(self, node: ast.Assert) -> None:
        condition = self.value(node.test)
        if _is_expr(condition):
            message = tir.StringImm(
                str(self.value(node.msg)) if node.msg else ast.unparse(node.test)
            )
            self.builder.emit(tir.AssertStmt(condition, message, tir.Evaluate(0)))
        elif not condition:
            raise self.error(f"assertion {ast.unparse(node.test)} fails")

    def _if(self, node: ast.If) -> None:
        condition = self.value(node.test)
        if not _is_expr(condition):
            # Known now: only one branch is a part of the program.
            self._statements(node.body if condition else node.orelse)
            return
        with self._block(self.builder.if_scope(condition)):
            self._statements(node.body)
        if node.orelse:
            with self._block(self.builder.else_scope()):
                self._statements(node.orelse)

    def _for(self, node: ast.For) -> None:
        if node.orelse:
            raise self.error("else of a for loop is not a part of the language")
        if not isinstance(node.target, ast.Name):
            raise self.error("a loop has one variable")
        name = node.target.id
        call = node.iter
        kind = (
            call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        )
        if not isinstance(call, ast.Call) or kind not in (*LOOP_KINDS, "bind"):
            raise self.error(f"a loop runs over one of {', '.join([*LOOP_KINDS, 'bind'])}")
        arguments = [_plain(self.value(argument)) for argument in call.args]
        if kind == "bind":
            self._bound_loop(node, name, arguments)
            return
        if not 1 <= len(arguments) <= 2 or call.keywords:
            raise self.error(f"{kind} takes an end, or a begin and an end; a step is always 1")
        begin, end = arguments if len(arguments) == 2 else (0, arguments[0])
        if kind == "const_range":
            if _is_expr(begin, end):
                raise self.error("the ends of const_range must be known when the program is read")
            for i in range(begin, end):
                self.scopes.append({name: i})
                self._statements(node.body)
                self.left.update(self.scopes.pop())
            return
        loop = self.builder.for_range(begin, end, name=name, kind=LOOP_KINDS[kind])
        with self._block(loop) as var:
            self.scopes[-1][name] = var
            self._statements(node.body)

    def _bound_loop(self, node: ast.For, name: str, arguments: list[Any]) -> None:
        if len(arguments) != 2 or not isinstance(arguments[0], str):
            raise self.error("bind takes the tag of a thread axis and an extent")
        tag, extent = arguments
        thread = IterVar((0, extent), tag, IterVar.ThreadIndex, tag)
        with self._block(self.builder.new_scope()):
            self.builder.scope_attr(thread, "thread_extent", extent)
            self.scopes[-1][name] = thread.var
            self._statements(node.body)

    def _augassign(self, node: ast.AugAssign) -> None:
        combine = _BINARY.get(type(node.op))
        if combine is None:
            raise self.error(f"operator {type(node.op).__name__} is not a part of the language")
        read = ast.copy_location(ast.fix_missing_locations(_as_load(node.target)), node.target)
        self._store(node.target, combine(self.value(read), self.value(node.value)), True)

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error("assign to one target at a time")
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            values = self.value(node.value)
            if not isinstance(values, list | tuple) or len(values) != len(target.elts):
                raise self.error("the two sides of the assignment do not have as many values")
            for item, value in zip(target.elts, values):
                self._store(item, value, False)
            return
        if not self._declaration(node.value, target):
            self._store(target, self.value(node.value), False)

    def _declaration(self, call: ast.expr, target: ast.expr) -> bool:
        """Whether new memory is assigned, which then has its name."""
        kind = (
            call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        )
        if kind not in ("allocate", "output_tensor"):
            return False
        assert isinstance(call, ast.Call)
        if not isinstance(target, ast.Name):
            raise self.error(f"{kind} is assigned to a name")
        if any(target.id in scope for scope in self.scopes):
            raise self.error(f"{target.id} is assigned already; give the memory a name of its own")
        names = ["shape", "dtype", "scope"]
        given = dict(zip(names, [self.value(a) for a in call.args]))
        given.update({str(k.arg): self.value(k.value) for k in call.keywords})
        unknown = set(given) - set(names)
        if unknown or "shape" not in given:
            raise self.error(f"{kind} takes shape, dtype and scope")
        shape = given["shape"]
        shape = list(shape) if isinstance(shape, list | tuple) else [shape]
        dtype = str(given.get("dtype", "float32"))
        if kind == "allocate":
            memory = self._memory(target.id, shape, dtype, given.get("scope", "global"))
        else:
            if len(self.scopes) != 1:
                raise self.error(
                    "output_tensor is called at the top of the program, outside of loops"
                )
            memory = _Elements(self.builder, placeholder(shape, dtype, target.id))
            self.outputs[target.id] = memory
            self.memory.append(memory)
        self.scopes[-1][target.id] = memory
        return True

    def _store(self, target: ast.expr, value: Any, again: bool) -> None:
        if isinstance(target, ast.Subscript):
            base, indices = self._element(target)
            if not isinstance(base, _Elements):
                raise self.error(f"{ast.unparse(target)} is no element of a tensor")
            if base.is_input:
                raise self.error(
                    f"{base.tensor.op.name} is an input; write to an output_tensor or allocate"
                )
            base[indices] = value
            return
        if not isinstance(target, ast.Name):
            raise self.error(f"cannot assign to {ast.unparse(target)}")
        name = target.id
        known = next((scope[name] for scope in reversed(self.scopes) if name in scope), None)
        if isinstance(known, _Scalar):
            known.cell[[0]] = value
            return
        if known is not None and self.times_assigned[name] > 0:
            raise self.error(f"{name} cannot be assigned again")
        constant = not _is_expr(value)
        if isinstance(value, _Elements) or (
            constant and (not isinstance(value, bool | int | float) or self._fixed(name))
        ):
            self.scopes[-1][name] = value
            return
        first = tir.convert(value)
        cell = self._memory(name, [1], str(first.dtype), "local")
        cell[[0]] = first
        self.scopes[-1][name] = _Scalar(cell)

    def _fixed(self, name: str) -> bool:
        return self.times_assigned[name] == 1

    # ---- expressions ----

    def value(self, node: ast.expr | None) -> Any:
        visit = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if visit is None or node is None:
            raise self.error(f"{type(node).__name__} expressions are not a part of the language")
        return visit(node)

    def _value_constant(self, node: ast.Constant) -> Any:
        return node.value

    def _value_name(self, node: ast.Name) -> Any:
        value = self._lookup(node.id)
        return value.cell[[0]] if isinstance(value, _Scalar) else value

    def _value_tuple(self, node: ast.Tuple | ast.List) -> Any:
        return tuple(self.value(item) for item in node.elts)

    _value_list = _value_tuple

    def _value_attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, _Elements):
            if node.attr == "shape":
                return tuple(_plain(extent) for extent in base.tensor.shape)
            if node.attr == "ndim":
                return len(base.tensor.shape)
            if node.attr == "dtype":
                return str(base.tensor.dtype)
        elif node.attr == "dtype" and _is_expr(base):
            return str(base.dtype)
        raise self.error(
            f"attribute {node.attr} is not a part of the language: shape, ndim and dtype are"
        )

    def _element(self, node: ast.Subscript) -> tuple[Any, list[Any]]:
        """The tensor and its indices, for `a[i, j]` and `a[i][j]` alike."""
        inner: list[Any] = []
        base: Any = node
        while isinstance(base, ast.Subscript):
            at = base.slice.elts if isinstance(base.slice, ast.Tuple) else [base.slice]
            inner = [self.value(item) for item in at] + inner
            base = base.value
        value = self.value(base)
        while not isinstance(value, _Elements) and inner:
            if _is_expr(inner[0]):
                raise self.error(
                    f"index {inner[0]} of a list must be known when the program is read"
                )
            value, inner = value[inner[0]], inner[1:]
        if isinstance(value, _Elements) and inner and len(inner) != len(value.tensor.shape):
            raise self.error(
                f"{value.tensor.op.name} has {len(value.tensor.shape)} axes, got {len(inner)} "
                "indices"
            )
        return value, inner

    def _value_subscript(self, node: ast.Subscript) -> Any:
        base, indices = self._element(node)
        return base[indices] if indices else base

    def _value_binop(self, node: ast.BinOp) -> Any:
        combine = _BINARY.get(type(node.op))
        if combine is None:
            raise self.error(f"operator {type(node.op).__name__} is not a part of the language")
        return _plain(combine(self.value(node.left), self.value(node.right)))

    def _value_unaryop(self, node: ast.UnaryOp) -> Any:
        return _UNARY[type(node.op)](self.value(node.operand))

    def _value_boolop(self, node: ast.BoolOp) -> Any:
        values = [self.value(item) for item in node.values]
        symbolic = [value for value in values if _is_expr(value)]
        known = [bool(value) for value in values if not _is_expr(value)]
        if isinstance(node.op, ast.And):
            return False if not all(known) else tir.all(*symbolic) if symbolic else True
        return True if any(known) else tir.any(*symbolic) if symbolic else False

    def _value_compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        parts = []
        for op, right_node in zip(node.ops, node.comparators):
            compare = _COMPARE.get(type(op))
            if compare is None:
                raise self.error(f"comparison {type(op).__name__} is not a part of the language")
            right = self.value(right_node)
            parts.append(compare(left, right))
            left = right
        symbolic = [part for part in parts if _is_expr(part)]
        if not symbolic:
            return all(parts)
        return tir.all(*[tir.convert(part) for part in parts])

    def _value_ifexp(self, node: ast.IfExp) -> Any:
        condition = self.value(node.test)
        if not _is_expr(condition):
            return self.value(node.body if condition else node.orelse)
        return tir.if_then_else(condition, self.value(node.body), self.value(node.orelse))

    def _value_call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr  # np.exp and math.exp are exp
        elif isinstance(node.func, ast.Name):
            name = node.func.id
        else:
            raise self.error("only functions can be called, by their names")
        if node.keywords:
            raise self.error(f"{name} takes no keyword arguments here")
        if name in ("allocate", "output_tensor"):
            raise self.error(f"{name} is assigned to a name of its own")
        arguments = [self.value(argument) for argument in node.args]
        if name in _DTYPES and len(arguments) == 1:
            (value,) = arguments
            dtype = _DTYPES[name]
            return value.astype(dtype) if _is_expr(value) else tir.const(value, dtype)
        if name == "len" and len(arguments) == 1:
            (value,) = arguments
            return _plain(value.tensor.shape[0]) if isinstance(value, _Elements) else len(value)
        if name == "max_num_threads" and len(arguments) <= 1:
            return max_num_threads(*arguments)
        if name in ("min", "max") and len(arguments) > 1:
            if not _is_expr(*arguments):
                return (min if name == "min" else max)(arguments)
            combine = tir.min if name == "min" else tir.max
            result = arguments[0]
            for argument in arguments[1:]:
                result = combine(result, argument)
            return result
        if name in MATH:
            if not _is_expr(*arguments) and not any(isinstance(a, float) for a in arguments):
                return _plain(MATH[name][0](*arguments))
            return getattr(tir, MATH[name][1])(*arguments)
        if isinstance(node.func, ast.Name) and callable(self.outside.get(name)):
            return self._call(name, arguments)
        raise self.error(f"function {name} is not a part of the language")

    def _call(self, name: str, arguments: list[Any]) -> Any:
        """What a function around the program makes of tensors: inputs, or a part of the program."""
        if len(self.scopes) != 1:
            raise self.error(f"{name} is called at the top of the program, outside of loops")
        made = self.outside[name](*[_tensors(argument) for argument in arguments])
        if any(_is_memory(argument) for argument in arguments):
            return self._spliced(name, made)
        return self._argument(made)

    def _spliced(self, callee: str, made: Any) -> Any:
        """The results of another loop program, whose statements become statements of this one."""
        several = isinstance(made, list | tuple) or type(made).__name__ == "Array"
        results = list(made) if several else [made]
        op = results[0].op
        if not isinstance(op, HybridOp) or any(not each.op.same_as(op) for each in results):
            raise self.error(
                f"{callee} takes memory of the program, which only another loop program can read"
            )
        memory = [
            self._memory(str(each.op.name), each.shape, str(each.dtype), "global")
            for each in op.outputs
        ]

        def renamed(node: Any) -> Any:
            for output, own in zip(op.outputs, memory):
                if not node.producer.op.same_as(output.op):
                    continue
                if isinstance(node, tir.ProducerLoad):
                    return own[node.indices]
                return tir.ProducerStore(own.tensor, node.value, node.indices)
            return None

        for tensor in op.inputs:
            if all(tensor != each.tensor for each in [*self.inputs, *self.memory]):
                self._argument(tensor)
        self.builder.emit(
            tir.stmt_functor.ir_transform(
                op.body, None, renamed, ["tir.ProducerLoad", "tir.ProducerStore"]
            )
        )
        parts = [memory[each.value_index] for each in results]
        return parts if several else parts[0]


def _elements_assigned(tree: ast.AST) -> list[str]:
    """Names of which elements are assigned, in the order of the program."""
    names: dict[str, None] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
            continue
        base: ast.expr = node
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Name):
            names[base.id] = None
    return list(names)


def _tensors(value: Any) -> Any:
    """What a function outside of the program is called with."""
    if isinstance(value, list | tuple):
        return [_tensors(item) for item in value]
    return value.tensor if isinstance(value, _Elements) else value


def _is_memory(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_memory(item) for item in value)
    return isinstance(value, _Elements) and not value.is_input


def _as_load(target: ast.expr) -> ast.expr:
    """The target of an assignment, as an expression that reads it."""
    return ast.parse(ast.unparse(target), mode="eval").body


def parse(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The tensors that a loop program computes from tensors, numbers and lists of them."""
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    return _Parser(func, bound.arguments).run()
