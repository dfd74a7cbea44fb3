"""What the readers of all dialects share: names, constants, calls of constructs, attributes."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tvm.error
from tvm import ir, tir
from tvm.error import DiagnosticError

from .source import Source

__all__ = ["DIALECTS", "Reader", "Surroundings", "is_number"]

# The name by which a script calls each dialect, and the module it stands for.
DIALECTS: Mapping[str, str] = {"T": "tvm.script.tir", "I": "tvm.script.ir", "R": "tvm.script.relax"}

_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def is_number(value: Any) -> bool:
    """Whether a value is a plain number of Python."""
    return isinstance(value, bool | int | float)


class Surroundings:
    """What the text may refer to besides its own names.

    Parameters
    ----------
    constants : values by name that the scope around a decorated function gives; none for a text.
    dialects : dialect by the name the text has for it.
    functions : variables of the functions of the module the text is in.
    metadata : objects by type key that the text refers to; None when it has none.
    exact : arithmetic of numbers stays an expression of the program, as a printed text means it,
        instead of being computed, as a person means it.
    """

    def __init__(
        self,
        constants: Mapping[str, Any] | None = None,
        dialects: Mapping[str, str] | None = None,
        functions: Mapping[str, ir.GlobalVar] | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        exact: bool = True,
    ) -> None:
        self.constants = dict(constants or {})
        self.dialects = {name: name for name in DIALECTS} | dict(dialects or {})
        self.functions = dict(functions or {})
        self.metadata = metadata
        self.exact = exact


class Reader:
    """Reads parts of a syntax tree; nothing of the text is ever executed."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        self.source = source
        self.around = around
        self._scopes: list[dict[str, Any]] = [{}]

    # ---- errors ----

    def error(self, node: ast.AST, message: str, way_out: str = "") -> DiagnosticError:
        """The complaint about a part of the text."""
        return self.source.error(node, message, way_out)

    @contextmanager
    def blaming(self, node: ast.AST) -> Iterator[None]:
        """Errors of what is built here are errors about `node`."""
        try:
            yield
        except DiagnosticError:
            raise
        except (tvm.error.TVMError, TypeError, ValueError, OverflowError) as reason:
            # The first line of a message from C++ says it all.
            raise self.error(node, str(reason).strip().split("\n")[0]) from reason

    # ---- names ----

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names defined inside are unknown after it."""
        self._scopes.append({})
        try:
            yield
        finally:
            self._scopes.pop()

    def define(self, name: str, value: Any) -> None:
        """Let a name mean a value from here to the end of the scope."""
        self._scopes[-1][name] = value

    def lookup(self, node: ast.Name) -> Any:
        """What a name means.

        Raises
        ------
        DiagnosticError : nothing; the message has the names that come closest.
        """
        for scope in reversed(self._scopes):
            if node.id in scope:
                return scope[node.id]
        if node.id in self.around.constants:
            return self._constant(node, self.around.constants[node.id])
        known = {name for scope in self._scopes for name in scope} | set(self.around.constants)
        raise self.error(node, f"`{node.id}` is not defined here", _suggest(node.id, known))

    def is_defined(self, name: str) -> bool:
        """Whether a name of the script means something here."""
        return any(name in scope for scope in self._scopes)

    def _constant(self, node: ast.AST, value: Any) -> Any:
        """A value of the scope around the function, if it is one that can be part of a program."""
        if isinstance(value, list | tuple):
            return tuple(self._constant(node, item) for item in value)
        if hasattr(value, "__index__") and not isinstance(value, ir.PrimExpr | bool):
            return int(value)
        if value is None or isinstance(value, bool | float | str | ir.PrimExpr | tir.Buffer):
            return value
        raise self.error(
            node,
            f"a {type(value).__name__} of the scope around cannot be part of a script",
            "numbers, texts, tuples of them, expressions and buffers can",
        )

    # ---- constructs ----

    def construct(self, node: ast.AST) -> str | None:
        """``T.axis.remap`` for an expression that names it; None for one of another kind."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not parts or not isinstance(node, ast.Name) or self.is_defined(node.id):
            return None
        dialect = self.around.dialects.get(node.id)
        return None if dialect is None else ".".join([dialect, *reversed(parts)])

    def called(self, node: ast.AST) -> str | None:
        """The construct that an expression calls; None for an expression of another kind."""
        return self.construct(node.func) if isinstance(node, ast.Call) else None

    def arguments(
        self, node: ast.Call, names: Sequence[str], required: int, rest: bool = False
    ) -> dict[str, ast.expr]:
        """The arguments of a call by parameter.

        Parameters
        ----------
        names : parameters in order.
        required : how many of them need an argument.
        rest : positional arguments after the parameters are allowed; the caller reads them.
        """
        what = self.construct(node.func) or ast.unparse(node.func)
        if not rest and len(node.args) > len(names):
            raise self.error(
                node.args[len(names)],
                f"{what} takes {len(names)} arguments by position, this is one more",
                f"its arguments are {', '.join(names)}",
            )
        found: dict[str, ast.expr] = {}
        for name, value in zip(names, node.args):
            found[name] = value
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg not in names:
                raise self.error(
                    keyword,
                    f"{what} has no argument `{keyword.arg or '**'}`",
                    f"its arguments are {', '.join(names)}",
                )
            if keyword.arg in found:
                raise self.error(keyword, f"{what} is given `{keyword.arg}` twice")
            found[keyword.arg] = keyword.value
        for name in names[:required]:
            if name not in found:
                raise self.error(node, f"{what} needs the argument `{name}`")
        for value in found.values():
            if isinstance(value, ast.Starred):
                raise self.error(
                    value, f"{what}: * is not part of scripts; write the arguments out"
                )
        return found

    # ---- constants ----

    def plain(self, node: ast.AST) -> Any:
        """A constant: number, text, None, a tuple or list of them, a name of the scope around."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, bytes | complex):
            if node.value is Ellipsis:
                raise self.error(node, "`...` leaves something out that a script has to say")
            return node.value
        if isinstance(node, ast.Tuple | ast.List):
            return [self.plain(item) for item in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.plain(node.operand)
            if is_number(value):
                return -value
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            left, right = self.plain(node.left), self.plain(node.right)
            if is_number(left) and is_number(right):
                with self.blaming(node):
                    try:
                        return _ARITHMETIC[type(node.op)](left, right)
                    except ZeroDivisionError:
                        raise self.error(node, "division by zero") from None
        if isinstance(node, ast.Subscript):
            items = self.plain(node.value)
            index = self.integer(node.slice)
            if isinstance(items, tuple | list) and -len(items) <= index < len(items):
                return items[index]
            raise self.error(node, f"{_kind(node)} is no element of a tuple")
        if isinstance(node, ast.Name):
            value = self.lookup(node)
            if not isinstance(value, tir.Buffer | ir.PrimExpr):
                return value
        raise self.error(node, f"a constant is needed here, not {_kind(node)}")

    def text(self, node: ast.AST) -> str:
        """A text."""
        value = self.plain(node)
        if not isinstance(value, str):
            raise self.error(node, f"a text is needed here, not {value!r}")
        return value

    def integer(self, node: ast.AST) -> int:
        """An integer that is known now."""
        value = self.plain(node)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(node, f"an integer is needed here, not {value!r}")
        return value

    def flag(self, node: ast.AST) -> bool:
        """True or False."""
        value = self.plain(node)
        if not isinstance(value, bool):
            raise self.error(node, f"True or False is needed here, not {value!r}")
        return value

    # ---- attributes ----

    def attributes(self, node: ast.AST) -> dict[str, Any]:
        """Values by name."""
        if not isinstance(node, ast.Dict):
            raise self.error(node, f"a dictionary is needed here, not {_kind(node)}")
        entries = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                raise self.error(node, "** is not part of scripts; write the entries out")
            entries[self.text(key)] = self.attribute(value)
        return entries

    def attribute(self, node: ast.AST) -> Any:
        """A value of an attribute; plain constants stay what they are in Python."""
        if isinstance(node, ast.List | ast.Tuple):
            return [self.attribute(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            return {
                self.attribute(key): self.attribute(value)
                for key, value in zip(node.keys, node.values)
                if key is not None
            }
        if isinstance(node, ast.Subscript):
            return self.metadata(node)
        if isinstance(node, ast.Call):
            return self._made(node)
        if isinstance(node, ast.Name) and isinstance(self.lookup(node), ir.PrimExpr):
            return self.lookup(node)
        if isinstance(node, ast.Constant | ast.UnaryOp | ast.Name):
            return self.plain(node)
        return self.expression(node)

    def _made(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
            value = self.text(node.args[0])
            if value not in ("nan", "inf", "-inf"):
                raise self.error(node.args[0], f'float takes "nan", "inf" or "-inf", not {value!r}')
            return math.nan if value == "nan" else float(value)
        what = self.construct(node.func)
        with self.blaming(node):
            if what == "I.node":
                found = self.arguments(node, ("type_key", *(k.arg or "" for k in node.keywords)), 1)
                key = self.text(found.pop("type_key"))
                return ir.make_node(key, **{k: self.attribute(v) for k, v in found.items()})
            if what == "I.GlobalVar":
                return self.global_var(self.text(self.arguments(node, ("name",), 1)["name"]))
            if what == "T.dtype":
                return tvm.DataType(self.text(self.arguments(node, ("name",), 1)["name"]))
            if what == "T.target":
                found = self.arguments(node, ("spec", "host"), 1)
                host = self.text(found["host"]) if "host" in found else None
                return tvm.target.Target(self.text(found["spec"]), host=host)
        return self.expression(node)

    def expression(self, node: ast.AST) -> Any:
        """An expression of the dialect, where an attribute has one."""
        raise self.error(node, f"{_kind(node)} cannot be the value of an attribute here")

    def global_var(self, name: str) -> ir.GlobalVar:
        """The variable of a function of the module, or of one elsewhere."""
        return self.around.functions.get(name) or ir.GlobalVar(name)

    def metadata(self, node: ast.Subscript) -> Any:
        """``metadata["relax.expr.Constant"][0]``, an object kept out of the text."""
        inner = node.value
        if not (
            isinstance(inner, ast.Subscript)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == "metadata"
        ):
            raise self.error(node, f"a constant is needed here, not {_kind(node)}")
        if self.around.metadata is None:
            raise self.error(
                node,
                "the text refers to metadata but does not have it",
                "write the text with script(show_meta=True)",
            )
        kept = self.around.metadata.get(self.text(inner.slice))
        index = self.integer(node.slice)
        if kept is None or not 0 <= index < len(kept):
            raise self.error(node, "the metadata of the text has no such object")
        return kept[index]


def _kind(node: ast.AST) -> str:
    text = ast.unparse(node)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"


def _suggest(name: str, known: set[str]) -> str:
    # Imported here: only errors need it.
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 3)
    if close:
        return f"did you mean {' or '.join(f'`{item}`' for item in close)}?"
    return f"declare it before it is used, for instance `{name} = T.int32()`"
