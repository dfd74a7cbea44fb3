"""Functions of other compilers, on their way into a network's library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir import IRModule

from .graph_pass import graph_pass

__all__ = ["EXTERN_MODULES", "AttachExternModules"]

EXTERN_MODULES = "external_mods"
"""Attribute of a module: the runtime modules that its library is linked with."""


@graph_pass("AttachExternModules")
def AttachExternModules(mod: IRModule, extern_modules: Sequence[Any]) -> IRModule:
    """The module with functions of other compilers, which ``relax.build`` links its library with.

    Parameters
    ----------
    extern_modules : those of ``relax.frontend.nn``, which are compiled here, or runtime modules.
    """
    known = mod.attrs.get(EXTERN_MODULES, None) if mod.attrs is not None else None
    loaded = [m.load() if hasattr(m, "load") else m for m in extern_modules]
    return mod.with_attr(EXTERN_MODULES, [*(known or []), *loaded])
