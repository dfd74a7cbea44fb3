"""The library of programs in relay: lists, options, trees, and functions over them."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import tvm
from tvm import error
from tvm.ir import IRModule

from .parser import parse

__all__ = ["Prelude"]

_LIBRARY = pathlib.Path(__file__).parent / "std"


@tvm._ffi.register_func("relay.ImportFromStd")
def _import_from_std(mod: IRModule, name: str) -> None:
    files = {path.name: path for path in _LIBRARY.glob("*.rly")}
    if name not in files:
        raise error.ValueError(
            f"relay: the library has no file '{name}'; it has {', '.join(sorted(files))}"
        )
    text = files[name].read_text()
    own = set(re.findall(r"^(?:type |def @)(\w+)", text, re.MULTILINE))
    # What the file defines is read from it, whatever of it is there already.
    others = IRModule(
        {gv: f for gv, f in mod.functions.items() if str(gv.name_hint) not in own},
        type_definitions={n: d for n, d in mod.type_definitions.items() if n not in own},
    )
    found = parse(text, name, others)
    for header in found.get_global_type_vars():
        if str(header.name_hint) not in mod.type_definitions:
            mod[header] = found[header]
    for gvar, func in found.functions.items():
        if gvar not in mod:
            mod.update_func(gvar, func)


class Prelude:
    """The library in a module, which gets it if it has not.

    Functions are attributes: ``Prelude(mod).map`` is the variable of "map". Types and constructors
    are those of ``mod.get_type``.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        if "List" not in self.mod.type_definitions:
            self.mod.import_from_std("prelude.rly")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "mod" or name not in self.mod:
            raise error.AttributeError(f"relay.Prelude: the library has no function '{name}'")
        return self.mod.get_global_var(name)

    def get_type(self, name: str) -> tuple[Any, ...]:
        """The name of a type and its constructors."""
        return self.mod.get_type(name)
