"""Values of expressions in scripts."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tvm
from tvm import ir, tir
from tvm.tir import _ffi_api
from tvm.tir.buffer import strided_index

from .exact import BINARY, BITWISE, EXACT, exactly
from .ir_builder import ir as builder_ir
from .ir_builder import tir as T
from .ir_builder.base import IRBuilder
from .ir_builder.tir.buffers import ScalarType
from .ir_builder.tir.expressions import dtype_name, meta_var
from .ir_builder.tir.literals import expression, interval, is_number
from .ir_builder.tir.statements import view_of_memory
from .macro import Macro
from .reader import Reader, Surroundings, kind_of
from .source import Source

__all__ = ["OPERATORS", "Dialect", "Evaluator", "unwrapped"]

OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}
_COMPARISONS = frozenset({ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE})
# What a text may read off values, by their class. Nothing else of Python can be reached from one.
_ATTRIBUTES: tuple[tuple[type, frozenset[str]], ...] = (
    (tir.Buffer, frozenset({"data", "shape", "strides", "elem_offset", "dtype", "access_ptr"})),
    (tir.IterVar, frozenset({"var", "dom", "dtype"})),
    (ir.PrimExpr, frozenset({"dtype"})),
    (ir.Range, frozenset({"min", "extent"})),
)
_BUILTINS: Mapping[str, Any] = {
    "abs": abs, "bool": bool, "float": float, "int": int, "len": len, "max": max, "min": min,
}  # fmt: skip


class Dialect:
    """What ``T`` or ``I`` stands for in a script: its constructs by name."""

    def __init__(self, letter: str, members: Callable[[str], Any]) -> None:
        self.letter = letter
        self.members = members


class ModuleNames:
    """``cls``, or the name of the class: the functions of the module by name."""


class Evaluator(Reader):
    """Finds the values of expressions."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        super().__init__(source, around)
        self._lets: dict[tuple[str, str], tir.Var] = {}
        self._dialects = {
            "T": Dialect("T", self._construct_of_programs),
            "I": Dialect("I", self._construct_of_modules),
            "R": Dialect("R", lambda name: None),
        }

    # ---- values of a kind ----

    def expression(self, node: ast.AST) -> Any:
        """An expression; a plain number is a literal of int32, float32 or bool."""
        return self._literal(node, self.value(node))

    def expr(self, node: ast.AST, like: tir.PrimExpr | None = None) -> tir.PrimExpr:
        """An expression; a plain number takes the type of `like`."""
        value = self.value(node)
        with self.blaming(node):
            return expression(unwrapped(value), like)

    def _literal(self, node: ast.AST, value: Any) -> tir.PrimExpr:
        with self.blaming(node):
            return expression(unwrapped(value))

    def expr_list(self, node: ast.AST) -> list[tir.PrimExpr]:
        """The expressions of a list or tuple."""
        value = self.value(node)
        if not isinstance(value, list | tuple):
            raise self.error(node, f"a list is needed here, not {kind_of(node)}")
        return [self._literal(node, item) for item in value]

    def dtype(self, node: ast.AST) -> str:
        """The name of an element type, as a text or as ``T.float32``."""
        with self.blaming(node):
            return dtype_name(self.value(node))

    def make_var(self, name: str, kind: ast.AST) -> tir.Var:
        """A variable of a type such as ``T.int32`` or ``T.handle("float32", "shared")``."""
        return self.variable(name, kind, self.value(kind))

    def variable(self, name: str, node: ast.AST, kind: Any) -> tir.Var:
        """A variable of a type that is known already."""
        if isinstance(kind, ir.Type):
            return tir.Var(name, kind)
        made = kind() if isinstance(kind, ScalarType) else kind
        if not isinstance(made, tir.Var):
            raise self.error(
                node,
                f"{kind_of(node)} is not a type of variables",
                'there are T.int32 and the like, T.handle, and T.handle("float32", "shared")',
            )
        return IRBuilder.name(name, made)

    # ---- forms ----

    def value(self, node: ast.AST) -> Any:
        """The value of an expression: a node of the program, or a value of Python."""
        form = _FORMS.get(type(node))
        if form is None:
            raise self.error(node, f"{kind_of(node)} is not an expression of scripts")
        return form(self, node)

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes | complex):
            raise self.error(node, f"{kind_of(node)} is not an expression of scripts")
        if node.value is Ellipsis:
            raise self.error(node, "`...` leaves something out that a script has to say")
        return node.value

    def _name(self, node: ast.Name) -> Any:
        name = node.id
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        if name in self.around.dialects:
            return self._dialects[self.around.dialects[name]]
        if name == "cls" or name == self.around.module_name:
            return ModuleNames()
        if name in self.around.constants:
            return self.around.constants[name]
        builtin = self._builtin(name)
        if builtin is None and name in self.around.functions:
            # Functions of the module by their bare names, as scripts of 2022 have them.
            return self.around.functions[name]
        return self.lookup(node) if builtin is None else builtin

    def _builtin(self, name: str) -> Any:
        if self.around.exact:
            return _BUILTINS.get(name)
        return getattr(builtins, name, None)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> Any:
        items: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                items += self._python(item).value(item.value)
            else:
                items.append(self.value(item))
        return tuple(items) if isinstance(node, ast.Tuple) else items

    def _table(self, node: ast.Dict) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        for key, item in zip(node.keys, node.values):
            if key is None:
                entries |= self._python(item).value(item)
            else:
                entries[self.value(key)] = self.value(item)
        return entries

    def _python(self, node: ast.AST) -> Evaluator:
        """This, where the text is part of a program of Python's; elsewhere the form is refused."""
        if self.around.exact:
            raise self.error(
                node, f"{kind_of(node)} is not part of scripts; write out what it stands for"
            )
        return self

    def _chain(self, node: ast.BinOp) -> Any:
        # Operators group to the left, so a long sum is a deep tree; it is read without recursion.
        spine = [node]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        left = self.value(spine[-1].left)
        for link in reversed(spine):
            left = self._binary(link, type(link.op), left, self.value(link.right))
        return left

    def _binary(self, node: ast.AST, kind: type[ast.AST], left: Any, right: Any) -> Any:
        left, right = unwrapped(left), unwrapped(right)
        with self.blaming(node):
            if not self.around.exact:
                left, right = _operand(left), _operand(right)
                # Python would turn `1 < i` round, into `i > 1`.
                if kind in _COMPARISONS and is_number(left) and isinstance(right, ir.PrimExpr):
                    left = expression(left, right)
                return OPERATORS[kind](left, right)
            if kind not in BINARY and kind not in BITWISE:
                raise self.error(node, f"the operator of {kind_of(node)} is not part of scripts")
            # Names have numbers only if the scope around gives them.
            named = isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name)
            if named and is_number(left) and is_number(right) and kind in BINARY:
                try:
                    return OPERATORS[kind](left, right)
                except ZeroDivisionError:
                    raise self.error(node, "division by zero") from None
            return exactly(kind, left, right)

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = unwrapped(self.value(node.operand))
        with self.blaming(node):
            if isinstance(node.op, ast.USub):
                return -value if is_number(value) else _ffi_api._OpNeg(expression(value))
            if isinstance(node.op, ast.UAdd):
                return value
            if not self.around.exact and not isinstance(_operand(value), ir.PrimExpr):
                return not value if isinstance(node.op, ast.Not) else ~value
            operand = expression(value)
            if isinstance(node.op, ast.Not):
                return tir.Not(operand)
            return _ffi_api.bitwise_not(operand)

    def _logic(self, node: ast.BoolOp) -> Any:
        conjunction = isinstance(node.op, ast.And)
        result = _operand(unwrapped(self.value(node.values[0])))
        for operand in node.values[1:]:
            if not self.around.exact and not isinstance(result, ir.PrimExpr):
                if bool(result) != conjunction:
                    return result
                result = _operand(unwrapped(self.value(operand)))
                continue
            with self.blaming(node):
                result = _connect(conjunction, result, _operand(unwrapped(self.value(operand))))
        return result

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = None
        for op, right_node in zip(node.ops, node.comparators):
            right = self.value(right_node)
            test = self._binary(node, type(op), left, right)
            if result is None:
                result = test
            elif isinstance(result, ir.PrimExpr) or isinstance(test, ir.PrimExpr):
                with self.blaming(node):
                    result = _connect(True, result, test)
            else:
                result = result and test
            left = right
        return result

    def _choice(self, node: ast.IfExp) -> Any:
        if not self.around.exact:
            test = _operand(unwrapped(self.value(node.test)))
            if not isinstance(test, ir.PrimExpr):
                return self.value(node.body if test else node.orelse)
        raise self.error(
            node,
            "`a if c else b` is not part of tensor programs",
            "T.if_then_else(c, a, b) evaluates one of them, T.Select(c, a, b) both",
        )

    # ---- parts ----

    def _subscript(self, node: ast.Subscript) -> Any:
        if self._is_metadata(node):
            return self.metadata(node)
        base = unwrapped(self.value(node.value))
        if base is T.Buffer:
            return self._declared_by_subscript(node)
        buffer = self._buffer(base)
        if buffer is None:
            return self._item(node, base)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        self._check_axes(node, buffer, items)
        slices = [item for item in items if isinstance(item, ast.Slice)]
        with self.blaming(node):
            if slices and all(item.step is None for item in slices):
                ranges = [self._range(item, end) for item, end in zip(items, buffer.shape)]
                return tir.BufferRegion(buffer, ranges)
            return tir.BufferLoad(buffer, self.indices(node, buffer))

    def _declared_by_subscript(self, node: ast.Subscript) -> tir.Buffer:
        """``T.Buffer[shape, dtype, ...]``, or of a shape alone: how annotations were spelled."""
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        values = [unwrapped(self.value(item)) for item in given]
        with self.blaming(node):
            if len(values) == 1 or not isinstance(values[1], str):
                return T.Buffer(values[0] if len(values) == 1 else values)
            return T.Buffer(*values)

    def _is_metadata(self, node: ast.Subscript) -> bool:
        inner = node.value
        return (
            isinstance(inner, ast.Subscript)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == "metadata"
        )

    def _buffer(self, base: Any) -> tir.Buffer | None:
        """The buffer that a value is indexed as; None for values that are not."""
        if isinstance(base, tir.Buffer):
            return base
        return view_of_memory(base) if isinstance(base, tir.Var) else None

    def buffer_of(self, node: ast.AST, value: Any) -> tir.Buffer:
        """The buffer that a value is indexed as."""
        buffer = self._buffer(unwrapped(value))
        if buffer is None:
            raise self.error(
                node,
                f"{kind_of(node)} is not a buffer",
                "declare a buffer over a pointer with T.Buffer(shape, dtype, data=pointer)",
            )
        return buffer

    def _item(self, node: ast.Subscript, base: Any) -> Any:
        if isinstance(base, ir.PrimExpr):
            self.buffer_of(node.value, base)
        if self.around.exact and not isinstance(base, tuple | list | T.axis | ir.Array):
            return self.buffer_of(node.value, base)
        index = self._python_index(node.slice)
        with self.blaming(node):
            try:
                return base[index]
            except (IndexError, KeyError) as reason:
                raise self.error(
                    node, f"{kind_of(node.slice)} is no position in {kind_of(node.value)}"
                ) from reason

    def _python_index(self, node: ast.AST) -> Any:
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if end is None else self.value(end) for end in ends))
        if isinstance(node, ast.Tuple):
            return tuple(self._python_index(item) for item in node.elts)
        return unwrapped(self.value(node))

    def _check_axes(self, node: ast.AST, buffer: tir.Buffer, items: list[ast.expr]) -> None:
        if len(items) != len(buffer.shape):
            raise self.error(
                node, f"`{buffer.name}` has {len(buffer.shape)} axes, here are {len(items)} indices"
            )

    def _range(self, node: ast.AST, end: tir.PrimExpr) -> ir.Range:
        if not isinstance(node, ast.Slice):
            point = self.expr(node, like=None if self.around.exact else end)
            return ir.Range.from_min_extent(point, tir.const(1, str(point.dtype)))
        low = 0 if node.lower is None else unwrapped(self.value(node.lower))
        return interval(low, end if node.upper is None else unwrapped(self.value(node.upper)))

    def indices(self, node: ast.Subscript, buffer: tir.Buffer) -> list[Any]:
        """The indices in the brackets, slices among them; ``[()]`` for a buffer without axes."""
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        self._check_axes(node, buffer, items)
        places: list[Any] = []
        for item, extent in zip(items, buffer.shape):
            if isinstance(item, ast.Slice):
                places.append(self._vector(item, extent))
            else:
                # A person's plain number is an index of the buffer's type, a printer's is int32.
                places.append(self.expr(item, like=None if self.around.exact else extent))
        return places

    def _vector(self, node: ast.Slice, end: tir.PrimExpr) -> tir.PrimExpr:
        """``start:stop:step`` as the vector of these indices."""
        domain = self._range(ast.Slice(node.lower, node.upper, None), end)
        step = 1 if node.step is None else self.integer(node.step)
        with self.blaming(node):
            return strided_index(domain.min, domain.extent, step)

    def _attribute(self, node: ast.Attribute) -> Any:
        base = self.value(node.value)
        if isinstance(base, Dialect):
            return self._member(node, base)
        if isinstance(base, ModuleNames):
            return self.global_var(node.attr)
        if isinstance(base, tir.Var):
            # The name of an allocation stands for the memory, and for the buffer that it is.
            base = (None if node.attr == "dtype" else view_of_memory(base)) or base
        if self.around.exact and not _is_open(base, node.attr):
            raise self.error(
                node,
                f"{kind_of(node.value)} has no `{node.attr}` in scripts",
                "a buffer has data, shape, strides, elem_offset and dtype",
            )
        try:
            found = getattr(base, node.attr)
        except AttributeError:
            raise self.error(
                node, f"{kind_of(node.value)}, a {type(base).__name__}, has no `{node.attr}`"
            ) from None
        sequence = node.attr in ("shape", "strides") and not isinstance(base, ir.RelayExpr)
        return tuple(found) if sequence else found

    def _member(self, node: ast.Attribute, dialect: Dialect) -> Any:
        found = None if node.attr.startswith("__") else dialect.members(node.attr)
        if found is None:
            raise self.unknown(node, f"{dialect.letter}.{node.attr}")
        return found

    def _construct_of_programs(self, name: str) -> Any:
        if self.around.exact and name in EXACT:
            return EXACT[name]
        return getattr(T, name, None)

    def _construct_of_modules(self, name: str) -> Any:
        if name == "node":
            return ir.make_node
        if name == "GlobalVar":
            return self.global_var
        if name == "Range":
            return ir.Range
        return getattr(builder_ir, name, None) if name in builder_ir.__all__ else None

    def unknown(self, node: ast.AST, what: str) -> Exception:
        """The complaint about a construct that there is not."""
        import difflib

        known = sorted({*T.intrinsics(), *dir(T)})
        close = difflib.get_close_matches(what.split(".", 1)[1], known, 1)
        way_out = f"did you mean `{what[0]}.{close[0]}`?" if close else ""
        return self.error(node, f"there is no construct `{what}`", way_out)

    # ---- calls ----

    def _call(self, node: ast.Call) -> Any:
        what = self.called(node)
        if what is not None:
            made = self.special(what, node)
            if made is not None:
                return made
        return self.call(node, self._callee(node), what)

    def call(self, node: ast.Call, callee: Any, what: str | None) -> Any:
        """What calling something with the arguments in the text gives.

        Parameters
        ----------
        what : the construct that is called, if it is one.
        """
        args: list[Any] = []
        for item in node.args:
            if isinstance(item, ast.Starred):
                args += self._python(item).value(item.value)
            else:
                args.append(self.value(item))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                named |= self._python(keyword).value(keyword.value)
            elif keyword.arg in named:
                raise self.error(
                    keyword, f"{ast.unparse(node.func)} is given `{keyword.arg}` twice"
                )
            else:
                named[keyword.arg] = self.value(keyword.value)
        with self.blaming(node):
            if isinstance(callee, ir.GlobalVar):
                return self.call_function(callee, args, **named)
            if isinstance(callee, Macro):
                return self.expand(
                    callee, node, callee.signature.bind(*callee.bound, *args, **named)
                )
            try:
                return callee(*args, **named)
            except TypeError as reason:
                # Python calls a construct by the name of the function behind it.
                own = f"{getattr(callee, '__name__', '')}() "
                if what is None or not str(reason).startswith(own):
                    raise
                raise self.error(node, f"{what}: {str(reason)[len(own) :]}") from None

    def _callee(self, node: ast.Call) -> Any:
        func = node.func
        if isinstance(func, ast.Name) and not self._is_known(func.id):
            raise self.error(
                func,
                f"`{func.id}` cannot be called in a script",
                "T.exp and the like compute; cls.name calls a function of the module",
            )
        callee = self.value(func)
        untold = self.around.exact and isinstance(func, ast.Lambda | ast.Subscript)
        if untold or not (callable(callee) or isinstance(callee, ir.GlobalVar)):
            raise self.error(
                func,
                f"{kind_of(func)} cannot be called in a script",
                "T.exp and the like compute; cls.name calls a function of the module",
            )
        return callee

    def _is_known(self, name: str) -> bool:
        return (
            self.is_defined(name)
            or name in self.around.constants
            or self._builtin(name) is not None
            or name in (self.around.module_name, "cls")
        )

    def call_function(self, callee: ir.GlobalVar, args: list[Any], dtype: Any = None) -> Any:
        """A call of a function of the module."""
        values = [expression(arg) for arg in args]
        kind = self._result_dtype(callee) if dtype is None else dtype_name(dtype)
        return tir.Call(kind, callee, values)

    def _result_dtype(self, callee: ir.GlobalVar) -> str:
        """What the definition of a function says that it gives: "void" if it says nothing."""
        definition = self.around.definitions.get(str(callee.name_hint))
        if definition is None or definition.returns is None:
            return "void"
        result = self.value(definition.returns)
        return str(result().dtype) if isinstance(result, ScalarType) else "void"

    def special(self, what: str, node: ast.Call) -> Any:
        """What a construct gives that introduces a name or depends on where it stands; None for
        others."""
        if what == "T.Let":
            return self._let(node)
        if what == "I.GlobalVar":
            return self.global_var(self.text(self.arguments(node, ("name",), 1)["name"]))
        return None

    def bind_macro(self, macro: Macro, bound: inspect.BoundArguments, caller: Evaluator) -> None:
        """Make the names known that the body of a macro may use, its parameters among them."""
        if not macro.hygienic:
            self._scopes = [dict(scope) for scope in caller._scopes]
        self._scopes.append({})
        for name, parameter in macro.signature.parameters.items():
            if name in bound.arguments:
                value = bound.arguments[name]
            elif isinstance(parameter.default, ast.AST):
                value = self.value(parameter.default)
            else:
                value = () if parameter.kind is inspect.Parameter.VAR_POSITIONAL else {}
            self.define(name, unwrapped(value))

    def expand(self, macro: Macro, node: ast.Call, bound: inspect.BoundArguments) -> Any:
        """Read the body of a macro here; what it returns, if it does."""
        raise self.error(node, f"{macro!r} stands on a line of its own in a tensor program")

    def _let(self, node: ast.Call) -> tir.PrimExpr | None:
        """``T.Let(x, value, body)``, in which `x` is a new name; None for the other form."""
        if len(node.args) < 3:
            return None
        found = self.arguments(node, ("var", "value", "body", "type"), 3)
        name = found["var"]
        if not isinstance(name, ast.Name):
            raise self.error(name, f"the name of a variable is needed, not {kind_of(name)}")
        value = self.expr(found["value"])
        with self.scope():
            if "type" in found:
                var = self.make_var(name.id, found["type"])
            else:
                var = tir.Var(name.id, str(value.dtype))
            if self.around.exact:
                # An expression that a program has twice is printed twice, with one variable.
                var = self._lets.setdefault((name.id, str(var.dtype)), var)
            self.define(name.id, var)
            return tir.Let(var, value, self.expr(found["body"]))

    # ---- Python's own ----

    def _lambda(self, node: ast.Lambda) -> Callable[..., Any]:
        arguments = node.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
            raise self.error(node, "a lambda of a script has plain parameters")
        names = [argument.arg for argument in arguments.args]
        known = [dict(scope) for scope in self._scopes]

        def call(*values: Any) -> Any:
            if len(values) != len(names):
                raise TypeError(f"the lambda takes {len(names)} arguments, got {len(values)}")
            outer, self._scopes = self._scopes, [*known, dict(zip(names, values))]
            try:
                return self.value(node.body)
            finally:
                self._scopes = outer

        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, positional) for name in names]
        )
        return call

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> list[Any]:
        self._python(node)
        return [self.value(node.elt) for _ in self._generate(node.generators)]

    def _dict_comprehension(self, node: ast.DictComp) -> dict[Any, Any]:
        self._python(node)
        found = self._generate(node.generators)
        return {self.value(node.key): self.value(node.value) for _ in found}

    def _generate(self, generators: list[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield
            return
        first, rest = generators[0], generators[1:]
        with self.blaming(first.iter):
            items = list(unwrapped(self.value(first.iter)))
        for item in items:
            with self.scope():
                self.unpack(first.target, item)
                if all(self.value(test) for test in first.ifs):
                    yield from self._generate(rest)

    def unpack(self, target: ast.AST, value: Any) -> None:
        """Let the names of a target mean the parts of a value."""
        if isinstance(target, ast.Name):
            self.define(target.id, value)
            return
        if not isinstance(target, ast.Tuple | ast.List):
            raise self.error(target, f"{kind_of(target)} cannot be assigned to")
        items = list(value)
        if len(items) != len(target.elts):
            raise self.error(target, f"{len(target.elts)} names, but {len(items)} values")
        for name, item in zip(target.elts, items):
            self.unpack(name, item)

    def _text(self, node: ast.JoinedStr) -> str:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                spec = "" if part.format_spec is None else self.value(part.format_spec)
                value = self._python(node).value(part.value)
                parts.append(format(repr(value) if part.conversion == ord("r") else value, spec))
            else:
                parts.append(self.value(part))
        return "".join(parts)

    def _named(self, node: ast.NamedExpr) -> Any:
        value = self._python(node).value(node.value)
        self.unpack(node.target, value)
        return value


def unwrapped(value: Any) -> Any:
    """A value without the mark that it stays what it is."""
    return value.value if isinstance(value, meta_var) else value


def _operand(value: Any) -> Any:
    """A value that Python's operators build expressions of."""
    if isinstance(value, tir.BufferRegion):
        return value.asobject()
    return value.var if isinstance(value, tir.IterVar) else value


def _connect(conjunction: bool, left: Any, right: Any) -> tir.PrimExpr:
    a, b = expression(left), expression(right)
    lanes = max(tvm.DataType(a.dtype).lanes, tvm.DataType(b.dtype).lanes)
    if lanes == 1:
        return (tir.And if conjunction else tir.Or)(a, b)
    # Lanes are combined one by one.
    wide = [tir.Broadcast(x, lanes) if tvm.DataType(x.dtype).lanes == 1 else x for x in (a, b)]
    return T.intrinsic("bitwise_and" if conjunction else "bitwise_or")(*wide)


def _is_open(base: Any, name: str) -> bool:
    return any(isinstance(base, kind) and name in names for kind, names in _ATTRIBUTES) or (
        base is T.axis and not name.startswith("_")
    )


_FORMS: Mapping[type[ast.AST], Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Tuple: Evaluator._sequence,
    ast.List: Evaluator._sequence,
    ast.Set: Evaluator._sequence,
    ast.Dict: Evaluator._table,
    ast.BinOp: Evaluator._chain,
    ast.UnaryOp: Evaluator._unary,
    ast.BoolOp: Evaluator._logic,
    ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._choice,
    ast.Subscript: Evaluator._subscript,
    ast.Attribute: Evaluator._attribute,
    ast.Call: Evaluator._call,
    ast.Lambda: Evaluator._lambda,
    ast.ListComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.DictComp: Evaluator._dict_comprehension,
    ast.JoinedStr: Evaluator._text,
    ast.NamedExpr: Evaluator._named,
}
