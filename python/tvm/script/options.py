"""Options of decorators."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from .reader import Reader

__all__ = ["decorator_options"]


def decorator_options(
    reader: Reader, node: ast.FunctionDef | ast.ClassDef, names: Sequence[str]
) -> dict[str, Any]:
    """The options in the decorator's parentheses, all but `name` of which are flags.

    Options of a decorator that is the program's own are those that it gave to ours.
    """
    options: dict[str, Any] = {
        name: value for name, value in reader.around.options.items() if name in names
    }
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            if reader.around.decorator and reader.construct(decorator.func) is None:
                continue
            if decorator.args:
                raise reader.error(decorator.args[0], "options of a decorator have names")
            found = reader.arguments(decorator, names, 0)
            for name, value in found.items():
                options[name] = reader.text(value) if name == "name" else reader.flag(value)
    return options
