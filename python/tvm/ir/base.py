"""Comparison, hashing and storage of object graphs."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tvm._ffi
from tvm import error
from tvm.runtime import Object, ObjectPath, _ffi_node_api, convert

from . import _ffi_api

__all__ = [
    "KeepsSpan",
    "Node",
    "SourceName",
    "Span",
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "load_json",
    "make_node",
    "save_json",
    "structural_equal",
    "structural_hash",
    "with_span",
]

Node = Object
F = TypeVar("F", bound=Callable[..., Any])


class SourceName(str):
    """Name of a source text, usually the path of a file."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)


@tvm._ffi.register_object("Span")
class Span(Object):
    """A stretch of source text; lines and columns count from 1 and the ends are included."""

    def __init__(
        self, source_name: str, line: int, end_line: int, column: int, end_column: int
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Span, str(source_name), line, end_line, column, end_column
        )

    @property
    def source_name(self) -> SourceName:
        return SourceName(_ffi_node_api.GetField(self, "source_name"))


class KeepsSpan:
    """Base of node classes: a constructor argument `span` becomes the node's span."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        init = vars(cls).get("__init__")
        if init is not None and "span" in inspect.signature(init).parameters:
            cls.__init__ = _storing_span(init)  # type: ignore[method-assign]


def _storing_span(init: Callable[..., None]) -> Callable[..., None]:
    find = _argument_span(init)

    @functools.wraps(init)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        span = find((self, *args), kwargs)
        if span is not None:
            _ffi_api.SetSpan(self, span)

    return construct


def with_span(function: F) -> F:
    """Decorator: the argument `span` of a function becomes the span of the node it returns.

    The node may be one that was given, such as an operand, so a copy gets the span; variables,
    which are known by identity, are returned as they are.
    """
    find = _argument_span(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        span = find(args, kwargs)
        return result if span is None else _ffi_api.WithSpan(result, span)

    return call  # type: ignore[return-value]


def _argument_span(
    function: Callable[..., Any],
) -> Callable[[tuple[Any, ...], dict[str, Any]], Span | None]:
    """How to find the argument `span` among those of a call, given by position or by name."""
    parameters = inspect.signature(function).parameters
    if "span" not in parameters:
        return lambda args, kwargs: None
    by_name = parameters["span"].kind is inspect.Parameter.KEYWORD_ONLY
    position = sys.maxsize if by_name else list(parameters).index("span")
    return lambda args, kwargs: args[position] if len(args) > position else kwargs.get("span")


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two graphs are equal up to the renaming of bound variables.

    Parameters
    ----------
    map_free_vars : let free variables correspond too, each to one of the other side; otherwise a
        free variable equals only itself.
    """
    return _ffi_node_api.StructuralEqual(_graph(lhs), _graph(rhs), map_free_vars)


def _graph(value: Any) -> Any:
    """A Python value as the graph it stands for: numbers in lists and tables are literals."""
    return value if isinstance(value, Object) else convert(value)


def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False
) -> tuple[ObjectPath, ObjectPath] | None:
    """The place of the first difference in either graph, or None when they are equal."""
    found = _ffi_node_api.GetFirstStructuralMismatch(_graph(lhs), _graph(rhs), map_free_vars)
    return None if found is None else (found[0], found[1])


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Check that two graphs are equal.

    Raises
    ------
    ValueError : they are not; the message has the places of the first difference and both texts, in
        which the places are underlined if that are texts of programs.
    """
    found = _ffi_node_api.GetFirstStructuralMismatch(_graph(lhs), _graph(rhs), map_free_vars)
    if found is not None:
        left, right, reason = found
        raise error.ValueError(
            f"StructuralEqual check failed, caused by lhs at {left}:\n{_shown(lhs, left)}\n"
            f"and rhs at {right}:\n{_shown(rhs, right)}\n({reason})"
        )


def _shown(graph: Any, place: ObjectPath) -> str:
    # Every kind of program has a text with marks; of other graphs there is only a text.
    script = getattr(graph, "script", None)
    return str(graph) if script is None else script(path_to_underline=[place])


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that agrees with `structural_equal`; the same in every process for graphs without
    free variables (or with `map_free_vars`)."""
    return _ffi_node_api.StructuralHash(_graph(node), map_free_vars)


def save_json(node: Any) -> str:
    """A graph as JSON text; an object used twice is written once."""
    return _ffi_node_api.SaveJSON(node)


def load_json(json_str: str) -> Any:
    """The graph a JSON text describes.

    Raises
    ------
    ValueError : the text is not JSON or does not describe objects this build knows.
    """
    return _ffi_node_api.LoadJSON(json_str)


def make_node(type_key: str, **fields: Any) -> Any:
    """A node of a type with the given fields; those left out keep their defaults.

    >>> tvm.ir.make_node("IntImm", dtype="int32", value=3)
    3

    Of "DictAttrs" the fields are the attributes.
    """
    if type_key == "DictAttrs" and set(fields) != {"dict"}:
        fields = {"dict": fields}
    pairs = [part for item in fields.items() for part in item]
    return _ffi_node_api.MakeNode(type_key, *pairs)
