"""Macros: functions whose body is read where they are called."""

from __future__ import annotations

import ast
import copy
import inspect
from typing import Any

from tvm import error

from .reader import Surroundings
from .source import Source

__all__ = ["Macro"]

_CALLERS = {"T.macro": "a T.prim_func", "R.macro": "an R.function"}


class Macro:
    """A function under ``@T.macro`` or ``@R.macro``.

    Parameters
    ----------
    dialect : the name of its decorator.
    hygienic : names in the body mean what they mean where the macro is defined; otherwise the names
        of the function that calls it come first.
    """

    def __init__(
        self,
        dialect: str,
        source: Source,
        definition: ast.FunctionDef,
        around: Surroundings,
        hygienic: bool,
    ) -> None:
        self.dialect = dialect
        self.source = source
        self.definition = definition
        self.around = around
        self.hygienic = hygienic
        # The object whose method the macro is, as its first argument.
        self.bound: tuple[Any, ...] = ()
        parameters = []
        arguments = definition.args
        plain = [*arguments.posonlyargs, *arguments.args]
        first_default = len(plain) - len(arguments.defaults)
        for position, argument in enumerate(plain):
            default: Any = inspect.Parameter.empty
            if position >= first_default:
                default = arguments.defaults[position - first_default]
            parameters.append(
                inspect.Parameter(
                    argument.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default
                )
            )
        if arguments.vararg is not None:
            parameters.append(
                inspect.Parameter(arguments.vararg.arg, inspect.Parameter.VAR_POSITIONAL)
            )
        for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults):
            default = value or inspect.Parameter.empty
            parameters.append(
                inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=default)
            )
        if arguments.kwarg is not None:
            parameters.append(inspect.Parameter(arguments.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
        self.signature = inspect.Signature(parameters)

    def __repr__(self) -> str:
        return f"{self.dialect}({self.definition.name})"

    def __get__(self, instance: Any, owner: type | None = None) -> Macro:
        if instance is None:
            return self
        method = copy.copy(self)
        method.bound = (instance,)
        return method

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        raise error.TypeError(
            f"the macro {self.definition.name} is read where {_CALLERS[self.dialect]} calls it; it "
            "does nothing when Python runs it"
        )
