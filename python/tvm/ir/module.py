"""Functions by name, the unit passes work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api
from .adt import Constructor, TypeData
from .expr import GlobalVar, RelayExpr
from .function import BaseFunc
from .global_info import GlobalInfo
from .script_text import Scriptable, with_imports
from .type import GlobalTypeVar

__all__ = ["IRModule"]


def _as_function(expr: RelayExpr) -> BaseFunc:
    """A function; an expression of relay, the only kind that is none, as the body of one."""
    if isinstance(expr, BaseFunc) or not isinstance(expr, RelayExpr):
        return expr
    return tvm.get_global_func("relay.ir.FunctionOfExpr")(expr)


@tvm._ffi.register_object("IRModule")
class IRModule(Object, Scriptable):
    """A module of functions.

    Parameters
    ----------
    functions : functions by GlobalVar or by name.
    type_definitions : types that functions use, by GlobalTypeVar or by name.
    attrs : attributes of the module.
    global_infos : lists of `GlobalInfo` by what they are about; "vdevice" has the devices.
    """

    def __init__(
        self,
        functions: Mapping[Any, BaseFunc] | None = None,
        type_definitions: Mapping[Any, TypeData] | None = None,
        attrs: Mapping[str, Any] | None = None,
        global_infos: Mapping[str, Sequence[GlobalInfo]] | None = None,
    ) -> None:
        by_var = {
            GlobalVar(var) if isinstance(var, str) else var: func
            for var, func in (functions or {}).items()
        }
        record = None if not attrs else tvm.ir.DictAttrs(attrs)
        infos = {name: list(of_name) for name, of_name in (global_infos or {}).items()}
        self.__init_handle_by_constructor__(_ffi_api.IRModule, by_var, record, {}, infos)
        for definition in (type_definitions or {}).values():
            _ffi_api.Module_AddTypeDef(self, definition, False)

    def __str__(self) -> str:
        return with_imports(repr(self))

    @staticmethod
    def from_expr(
        expr: RelayExpr, functions: Mapping[Any, BaseFunc] | str | None = None, name: str = "main"
    ) -> IRModule:
        """A module with one function, named by its ``global_symbol`` or else `name`.

        Parameters
        ----------
        expr : the function. An expression of relay becomes one, of its free variables.
        functions : more functions by name or GlobalVar; a text is the name.
        """
        if isinstance(functions, str):
            return _ffi_api.Module_FromExpr(_as_function(expr), functions)
        result = _ffi_api.Module_FromExpr(_as_function(expr), name)
        result.update(functions or {})
        return result

    def __getitem__(self, var: Any) -> Any:
        """The function of a name or variable, or the definition of a GlobalTypeVar.

        Raises
        ------
        KeyError : there is none; the message lists the names there are.
        """
        if isinstance(var, GlobalTypeVar):
            return self._definition(str(var.name_hint))
        if isinstance(var, str):
            return _ffi_api.Module_Lookup_str(self, var)
        return _ffi_api.Module_Lookup(self, var)

    def _definition(self, name: str) -> TypeData:
        if name not in self.type_definitions:
            known = ", ".join(self.type_definitions) or "(no types)"
            raise tvm.error.KeyError(f'IRModule: there is no type "{name}"; the types are: {known}')
        return self.type_definitions[name]

    def __setitem__(self, var: Any, func: Any) -> None:
        if isinstance(var, GlobalTypeVar):
            _ffi_api.Module_AddTypeDef(self, func, True)
            return
        if isinstance(var, str):
            var = self.get_global_var(var) if var in self else GlobalVar(var)
        _ffi_api.Module_Add(self, var, _as_function(func), True)

    def __delitem__(self, var: str | GlobalVar) -> None:
        _ffi_api.Module_Remove(self, self.get_global_var(var) if isinstance(var, str) else var)

    def __contains__(self, var: str | GlobalVar) -> bool:
        name = var if isinstance(var, str) else var.name_hint
        return _ffi_api.Module_ContainGlobalVar(self, name)

    def __len__(self) -> int:
        return len(self.functions)

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a function.

        Raises
        ------
        KeyError : there is no function of that name; the message lists the names there are.
        """
        return _ffi_api.Module_GetGlobalVar(self, name)

    def get_global_vars(self) -> list[GlobalVar]:
        """The variables of all functions, in the order they were added."""
        return list(_ffi_api.Module_GetGlobalVars(self))

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The name of a type as types are made of it; KeyError if there is no such type."""
        return self._definition(name).header

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The names of all types."""
        return [definition.header for definition in self.type_definitions.values()]

    def get_type(self, name: str) -> tuple[Any, ...]:
        """The name of a type and its constructors; KeyError if there is no such type."""
        definition = self._definition(name)
        return (definition.header, *definition.constructors)

    def get_constructor(self, tag: int) -> Constructor:
        """The constructor of a tag.

        Raises
        ------
        KeyError : there is none.
        """
        for definition in self.type_definitions.values():
            for constructor in definition.constructors:
                if constructor.tag == tag:
                    return constructor
        raise tvm.error.KeyError(f"IRModule: there is no constructor with the tag {tag}")

    def import_from_std(self, file_to_import: str) -> None:
        """Add definitions of relay's library, such as "prelude.rly"; what is there stays.

        Raises
        ------
        ValueError : the library has no such file.
        """
        tvm.get_global_func("relay.ImportFromStd")(self, file_to_import)

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Replace the function of a variable, in place."""
        _ffi_api.Module_Add(self, var, _as_function(func), True)

    def update_global_info(self, name: str, global_info: Sequence[GlobalInfo]) -> None:
        """Replace, in place, what the module says about `name`."""
        _ffi_api.Module_UpdateGlobalInfo(self, name, list(global_info))

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The program as text with everything in it, which `tvm.parser.parse` reads.

        Parameters
        ----------
        show_meta_data, annotate : of programs in relay, whether objects that are no text are
            written too, and what makes a note for every expression.
        """
        if any(func.__class__.__module__ == "tvm.relay.expr" for func in self.functions.values()):
            return tvm.get_global_func("relay.ir.AsText")(self, show_meta_data, annotate)
        return self.script(show_meta=True)

    def update(self, other: IRModule | Mapping[Any, BaseFunc]) -> None:
        """Add or replace, in place, the functions of another module."""
        if isinstance(other, IRModule):
            for definition in other.type_definitions.values():
                _ffi_api.Module_AddTypeDef(self, definition, True)
        functions = other.functions if isinstance(other, IRModule) else other
        for var, func in functions.items():
            self[var if isinstance(var, str) else var.name_hint] = func

    def with_functions(self, functions: Mapping[Any, BaseFunc]) -> IRModule:
        """A module of other functions, with the types, attributes and infos of this one."""
        return IRModule(functions, self.type_definitions, self.attrs, self.global_infos)

    def with_attr(self, attr_key: str, attr_value: Any) -> IRModule:
        """A copy with one attribute set."""
        return _ffi_api.Module_WithAttr(self, attr_key, attr_value)

    def without_attr(self, key: str) -> IRModule:
        """A copy without an attribute."""
        return _ffi_api.Module_WithoutAttr(self, key)

    def with_attrs(self, attrs: Mapping[str, Any]) -> IRModule:
        """A copy with the attributes of a mapping set."""
        result = self
        for key, value in attrs.items():
            result = result.with_attr(key, value)
        return result

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """Variables and functions, sorted by name."""
        return sorted(self.functions.items(), key=lambda item: item[0].name_hint)

    def clone(self) -> IRModule:
        """A module of the same functions that may be changed on its own."""
        return self.__copy__()

    def get_attr(self, key: str) -> Any:
        """An attribute, or None."""
        return None if self.attrs is None else self.attrs.get(key)
