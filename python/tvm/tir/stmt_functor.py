"""Visiting, rewriting and substitution over statements and expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _ffi_api
from .expr import Var, _number_like
from .functor import StmtExprMutator, StmtExprVisitor
from .statement import Stmt

__all__ = [
    "StmtExprMutator",
    "StmtExprVisitor",
    "ir_transform",
    "post_order_visit",
    "pre_order_visit",
    "renew_bindings",
    "renew_defs",
    "substitute",
]


def post_order_visit(stmt: Any, fvisit: Callable[[Any], Any]) -> None:
    """Call `fvisit` once on every node below an expression, statement or PrimFunc, leaves first."""

    def visit(item: Any) -> None:
        fvisit(item)

    _ffi_api.PostOrderVisit(stmt, visit)


def pre_order_visit(node: Any, fvisit: Callable[[Any], bool]) -> None:
    """Call `fvisit` on a node before those below it, which are visited if it returns True."""
    _ffi_api.PreOrderVisit(node, lambda item: bool(fvisit(item)))


def ir_transform(
    stmt: Stmt,
    preorder: Callable[[Any], Any] | None,
    postorder: Callable[[Any], Any] | None,
    only_enable: Sequence[str] | None = None,
) -> Stmt:
    """`stmt` rewritten on the way down by `preorder` and on the way up by `postorder`.

    A callback returns the replacement, or None to leave the node alone. `only_enable` lists the
    type keys, such as "tir.For", that the callbacks are called for.
    """
    return _ffi_api.IRTransform(stmt, preorder, postorder, list(only_enable or []))


def substitute(node: Any, vmap: Mapping[Var, Any]) -> Any:
    """`node` with variables replaced; also inside of the buffers it accesses.

    Raises
    ------
    TypeError : a replacement has another type than its variable.
    """
    return _ffi_api.Substitute(node, {var: _number_like(value, var) for var, value in vmap.items()})


def renew_defs(func: Any) -> Any:
    """A copy of a PrimFunc with variables and buffers of its own.

    Everything that the function defines is new: parameters, loops, axes of blocks, buffers and what
    their shapes bind. What it uses without a definition stays.
    """
    return _ffi_api.RenewDefs(func)


def renew_bindings(body: Stmt) -> Stmt:
    """A copy of a statement that binds variables of its own, for use beside the original.

    The same object when nothing is bound inside.
    """
    return _ffi_api.RenewBindings(body)
