"""How a function over modules becomes a pass."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec

from tvm.ir import IRModule
from tvm.transform import Pass, module_pass

__all__ = ["graph_pass"]

P = ParamSpec("P")


def graph_pass(
    name: str, check: Callable[..., None] | None = None
) -> Callable[[Callable[Concatenate[IRModule, P], IRModule]], Callable[P, Pass]]:
    """Decorator of a function from a module and options to a module: what makes the pass.

    The result takes the options and gives the pass. Its docstring is the function's, which says
    what comes out.

    Parameters
    ----------
    check : called with the options when the pass is made, raises for those that it does not take.
    """

    def decorate(function: Callable[Concatenate[IRModule, P], IRModule]) -> Callable[P, Pass]:
        signature = inspect.signature(function)
        options = signature.replace(
            parameters=list(signature.parameters.values())[1:], return_annotation="Pass"
        )

        @functools.wraps(function)
        def make(*args: P.args, **kwargs: P.kwargs) -> Pass:
            options.bind(*args, **kwargs)
            if check is not None:
                check(*args, **kwargs)
            return module_pass(
                lambda mod, _: function(mod, *args, **kwargs), opt_level=0, name=name
            )

        make.__signature__ = options  # type: ignore[attr-defined]
        return make

    return decorate
