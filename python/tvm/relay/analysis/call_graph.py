"""Which functions of a module call which."""

from __future__ import annotations

from tvm import error
from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..expr import Function
from ..expr_functor import computed_first, post_order_visit

__all__ = ["CallGraph"]


class CallGraph:
    """The functions of a module and the calls between them.

    Parameters
    ----------
    module : the module, which is not changed.
    """

    def __init__(self, module: IRModule) -> None:
        self.module = module
        self._calls: dict[str, dict[str, int]] = {}
        for gvar, func in module.functions.items():
            counts: dict[str, int] = {}

            def look(node: RelayExpr, counts: dict[str, int] = counts) -> None:
                if isinstance(node, GlobalVar):
                    counts.setdefault(str(node.name_hint), 0)

            if isinstance(func, Function):
                post_order_visit(func, look)
                for name in counts:
                    counts[name] = _mentions(func, name)
            self._calls[str(gvar.name_hint)] = counts

    def _name(self, var: str | GlobalVar) -> str:
        name = var if isinstance(var, str) else str(var.name_hint)
        if name not in self._calls:
            raise error.KeyError(f"relay.CallGraph: there is no function '{name}'")
        return name

    def ref_count(self, var: str | GlobalVar) -> int:
        """How often functions of the module use a function."""
        name = self._name(var)
        return sum(calls.get(name, 0) for calls in self._calls.values())

    def global_call_count(self, var: str | GlobalVar) -> int:
        """How often a function uses functions of the module."""
        return sum(self._calls[self._name(var)].values())

    def is_recursive(self, var: str | GlobalVar) -> bool:
        """Whether a function calls itself."""
        name = self._name(var)
        return name in self._calls[name]

    def __getitem__(self, var: str | GlobalVar) -> dict[str, int]:
        """The functions that a function uses, and how often."""
        return dict(self._calls[self._name(var)])

    def __str__(self) -> str:
        lines = []
        for name in sorted(self._calls):
            lines.append(f"Call graph node: {name}")
            for called, count in sorted(self._calls[name].items()):
                lines.append(f"  Call '{called}' {count} times")
        return "\n".join(lines)


def _mentions(func: Function, name: str) -> int:
    """How often the text of a function names another."""
    count = 0

    def look(node: RelayExpr) -> None:
        nonlocal count
        parts = computed_first(node)
        count += sum(isinstance(p, GlobalVar) and str(p.name_hint) == name for p in parts)

    post_order_visit(func, look)
    body = func.body
    if isinstance(body, GlobalVar) and str(body.name_hint) == name:
        count += 1
    return count
