"""What the readers of all dialects share: names, constants, calls of constructs, attributes."""

from __future__ import annotations

import ast
import types
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import tvm.error
from tvm import ir, tir
from tvm.error import DiagnosticError

from .source import Source

__all__ = ["DIALECTS", "Reader", "Surroundings", "dialect_of", "kind_of"]

# The name by which a script calls each dialect, and the module it stands for.
DIALECTS: Mapping[str, str] = {"T": "tvm.script.tir", "I": "tvm.script.ir", "R": "tvm.script.relax"}


def dialect_of(value: Any) -> str | None:
    """The dialect that a module is; None for anything else."""
    if not isinstance(value, types.ModuleType):
        return None
    return next((name for name, path in DIALECTS.items() if path == value.__name__), None)


class Surroundings:
    """What the text may refer to besides its own names.

    Parameters
    ----------
    constants : values by name that the scope around a decorated function gives; none for a text.
    dialects : dialect by the name the text has for it.
    functions : variables of the functions of the module the text is in.
    metadata : objects by type key that the text refers to; None when it has none.
    exact : the text is a printed one, or from elsewhere: arithmetic of numbers stays an expression
        of the program, and nothing of Python can be reached. Otherwise it is part of a program of
        Python's: what Python computes is computed while reading.
    """

    def __init__(
        self,
        constants: Mapping[str, Any] | None = None,
        dialects: Mapping[str, str] | None = None,
        functions: Mapping[str, ir.GlobalVar] | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        exact: bool = True,
    ) -> None:
        self.constants: Mapping[str, Any] = {} if constants is None else constants
        self.dialects = {name: name for name in DIALECTS} | dict(dialects or {})
        self.functions = dict(functions or {})
        self.metadata = metadata
        self.exact = exact
        # What reads the function although its text does not name it, and the options that it was
        # given: a decorator of the program's own, which calls ours.
        self.decorator = ""
        self.options: dict[str, Any] = {}
        # The name of the class that is read, which stands for the module inside of it.
        self.module_name = ""
        # Functions of the module by name as they stand in the text, and what the readers of a
        # dialect remember of them.
        self.definitions: dict[str, ast.FunctionDef] = {}
        self.signatures: dict[str, Any] = {}


class Reader(ABC):
    """Reads parts of a syntax tree: names, scopes, calls, attributes."""

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
        except RecursionError:
            raise
        except Exception as reason:
            if self.around.exact:
                raise
            # A function of the program around failed when the text called it.
            raise self.error(node, f"{type(reason).__name__}: {reason}") from reason

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
            return self.around.constants[node.id]
        known = {name for scope in self._scopes for name in scope} | set(self.around.constants)
        raise self.error(node, f"`{node.id}` is not defined here", _suggest(node.id, known))

    def is_defined(self, name: str) -> bool:
        """Whether a name of the script means something here."""
        return any(name in scope for scope in self._scopes)

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
        place = self.around.constants.get(node.id)
        # Packages may stand before a dialect, as in tvm.script.tir.prim_func.
        while dialect is None and isinstance(place, types.ModuleType) and len(parts) > 1:
            place = getattr(place, parts.pop(), None)
            dialect = dialect_of(place)
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

    @abstractmethod
    def value(self, node: ast.AST) -> Any:
        """The value of an expression."""

    def plain(self, node: ast.AST) -> Any:
        """A constant: number, text, None, a tuple or list of them, a name of the scope around."""
        value = self.value(node)
        if isinstance(value, tir.Buffer | ir.PrimExpr):
            raise self.error(node, f"a constant is needed here, not {kind_of(node)}")
        return value

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
            raise self.error(node, f"a dictionary is needed here, not {kind_of(node)}")
        entries = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                raise self.error(node, "** is not part of scripts; write the entries out")
            entries[self.text(key)] = self.attribute(value)
        return entries

    def attribute(self, node: ast.AST) -> Any:
        """A value of an attribute; plain constants stay what they are in Python."""
        return self.value(node)

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
            raise self.error(node, f"a constant is needed here, not {kind_of(node)}")
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


def kind_of(node: ast.AST) -> str:
    """A part of the text in a message."""
    text = ast.unparse(node)
    return f"`{text if len(text) <= 40 else text[:37] + '...'}`"


def _suggest(name: str, known: set[str]) -> str:
    # Imported here: only errors need it.
    import difflib

    close = difflib.get_close_matches(name, sorted(known), 3)
    if close:
        return f"did you mean {' or '.join(f'`{item}`' for item in close)}?"
    return f"declare it before it is used, for instance `{name} = T.int32()`"
